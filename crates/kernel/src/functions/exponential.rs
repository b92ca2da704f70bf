//! `exp`, `exp2`, `log`, and what is made of `exp`: `sigmoid`, `tanh`.
//!
//! * `exp`: x = n ln 2 + r with |r| <= 0.35, ln 2 split so that n times its high part is exact; e^r = 1 + r + r^2 q(r);
//!   scaling by 2^n in two factors, so that overflow and gradual underflow come out of the multiplication.
//! * `exp2`: x = n + r with |r| <= 1/2, by adding 1.5 2^23 + 127, whose lowest byte is then the exponent n + 127 of the
//!   result; the magnitude of the sum, which is positive, keeps drivers from taking the number away again.
//! * `log`: x = 2^n m with m in [sqrt 1/2, sqrt 2), f = m - 1; log m = f - f^2/2 + f^3 q(f). A denormal argument is
//!   its bit pattern, as an integer, times 2^-149.
//! * `tanh`: x + x^3 q(x^2) below 0.55, above 1 - 2 / (e^2x + 1).
//!
//! All polynomials are our own weighted minimax fits, rounded to f32; their errors are below 0.08 ulp.

/// Needs nothing.
pub(super) const EXP: &str = "\
fn gf_exp(x: f32) -> f32 {
    let c = min(max(x, -104.0f), 89.0f);
    let n = i32(c * 1.442695f + 192.5f) - 192i;
    let k = f32(n);
    let r = (c - k * 0.693359375f) + k * 0.00021219444f;
    let q = (((0.0013813105f * r + 0.008369416f) * r + 0.041668456f) * r + 0.16666515f) * r + 0.49999994f;
    let y = (q * (r * r) + r) + 1.0f;
    let half = n >> 1u;
    let first = bitcast<f32>((half + 127i) << 23u);
    let second = bitcast<f32>(((n - half) + 127i) << 23u);
    let nan = (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    return select((y * first) * second, x, nan);
}
";

/// `e^x`: the twin of `gf_exp`.
#[inline]
pub fn exp(x: f32) -> f32 {
    // A NaN passes through the clamp and becomes n = 0 in the cast.
    let c = x.clamp(-104.0, 89.0);
    let n = (c * std::f32::consts::LOG2_E + 192.5) as i32 - 192;
    let k = n as f32;
    let r = (c - k * 0.693_359_4) + k * 0.000_212_194_44;
    let q =
        (((0.001_381_310_5 * r + 0.008_369_416) * r + 0.041_668_456) * r + 0.166_665_15) * r + 0.499_999_94;
    let y = (q * (r * r) + r) + 1.0;
    let half = n >> 1;
    let first = f32::from_bits(((half + 127) << 23) as u32);
    let second = f32::from_bits(((n - half + 127) << 23) as u32);
    if x.is_nan() { x } else { (y * first) * second }
}

/// Needs nothing.
pub(super) const EXP2: &str = "\
fn gf_exp2(x: f32) -> f32 {
    let z = x + 12583039.0f;
    let r = x - (abs(z) - 12583039.0f);
    let a = ((0.00015594678f * r + 0.0013406643f) * r + 0.009617693f) * r + 0.055503104f;
    let y = ((a * r + 0.24022653f) * r + 0.69314724f) * r + 1.0f;
    let far = select(0.0f, bitcast<f32>(0x7f800000u), x > 0.0f);
    return select(y * bitcast<f32>(bitcast<u32>(z) << 23u), far, abs(x) > 126.5f);
}
";

/// `2^x`: the twin of `gf_exp2`.
#[inline]
pub fn exp2(x: f32) -> f32 {
    let z = x + 12_583_039.0;
    let r = x - (z.abs() - 12_583_039.0);
    let a = ((0.000_155_946_78 * r + 0.001_340_664_3) * r + 0.009_617_693) * r + 0.055_503_104;
    let y = ((a * r + 0.240_226_53) * r + 0.693_147_24) * r + 1.0;
    let far = if x > 0.0 { f32::INFINITY } else { 0.0 };
    if x.abs() > 126.5 { far } else { y * f32::from_bits(z.to_bits() << 23) }
}

