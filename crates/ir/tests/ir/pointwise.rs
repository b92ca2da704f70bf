//! Pointwise compositions against written expectations: values at the edge, sign rules, derivatives at kinks.

use crate::support::{
    agree, assert_close, both, by_lowering, check_gradients, feeds, gradients_of, weighted,
};
use griffinfly_ir::graph::{Graph, LeafKind, Value};
use griffinfly_ir::ops::TimestepEmbedding;
use griffinfly_ir::types::{DType, TensorType};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// Compares element by element, NaN with NaN.
fn assert_same(found: &[f64], expected: &[f64]) {
    let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
    let ok = found.len() == expected.len() && found.iter().zip(expected).all(same);
    assert!(ok, "found {found:?}, expected {expected:?}");
}

/// The gradient of the sum of `f` over the elements of `x`.
fn slope(x: &[f64], f: impl Fn(&mut Graph, Value) -> Value) -> Vec<f64> {
    let mut g = Graph::new();
    let v = g.input("x", [x.len()]);
    let y = f(&mut g, v);
    let loss = g.sum_all(y);
    gradients_of(&g, loss, &["x"], &feeds(&g, &[("x", x)])).remove(0)
}

#[test]
fn rounding_goes_the_way_its_name_says() {
    let x = [-2.5, -1.5, -0.6, -0.5, -0.49999997, 0.0, 0.49999997, 0.5, 0.75, 1.5, 2.5, 8388607.5, 1e30];
    let round = [-2.0, -2.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 8388608.0, 1e30f32 as f64];
    let x = x.map(|x| f64::from(x as f32));
    let n = [x.len()];
    assert_same(&both(&n, &x, Graph::round), &round);
    assert_same(&both(&n, &x, Graph::ceil), &x.map(f64::ceil));
    assert_same(&both(&n, &x, Graph::trunc), &x.map(f64::trunc));
    let edge = [INF, -INF, NAN];
    for f in [Graph::round, Graph::ceil, Graph::trunc] {
        assert_same(&both(&[3], &edge, f), &edge);
        assert_same(&slope(&[0.25, -1.5], f), &[0.0, 0.0]);
    }
}

