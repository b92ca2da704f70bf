//! Matrices of simdgroups on the CPU: no kernel has any yet, so a text in naga's words shows that the stub library's are right.
//!
//! Input: two matrices of 8 rows and 8 columns, and a sum that two simdgroups add their product to, the second with its right
//! factor transposed. Output: the sums, exactly; and the reports of faults planted in the text.

use super::cpp::{Code, Dispatch, Job, run};
use super::execute::is_skipped;

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
