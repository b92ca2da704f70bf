//! Padding along one axis with a constant, before, after and between elements.

use super::view;
use crate::array::Array;
use crate::attr::F32;
use crate::graph::{Graph, Value};
use crate::index::{Access, Bound, Domain, IndexExpr};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::{self, Scalar};
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// `before` copies of `value`, then the elements with `interior` copies between neighbours, then `after` copies.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Pad {
    pub(crate) axis: usize,
    pub(crate) before: usize,
    pub(crate) after: usize,
    pub(crate) interior: usize,
    pub(crate) value: F32,
}

impl Rule for Pad {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let x = &inputs[0];
        let Some(&d) = x.dims.get(self.axis) else {
            return Err(format!("axis {} of {x} does not exist", self.axis));
        };
        let inner = d.saturating_sub(1).saturating_mul(self.interior.saturating_add(1)).saturating_add(1);
        let mut y = x.clone();
        y.dims[self.axis] = inner.saturating_add(self.before).saturating_add(self.after);
        Ok(vec![y])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let dy = vjp.grad();
        let end = (vjp.g.dims(dy)[self.axis] - self.after) as isize;
        let dx = vjp.g.slice_step(dy, self.axis, [self.before as isize, end], self.interior + 1);
        vjp.set(0, dx);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let mut y = Array::filled(&outputs[0], R::of(f64::from(self.value.get())));
        crate::array::each_point(inputs[0].dims(), |p| {
            let mut q = p.to_vec();
            q[self.axis] = self.before + p[self.axis] * (self.interior + 1);
            let at = y.offset(&q);
            y.data[at] = inputs[0].at(p);
        });
        vec![y]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (x, y) = (&io.inputs[0], &io.outputs[0]);
        let mut coords: Vec<IndexExpr> = (0..x.rank()).map(IndexExpr::axis).collect();
        let (moved, step) =
            (coords[self.axis].plus_constant(-(self.before as i64)), self.interior as i64 + 1);
        let domain = Domain::of(&y.dims);
        let c = moved.div(step, domain);
        let mut valid = vec![Bound::new(c.clone(), 0, x.dims[self.axis] as i64)];
        if step > 1 {
            valid.push(Bound::new(moved.rem(step, domain), 0, 1));
        }
        coords[self.axis] = c;
        let fill = scalar::cast(x.dtype, Scalar::f32(self.value.get()));
        view(io, Access::at(coords).when(valid, fill))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let p = |axis, [before, after, interior]: [usize; 3], value: f32| Pad {
            axis,
            before,
            after,
            interior,
            value: value.into(),
        };
        vec![
            (p(0, [1, 2, 0], 0.5), vec![SampleInput::f32(&[5, 3])]),
            (p(1, [0, 3, 2], 0.0), vec![SampleInput::f32(&[3, 4, 2])]),
            (p(0, [2, 0, 1], 3.0), vec![SampleInput::ids(&[4], 9)]),
        ]
    }
}

impl Graph {
    /// Pads an axis with `value`, `before` and `after` its elements.
    #[track_caller]
    pub fn pad(&mut self, x: Value, axis: usize, [before, after]: [usize; 2], value: f32) -> Value {
        self.pad_spread(x, axis, [before, after, 0], value)
    }

    /// Pads an axis with `value` before, after and between its elements.
    #[track_caller]
    pub fn pad_spread(
        &mut self,
        x: Value,
        axis: usize,
        [before, after, interior]: [usize; 3],
        value: f32,
    ) -> Value {
        let value = value.into();
        self.apply(Payload::Pad(Pad { axis, before, after, interior, value }), &[x])
    }
}
