//! `sin` and `cos` for arguments of any size.
//!
//! Arguments from pi/4 on are reduced in integers: |x| = m 2^s with a 24-bit m; of m times 2/pi only the bits below
//! the weight 4 matter, so a 96-bit window of 2/pi, chosen by the exponent, is multiplied by m modulo 2^96 (Payne and
//! Hanek). The top two bits are the quadrant, the rest is a fixed-point fraction that keeps 30 good bits even for the
//! float nearest to a multiple of pi/2. Then sin r = r + r^3 p(r^2) or cos r = 1 - r^2/2 + r^4 q(r^2) on |r| <= pi/4.

/// The window of 2/pi, 32x32 to high 32-bit product, and the reduction: bits of r and quadrant. Needs nothing.
pub(super) const REDUCE: &str = "\
fn gf_two_over_pi(word: u32) -> u32 {
    switch word {
        case 1u: { return 0xa2f9836eu; }
        case 2u: { return 0x4e441529u; }
        case 3u: { return 0xfc2757d1u; }
        case 4u: { return 0xf534ddc0u; }
        case 5u: { return 0xdb629599u; }
        case 6u: { return 0x3c439041u; }
        case 7u: { return 0xfe5163abu; }
        default: { return 0u; }
    }
}

fn gf_mul_high(a: u32, b: u32) -> u32 {
    let a0 = a & 0xffffu;
    let a1 = a >> 16u;
    let b0 = b & 0xffffu;
    let b1 = b >> 16u;
    let middle = a1 * b0 + ((a0 * b0) >> 16u);
    let low = a0 * b1 + (middle & 0xffffu);
    return a1 * b1 + (middle >> 16u) + (low >> 16u);
}

fn gf_reduce(x: f32) -> vec2<u32> {
    let magnitude = bitcast<u32>(x) & 0x7fffffffu;
    let m = (magnitude & 0x007fffffu) | 0x00800000u;
    let offset = max(magnitude >> 23u, 120u) - 120u;
    let word = offset >> 5u;
    let left = offset & 31u;
    let right = 31u - left;
    let w0 = gf_two_over_pi(word);
    let w1 = gf_two_over_pi(word + 1u);
    let w2 = gf_two_over_pi(word + 2u);
    let w3 = gf_two_over_pi(word + 3u);
    let high = (w0 << left) | ((w1 >> 1u) >> right);
    let middle = (w1 << left) | ((w2 >> 1u) >> right);
    let low = (w2 << left) | ((w3 >> 1u) >> right);
    let part = m * middle;
    let p1 = part + gf_mul_high(m, low);
    let p2 = (m * high + gf_mul_high(m, middle)) + select(0u, 1u, p1 < part);
    let quadrant = (p2 + 0x20000000u) >> 30u;
    let r1 = p2 - (quadrant << 30u);
    let negative = r1 >= 0x80000000u;
    let s1 = select(r1, ~r1 + select(0u, 1u, p1 == 0u), negative);
    let s0 = select(p1, 0u - p1, negative);
    let top = (s1 << 2u) | (s0 >> 30u);
    let head = bitcast<f32>(bitcast<u32>(f32(top)) & 0xfffff000u);
    let tail = f32(i32(top - u32(head))) * 4294967300.0f + f32(s0 << 2u);
    let r = head * 3.6561687e-10f + (tail * 8.515304e-20f + head * 1.12649703e-13f);
    let reduced = vec2<u32>(bitcast<u32>(r) | select(0u, 0x80000000u, negative), quadrant);
    return select(reduced, vec2<u32>(magnitude, 0u), vec2<bool>(magnitude < 0x3f490fdbu));
}
";

/// Sine of x plus a number of quarter turns, with a sign. Needs `REDUCE`.
pub(super) const SINE: &str = "\
fn gf_sine(x: f32, turns: u32, sign: u32) -> f32 {
    let reduced = gf_reduce(x);
    let r = bitcast<f32>(reduced.x);
    let quadrant = reduced.y + turns;
    let z = r * r;
    let p = (-0.00019515226f * z + 0.00833216f) * z + -0.16666655f;
    let q = (2.4433077e-5f * z + -0.0013887315f) * z + 0.041666646f;
    let sine = r + r * (z * p);
    let cosine = (1.0f - 0.5f * z) + (z * z) * q;
    let y = bitcast<u32>(select(sine, cosine, (quadrant & 1u) == 1u)) ^ (sign ^ ((quadrant & 2u) << 30u));
    let finite = (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u;
    return bitcast<f32>(select(0x7fc00000u, y, finite));
}
";

/// Needs `SINE`.
pub(super) const SIN: &str = "\
fn gf_sin(x: f32) -> f32 {
    return gf_sine(x, 0u, bitcast<u32>(x) & 0x80000000u);
}
";

/// Needs `SINE`.
pub(super) const COS: &str = "\
fn gf_cos(x: f32) -> f32 {
    return gf_sine(x, 1u, 0u);
}
";

/// A zero word, then 2/pi.
const TWO_OVER_PI: [u32; 8] =
    [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];

/// The twin of `gf_reduce`, with wider integers.
fn reduce(x: f32) -> (f32, u32) {
    let magnitude = x.to_bits() & 0x7fff_ffff;
    if magnitude < 0x3f49_0fdb {
        return (f32::from_bits(magnitude), 0);
    }
    let m = u128::from((magnitude & 0x007f_ffff) | 0x0080_0000);
    let offset = (magnitude >> 23).max(120) - 120;
    let word = |i: u32| u128::from(TWO_OVER_PI.get((offset / 32 + i) as usize).copied().unwrap_or(0));
    let window = ((word(0) << 96 | word(1) << 64 | word(2) << 32 | word(3)) << (offset % 32)) >> 32;
    // Bits 32 to 95 of the product; what the lowest 32 bits carry is in it.
    let product = ((m * window) >> 32) as u64;
    let quadrant = ((product >> 32) as u32).wrapping_add(0x2000_0000) >> 30;
    let fraction = product.wrapping_sub(u64::from(quadrant) << 62) as i64;
    let scaled = fraction.unsigned_abs() << 2;
    // Twelve bits times the twelve high bits of pi/2 are exact, so r is rounded once.
    let top = (scaled >> 32) as u32;
    let head = f32::from_bits((top as f32).to_bits() & 0xffff_f000);
    let tail = top.wrapping_sub(head as u32).cast_signed() as f32 * 4_294_967_300.0 + (scaled as u32) as f32;
    let r = head * 3.656_168_7e-10 + (tail * 8.515_304e-20 + head * 1.126_497_03e-13);
    (if fraction < 0 { -r } else { r }, quadrant)
}

fn sine(x: f32, turns: u32, sign: u32) -> f32 {
    let (r, quadrant) = reduce(x);
    let quadrant = quadrant + turns;
    let z = r * r;
    let p = (-0.000_195_152_26 * z + 0.008_332_16) * z + -0.166_666_55;
    let q = (2.443_307_7e-5 * z + -0.001_388_731_5) * z + 0.041_666_646;
    let value = if quadrant & 1 == 1 { (1.0 - 0.5 * z) + (z * z) * q } else { r + r * (z * p) };
    if x.is_finite() { f32::from_bits(value.to_bits() ^ sign ^ ((quadrant & 2) << 30)) } else { f32::NAN }
}

/// Sine: the twin of `gf_sin`.
pub fn sin(x: f32) -> f32 {
    sine(x, 0, x.to_bits() & 0x8000_0000)
}

/// Cosine: the twin of `gf_cos`.
pub fn cos(x: f32) -> f32 {
    sine(x, 1, 0)
}
