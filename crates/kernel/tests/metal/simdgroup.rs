//! Matrices of simdgroups on the CPU: those of the stub library are right, and so is every tiling that uses them.
//!
//! Input: two matrices of 8 rows and 8 columns, and a sum that two simdgroups add their product to, the second with its right
//! factor transposed, in naga's words. Output: the sums, exactly; and the reports of faults planted in the text.
//!
//! Input: products larger than the tiles and none of their multiples, with every order of the factors in memory, in batches, in parts,
//! with two right factors of one left one, with sums of rows besides. Output: what the interpreter says; and the reports of barriers
//! of simdgroups left out.

use super::cpp::{Code, Dispatch, Job, run};
use super::execute::{Case, Problem, execute, is_skipped};
use griffinfly_ir::index::{Access, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Contract, Loop, LoopKind, Term};
use griffinfly_ir::types::{DType, TensorType};
use griffinfly_kernel::families::contract::{Choice, Tiling, choices, realise_with};

const TEXT: &str = "#include <metal_stdlib>
#include <simd/simd.h>

using metal::uint;

struct _mslBufferSizes {
    uint size1;
};
typedef float type_2[1];
struct type_5 {
    float inner[128];
};
metal::simdgroup_float8x8 load(const threadgroup float* ptr, int stride, bool is_row_major) {
    metal::simdgroup_float8x8 m;
    simdgroup_load(m, ptr, stride, 0, is_row_major);
    return m;
}
metal::simdgroup_float8x8 add(const thread metal::simdgroup_float8x8& a, const thread metal::simdgroup_float8x8& b, const thread metal::simdgroup_float8x8& c) {
    metal::simdgroup_float8x8 d;
    simdgroup_multiply_accumulate(d,a,b,c);
    return d;
}
[[max_total_threads_per_threadgroup(64)]] kernel void main_(
  uint local_index [[thread_index_in_threadgroup]]
, device type_2 const& x0_ [[buffer(0)]]
, device type_2& y0_ [[buffer(1)]]
, threadgroup type_5& tile
, constant _mslBufferSizes& _buffer_sizes [[buffer(2)]]
) {
    tile.inner[local_index] = x0_[local_index];
    tile.inner[local_index + 64u] = x0_[local_index + 64u];
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    metal::simdgroup_float8x8 left = load(&tile.inner[0], 8, false);
    metal::simdgroup_float8x8 right = load(&tile.inner[64], 8, local_index >= 32u);
    metal::simdgroup_float8x8 sum = load(&y0_[(local_index >> 5u) * 64u], 8, false);
    simdgroup_store(add(left, right, sum), &y0_[(local_index >> 5u) * 64u], 8, 0, false);
    return;
}
";

#[test]
fn matrices_of_simdgroups_are_multiplied() {
    if is_skipped() {
        return;
    }
    let barrier = "    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);\n";
    let store = "    simdgroup_store(add";
    let plants = [
        ("", TEXT.into()),
        ("race: ", TEXT.replace(barrier, "")),
        ("a matrix in no buffer", TEXT.replace("&tile.inner[64], 8", "&tile.inner[64], 9")),
        (
            "not reached by all of a simdgroup",
            TEXT.replace(store, "    if (local_index != 40u) simdgroup_store(add"),
        ),
    ];
    let code =
        |(what, text): &(&str, String)| Code { name: (*what).into(), text: text.clone(), invocations: 64 };
    let factors: Vec<f32> = (0..128).map(|i| (i * 37 % 29) as f32 - 14.0).collect();
    let words = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    let job = |kernel: usize| Job {
        buffers: vec![words(&factors), words(&[3.0; 128])],
        dispatches: vec![Dispatch { kernel, groups: [1; 3], parameters: vec![], bindings: vec![0, 1] }],
    };
    let jobs: Vec<Job> = (0..plants.len()).map(job).collect();
    let outcomes = run("metal-simdgroup", &plants.iter().map(code).collect::<Vec<_>>(), &jobs);
    let (a, b) = factors.split_at(64);
    let sum = |i: usize| {
        let (row, column) = (i / 8 % 8, i % 8);
        let right = |k: usize| if i < 64 { b[k * 8 + column] } else { b[column * 8 + k] };
        (0..8).map(|k| a[row * 8 + k] * right(k)).sum::<f32>() + 3.0
    };
    assert_eq!(outcomes[0].fault, None);
    assert_eq!(outcomes[0].buffers[1], words(&(0..128).map(sum).collect::<Vec<_>>()));
    for ((what, _), outcome) in plants.iter().zip(&outcomes).skip(1) {
        let fault = outcome.fault.as_ref().map_or("", |(_, fault)| fault);
        assert!(fault.contains(what), "{what}: {fault}");
    }
}

