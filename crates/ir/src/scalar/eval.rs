//! Scalar values and the exact meaning of each intrinsic, used by constant folding and by the slow loop interpreter.
//!
//! Floats are evaluated in `f32` through `f64` functions and rounded once, so results are within half an ulp.

use super::{BinaryFn, UnaryFn};
use crate::real::Real;
use crate::types::DType;
use serde::{Deserialize, Serialize};

/// A literal of one of the logical dtypes; floats are kept as bits so that literals hash and compare exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scalar {
    /// Bits of an `f32`.
    F32(u32),
    /// An `i32`.
    I32(i32),
    /// A `u32`.
    U32(u32),
    /// A truth value.
    Bool(bool),
}

impl Scalar {
    /// An `f32` literal.
    #[must_use]
    pub fn f32(x: f32) -> Self {
        Scalar::F32(x.to_bits())
    }

    /// Its dtype.
    #[must_use]
    pub fn dtype(self) -> DType {
        match self {
            Scalar::F32(_) => DType::F32,
            Scalar::I32(_) => DType::I32,
            Scalar::U32(_) => DType::U32,
            Scalar::Bool(_) => DType::Bool,
        }
    }

    /// The 32 bits stored in a buffer.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            Scalar::F32(b) | Scalar::U32(b) => b,
            Scalar::I32(v) => v as u32,
            Scalar::Bool(b) => u32::from(b),
        }
    }

    /// The value of this dtype with these stored bits.
    #[must_use]
    pub fn from_bits(dtype: DType, bits: u32) -> Self {
        match dtype {
            DType::F32 => Scalar::F32(bits),
            DType::I32 => Scalar::I32(bits as i32),
            DType::U32 => Scalar::U32(bits),
            DType::Bool => Scalar::Bool(bits != 0),
        }
    }

    /// The zero of a dtype.
    #[must_use]
    pub fn zero(dtype: DType) -> Self {
        Scalar::from_bits(dtype, 0)
    }

    /// The value as a float (exact for all but large integers and always for `f32`).
    #[must_use]
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::F32(b) => f64::from(f32::from_bits(b)),
            Scalar::I32(v) => f64::from(v),
            Scalar::U32(v) => f64::from(v),
            Scalar::Bool(b) => f64::from(u8::from(b)),
        }
    }
}

/// Applies a one-argument intrinsic; `None` if the dtype is not accepted.
#[must_use]
pub fn unary(f: UnaryFn, x: Scalar) -> Option<Scalar> {
    Some(match x {
        Scalar::F32(b) if f == UnaryFn::IsNan => Scalar::Bool(f32::from_bits(b).is_nan()),
        Scalar::F32(b) => {
            let x = f64::from(f32::from_bits(b));
            let y = match f {
                UnaryFn::Neg => -x,
                UnaryFn::Abs => x.abs(),
                UnaryFn::Exp => x.exp(),
                UnaryFn::Log => x.ln(),
                UnaryFn::Sqrt => x.sqrt(),
                UnaryFn::Rsqrt => 1.0 / x.sqrt(),
                UnaryFn::Tanh => x.tanh(),
                UnaryFn::Sigmoid => 1.0 / (1.0 + (-x).exp()),
                UnaryFn::Erf => Real::erf(x),
                UnaryFn::Sin => x.sin(),
                UnaryFn::Cos => x.cos(),
                UnaryFn::Floor => x.floor(),
                UnaryFn::IsNan | UnaryFn::Not => return None,
            };
            Scalar::f32(y as f32)
        }
        Scalar::I32(v) => match f {
            UnaryFn::Neg => Scalar::I32(v.wrapping_neg()),
            UnaryFn::Abs => Scalar::I32(v.wrapping_abs()),
            _ => return None,
        },
        Scalar::Bool(b) if f == UnaryFn::Not => Scalar::Bool(!b),
        _ => return None,
    })
}

/// Applies a two-argument intrinsic; `None` if the dtypes are not accepted.
#[must_use]
pub fn binary(f: BinaryFn, a: Scalar, b: Scalar) -> Option<Scalar> {
    match (a, b) {
        (Scalar::F32(a), Scalar::F32(b)) => float(f, f32::from_bits(a), f32::from_bits(b)),
        (Scalar::I32(a), Scalar::I32(b)) => integer(f, a, b),
        (Scalar::U32(a), Scalar::U32(b)) => unsigned(f, a, b),
        (Scalar::Bool(a), Scalar::Bool(b)) => Some(Scalar::Bool(match f {
            BinaryFn::And => a && b,
            BinaryFn::Or => a || b,
            BinaryFn::Eq => a == b,
            BinaryFn::Ne => a != b,
            _ => return None,
        })),
        _ => None,
    }
}

