//! Programs and calls that do not fit: each is a typed error.

use super::device::accumulator;
use super::harness::{STATE, buffer_of, device, program_of, run_program};
use super::known::{identity, matmul};
use griffinfly_compile::program::{ArenaId, DispatchId, ExternalKind, KernelId, LoopId, Program, Role, Work};
use griffinfly_gpu::{Buffer, GpuError};
use griffinfly_ir::index::{Access, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Loop, LoopKind, Map};
use griffinfly_ir::target::Target;
use griffinfly_ir::types::{DType, TensorType};
use std::sync::Arc;

type Change = fn(&mut Program);

fn refused(change: Change) -> GpuError {
    let device = device(1);
    let mut program = accumulator();
    change(&mut program);
    let state = buffer_of(device.as_ref(), &[0; 64]);
    device.instantiate(Arc::new(program), &[(STATE, state)]).err().expect("refused")
}

#[test]
fn host_refuses_programs_for_other_targets() {
    let error = refused(|p| p.target = Target::minimal_vulkan());
    assert!(matches!(error, GpuError::WrongTarget { .. }), "{error}");
}

#[test]
fn host_refuses_programs_that_do_not_fit_together() {
    let changes: [(&str, Change); 17] = [
        ("format", |p| p.format += 1),
        ("arena 9", |p| p.dispatches[0].bindings[0].arena = ArenaId(9)),
        ("not a multiple", |p| p.dispatches[0].bindings[0].offset = 2),
        ("outside arena", |p| p.dispatches[0].bindings[0].offset = 256),
        ("outside arena", |p| p.dispatches[0].bindings[0].offset = u64::MAX - 3),
        ("bytes bound", |p| p.dispatches[0].bindings[0].bytes = 16),
        ("bindings for", |p| p.dispatches[0].bindings.truncate(2)),
        ("does not exist", |p| p.dispatches[0].source = LoopId(7)),
        ("does not exist", |p| p.sections[0].levels[0].push(DispatchId(7))),
        ("overlaps", |p| p.dispatches[0].bindings[2].offset = 4),
        ("collide", |p| p.sections[0].levels = vec![vec![DispatchId(0), DispatchId(1)]]),
        ("outside arena", |p| p.constants[0].words = vec![0; 65]),
        ("outside arena", |p| p.externals[0].place.offset = 252),
        ("in an arena of", |p| p.externals[0].place.arena = STATE),
        ("in an arena of Constants", |p| p.dispatches[0].bindings[2].arena = ArenaId(2)),
        ("runs loops", |p| {
            p.dispatches[0].work = Work::Kernel { kernel: KernelId(0), parameters: vec![], groups: [1; 3] };
        }),
        ("is not bound", |p| p.arenas[2].role = Role::Parameters),
    ];
    for (words, change) in changes {
        let error = refused(change);
        assert!(error.to_string().contains(words), "{error} does not say {words}");
    }
}

#[test]
fn host_refuses_loops_that_are_not_sound() {
    type MapChange = fn(&mut Map);
    let changes: [(&str, MapChange); 6] = [
        ("missing axis", |m| m.body.loads[0].access.coords[0] = IndexExpr::axis(3)),
        ("spans", |m| m.body.loads[0].access.coords[0] = IndexExpr::axis(0).plus_constant(1)),
        ("not a bijection", |m| m.stores[0].coords[0] = IndexExpr::constant(0)),
        ("missing operand", |m| m.body.loads[0].operand = 5),
        ("empty or too large", |m| m.domain = vec![0]),
        ("empty or too large", |m| m.domain = vec![usize::MAX, 3]),
    ];
    let device = device(1);
    for (words, change) in changes {
        let (body, ty) = identity(&[5], 0);
        let mut map = Map { domain: vec![5], body, stores: vec![Store::identity(0, 1)] };
        change(&mut map);
        let l = Loop { operands: vec![ty.clone()], results: vec![ty], kind: LoopKind::Map(map) };
        let error = run_program(device.as_ref(), program_of(&l, &[]), &[vec![0; 5]]).unwrap_err();
        assert!(error.to_string().contains(words), "{error} does not say {words}");
    }
}

#[test]
fn host_refuses_results_over_operands_unless_element_by_element() {
    let device = device(1);
    // A transposed copy in place would read what was overwritten.
    let ty = TensorType::f32([4, 4]);
    let body = Body::of_load(0, &ty, Access::at(vec![IndexExpr::axis(1), IndexExpr::axis(0)]));
    let kind = LoopKind::Map(Map { domain: vec![4, 4], body, stores: vec![Store::identity(0, 2)] });
    let transpose = Loop { operands: vec![ty.clone()], results: vec![ty], kind };
    for l in [transpose, matmul(4, 4, 4)] {
        let operands: Vec<_> = l.operands.iter().map(|t| vec![0; t.elements()]).collect();
        let error = run_program(device.as_ref(), program_of(&l, &[(0, 0)]), &operands).unwrap_err();
        assert!(error.to_string().contains("overlaps"), "{error}");
    }
}