#[test]
fn sign_and_isnan() {
    let x = [-3.0, -0.0, 0.0, 1e-30, INF, NAN];
    assert_same(&both(&[6], &x, Graph::sign), &[-1.0, 0.0, 0.0, 1.0, 1.0, NAN]);
    assert_same(&slope(&x[..5], Graph::sign), &[0.0; 5]);
    assert_same(&both(&[6], &x, Graph::isnan), &[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
}

#[test]
fn clamp_passes_nan_and_the_gradient_at_its_bounds() {
    let x = [-9.0, -1.0, 0.5, 2.0, 3.0, NAN, -INF];
    let (low, high) = (Some(-1.0), Some(2.0));
    assert_same(&both(&[7], &x, |g, x| g.clamp(x, low, high)), &[-1.0, -1.0, 0.5, 2.0, 2.0, NAN, -1.0]);
    assert_same(&both(&[2], &x[..2], |g, x| g.clamp(x, None, high)), &[-9.0, -1.0]);
    assert_same(&slope(&x[..5], |g, x| g.clamp(x, low, high)), &[0.0, 1.0, 1.0, 1.0, 0.0]);
    assert_same(&slope(&x[..5], |g, x| g.hardtanh(x, -1.0, 2.0)), &[0.0, 0.0, 1.0, 0.0, 0.0]);
    let mut g = Graph::new();
    let x = g.input("x", [2]);
    for (min, max) in
        [(Some(2.0), Some(1.0)), (None, None), (Some(f32::NAN), None), (Some(0.0), Some(f32::NAN))]
    {
        g.clamp(x, min, max);
    }
    g.hardtanh(x, 1.0, 1.0);
    g.clamp(x, Some(1.0), Some(1.0));
    let errors = g.finish().unwrap_err().0;
    assert_eq!(errors.len(), 5);
    assert!(errors[0].reason.contains("min is 2, max is 1"), "{}", errors[0]);
}

#[test]
fn powers_of_zero_and_of_negative_bases() {
    let pow = |a: &[f64], b: f32| {
        both(&[a.len()], a, |g, x| {
            let b = g.scalar(b);
            g.pow(x, b)
        })
    };
    assert_same(&pow(&[0.0, -2.0, NAN], 0.0), &[1.0, 1.0, 1.0]);
    assert_same(&pow(&[-2.0, 0.0, -1.0], 3.0), &[-8.0, 0.0, -1.0]);
    assert_same(&pow(&[-2.0, 0.0, -INF], -2.0), &[0.25, INF, 0.0]);
    assert_same(&pow(&[-2.0, 4.0, 0.0], 0.5), &[NAN, 2.0, 0.0]);
    let slope_at = |a: &[f64], b: f32| {
        slope(a, |g, x| {
            let b = g.scalar(b);
            g.pow(x, b)
        })
    };
    assert_same(&slope_at(&[0.0, -2.0], 3.0), &[0.0, 12.0]);
    assert_same(&slope_at(&[0.0, -2.0], 1.0), &[1.0, 1.0]);
    assert_same(&slope_at(&[0.0, -2.0], 0.0), &[0.0, 0.0]);
    assert_same(&slope_at(&[0.0, 4.0], 0.5), &[INF, 0.25]);
    // In the exponent: 0 at base 0, unless the power is infinite there.
    let exponents = slope(&[2.0, 0.0, -1.0], |g, b| {
        let zero = g.scalar(0.0);
        g.pow(zero, b)
    });
    assert_same(&exponents, &[0.0, 0.0, -INF]);
}

#[test]
fn logarithms_and_exponentials_keep_their_digits() {
    let tiny = [1e-30, -1e-12, 1e-7, -3e-4, 0.01, -0.3, 0.49, 0.51, -0.5, 0.99, 1.01, -1.0, 30.0];
    let tiny = tiny.map(|x| f64::from(x as f32));
    let mut g = Graph::new();
    let x = g.input("x", [tiny.len()]);
    let (log, exp) = (g.log1p(x), g.expm1(x));
    g.output("log", log);
    g.output("exp", exp);
    let found = by_lowering(&g, &feeds(&g, &[("x", &tiny)]));
    for (found, value) in found.iter().zip([f64::ln_1p, f64::exp_m1]) {
        for (x, y) in tiny.iter().zip(found) {
            assert!(*y == value(*x) || (y / value(*x) - 1.0).abs() < 4e-7, "{x}: {y}, not {}", value(*x));
        }
    }
    assert_same(&both(&[5], &[-1.0, -2.0, INF, NAN, 0.0], Graph::log1p), &[-INF, NAN, INF, NAN, 0.0]);
    assert_same(&both(&[4], &[-INF, INF, NAN, 0.0], Graph::expm1), &[-1.0, INF, NAN, 0.0]);
    let x = [-150.0, -126.0, -0.5, 0.0, 1.0, 10.0, 127.0, 127.99999, 128.0, 1e30, -1e30, NAN];
    let mut g = Graph::new();
    let input = g.input("x", [x.len()]);
    let y = g.exp2(input);
    let z = g.log2(y);
    g.output("y", y);
    g.output("z", z);
    let x = x.map(|x| f64::from(x as f32));
    let found = by_lowering(&g, &feeds(&g, &[("x", &x)]));
    for ((x, y), z) in x.iter().zip(&found[0]).zip(&found[1]) {
        let e = f64::from(x.exp2() as f32);
        assert!(*y == e || (y / e - 1.0).abs() < 4e-7 || (x.is_nan() && y.is_nan()), "{x}: {y}, not {e}");
        assert!(!e.is_normal() || e < 1e-37 || (z - x).abs() <= 4e-7 * x.abs(), "{x}: {z}");
    }
}

#[test]
fn softplus_is_linear_far_out() {
    let x = [-1e4, -200.0, 0.0, 200.0, 1e4, INF, -INF, NAN];
    let expected = [0.0, 0.0, std::f64::consts::LN_2, 200.0, 1e4, INF, 0.0, NAN];
    let found = both(&[8], &x, Graph::softplus);
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() < 1e-12 || *a == b || (a.is_nan() && b.is_nan()), "{found:?}");
    }
    assert_same(&slope(&[-1e4, 0.0, 1e4], Graph::softplus), &[0.0, 0.5, 1.0]);
}

