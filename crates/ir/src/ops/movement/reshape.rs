//! Reshape by groups: consecutive axes are merged, split, inserted or dropped, never interleaved.

use super::view;
use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::index::{Access, Domain, IndexExpr};
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// `take` consecutive axes become the axes `give`; at most one given extent is left out (`None`): it is what remains.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) take: usize,
    pub(crate) give: Vec<Option<usize>>,
}

/// The groups, covering all axes in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Reshape {
    pub(crate) groups: Vec<Group>,
}

impl Group {
    pub(crate) fn keep() -> Self {
        Group { take: 1, give: vec![None] }
    }

    fn extents(&self, taken: &[usize]) -> Result<Vec<usize>, String> {
        let total: usize = taken.iter().product();
        let known = self.give.iter().flatten().fold(1, |n: usize, &d| n.saturating_mul(d));
        match self.give.iter().filter(|g| g.is_none()).count() {
            0 if known == total => {}
            1 if known > 0 && total.is_multiple_of(known) => {}
            0 | 1 => return Err(format!("{taken:?} ({total} elements) cannot become {:?}", self.give)),
            n => return Err(format!("{n} extents of a group are left out, at most one may be")),
        }
        Ok(self.give.iter().map(|g| g.unwrap_or(total / known.max(1))).collect())
    }
}

impl Rule for Reshape {
    fn arity(&self) -> Option<usize> {
        Some(1)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let x = &inputs[0];
        let taken = self.groups.iter().fold(0, |n: usize, g| n.saturating_add(g.take));
        if taken != x.rank() {
            return Err(format!("groups take {taken} axes of {x}"));
        }
        let (mut dims, mut at) = (Vec::new(), 0);
        for g in &self.groups {
            dims.extend(g.extents(&x.dims[at..at + g.take])?);
            at += g.take;
        }
        Ok(vec![TensorType::new(x.dtype, dims)])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let dims = vjp.g.dims(vjp.inputs[0]).to_vec();
        let (mut groups, mut at) = (Vec::new(), 0);
        for g in &self.groups {
            let give = dims[at..at + g.take].iter().map(|d| Some(*d)).collect();
            groups.push(Group { take: g.give.len(), give });
            at += g.take;
        }
        let dy = vjp.grad();
        let dx = vjp.g.apply(Payload::Reshape(Reshape { groups }), &[dy]);
        vjp.set(0, dx);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        vec![Array { ty: outputs[0].clone(), data: inputs[0].data.clone() }]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (from, to) = (&io.inputs[0].dims, &io.outputs[0].dims);
        let axes: Vec<IndexExpr> = (0..to.len()).map(IndexExpr::axis).collect();
        let flat = IndexExpr::flatten(&axes, to);
        view(io, Access::at(flat.unflatten(from, Domain::of(to))))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let group = |take, give: &[Option<usize>]| Group { take, give: give.to_vec() };
        let merge = Reshape { groups: vec![Group::keep(), group(2, &[None])] };
        let split = Reshape { groups: vec![group(1, &[Some(3), None]), Group::keep()] };
        let mixed = Reshape { groups: vec![group(2, &[None, Some(4)]), group(0, &[Some(1)])] };
        vec![
            (merge, vec![SampleInput::f32(&[5, 3, 7])]),
            (split, vec![SampleInput::f32(&[21, 4])]),
            (mixed, vec![SampleInput::f32(&[6, 10])]),
        ]
    }
}

impl Graph {
    /// Merges all axes from `first` on into one.
    #[track_caller]
    pub fn flatten(&mut self, x: Value, first: usize) -> Value {
        let rank = self.dims(x).len();
        self.merge_axes(x, first, rank.saturating_sub(first))
    }

    /// Merges `count` axes from `first` on into one.
    #[track_caller]
    pub fn merge_axes(&mut self, x: Value, first: usize, count: usize) -> Value {
        let rank = self.dims(x).len();
        let mut groups = vec![Group::keep(); first.min(rank + 1)];
        groups.push(Group { take: count, give: vec![None] });
        groups.resize(groups.len() + rank.saturating_sub(first.saturating_add(count)), Group::keep());
        self.apply(Payload::Reshape(Reshape { groups }), &[x])
    }

    /// Splits one axis into these extents; one of them may be 0, which stands for what remains.
    #[track_caller]
    pub fn split_axis(&mut self, x: Value, axis: usize, extents: &[usize]) -> Value {
        let rank = self.dims(x).len();
        let mut groups = vec![Group::keep(); axis.min(rank + 1)];
        groups.push(Group { take: 1, give: extents.iter().map(|&e| (e > 0).then_some(e)).collect() });
        groups.resize(groups.len() + rank.saturating_sub(axis.saturating_add(1)), Group::keep());
        self.apply(Payload::Reshape(Reshape { groups }), &[x])
    }

    /// Inserts axes of extent 1 so that they are at these (sorted) positions of the result.
    #[track_caller]
    pub fn insert_axes(&mut self, x: Value, axes: &[usize]) -> Value {
        let rank = self.dims(x).len() + axes.len();
        let one = || Group { take: 0, give: vec![Some(1)] };
        let groups = (0..rank).map(|i| if axes.contains(&i) { one() } else { Group::keep() }).collect();
        self.apply(Payload::Reshape(Reshape { groups }), &[x])
    }

    /// Drops these axes, which must have extent 1.
    #[track_caller]
    pub fn drop_axes(&mut self, x: Value, axes: &[usize]) -> Value {
        let rank = self.dims(x).len();
        let none = || Group { take: 1, give: Vec::new() };
        let groups = (0..rank).map(|i| if axes.contains(&i) { none() } else { Group::keep() }).collect();
        self.apply(Payload::Reshape(Reshape { groups }), &[x])
    }
}

impl Value {
    /// Merges all axes from `first` on into one.
    #[track_caller]
    #[must_use]
    pub fn flatten(self, g: &mut Graph, first: usize) -> Value {
        g.flatten(self, first)
    }
}