/// What a product has besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Besides {
    Nothing,
    /// The sum of the squares of each row of the left factor, which is added to every result of the row.
    RowSums,
    /// A second right factor, whose sum the first is multiplied by.
    SecondSum,
}

/// `y[g, m, n] = sum over k of a[g, m, k] b[g, n, k]`; a transposed factor has its last two dimensions swapped in memory.
fn product([m, n, k]: [usize; 3], transposed: [bool; 2], besides: Besides) -> Loop {
    const BATCH: usize = 2;
    let factor = |rows: usize, swap: bool| {
        let dims = if swap { [BATCH, k, rows] } else { [BATCH, rows, k] };
        let axes = if swap { [0, 2, 1] } else { [0, 1, 2] };
        (TensorType::f32(dims), Access::at(axes.map(IndexExpr::axis).to_vec()))
    };
    let [(a_type, a_at), (b_type, b_at)] = [factor(m, transposed[0]), factor(n, transposed[1])];
    let mut a = Body::of_load(0, &a_type, a_at);
    let b = Body::of_load(1, &b_type, b_at.clone());
    let mut epilogue = Body::new();
    let acc = epilogue.expr.carry(0, DType::F32);
    let (mut operands, mut more, mut result) = (vec![a_type, b_type.clone()], Vec::new(), acc);
    if besides != Besides::Nothing {
        let other = epilogue.expr.carry(1, DType::F32);
        result = match besides {
            Besides::RowSums => epilogue.expr.add(acc, other),
            _ => epilogue.expr.mul(acc, other),
        };
    }
    epilogue.output(result);
    match besides {
        Besides::Nothing => {}
        Besides::RowSums => {
            let x = a.expr.outputs()[0];
            let square = a.expr.mul(x, x);
            a.expr.set_outputs(vec![x, square]);
        }
        Besides::SecondSum => {
            let b = Body::of_load(2, &b_type, b_at);
            more.push(Term { k: vec![k], a: a.clone(), b, sum: 1 });
            operands.push(b_type);
        }
    }
    let stores = vec![Store::identity(0, 3)];
    let contract =
        Contract { batch: vec![BATCH], m: vec![m], n: vec![n], k: vec![k], a, b, more, epilogue, stores };
    Loop { operands, results: vec![TensorType::f32([BATCH, m, n])], kind: LoopKind::Contract(contract) }
}

/// Operands between -1 and 1 in eighths: products are exact, sums nearly so.
fn operands(l: &Loop) -> Vec<Vec<u32>> {
    let values = |(i, ty): (usize, &TensorType)| {
        let value = |j: usize| ((j * 37 + i * 11 + j / 19) % 17) as f32 / 8.0 - 1.0;
        (0..ty.elements()).map(|j| value(j).to_bits()).collect()
    };
    l.operands.iter().enumerate().map(values).collect()
}

fn case(l: &Loop, choice: &Choice) -> Case {
    let realisation = realise_with(l, &super::apple(), choice).unwrap();
    assert!(!realisation.dispatches[0].kernel.matrices.is_empty(), "{choice}");
    Problem::of(format!("{choice}"), l.clone(), operands(l)).new_case(&realisation)
}