#[test]
fn host_runs_in_place_along_axes_of_extent_1() {
    // The load names no index of the first axis, the store does: both mean the only one.
    let ty = TensorType::f32([1, 5]);
    let mut body = Body::new();
    let x = body.load(0, &ty, Access::at(vec![IndexExpr::constant(0), IndexExpr::axis(1)]));
    let double = body.expr.add(x, x);
    body.output(double);
    let kind = LoopKind::Map(Map { domain: vec![1, 5], body, stores: vec![Store::identity(0, 2)] });
    let l = Loop { operands: vec![ty.clone()], results: vec![ty], kind };
    let words: Vec<u32> = (0..5).map(|i| (i as f32).to_bits()).collect();
    let results = run_program(device(1).as_ref(), program_of(&l, &[(0, 0)]), &[words]).unwrap();
    let expected: Vec<u32> = (0..5).map(|i| (2.0 * i as f32).to_bits()).collect();
    assert_eq!(results, [expected]);
}

#[test]
fn host_refuses_buffers_that_do_not_fit() {
    let device = device(1);
    let other = super::harness::device(1);
    let good = buffer_of(device.as_ref(), &[0; 64]);
    let small = buffer_of(device.as_ref(), &[0; 63]);
    let foreign = buffer_of(other.as_ref(), &[0; 64]);
    type Bound = Vec<(ArenaId, Arc<dyn Buffer>)>;
    let cases: [(&str, Bound); 6] = [
        ("is not bound", vec![]),
        ("252 bytes of 256", vec![(STATE, small)]),
        ("another device", vec![(STATE, foreign)]),
        ("no such arena", vec![(STATE, good.clone()), (ArenaId(9), good.clone())]),
        ("bound twice", vec![(STATE, good.clone()), (STATE, good.clone())]),
        ("belongs to the device", vec![(STATE, good.clone()), (ArenaId(1), good)]),
    ];
    for (words, bound) in cases {
        let error = device.instantiate(Arc::new(accumulator()), &bound).err().expect("refused");
        assert!(error.to_string().contains(words), "{error} does not say {words}");
    }
}

#[test]
fn host_refuses_calls_that_do_not_fit() {
    let device = device(1);
    let state = buffer_of(device.as_ref(), &[0; 64]);
    let mut executor = device.instantiate(Arc::new(accumulator()), &[(STATE, state)]).unwrap();
    assert!(executor.write(0, &[0; 19]).is_err(), "wrong byte count");
    assert!(executor.write(1, &[0; 20]).is_err(), "an output");
    assert!(executor.write(9, &[0; 20]).is_err(), "missing");
    let ticket = executor.submit(griffinfly_gpu::Sections::ALL).unwrap();
    assert!(executor.read(ticket, 1, &mut [0; 21]).is_err(), "wrong byte count");
    assert!(executor.read(ticket, 0, &mut [0; 20]).is_err(), "an input");
    assert!(executor.read(ticket, 9, &mut [0; 20]).is_err(), "missing");
    executor.read(ticket, 1, &mut [0; 20]).unwrap();
}

#[test]
fn host_refuses_ids_out_of_range() {
    let device = device(1);
    let mut program = accumulator();
    program.externals[0].kind = ExternalKind::Input { id_limit: Some(10), ignore: Some(-100) };
    program.externals[0].ty = TensorType::new(DType::I32, [5]);
    let state = buffer_of(device.as_ref(), &[0; 64]);
    let mut executor = device.instantiate(Arc::new(program), &[(STATE, state)]).unwrap();
    let mut write = |values: [i32; 5]| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        executor.write(0, &bytes)
    };
    write([0, 9, -100, 5, 1]).unwrap();
    for bad in [10, -1, i32::MIN, i32::MAX] {
        let error = write([0, 9, bad, 5, 1]).unwrap_err().to_string();
        assert!(error.contains(&format!("id {bad} at position 2 is not in 0..10")), "{error}");
    }
}

#[test]
fn host_reads_ids_out_of_range_as_the_nearest() {
    let (table, ids) = (TensorType::f32([3, 2]), TensorType::new(DType::I32, [4]));
    let mut body = Body::new();
    body.load(1, &ids, Access::at(vec![IndexExpr::axis(0)]));
    let mut access = Access::at(vec![IndexExpr::constant(0), IndexExpr::axis(1)]);
    access.dynamic = Some(griffinfly_ir::index::Dynamic { dimension: 0, load: 0 });
    let value = body.load(0, &table, access);
    body.output(value);
    let kind = LoopKind::Map(Map { domain: vec![4, 2], body, stores: vec![Store::identity(0, 2)] });
    let l = Loop { operands: vec![table, ids], results: vec![TensorType::f32([4, 2])], kind };
    let operands = [vec![10, 11, 20, 21, 30, 31], vec![1, 2, i32::MIN as u32, i32::MAX as u32]];
    let got = run_program(device(1).as_ref(), program_of(&l, &[]), &operands).unwrap();
    assert_eq!(got[0], [20, 21, 30, 31, 10, 11, 30, 31]);
}
