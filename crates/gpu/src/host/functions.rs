//! The elementary functions of the host, in one place.

use griffinfly_ir::real::Real;

pub(super) fn exp(x: f32) -> f32 {
    x.exp()
}

pub(super) fn log(x: f32) -> f32 {
    x.ln()
}

pub(super) fn rsqrt(x: f32) -> f32 {
    1.0 / x.sqrt()
}

pub(super) fn tanh(x: f32) -> f32 {
    x.tanh()
}

pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

pub(super) fn erf(x: f32) -> f32 {
    Real::erf(x)
}

pub(super) fn sin(x: f32) -> f32 {
    x.sin()
}

pub(super) fn cos(x: f32) -> f32 {
    x.cos()
}

pub(super) fn pow(x: f32, y: f32) -> f32 {
    x.powf(y)
}
