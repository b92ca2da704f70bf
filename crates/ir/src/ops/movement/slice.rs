//! Slices along one axis, relative to its ends.

use super::view;
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::index::{Access, IndexExpr};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// Elements `start, start + step, ...` before `end` along `axis`. Negative positions count from the end; no end is the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Slice {
    pub(crate) axis: usize,
    pub(crate) start: isize,
    pub(crate) end: Option<isize>,
    pub(crate) step: usize,
}

impl Slice {
    /// First position and number of elements.
    fn range(&self, x: &TensorType) -> Result<(usize, usize), String> {
        let Some(&d) = x.dims.get(self.axis) else {
            return Err(format!("axis {} of {x} does not exist", self.axis));
        };
        let at = |p: isize| if p < 0 { p + d as isize } else { p };
        let (start, end) = (at(self.start), self.end.map_or(d as isize, at));
        if start < 0 || end > d as isize || start >= end || self.step == 0 {
            return Err(format!(
                "{start}..{end} step {} is no range of axis {} of {x}",
                self.step, self.axis
            ));
        }
        Ok((start as usize, ((end - start) as usize).div_ceil(self.step)))
    }
}

impl Rule for Slice {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let (_, count) = self.range(&inputs[0])?;
        let mut y = inputs[0].clone();
        y.dims[self.axis] = count;
        Ok(vec![y])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let x = vjp.g.ty(vjp.inputs[0]).cloned().unwrap_or_else(|| TensorType::f32([]));
        let (start, count) = self.range(&x)?;
        let used = start + (count - 1) * self.step + 1;
        let dy = vjp.grad();
        let dx = vjp.g.pad_spread(dy, self.axis, [start, x.dims[self.axis] - used, self.step - 1], 0.0);
        vjp.set(0, dx);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let start = if self.start < 0 {
            (inputs[0].dims()[self.axis] as isize + self.start) as usize
        } else {
            self.start as usize
        };
        vec![Array::build(&outputs[0], |p| {
            let mut q = p.to_vec();
            q[self.axis] = start + p[self.axis] * self.step;
            inputs[0].at(&q)
        })]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let start = self.range(&io.inputs[0]).map_or(0, |r| r.0);
        let mut coords: Vec<IndexExpr> = (0..io.inputs[0].rank()).map(IndexExpr::axis).collect();
        coords[self.axis] = coords[self.axis].times(self.step as i64).plus_constant(start as i64);
        view(io, Access::at(coords))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let s = |axis, start, end, step| Slice { axis, start, end, step };
        vec![
            (s(0, 2, Some(7), 1), vec![SampleInput::f32(&[9, 5])]),
            (s(1, -5, None, 1), vec![SampleInput::f32(&[3, 8])]),
            (s(1, 1, Some(-1), 3), vec![SampleInput::f32(&[2, 14, 3])]),
        ]
    }
}

impl Graph {
    /// Elements `start..end` along an axis; negative positions count from the end.
    #[track_caller]
    pub fn slice(&mut self, x: Value, axis: usize, start: isize, end: Option<isize>) -> Value {
        self.slice_step(x, axis, [start, end.unwrap_or(isize::MAX)], 1)
    }

    /// Every `step`-th element of `range[0]..range[1]` along an axis; `isize::MAX` is the end.
    #[track_caller]
    pub fn slice_step(&mut self, x: Value, axis: usize, range: [isize; 2], step: usize) -> Value {
        let end = (range[1] != isize::MAX).then_some(range[1]);
        self.apply(Payload::Slice(Slice { axis, start: range[0], end, step }), &[x])
    }
}
