//! Golden texts, and proof by naga that everything printed compiles.

use super::*;
use crate::kir::{Axis, Builder, Lanes, Literal, Scalar, Type};
use crate::spirv;

/// Prints with push constants, after compiling both parameter homes.
fn text(b: Builder) -> String {
    let kernel = b.finish().unwrap();
    let uniform = PrintOptions { parameters: ParameterBlock::Uniform { binding: 31 } };
    for options in [PrintOptions::default(), uniform] {
        let text = wgsl(&kernel, &options);
        spirv::compile(&text, ENTRY).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
    wgsl(&kernel, &PrintOptions::default())
}

/// Body of the entry point only.
fn body(b: Builder) -> String {
    let text = text(b);
    let start = text.find(") {\n").unwrap() + 4;
    text[start..].strip_suffix("}\n").unwrap().to_owned()
}

#[test]
fn golden_map() {
    let b = Builder::new("scale", [64, 1, 1]);
    let (count, factor) = (b.param("count"), b.param_as("factor", Scalar::F32));
    let (x, y) = (b.read("x", Type::F32X4), b.read_write("y", Type::F32X4));
    let i = b.flat_global_id().named("i");
    b.if_(i.lt(count), || y.store(i, x.load(i) * factor + 1));
    assert_eq!(
        text(b),
        "\
struct Params {
    count: u32,
    factor: u32,
}
var<immediate> params: Params;
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;

@compute @workgroup_size(64, 1, 1)
fn main(
    @builtin(local_invocation_index) local_index: u32,
    @builtin(num_workgroups) workgroup_count: vec3<u32>,
    @builtin(workgroup_id) workgroup_id: vec3<u32>,
) {
    let v0 = bitcast<f32>(params.factor);
    let i = (workgroup_id.y * workgroup_count.x + workgroup_id.x) * 64u + local_index;
    if i < params.count {
        let v1 = x[i];
        y[i] = v1 * vec4<f32>(v0) + vec4<f32>(1.0f);
    }
}
"
    );
}

#[test]
fn golden_loop_with_workgroup_memory() {
    let b = Builder::new("sum", [64, 1, 1]);
    let width = b.param("width");
    let (x, y) = (b.read("x", Type::F32), b.read_write("y", Type::F32));
    let partial = b.shared("partial", Type::F32, 64);
    let (row, lane) = (b.workgroup_id(Axis::X), b.local_index());
    let total = b.var("total", 0.0);
    b.for_("column", (lane, width), 64, |column| total.set(total.get() + x.load(row * width + column)));
    partial.store(lane, total.get());
    b.barrier();
    for half in [32_u32, 1] {
        b.if_(lane.lt(half), || partial.store(lane, partial.load(lane) + partial.load(lane + half)));
        b.barrier();
    }
    b.if_(lane.equals(0), || y.store(row, partial.load(0)));
    assert_eq!(
        body(b),
        "    var total = 0.0f;
    for (var column = local_index; column < params.width; column += 64u) {
        let v0 = x[workgroup_id.x * params.width + column];
        total = total + v0;
    }
    partial[local_index] = total;
    workgroupBarrier();
    if local_index < 32u {
        let v1 = partial[local_index];
        let v2 = partial[local_index + 32u];
        partial[local_index] = v1 + v2;
    }
    workgroupBarrier();
    if local_index < 1u {
        let v3 = partial[local_index];
        let v4 = partial[local_index + 1u];
        partial[local_index] = v3 + v4;
    }
    workgroupBarrier();
    if local_index == 0u {
        let v5 = partial[0u];
        y[workgroup_id.x] = v5;
    }
"
    );
}

#[test]
fn values_used_twice_are_computed_once() {
    let b = Builder::new("shared", [1, 1, 1]);
    let y = b.read_write("y", Type::U32);
    let n = b.param("n");
    let twice = n * n;
    let unused = n + 9;
    y.store(0, twice + twice);
    let _ = unused;
    assert_eq!(body(b), "    let v0 = params.n * params.n;\n    y[0u] = v0 + v0;\n");
}

