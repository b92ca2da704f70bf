//! Errors of the twins against f64 over all exponents, special values, and equality of text and twin.

use super::Function;
use super::host;
use super::interpret::Interpreter;

type Scalar = fn(f32) -> f32;
/// Function, twin, reference, domain, bound in ulp.
type Row = (Function, Scalar, fn(f64) -> f64, fn(f32) -> bool, f64);
type Cases = (&'static str, Scalar, &'static [(f32, f32)]);

/// A small generator (splitmix64), so that the sweeps are the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 32) as u32
    }
}

/// Every exponent and sign with random mantissas, and a dense linear range.
fn sweep(per_exponent: u32) -> impl Iterator<Item = f32> {
    let mut random = Random(1);
    let exponents = (0..512_u32).flat_map(move |top| {
        let mut values: Vec<f32> =
            (0..per_exponent).map(|_| f32::from_bits((top << 23) | (random.next() & 0x007f_ffff))).collect();
        values.extend([f32::from_bits(top << 23), f32::from_bits((top << 23) | 0x007f_ffff)]);
        values
    });
    exponents.chain((-50_000..50_000).map(|i| i as f32 * 2e-3 + 1e-5)).filter(|x| x.is_finite())
}

/// Error in units in the last place of a normal f32 near the exact value.
fn ulp(got: f32, exact: f64) -> f64 {
    if exact.abs() > f64::from(f32::MAX) {
        return if f64::from(got) == exact.signum() * f64::INFINITY || got.abs() == f32::MAX {
            0.0
        } else {
            f64::INFINITY
        };
    }
    let exponent = exact.abs().max(f64::from(f32::MIN_POSITIVE)).log2().floor();
    (f64::from(got) - exact).abs() / (exponent - 23.0).exp2()
}

/// Largest error over some arguments, and where.
fn worst(
    function: impl Fn(f32) -> f32,
    exact: fn(f64) -> f64,
    arguments: impl Iterator<Item = f32>,
) -> (f64, f32) {
    let mut worst = (0.0, 0.0);
    for x in arguments {
        let error = ulp(function(x), exact(f64::from(x)));
        if error > worst.0 || error.is_nan() {
            worst = (error, x);
        }
    }
    worst
}

fn erf_f64(x: f64) -> f64 {
    let a = x.abs();
    if a < 3.0 {
        let (mut term, mut sum, mut n) = (a, a, 0.0);
        while term.abs() > 1e-18 * sum {
            n += 1.0;
            term *= -a * a / n;
            sum += term / (2.0 * n + 1.0);
            if n > 200.0 {
                break;
            }
        }
        return (sum * std::f64::consts::FRAC_2_SQRT_PI).copysign(x);
    }
    // Continued fraction of erfc, from the tail.
    let tail = (1..=60).rev().fold(0.0, |tail, k| f64::from(k) / 2.0 / (a + tail));
    (1.0 - (-a * a).exp() / (std::f64::consts::PI.sqrt() * (a + tail))).copysign(x)
}

const ROWS: [Row; 10] = [
    (Function::Exp, host::exp, f64::exp, |_| true, 1.1),
    (Function::Exp2, host::exp2, f64::exp2, |x| x.abs() < 126.5, 1.3),
    (Function::Log, host::log, f64::ln, |x| x > 0.0, 1.0),
    (Function::Sin, host::sin, f64::sin, |_| true, 2.0),
    (Function::Cos, host::cos, f64::cos, |_| true, 2.0),
    (Function::Tanh, host::tanh, f64::tanh, |_| true, 1.5),
    (Function::Erf, host::erf, erf_f64, |_| true, 1.5),
    (Function::Sigmoid, host::sigmoid, |x| 1.0 / (1.0 + (-x).exp()), |x| x > -87.0, 2.5),
    (Function::Sqrt, host::sqrt, f64::sqrt, |x| x >= 0.0, 0.5),
    (Function::Rsqrt, host::rsqrt, |x| 1.0 / x.sqrt(), |x| x > 0.0, 1.5),
];

#[test]
fn errors_of_the_twins_are_bounded() {
    for (function, twin, exact, domain, bound) in ROWS {
        let (error, at) = worst(twin, exact, sweep(600).filter(|x| domain(*x)));
        println!("{}: {error:.3} ulp at {at:e}", function.name());
        assert!(error <= bound, "{}: {error} ulp at {at:e}", function.name());
    }
}

#[test]
fn errors_of_the_text_are_bounded_when_a_driver_contracts() {
    for (function, _, exact, domain, bound) in ROWS {
        let text = Interpreter::contracting(&Function::declarations([function]).concat());
        let call = |x| text.call(function.name(), &[x]);
        let (error, at) = worst(call, exact, sweep(4).filter(|x| domain(*x)).step_by(17));
        println!("{} contracted: {error:.3} ulp at {at:e}", function.name());
        assert!(error <= bound, "{}: {error} ulp at {at:e}", function.name());
    }
}

#[test]
fn power_error_grows_with_the_exponent() {
    let mut random = Random(2);
    let mut worst = 0.0_f64;
    for _ in 0..400_000 {
        let x = f32::from_bits(random.next() & 0x7fff_ffff);
        let y =
            (random.next() as f32 / u32::MAX as f32 - 0.5) * 2.0_f32.powi((random.next() % 12) as i32 - 3);
        let size = (f64::from(x).ln() * f64::from(y)).abs();
        if x.is_finite() && x > 0.0 && size < 87.0 {
            worst = worst.max(ulp(host::pow(x, y), f64::from(x).powf(f64::from(y))) / (1.0 + size));
        }
    }
    println!("pow: {worst:.3} (1 + |y log x|) ulp");
    assert!(worst <= 2.0, "{worst}");
}

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;

