//! Which elements layer, group and batch norm normalise together: all that they differ in.

use super::{NormGrad, Rows, need_f32};
use crate::graph::{Graph, Value};
use crate::index::IndexExpr;
use crate::ops::Payload;
use crate::ops::reduce::row_split;
use crate::types::TensorType;
use std::ops::Range;

/// A way to cut a tensor into rows that are normalised.
pub(crate) trait Split: Clone + Sized {
    /// Whether the unbiased variance is a result, after mean and `rstd`.
    const VARIANCE: bool = false;

    /// The rows of `x`.
    fn frame(&self, x: &TensorType) -> Result<Frame, String>;

    /// The gradient with respect to the operand.
    fn gradient(op: NormGrad<Self>) -> Payload;

    /// Dimensions for the samples.
    fn shapes() -> Vec<(Self, Vec<usize>)>;
}

/// The rows of a tensor x. Seen through [`Frame::view`] they run along whole axes.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Dimensions of the view: those of x, axis 1 split in two if `is_split`.
    dims: Vec<usize>,
    is_split: bool,
    /// Sorted axes of the view along which a row runs.
    axes: Vec<usize>,
    /// Axes of the view that have weights; those of x that do are the one axis with the first of these numbers.
    weights: Range<usize>,
}

impl Frame {
    /// Rows along the last axis.
    pub(crate) fn last(x: &TensorType) -> Result<Frame, String> {
        let last = x.rank().checked_sub(1).ok_or("a scalar has no axis to normalise")?;
        Ok(Frame { dims: x.dims.clone(), is_split: false, axes: vec![last], weights: last..last + 1 })
    }

    /// One row per channel of `[N, C, ..]`.
    pub(crate) fn channels(x: &TensorType) -> Result<Frame, String> {
        if x.rank() < 2 {
            return Err(format!("the operand must be [N, C, ..], it is {x}"));
        }
        let axes = (0..x.rank()).filter(|a| *a != 1).collect();
        Ok(Frame { dims: x.dims.clone(), is_split: false, axes, weights: 1..2 })
    }

    /// One row per sample and group of consecutive channels of `[N, C, ..]`.
    pub(crate) fn groups(x: &TensorType, groups: usize) -> Result<Frame, String> {
        let channels = Frame::channels(x)?.weight_count();
        if groups == 0 || !channels.is_multiple_of(groups) {
            return Err(format!("{channels} channels do not split into {groups} groups"));
        }
        let dims = [&[x.dims[0], groups, channels / groups], &x.dims[2..]].concat();
        let axes = (2..dims.len()).collect();
        Ok(Frame { dims, is_split: true, axes, weights: 1..3 })
    }

    /// Elements of a row.
    pub(crate) fn count(&self) -> usize {
        self.axes.iter().map(|a| self.dims[*a]).product()
    }

    /// Type of a tensor with one element per row.
    pub(crate) fn statistic(&self) -> TensorType {
        TensorType::f32(self.row(&self.dims))
    }

    pub(crate) fn weight_count(&self) -> usize {
        self.dims[self.weights.clone()].iter().product()
    }

    /// Checks that a tensor has one element per weight.
    pub(crate) fn check_weight(&self, what: &str, ty: &TensorType) -> Result<(), String> {
        need_f32(what, ty, &[self.weight_count()])
    }

    /// The part of a point (or of the dimensions) of the view that names the row.
    fn row(&self, view: &[usize]) -> Vec<usize> {
        (0..view.len()).filter(|a| !self.axes.contains(a)).map(|a| view[a]).collect()
    }

    /// Row and weight of an element of x.
    pub(crate) fn place(&self, p: &[usize]) -> (Vec<usize>, usize) {
        let weight = p[self.weights.start];
        let view = match self.is_split {
            true => [&[p[0], weight / self.dims[2], weight % self.dims[2]], &p[2..]].concat(),
            false => p.to_vec(),
        };
        (self.row(&view), weight)
    }

    /// How a loop runs over the rows.
    pub(crate) fn rows(&self) -> Rows {
        let (rows, cols, mut coords) = row_split(&self.dims, &self.axes);
        if self.is_split {
            let channel = IndexExpr::flatten(&coords[1..3], &self.dims[1..3]);
            coords.splice(1..3, [channel]);
        }
        let weight = coords[self.weights.start].clone();
        Rows { rows, cols, coords, weight }
    }

    /// A tensor like x, as the view.
    pub(crate) fn view(&self, g: &mut Graph, x: Value) -> Value {
        if self.is_split { g.split_axis(x, 1, &[self.dims[1], 0]) } else { x }
    }

    /// The view back as a tensor like x.
    pub(crate) fn unview(&self, g: &mut Graph, view: Value) -> Value {
        if self.is_split { g.merge_axes(view, 1, 2) } else { view }
    }

    /// A tensor with one element per row, so that it broadcasts to the view.
    pub(crate) fn spread(&self, g: &mut Graph, statistic: Value) -> Value {
        g.insert_axes(statistic, &self.axes)
    }

    /// The mean along the rows of a view, so that it broadcasts to the view.
    pub(crate) fn mean(&self, g: &mut Graph, view: Value) -> Value {
        let axes: Vec<isize> = self.axes.iter().map(|a| *a as isize).collect();
        g.mean_keep(view, &axes)
    }

    /// The way back from [`Frame::spread`].
    pub(crate) fn unspread(&self, g: &mut Graph, spread: Value) -> Value {
        g.drop_axes(spread, &self.axes)
    }

    /// Weights, so that they broadcast to the view.
    pub(crate) fn weigh(&self, g: &mut Graph, weights: Value) -> Value {
        let weights = if self.is_split { g.split_axis(weights, 0, &[self.dims[1], 0]) } else { weights };
        let own = self.weights.len();
        let after: Vec<usize> = (own..own + self.dims.len() - self.weights.end).collect();
        if after.is_empty() { weights } else { g.insert_axes(weights, &after) }
    }

    /// The sum of a view over all that takes the same weight.
    pub(crate) fn sum_by_weight(&self, g: &mut Graph, view: Value) -> Value {
        let axes = (0..self.dims.len()).filter(|a| !self.weights.contains(a));
        let axes: Vec<isize> = axes.map(|a| a as isize).collect();
        let sum = if axes.is_empty() { view } else { g.sum(view, &axes) };
        if self.is_split { g.merge_axes(sum, 0, 2) } else { sum }
    }
}