#[test]
fn reads_of_a_variable_stay_before_its_assignment() {
    let b = Builder::new("swap", [1, 1, 1]);
    let y = b.read_write("y", Type::F32);
    let (p, q) = (b.var("p", 1.0), b.var("q", 2.0));
    let old = p.get();
    p.set(q.get());
    q.set(old);
    y.store(0, p.get() - q.get());
    assert_eq!(
        body(b),
        "    var p = 1.0f;\n    var q = 2.0f;\n    let v0 = p;\n    p = q;\n    q = v0;\n    y[0u] = p - q;\n"
    );
}

#[test]
fn values_do_not_move_into_loops_or_bounds() {
    let b = Builder::new("hoisted", [1, 1, 1]);
    let y = b.read_write("y", Type::U32);
    let n = b.param("n");
    let end = n + 3;
    let product = n * n;
    b.for_("i", (n + 1, end), 1, |i| y.store(i, product));
    assert_eq!(
        body(b),
        "    let v0 = params.n + 3u;
    let v1 = params.n * params.n;
    for (var i = params.n + 1u; i < v0; i += 1u) {
        y[i] = v1;
    }
"
    );
}

#[test]
fn deep_text_is_cut() {
    let b = Builder::new("deep", [1, 1, 1]);
    let y = b.read_write("y", Type::U32);
    let mut value = b.param("n");
    for shift in 1..12 {
        value = (value ^ shift) + b.local_index();
    }
    y.store(0, value);
    let body = body(b);
    assert!(body.matches("let ").count() >= 3, "{body}");
}

#[test]
fn names_are_unique_and_legal() {
    let b = Builder::new("names", [1, 1, 1]);
    let a = b.read("for", Type::F32);
    let y = b.read_write("select", Type::F32);
    let z = b.read_write("select", Type::F32);
    let value = a.load(0).named("__9 lives!");
    y.store(0, value);
    z.store(0, value);
    assert_eq!(
        body(b),
        "    let n9_lives = for_2[0u];\n    select_2[0u] = n9_lives;\n    select_3[0u] = n9_lives;\n"
    );
}

#[test]
fn parentheses_keep_the_tree() {
    let b = Builder::new("tree", [1, 1, 1]);
    let y = b.read_write("y", Type::F32);
    let (p, q, r) = (b.var("p", 1.0), b.var("q", 2.0), b.var("r", 3.0));
    y.store(0, p.get() - (q.get() - r.get()));
    y.store(1, (p.get() - q.get()) - r.get());
    y.store(2, p.get() * (q.get() + r.get()));
    y.store(3, p.get() * q.get() + r.get());
    y.store(4, p.get() / (q.get() * r.get()));
    y.store(5, -(p.get() + q.get()));
    y.store(6, -(-p.get()) * -1.0);
    let body = body(b);
    let stores: Vec<_> = body.lines().skip(3).map(|line| line.split(" = ").nth(1).unwrap()).collect();
    assert_eq!(
        stores,
        [
            "p - (q - r);",
            "p - q - r;",
            "p * (q + r);",
            "p * q + r;",
            "p / (q * r);",
            "-(p + q);",
            "(-(-p)) * (-1.0f);"
        ]
    );
}

#[test]
fn special_constants_survive() {
    let b = Builder::new("constants", [1, 1, 1]);
    let (f, i, u) =
        (b.read_write("f", Type::F32), b.read_write("i", Type::I32), b.read_write("u", Type::U32));
    for value in [f32::INFINITY, f32::NAN, -0.0, f32::MAX, f32::MIN, f32::MIN_POSITIVE, 1e-45, 0.1, -1.5e-7] {
        f.store(0, value);
    }
    for value in [i32::MIN, i32::MAX, -1] {
        i.store(0, value);
    }
    u.store(0, u32::MAX);
    let text = text(b);
    for expected in ["bitcast<f32>(0x7f800000u)", "bitcast<f32>(0x80000000u)", "0.1f", "-1.5e-7f", "-1i"] {
        assert!(text.contains(expected), "{expected} not in\n{text}");
    }
    // No more than the largest number, in decimal too.
    for extreme in ["= 3.4028234663852886e38f", "= -3.4028234663852886e38f"] {
        assert!(text.contains(extreme), "{extreme} not in\n{text}");
    }
}

