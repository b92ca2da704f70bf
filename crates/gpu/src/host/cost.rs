//! Rough running times, to choose evaluation orders and to decide whether threads pay.

use super::arithmetic::Operation;
use super::code::{Code, Step};
use super::forms::{Form, Guard};
use super::points::LANES;
use griffinfly_ir::scalar::{BinaryFn, UnaryFn};

/// Fixed cost of an instruction or a run, in nanoseconds.
const OVERHEAD: f64 = 8.0;

impl Code {
    /// Estimated nanoseconds per point when blocks have about `lanes` points.
    pub(super) fn nanoseconds(&self, lanes: usize) -> f64 {
        let lanes = lanes.clamp(1, LANES);
        let run = self.extents.last().copied().unwrap_or(1).min(lanes) as f64;
        let block = 4.0 * OVERHEAD / lanes as f64;
        let steps: f64 = self.steps.iter().map(|i| step(&i.step, run, lanes)).sum();
        let stores: f64 = self.stores.iter().map(|s| along(&s.offset, run)).sum();
        block + steps + stores
    }
}

fn step(step: &Step, run: f64, lanes: usize) -> f64 {
    let fixed = OVERHEAD / lanes as f64;
    fixed
        + match step {
            Step::Load(plan) if plan.table.is_some() => 0.8,
            Step::Load(plan) => {
                let guards: f64 = plan.guards.iter().map(|g| guard(g, run)).sum();
                let id = if plan.id.as_ref().is_some_and(|i| !i.uniform) { 1.5 } else { 0.0 };
                along(&plan.offset, run) + guards + id
            }
            Step::Index(form) => along(form, run),
            Step::Within(guards) => guards.iter().map(|g| 1.0 + guard(g, run)).sum(),
            Step::Compute(Operation::Unary(f, _), _) => match f {
                UnaryFn::Neg | UnaryFn::Abs | UnaryFn::Floor | UnaryFn::IsNan | UnaryFn::Not => 0.1,
                UnaryFn::Sqrt | UnaryFn::Rsqrt => 1.0,
                _ => 4.0,
            },
            Step::Compute(Operation::Binary(BinaryFn::Pow, _), _) => 10.0,
            Step::Compute(Operation::Binary(BinaryFn::Div, _), _) => 0.5,
            _ => 0.1,
        }
}

fn along(form: &Form, run: f64) -> f64 {
    OVERHEAD / run
        + match form.stride() {
            Some(0 | 1) => 0.1,
            Some(s) if s.abs() < 16 => 0.6,
            Some(_) => 1.5,
            None => 5.0,
        }
}

fn guard(g: &Guard, run: f64) -> f64 {
    OVERHEAD / 2.0 / run + if g.stride().is_some() { 0.0 } else { 5.0 }
}