/// The tilings for matrices.
fn tilings() -> Vec<Tiling> {
    let all = choices(&super::apple()).into_iter().map(|choice| choice.tiling);
    let mut tilings: Vec<Tiling> = all.filter(|tiling| tiling.staging == super::MATRICES).collect();
    tilings.dedup();
    tilings
}

#[test]
fn every_tiling_with_matrices_equals_the_interpreter() {
    if is_skipped() {
        return;
    }
    let mut cases = Vec::new();
    for (i, t) in tilings().into_iter().enumerate() {
        let [bm, bn, bk] = [t.bm, t.bn, t.bk].map(|n| n as usize);
        for (j, transposed) in
            [[false, false], [false, true], [true, false], [true, true]].into_iter().enumerate()
        {
            let besides = [Besides::Nothing, Besides::RowSums, Besides::SecondSum][(i + j) % 3];
            // Three tiles of 32 products leave no room for the sums' way out.
            let besides = if bk == 32 && besides == Besides::SecondSum { Besides::Nothing } else { besides };
            let whole = product([bm + 4, bn + 8, 2 * bk + 4], transposed, besides);
            cases.push(case(&whole, &Choice::whole(t)));
            let odd = product([bm + 1, bn + 3, 5 * bk + 1], transposed, Besides::Nothing);
            let choice = if j % 2 == 0 { Choice::parts(t, 3) } else { Choice::whole(t) };
            cases.push(case(&odd, &choice));
        }
    }
    assert_eq!(cases.len(), 40, "five tilings, four orders");
    let (faults, _) = execute("metal-matrices", &cases);
    assert_eq!(faults.concat(), Vec::<String>::new());
}

#[test]
fn a_missing_barrier_of_a_simdgroup_is_found() {
    const BARRIER: &str = "metal::simdgroup_barrier(metal::mem_flags::mem_threadgroup);\n";
    if is_skipped() {
        return;
    }
    let case = case(&product([36, 40, 20], [false; 2], Besides::Nothing), &Choice::whole(tilings()[0]));
    let without = |(at, _): (usize, &str)| {
        let mut changed = case.clone();
        changed.texts[0].replace_range(at..at + BARRIER.len(), "");
        changed
    };
    let changed: Vec<Case> = case.texts[0].match_indices(BARRIER).map(without).collect();
    assert_eq!(changed.len(), 2, "between the matrices and the registers, and behind");
    let (faults, _) = execute("metal-simdgroup-barriers", &changed);
    assert!(!faults[0].is_empty(), "the registers read what is not there yet");
}

/// What a device is asked before its matrices are used, and that it finds a transposed factor and simdgroups of another width.
#[test]
fn the_probe_of_matrices_agrees() {
    if is_skipped() {
        return;
    }
    let probe = griffinfly_kernel::probe::f32_matrices().unwrap();
    let text = super::msl(&probe.kernel);
    let texts =
        [text.clone(), text.replacen(", 8u, true)", ", 8u, false)", 1), text.replace(">> 5u", ">> 4u")];
    let code = |text: &String| Code { name: probe.kernel.name.clone(), text: text.clone(), invocations: 64 };
    let words = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    let job = |kernel: usize| Job {
        buffers: vec![words(&probe.operand), vec![0; probe.expected.len()]],
        dispatches: vec![Dispatch { kernel, groups: [1; 3], parameters: vec![], bindings: vec![0, 1] }],
    };
    let jobs: Vec<Job> = (0..texts.len()).map(job).collect();
    let outcomes = run("metal-probe", &texts.each_ref().map(code), &jobs);
    assert_eq!(outcomes[0].fault, None, "{text}");
    assert_eq!(outcomes[0].buffers[1], words(&probe.expected));
    for (text, outcome) in texts.iter().zip(&outcomes).skip(1) {
        assert_ne!(*text, texts[0]);
        assert!(outcome.fault.is_some() || outcome.buffers[1] != words(&probe.expected), "{text}");
    }
}