#[test]
fn every_expression_compiles() {
    let b = Builder::new("everything", [4, 4, 1]);
    let (x, y) = (b.read("x", Type::F32X4), b.read_write("y", Type::F32X4));
    let (u, s) = (b.read_write("u", Type::U32X4), b.read_write("s", Type::I32X2));
    let (v, n, k) = (x.load(b.global_id(Axis::Z)), b.param("n"), u.load(0));
    y.store(0, v.max(0.0).min(6.0) + v.native_max(v.abs()).native_min(1));
    y.store(1, v.floor() + v.ceil() * v.round() / v.trunc() % v);
    y.store(
        2,
        v.exp() + v.log() + v.sin() + v.cos() + v.tanh() + v.erf() + v.sigmoid() + v.sqrt() + v.rsqrt(),
    );
    y.store(3, v.pow(2.5).fma(v, 1.0));
    y.store(4, v.lt(0.5).select(v, -v) + n.gt(3).select(v, v.swizzle(&[3, 2, 1, 0])));
    y.store(5, v.swizzle(&[0, 1]).sum_lanes() + v.sum_lanes() + v.is_nan().lane(2).cast(Scalar::F32));
    y.store(6, (v.gt(0.0) & !v.equals(1.0) | v.differs(2.0)).select(v, 0.0));
    u.store(1, ((k << 3 >> 1) ^ k & 7 | !k) / n % 5 + v.cast(Scalar::U32) + v.bitcast(Scalar::U32));
    u.store(2, b.local_id(Axis::Y).splat(Lanes::Four) + b.workgroup_count(Axis::X));
    let pair = (s.load(n).abs() * -3) >> 2;
    s.store(0, pair + b.literal(Literal::I32(i32::MIN)));
    let (truth, tile) = (b.var("truth", true), b.shared("tile", Type::U32X2, 16));
    tile.store(b.local_index(), 7_u32);
    b.while_(|| truth.get(), || truth.set(n.le(4) & truth.get()));
    b.loop_(|| b.if_else(n.ge(5), || b.break_(), || b.break_if(truth.get())));
    text(b);
}

#[test]
fn accumulators_read_like_hand_written_ones() {
    let b = Builder::new("tile", [16, 16, 1]);
    let (depth, out) = (b.param("depth"), b.read_write("out", Type::F32X4));
    let (left, right) = (b.shared("left", Type::F32X4, 64), b.shared("right", Type::F32X4, 64));
    let sums: Vec<_> = (0..2).map(|row| b.var(format!("sum_{row}"), b.zero(Type::F32X4))).collect();
    b.for_("k", (0, depth), 1, |k| {
        let a = left.load(k * 4 + b.local_id(Axis::Y)).named("a");
        let w = right.load(k * 4 + b.local_id(Axis::X)).named("w");
        for (row, sum) in (0..).zip(&sums) {
            sum.set(b.fma(a.lane(row), w, sum.get()));
        }
    });
    for (row, sum) in (0_u32..).zip(&sums) {
        out.store(b.local_index() * 2 + row, sum.get());
    }
    assert_eq!(
        body(b),
        "    var sum_0 = vec4<f32>(0.0f);
    var sum_1 = vec4<f32>(0.0f);
    for (var k = 0u; k < params.depth; k += 1u) {
        let a = left[k * 4u + local_id.y];
        let w = right[k * 4u + local_id.x];
        sum_0 = fma(vec4<f32>(a.x), w, sum_0);
        sum_1 = fma(vec4<f32>(a.y), w, sum_1);
    }
    out[local_index * 2u] = sum_0;
    out[local_index * 2u + 1u] = sum_1;
"
    );
}