fn float(f: BinaryFn, a: f32, b: f32) -> Option<Scalar> {
    if let Some(p) = compare(f, a, b) {
        return Some(Scalar::Bool(p));
    }
    Some(Scalar::f32(match f {
        BinaryFn::Add => a + b,
        BinaryFn::Sub => a - b,
        BinaryFn::Mul => a * b,
        BinaryFn::Div => a / b,
        BinaryFn::Pow => f64::from(a).powf(f64::from(b)) as f32,
        BinaryFn::Max if a.is_nan() || b.is_nan() => f32::NAN,
        BinaryFn::Max => a.max(b),
        BinaryFn::Min if a.is_nan() || b.is_nan() => f32::NAN,
        BinaryFn::Min => a.min(b),
        _ => return None,
    }))
}

fn integer(f: BinaryFn, a: i32, b: i32) -> Option<Scalar> {
    if let Some(p) = compare(f, a, b) {
        return Some(Scalar::Bool(p));
    }
    Some(Scalar::I32(match f {
        BinaryFn::Add => a.wrapping_add(b),
        BinaryFn::Sub => a.wrapping_sub(b),
        BinaryFn::Mul => a.wrapping_mul(b),
        BinaryFn::Div if b == 0 => 0,
        BinaryFn::Div => a.wrapping_div(b),
        BinaryFn::Max => a.max(b),
        BinaryFn::Min => a.min(b),
        BinaryFn::And => a & b,
        BinaryFn::Or => a | b,
        BinaryFn::Xor => a ^ b,
        _ => return None,
    }))
}

fn unsigned(f: BinaryFn, a: u32, b: u32) -> Option<Scalar> {
    if let Some(p) = compare(f, a, b) {
        return Some(Scalar::Bool(p));
    }
    Some(Scalar::U32(match f {
        BinaryFn::Add => a.wrapping_add(b),
        BinaryFn::Sub => a.wrapping_sub(b),
        BinaryFn::Mul => a.wrapping_mul(b),
        BinaryFn::Div => a.checked_div(b).unwrap_or(0),
        BinaryFn::Max => a.max(b),
        BinaryFn::Min => a.min(b),
        BinaryFn::And => a & b,
        BinaryFn::Or => a | b,
        BinaryFn::Xor => a ^ b,
        _ => return None,
    }))
}

fn compare<T: PartialOrd>(f: BinaryFn, a: T, b: T) -> Option<bool> {
    Some(match f {
        BinaryFn::Eq => a == b,
        BinaryFn::Ne => a != b,
        BinaryFn::Lt => a < b,
        BinaryFn::Le => a <= b,
        _ => return None,
    })
}

/// `if c { a } else { b }`; `None` if `c` is no truth value.
#[must_use]
pub fn select(c: Scalar, a: Scalar, b: Scalar) -> Option<Scalar> {
    match c {
        Scalar::Bool(c) => Some(if c { a } else { b }),
        _ => None,
    }
}

/// Value conversion; float to integer truncates and saturates (NaN gives 0).
#[must_use]
pub fn cast(dtype: DType, x: Scalar) -> Scalar {
    match (dtype, x) {
        (DType::F32, Scalar::I32(v)) => Scalar::f32(v as f32),
        (DType::F32, Scalar::U32(v)) => Scalar::f32(v as f32),
        (DType::F32, Scalar::F32(b)) => Scalar::F32(b),
        (DType::F32, Scalar::Bool(b)) => Scalar::f32(f32::from(u8::from(b))),
        (DType::I32, Scalar::F32(b)) => Scalar::I32(f32::from_bits(b) as i32),
        (DType::U32, Scalar::F32(b)) => Scalar::U32(f32::from_bits(b) as u32),
        (DType::Bool, Scalar::F32(b)) => Scalar::Bool(f32::from_bits(b) != 0.0),
        (DType::Bool, other) => Scalar::Bool(other.bits() != 0),
        (d, other) => Scalar::from_bits(d, other.bits()),
    }
}
