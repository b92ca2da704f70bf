//! The intrinsic scalar functions and their type rules.

use crate::types::DType;
use serde::{Deserialize, Serialize};

/// One-argument intrinsics. All map `f32` to `f32` except `IsNan` (to bool), `Not` (bool) and
/// `Neg`/`Abs` (also `i32`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnaryFn {
    /// `-x`
    Neg,
    /// `|x|`
    Abs,
    /// `e^x`
    Exp,
    /// natural logarithm
    Log,
    /// square root
    Sqrt,
    /// `1 / sqrt(x)`
    Rsqrt,
    /// hyperbolic tangent
    Tanh,
    /// `1 / (1 + e^-x)`
    Sigmoid,
    /// Gauss error function
    Erf,
    /// sine, radians
    Sin,
    /// cosine, radians
    Cos,
    /// largest integer not above `x`
    Floor,
    /// whether `x` is NaN
    IsNan,
    /// logical not
    Not,
}

/// Two-argument intrinsics on equal dtypes. Comparisons give `Bool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BinaryFn {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`; integers truncate towards zero
    Div,
    /// `a^b`, with `pow(0, 0) = 1`
    Pow,
    /// larger of two; NaN if either is NaN
    Max,
    /// smaller of two; NaN if either is NaN
    Min,
    /// `a == b`
    Eq,
    /// `a != b`
    Ne,
    /// `a < b`
    Lt,
    /// `a <= b`
    Le,
    /// logical and; of integers bit by bit
    And,
    /// logical or; of integers bit by bit
    Or,
    /// exclusive or of the bits of integers
    Xor,
}

impl UnaryFn {
    /// Result dtype for this argument dtype, if the function takes it.
    #[must_use]
    pub fn result(self, x: DType) -> Option<DType> {
        match (self, x) {
            (UnaryFn::Not, DType::Bool) => Some(DType::Bool),
            (UnaryFn::Not, _) => None,
            (UnaryFn::IsNan, d) => (d == DType::F32).then_some(DType::Bool),
            (_, DType::F32) => Some(DType::F32),
            (UnaryFn::Neg | UnaryFn::Abs, DType::I32) => Some(DType::I32),
            _ => None,
        }
    }

    /// Whether evaluating this again costs much more than a load (transcendental functions).
    #[must_use]
    pub fn is_costly(self) -> bool {
        use UnaryFn::{Abs, Floor, IsNan, Neg, Not, Sqrt};
        !matches!(self, Neg | Abs | Floor | IsNan | Not | Sqrt)
    }
}

impl BinaryFn {
    /// Result dtype for these argument dtypes, if the function takes them.
    #[must_use]
    pub fn result(self, a: DType, b: DType) -> Option<DType> {
        use BinaryFn::{Add, And, Div, Eq, Le, Lt, Max, Min, Mul, Ne, Or, Pow, Sub, Xor};
        if a != b {
            return None;
        }
        match (self, a) {
            (And | Or, DType::Bool) | (Eq | Ne, _) => Some(DType::Bool),
            (And | Or | Xor, DType::I32 | DType::U32) => Some(a),
            (And | Or | Xor, _) | (_, DType::Bool) => None,
            (Lt | Le, _) => Some(DType::Bool),
            (Pow, DType::F32) => Some(DType::F32),
            (Pow, _) => None,
            (Add | Sub | Mul | Div | Max | Min, d) => Some(d),
        }
    }
}