#[test]
fn rectifiers_at_and_around_their_kink() {
    let x = [-1e4, -1.0, 0.0, 2.0, 1e4];
    let e = (-1f64).exp_m1();
    assert_close(&both(&[5], &x, |g, x| g.elu(x, 2.0)), &[-2.0, 2.0 * e, 0.0, 2.0, 1e4], 1e-12);
    assert_close(&slope(&x, |g, x| g.elu(x, 2.0)), &[0.0, 2.0 * (e + 1.0), 2.0, 1.0, 1.0], 1e-12);
    assert_close(&both(&[2], &[-2.0, 3.0], |g, x| g.leaky_relu(x, 0.25)), &[-0.5, 3.0], 1e-12);
    assert_same(&slope(&[-2.0, 0.0, 3.0], |g, x| g.leaky_relu(x, 0.25)), &[0.25, 0.25, 1.0]);
    assert_same(&both(&[4], &[-1.0, 5.0, 7.0, NAN], Graph::relu6), &[0.0, 5.0, 6.0, NAN]);
    assert_same(&both(&[3], &[2.0, 0.0, -0.5], Graph::reciprocal), &[0.5, INF, -2.0]);
    for f in [|g: &mut Graph, x: Value| g.elu(x, 1.0), |g: &mut Graph, x: Value| g.leaky_relu(x, 0.1)] {
        assert_same(&both(&[1], &[NAN], f), &[NAN]);
    }
}

#[test]
fn integers_divide_downwards() {
    let pairs = [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (-5, 0), (5, 0), (i32::MIN, -1)];
    let expected = [(3, 1), (-4, 1), (-4, -1), (3, -1), (2, 0), (-2, 0), (0, -5), (0, 5), (i32::MIN, 0)];
    let mut g = Graph::new();
    let [a, b] = ["a", "b"].map(|name| g.input_ids(name, [pairs.len()]));
    let (q, r) = (g.floor_divide(a, b), g.remainder(a, b));
    g.output("q", q);
    g.output("r", r);
    let column =
        |f: fn(&(i32, i32)) -> i32, p: &[(i32, i32)]| p.iter().map(|p| f64::from(f(p))).collect::<Vec<_>>();
    let (x, y) = (column(|p| p.0, &pairs), column(|p| p.1, &pairs));
    let found = agree(&g, &feeds(&g, &[("a", &x), ("b", &y)]));
    assert_eq!(found, [column(|p| p.0, &expected), column(|p| p.1, &expected)]);
    let x = g.input("x", [pairs.len()]);
    g.remainder(a, x);
    g.floor_divide(x, x);
    assert_eq!(g.finish().unwrap_err().0.len(), 2);
}

