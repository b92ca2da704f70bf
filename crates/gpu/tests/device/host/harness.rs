//! Running one loop as a program, with everything around it poisoned.

use griffinfly_compile::program::{
    Arena, ArenaId, Binding, BindingAccess, Dispatch, DispatchId, FORMAT, LoopId, MemoryReport, Program,
    Role, Section, SectionKind, Work,
};
use griffinfly_gpu::host::{HostOptions, open_with};
use griffinfly_gpu::{Buffer, Device, GpuError, Sections};
use griffinfly_ir::loops::{Loop, interpret};
use griffinfly_ir::target::Target;
use griffinfly_ir::types::{DType, TensorType};
use std::sync::Arc;

/// A NaN no computation makes.
pub(super) const POISON: u32 = 0x7fc0_dead;

pub(super) const STATE: ArenaId = ArenaId(0);

/// A device with this many threads.
pub(super) fn device(threads: usize) -> Arc<dyn Device> {
    open_with(&HostOptions { threads: Some(threads), ..HostOptions::default() })
}

/// A program of no dispatches over these arenas.
pub(super) fn empty_program(arenas: Vec<Arena>) -> Program {
    Program {
        format: FORMAT,
        generator: "test".into(),
        target: Target::host(),
        arenas,
        externals: vec![],
        constants: vec![],
        kernels: vec![],
        loops: vec![],
        dispatches: vec![],
        sections: vec![Section { kind: SectionKind::ForwardBackward, levels: vec![] }],
        memory: MemoryReport::default(),
        id_guard: None,
    }
}

/// Adds a loop as a dispatch in a level of its own.
pub(super) fn push(program: &mut Program, l: Loop, bindings: Vec<Binding>) {
    let id = program.dispatches.len() as u32;
    program.loops.push(l);
    program.dispatches.push(Dispatch {
        work: Work::Loop,
        source: LoopId(id),
        bindings,
        instance: "host".into(),
        provenance: vec![],
    });
    program.sections[0].levels.push(vec![DispatchId(id)]);
}

/// A tensor bound at an offset of an arena.
pub(super) fn bind(arena: ArenaId, offset: u64, ty: &TensorType, written: bool) -> Binding {
    let access = if written { BindingAccess::Write } else { BindingAccess::Read };
    Binding { arena, offset, bytes: ty.bytes() as u64, access }
}

/// A program of one loop, all tensors in one state arena, each followed by at least 64 words of padding. Result
/// `r` lies where operand `o` lies for each `(o, r)` of `in_place`.
pub(super) fn program_of(l: &Loop, in_place: &[(usize, usize)]) -> Program {
    let (mut bindings, mut end) = (Vec::new(), 256);
    for (i, ty) in l.operands.iter().chain(&l.results).enumerate() {
        let result = i.checked_sub(l.operands.len());
        let shared = in_place.iter().find(|(_, r)| Some(*r) == result);
        if let Some((o, _)) = shared {
            let mut b: Binding = bindings[*o];
            b.access = BindingAccess::Write;
            bindings.push(b);
            continue;
        }
        bindings.push(bind(STATE, end, ty, result.is_some()));
        end = (end + ty.bytes() as u64 + 256).next_multiple_of(256);
    }
    let mut program = empty_program(vec![Arena { role: Role::State, chunk: 0, bytes: end }]);
    push(&mut program, l.clone(), bindings);
    program
}

pub(super) fn to_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_ne_bytes()).collect()
}

pub(super) fn to_words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// A buffer of these words.
pub(super) fn buffer_of(device: &dyn Device, words: &[u32]) -> Arc<dyn Buffer> {
    let buffer = device.buffer(words.len() as u64 * 4).expect("memory");
    device.write(&buffer, 0, &to_bytes(words)).expect("inside");
    buffer
}

/// Runs a program of [`program_of`] and gives the words of its results.
pub(super) fn run_program(
    device: &dyn Device,
    program: Program,
    operands: &[Vec<u32>],
) -> Result<Vec<Vec<u32>>, GpuError> {
    let mut memory = vec![POISON; program.arenas[0].bytes as usize / 4];
    let bindings = program.dispatches[0].bindings.clone();
    let at = |b: &Binding| b.offset as usize / 4..(b.offset + b.bytes) as usize / 4;
    for (b, words) in bindings.iter().zip(operands) {
        memory[at(b)].copy_from_slice(words);
    }
    let buffer = buffer_of(device, &memory);
    let mut executor = device.instantiate(Arc::new(program), &[(STATE, buffer.clone())])?;
    executor.submit(Sections::ALL)?;
    let mut bytes = vec![0; memory.len() * 4];
    device.read(&buffer, 0, &mut bytes)?;
    let after = to_words(&bytes);
    let results = &bindings[operands.len()..];
    for (i, (a, b)) in after.iter().zip(&memory).enumerate() {
        let written = results.iter().any(|r| at(r).contains(&i));
        assert!(written || a == b, "word {i} outside the results changed");
    }
    Ok(results.iter().map(|b| after[at(b)].to_vec()).collect())
}

/// Runs a loop.
pub(super) fn run(device: &dyn Device, l: &Loop, operands: &[Vec<u32>]) -> Vec<Vec<u32>> {
    run_program(device, program_of(l, &[]), operands).expect("a sound program")
}

/// Compares with the interpreter: integers exactly, floats within `tolerance` (relative above 1).
pub(super) fn assert_close(l: &Loop, operands: &[Vec<u32>], got: &[Vec<u32>], tolerance: f32) {
    let slices: Vec<&[u32]> = operands.iter().map(Vec::as_slice).collect();
    let want = interpret(l, &slices);
    for (r, (got, want)) in got.iter().zip(&want).enumerate() {
        for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
            let (x, y) = (f32::from_bits(g), f32::from_bits(w));
            let close = match l.results[r].dtype {
                DType::F32 => {
                    assert_ne!(g, POISON, "result {r} element {i} was not written: {l:?}");
                    x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= tolerance * y.abs().max(1.0)
                }
                _ => g == w,
            };
            assert!(close, "result {r} element {i}: {x} ({g:#x}) instead of {y} ({w:#x}) in {l:#?}");
        }
    }
}

/// The loop is sound, gives what the interpreter gives, and the same bits with one and with three threads.
pub(super) fn check(l: &Loop, operands: &[Vec<u32>], tolerance: f32) {
    assert_eq!(l.verify(), Vec::<String>::new(), "{l:#?}");
    let got = run(device(3).as_ref(), l, operands);
    assert_close(l, operands, &got, tolerance);
    assert_eq!(got, run(device(1).as_ref(), l, operands), "threads change the result of {l:?}");
}
