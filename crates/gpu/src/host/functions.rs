//! The elementary functions of the host, in one place: the exact twins of those the kernels call.

pub(super) use griffinfly_compile::kernel::functions::host::{
    cos, erf, exp, log, pow, rsqrt, sigmoid, sin, tanh,
};