#[test]
fn casts_truncate_and_saturate() {
    let x = [2.9, -2.9, 1e20, -1e20, NAN, 0.0];
    let cast = |dtype| both(&[6], &x, |g, x| g.cast(x, dtype));
    assert_same(&cast(DType::I32), &[2.0, -2.0, f64::from(i32::MAX), f64::from(i32::MIN), 0.0, 0.0]);
    assert_same(&cast(DType::U32), &[2.0, 0.0, f64::from(u32::MAX), 0.0, 0.0, 0.0]);
    assert_same(&cast(DType::Bool), &[1.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
    let mut g = Graph::new();
    let i = g.input_ids("i", [3]);
    let u = g.cast(i, DType::U32);
    let back = g.cast(u, DType::I32);
    g.output("u", u);
    g.output("back", back);
    let found = agree(&g, &feeds(&g, &[("i", &[-1.0, 5.0, f64::from(i32::MIN)])]));
    assert_eq!(found[0], [f64::from(u32::MAX), 5.0, 2_147_483_648.0]);
    assert_eq!(found[1], [-1.0, 5.0, f64::from(i32::MIN)]);
    assert_same(&slope(&[1.5], |g, x| g.cast(x, DType::F32)), &[1.0]);
}

#[test]
fn gates_multiply_an_activation() {
    let mut g = Graph::new();
    let [a, b] = ["a", "b"].map(|name| g.input(name, [2, 3]));
    let gated = [g.swiglu(a, b), g.geglu(a, b), g.geglu_tanh(a, b)];
    let all = g.concat(&gated, 0);
    let loss = weighted(&mut g, all);
    g.output("all", all);
    let x = [-2.0, -0.5, 0.0, 0.25, 1.0, 3.0];
    let f = feeds(&g, &[("a", &x), ("b", &[0.5, -1.0, 2.0, 4.0, -0.5, 1.5])]);
    let found = agree(&g, &f).remove(0);
    assert!((found[4] + 0.5 / (1.0 + (-1f64).exp())).abs() < 1e-7, "{found:?}");
    assert!((found[10] + 0.5 * 0.841_344_746).abs() < 1e-6, "{found:?}");
    check_gradients(&g, loss, &["a", "b"], &f, 6);
}

#[test]
fn channels_have_a_number_each() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 3, 2, 2]);
    let c = g.input("c", [3]);
    let y = g.channel_scale(x, c);
    let y = g.channel_bias(y, c);
    g.output("y", y);
    let loss = weighted(&mut g, y);
    let ones = vec![1.0; 24];
    let f = feeds(&g, &[("x", &ones), ("c", &[1.0, 2.0, 3.0])]);
    let found = agree(&g, &f).remove(0);
    assert_eq!((found[0], found[4], found[11], found[20]), (2.0, 4.0, 6.0, 6.0));
    check_gradients(&g, loss, &["x", "c"], &f, 6);
    let flat = g.input("flat", [5, 3]);
    let bias = g.channel_bias(flat, c);
    assert_eq!(g.dims(bias), [5, 3]);
    let scaled = g.layer_scale(flat, c);
    assert_eq!(g.dims(scaled), [5, 3]);
    g.finish().unwrap();
    let wrong = g.input("wrong", [2]);
    g.channel_bias(x, wrong);
    g.channel_scale(wrong, c);
    g.layer_scale(flat, wrong);
    assert_eq!(g.finish().unwrap_err().0.len(), 3);
}

/// The values of `diffusers.get_timestep_embedding`, from its formula in f64.
#[test]
fn timesteps_embed_as_in_diffusers() {
    let t = [0.0, 1.0, 999.0];
    let embed = |dim, o: TimestepEmbedding| {
        let mut g = Graph::new();
        let x = g.input("t", [3]);
        let y = g.timestep_embedding(x, dim, &o);
        g.output("y", y);
        g.finish().unwrap();
        by_lowering(&g, &feeds(&g, &[("t", &t)])).remove(0)
    };
    for (dim, flip, shift) in [(8, false, 1.0), (8, true, 0.0), (7, true, 0.5), (2, false, 1.0)] {
        let half = dim / 2;
        let o =
            TimestepEmbedding { flip_sin_to_cos: flip, downscale_freq_shift: shift, ..Default::default() };
        let found = embed(dim, o);
        for (row, t) in found.chunks(dim).zip(t) {
            for (i, y) in row.iter().enumerate() {
                let j = i % half;
                let w =
                    if j == 0 { 1.0 } else { (-(10_000f64.ln()) * j as f64 / (half as f64 - shift)).exp() };
                let sine = (i < half) != flip;
                let e = if sine { (w * t).sin() } else { (w * t).cos() };
                let e = if i == 2 * half { 0.0 } else { e };
                assert!((y - e).abs() < 5e-5, "{o:?} t {t} [{i}]: {y}, not {e}");
            }
        }
    }
    let mut g = Graph::new();
    let x = g.add_leaf("t", LeafKind::Input, TensorType::f32([3]));
    g.timestep_embedding(x, 1, &TimestepEmbedding::default());
    g.timestep_embedding(x, 8, &TimestepEmbedding { downscale_freq_shift: 4.0, ..Default::default() });
    let wide = g.insert_axes(x, &[1]);
    g.timestep_embedding(wide, 8, &TimestepEmbedding::default());
    assert_eq!(g.finish().unwrap_err().0.len(), 3);
}