/// Needs nothing.
pub(super) const LOG: &str = "\
fn gf_log(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let tiny = bits < 0x00800000u;
    let normal = select(bits, bitcast<u32>(f32(bits)), tiny) + 0x004afb0du;
    let k = f32(i32(normal >> 23u) - select(127i, 276i, tiny));
    let f = bitcast<f32>((normal & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    let z = f * f;
    let a = ((-0.07632951f * f + 0.12761037f) * f + -0.13160515f) * f + 0.14201854f;
    let q = (((a * f + -0.16623333f) * f + 0.20001222f) * f + -0.25000823f) * f + 0.3333333f;
    let y = ((q * f) * z + k * -0.00021219444f) + -0.5f * z;
    let finite = (f + y) + k * 0.693359375f;
    let special = select(bitcast<f32>(0x7fc00000u), x, bits == 0x7f800000u);
    let positive = select(finite, special, bits >= 0x7f800000u);
    return select(positive, bitcast<f32>(0xff800000u), (bits & 0x7fffffffu) == 0u);
}
";

/// Natural logarithm: the twin of `gf_log`.
#[inline]
pub fn log(x: f32) -> f32 {
    let bits = x.to_bits();
    let tiny = bits < 0x0080_0000;
    // The sum moves the exponent's step from 1 to sqrt 1/2 (bits 0x3f3504f3).
    let normal = (if tiny { (bits as f32).to_bits() } else { bits }).wrapping_add(0x004a_fb0d);
    let k = ((normal >> 23) as i32 - if tiny { 276 } else { 127 }) as f32;
    let f = f32::from_bits((normal & 0x007f_ffff) + 0x3f35_04f3) - 1.0;
    let z = f * f;
    let a = ((-0.076_329_51 * f + 0.127_610_37) * f + -0.131_605_15) * f + 0.142_018_54;
    let q = (((a * f + -0.166_233_33) * f + 0.200_012_22) * f + -0.250_008_23) * f + 0.333_333_3;
    let y = ((q * f) * z + k * -0.000_212_194_44) + -0.5 * z;
    let finite = (f + y) + k * 0.693_359_4;
    let special = if bits == 0x7f80_0000 { x } else { f32::NAN };
    let positive = if bits >= 0x7f80_0000 { special } else { finite };
    if bits & 0x7fff_ffff == 0 { f32::NEG_INFINITY } else { positive }
}

/// Needs `EXP`.
pub(super) const SIGMOID: &str = "\
fn gf_sigmoid(x: f32) -> f32 {
    return 1.0f / (1.0f + gf_exp(-x));
}
";

/// Logistic function: the twin of `gf_sigmoid`.
#[inline]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Needs `EXP`.
pub(super) const TANH: &str = "\
fn gf_tanh(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let a = bitcast<f32>(bits & 0x7fffffffu);
    let z = a * a;
    let q = (((-0.0062740827f * z + 0.021071559f) * z + -0.05385228f) * z + 0.13332586f) * z + -0.33333316f;
    let small = a + a * (z * q);
    let large = 1.0f - 2.0f / (gf_exp(2.0f * min(a, 10.0f)) + 1.0f);
    let y = bitcast<u32>(select(large, small, a < 0.55f)) | (bits & 0x80000000u);
    return select(bitcast<f32>(y), x, (bits & 0x7fffffffu) > 0x7f800000u);
}
";

/// Hyperbolic tangent: the twin of `gf_tanh`.
#[inline]
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let z = a * a;
    let q =
        (((-0.006_274_082_7 * z + 0.021_071_559) * z + -0.053_852_28) * z + 0.133_325_86) * z + -0.333_333_16;
    let small = a + a * (z * q);
    let large = 1.0 - 2.0 / (exp(2.0 * a.min(10.0)) + 1.0);
    let y = (if a < 0.55 { small } else { large }).to_bits() | (x.to_bits() & 0x8000_0000);
    if x.is_nan() { x } else { f32::from_bits(y) }
}