/// Equal as values with the same sign, or both NaN.
fn same(a: f32, b: f32) -> bool {
    (a.is_nan() && b.is_nan()) || a.to_bits() == b.to_bits()
}

#[test]
fn special_values() {
    let rows: [Cases; 10] = [
        (
            "exp",
            host::exp,
            &[(INF, INF), (-INF, 0.0), (-0.0, 1.0), (89.0, INF), (0.0, 1.0), (-104.0, 0.0), (1e-40, 1.0)],
        ),
        (
            "exp2",
            host::exp2,
            &[
                (INF, INF),
                (-INF, 0.0),
                (-0.0, 1.0),
                (127.0, INF),
                (-126.5, 0.0),
                (f32::MIN, 0.0),
                (126.0, 8.507_059e37),
                (-126.0, f32::MIN_POSITIVE),
                (1e-40, 1.0),
            ],
        ),
        (
            "log",
            host::log,
            &[
                (INF, INF),
                (0.0, -INF),
                (-0.0, -INF),
                (-1.0, NAN),
                (-INF, NAN),
                (1.0, 0.0),
                (1e-45, -103.278_93),
                (-1e-45, NAN),
            ],
        ),
        (
            "sin",
            host::sin,
            &[
                (INF, NAN),
                (-INF, NAN),
                (0.0, 0.0),
                (-0.0, -0.0),
                (std::f32::consts::PI, -8.742_278e-8),
                (1e-40, 1e-40),
            ],
        ),
        ("cos", host::cos, &[(INF, NAN), (-INF, NAN), (-0.0, 1.0), (1e-40, 1.0)]),
        (
            "tanh",
            host::tanh,
            &[(INF, 1.0), (-INF, -1.0), (-0.0, -0.0), (20.0, 1.0), (-20.0, -1.0), (1e-40, 1e-40)],
        ),
        ("erf", host::erf, &[(INF, 1.0), (-INF, -1.0), (-0.0, -0.0), (4.0, 1.0), (-5.0, -1.0)]),
        ("sigmoid", host::sigmoid, &[(INF, 1.0), (-INF, 0.0), (-0.0, 0.5), (-200.0, 0.0)]),
        ("sqrt", host::sqrt, &[(INF, INF), (-0.0, -0.0), (-1.0, NAN), (4.0, 2.0)]),
        ("rsqrt", host::rsqrt, &[(INF, 0.0), (0.0, INF), (-0.0, -INF), (-1.0, NAN), (4.0, 0.5)]),
    ];
    for (name, function, cases) in rows {
        assert!(function(NAN).is_nan() && function(-NAN).is_nan(), "{name}(NaN)");
        for (x, expected) in cases {
            let got = function(*x);
            assert!(same(got, *expected), "{name}({x:e}) = {got:e}, not {expected:e}");
        }
    }
}

#[test]
fn special_powers_are_those_of_c() {
    let values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        -2.0,
        3.0,
        -3.0,
        0.5,
        -0.5,
        2.5,
        INF,
        -INF,
        NAN,
        1e30,
        -1e30,
        16_777_217.0,
    ];
    for x in values {
        for y in values {
            let (got, exact) = (host::pow(x, y), x.powf(y));
            let close = exact.is_finite() && got.is_finite() && (got - exact).abs() <= 3e-6 * exact.abs();
            assert!(same(got, exact) || (close && exact != 0.0), "pow({x}, {y}) = {got}, not {exact}");
        }
    }
}

#[test]
fn extrema_propagate_nan() {
    assert!(host::max(NAN, 1.0).is_nan() && host::max(1.0, NAN).is_nan());
    assert!(host::min(NAN, 1.0).is_nan() && host::min(1.0, NAN).is_nan());
    assert_eq!((host::max(-INF, 2.0), host::min(-INF, 2.0)), (2.0, -INF));
}

#[test]
fn text_and_twin_agree_bit_by_bit() {
    let specials = [0.0, -0.0, INF, -INF, NAN, -NAN, 1e-45, -1e-45];
    for (function, twin, ..) in ROWS {
        let text = Interpreter::new(&Function::declarations([function]).concat());
        for x in sweep(4).take(512 * 6).chain(specials) {
            let (device, host) = (text.call(function.name(), &[x]), twin(x));
            assert!(same(device, host), "{}({x:e}): text {device:e}, twin {host:e}", function.name());
        }
    }
}

#[test]
fn text_and_twin_of_power_agree() {
    let text = Interpreter::new(&Function::declarations([Function::Pow]).concat());
    let values = [0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, 7.25, INF, -INF, NAN, 1e30, 1e-30, -16_777_217.0];
    for x in values {
        for y in values {
            let (device, host) = (text.call("gf_pow", &[x, y]), host::pow(x, y));
            assert!(same(device, host), "pow({x}, {y}): text {device:e}, twin {host:e}");
        }
    }
}

#[test]
fn all_functions_have_distinct_names_and_end_with_themselves() {
    let mut names: Vec<_> = Function::ALL.iter().map(|function| function.name()).collect();
    names.dedup();
    assert_eq!(names.len(), Function::ALL.len());
    for function in Function::ALL {
        let last = function.sources().last().copied().unwrap_or_default();
        assert!(last.contains(&format!("fn {}(", function.name())));
    }
}
