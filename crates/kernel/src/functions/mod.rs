//! Our own scalar functions: WGSL text for kernels and exact Rust twins for the host device.
//!
//! Drivers promise little about `exp`, `sin` or `tanh`, and less about NaN. These versions use only `+ - *`, integer
//! operations, and one division where stated; they hold their bounds whether or not a driver contracts `a * b + c`,
//! and no step relies on compensated sums (which some drivers simplify away). Special values are right everywhere:
//! NaN in gives NaN out, infinities, signed zeros, overflow and underflow behave as in C. Denormal results may be
//! flushed to zero by a device. Each file holds the text and the twin of one group side by side; a test interprets the
//! text and compares it with the twin bit by bit.
//!
//! Largest error in units in the last place against f64, measured with 3,000 random mantissas in every binade of both
//! signs, with and without contraction (tests assert the bound on a smaller sweep):
//!
//! | function | measured | asserted | remark |
//! |---|---|---|---|
//! | `exp` | 0.97 | 1.1 | |
//! | `exp2` | 1.2 | 1.3 | between -126.5 and 126.5 |
//! | `log` | 0.78 | 1.0 | denormal arguments too, unless the device flushes them |
//! | `sin`, `cos` | 1.54 | 2.0 | arguments of any size |
//! | `tanh` | 1.32 | 1.5 | a GPU division may add 1 |
//! | `erf` | 1.21 | 1.5 | |
//! | `sigmoid` | 2.16 | 2.5 | above -87; below, results are denormal; a GPU division may add 2.5 |
//! | `sqrt` | 0.5 | 0.5 | on a GPU what its `sqrt` gives |
//! | `rsqrt` | 1.46 | 1.5 | on a GPU what its `inverseSqrt` gives, at most 2 |
//! | `pow` | 1.76 (1 + s) | 2 (1 + s) | s = abs(y log x): the exponent's rounding is magnified |

mod erf;
mod exponential;
pub mod host;
mod power;
mod root;
mod trigonometric;

#[cfg(test)]
mod interpret;
#[cfg(test)]
mod tests;

/// A scalar function from `f32` to `f32` that kernels may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Function {
    /// `e^x`.
    Exp,
    /// `2^x`, with 0 up to 2^-126.5 and infinity above 2^126.5; cheaper than `e^x`.
    Exp2,
    /// Natural logarithm; -inf at zero, NaN below.
    Log,
    /// Sine, for arguments of any size.
    Sin,
    /// Cosine, for arguments of any size.
    Cos,
    /// Hyperbolic tangent.
    Tanh,
    /// Error function.
    Erf,
    /// `x^y` with the special cases of C.
    Pow,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// Square root; NaN below zero.
    Sqrt,
    /// `1 / sqrt(x)`; infinite at zero, NaN below.
    Rsqrt,
}

impl Function {
    /// All functions.
    pub const ALL: [Self; 11] = [
        Self::Exp,
        Self::Exp2,
        Self::Log,
        Self::Sin,
        Self::Cos,
        Self::Tanh,
        Self::Erf,
        Self::Pow,
        Self::Sigmoid,
        Self::Sqrt,
        Self::Rsqrt,
    ];

    /// Name in the text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exp => "gf_exp",
            Self::Exp2 => "gf_exp2",
            Self::Log => "gf_log",
            Self::Sin => "gf_sin",
            Self::Cos => "gf_cos",
            Self::Tanh => "gf_tanh",
            Self::Erf => "gf_erf",
            Self::Pow => "gf_pow",
            Self::Sigmoid => "gf_sigmoid",
            Self::Sqrt => "gf_sqrt",
            Self::Rsqrt => "gf_rsqrt",
        }
    }

    /// Number of arguments.
    pub const fn arity(self) -> usize {
        match self {
            Self::Pow => 2,
            _ => 1,
        }
    }

    /// WGSL declarations the function needs, callees first, itself last.
    pub const fn sources(self) -> &'static [&'static str] {
        use exponential::{EXP, EXP2, LOG, SIGMOID, TANH};
        match self {
            Self::Exp => &[EXP],
            Self::Exp2 => &[EXP2],
            Self::Log => &[LOG],
            Self::Sin => &[trigonometric::REDUCE, trigonometric::SINE, trigonometric::SIN],
            Self::Cos => &[trigonometric::REDUCE, trigonometric::SINE, trigonometric::COS],
            Self::Tanh => &[EXP, TANH],
            Self::Erf => &[EXP, erf::ERF],
            Self::Pow => &[EXP, LOG, power::POW],
            Self::Sigmoid => &[EXP, SIGMOID],
            Self::Sqrt => &[root::SQRT],
            Self::Rsqrt => &[root::RSQRT],
        }
    }

    /// Declarations for a set of functions, each once, callees first.
    pub fn declarations(functions: impl IntoIterator<Item = Self>) -> Vec<&'static str> {
        let mut texts = Vec::new();
        for text in functions.into_iter().flat_map(Self::sources) {
            if !texts.contains(text) {
                texts.push(*text);
            }
        }
        texts
    }
}
