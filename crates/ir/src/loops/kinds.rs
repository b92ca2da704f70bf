//! The loop archetypes as plain data.

use super::{Attention, Body};
use crate::index::Store;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// A loop with its operand and result types.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Loop {
    /// Types of the tensors read.
    pub operands: Vec<TensorType>,
    /// Types of the tensors written.
    pub results: Vec<TensorType>,
    /// The iteration structure.
    pub kind: LoopKind,
}

/// The iteration structures.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LoopKind {
    /// Independent points.
    Map(Map),
    /// Reductions along rows, with optional per-column outputs.
    Row(Row),
    /// A contraction.
    Contract(Contract),
    /// Rows summed by id.
    Scatter(Scatter),
    /// One pointwise body over many parameter windows.
    Update(Update),
    /// Attention or one of its gradients.
    Attention(Box<Attention>),
}

/// The finer classification that kernel families and reports use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Archetype {
    /// Pointwise DAG.
    Map,
    /// Pure data movement.
    Move,
    /// A map that reads rows chosen by data.
    Gather,
    /// Row reductions followed by per-column outputs.
    Row,
    /// Reductions only.
    Reduce,
    /// A reduction over a small window with index-mapped loads.
    Window,
    /// Matrix multiplication, convolution and its gradients.
    Contract,
    /// Owner-computes sum of rows by id.
    Scatter,
    /// Multi-tensor pointwise update.
    Update,
    /// Attention and its gradients.
    Attention,
}

/// `for p in domain: stores[i](p) = body.outputs[i](p)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Map {
    /// Extents.
    pub domain: Vec<usize>,
    /// Per-point arithmetic over the domain's axes.
    pub body: Body,
    /// Where each output goes.
    pub stores: Vec<Store>,
}

/// How values along a row combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Combine {
    /// Sum in `f32` (or wrapping integers).
    Sum,
    /// Largest; NaN wins.
    Max,
    /// Smallest; NaN wins.
    Min,
    /// Largest with the flat column index of its first occurrence (first NaN wins): two carries, value then `i32` index.
    MaxIndex,
    /// Smallest with the flat column index of its first occurrence: two carries.
    MinIndex,
}

impl Combine {
    /// How many carries it yields.
    #[must_use]
    pub fn carries(self) -> usize {
        if self.has_index() { 2 } else { 1 }
    }

    /// Whether the index of the winner is carried too.
    #[must_use]
    pub fn has_index(self) -> bool {
        matches!(self, Combine::MaxIndex | Combine::MinIndex)
    }
}

/// One pass along the row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Phase {
    /// Values to combine, over axes `rows ++ cols`; may use carries of earlier phases.
    pub body: Body,
    /// One per output of the body.
    pub combines: Vec<Combine>,
}

/// For every row: the phases in order, then the row outputs, then the column outputs.
///
/// Carries are numbered through all phases in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Row {
    /// Extents that index rows.
    pub rows: Vec<usize>,
    /// Extents reduced over.
    pub cols: Vec<usize>,
    /// Passes.
    pub phases: Vec<Phase>,
    /// Outputs per row, over axes `rows`.
    pub row_body: Body,
    /// Where they go.
    pub row_stores: Vec<Store>,
    /// Outputs per element, over axes `rows ++ cols`.
    pub col_body: Body,
    /// Where they go.
    pub col_stores: Vec<Store>,
}

/// `acc(b, m, n) = sum over k of a(b, m, k) * b(b, n, k)` in `f32`, then the epilogue with `Carry(0) = acc`. Further terms add
/// to the same sum, or make sums of their own, which are the carries after it. Where the left factor of the first term has a
/// second output, that is summed along the products of this term for every row: the last carry, the same in all columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Contract {
    /// Batch extents.
    pub batch: Vec<usize>,
    /// Row extents of the output.
    pub m: Vec<usize>,
    /// Column extents of the output.
    pub n: Vec<usize>,
    /// Extents summed over.
    pub k: Vec<usize>,
    /// Left factor over axes `batch ++ m ++ k`, and what is summed for every row, if anything.
    pub a: Body,
    /// Right factor over axes `batch ++ n ++ k`.
    pub b: Body,
    /// What is summed besides, in order.
    #[serde(default)]
    pub more: Vec<Term>,
    /// Outputs over axes `batch ++ m ++ n`.
    pub epilogue: Body,
    /// Where they go.
    pub stores: Vec<Store>,
}

/// A further product of a contraction, over its batch, rows and columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Term {
    /// Extents summed over.
    pub k: Vec<usize>,
    /// Left factor over axes `batch ++ m ++ k`.
    pub a: Body,
    /// Right factor over axes `batch ++ n ++ k`.
    pub b: Body,
    /// The sum it adds to: that of an earlier term, or one more than theirs.
    pub sum: usize,
}

/// `out[id, c] = sum over items with ids(item) = id of source(item, c)`, in item order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scatter {
    /// Number of ids: the first dimension of the result.
    pub rows: usize,
    /// Extents of the items.
    pub items: Vec<usize>,
    /// Extents of a row: the other dimensions of the result.
    pub cols: Vec<usize>,
    /// The `i32` id of an item, over axes `items`. Ids outside `0..rows` contribute nothing.
    pub ids: Body,
    /// What is added, over axes `items ++ cols`.
    pub source: Body,
}

/// One pointwise body applied to several segments (parameters with their gradients and moments).
///
/// Operand `s * lanes + l` is lane l of segment s; the operands after the last segment are scalars shared by all segments.
/// In the body, operand l < lanes is the lane and operand `lanes + j` the j-th shared scalar; its single axis is the
/// element. Result `s * outputs + o` is output o of segment s.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Update {
    /// Elements of each segment.
    pub segments: Vec<usize>,
    /// Tensors read per segment.
    pub lanes: usize,
    /// The arithmetic over one axis.
    pub body: Body,
}

impl Row {
    /// Extents of `rows ++ cols`.
    #[must_use]
    pub fn domain(&self) -> Vec<usize> {
        [self.rows.as_slice(), &self.cols].concat()
    }

    /// Dtypes of all carries in order.
    #[must_use]
    pub fn carries(&self) -> Vec<DType> {
        let mut out = Vec::new();
        for phase in &self.phases {
            for (c, o) in phase.combines.iter().zip(phase.body.expr.outputs()) {
                out.push(phase.body.expr.dtype(*o));
                if c.has_index() {
                    out.push(DType::I32);
                }
            }
        }
        out
    }
}

impl Contract {
    /// Extents of `batch ++ m ++ n`.
    #[must_use]
    pub fn domain(&self) -> Vec<usize> {
        [self.batch.as_slice(), &self.m, &self.n].concat()
    }

    /// Flat extents (batch, m, n, k).
    #[must_use]
    pub fn sizes(&self) -> [usize; 4] {
        [&self.batch, &self.m, &self.n, &self.k].map(|d| d.iter().product())
    }

    /// All terms in order: extents summed over, factors, and the sum they add to.
    pub fn terms(&self) -> impl Iterator<Item = (&[usize], &Body, &Body, usize)> {
        let more = self.more.iter().map(|t| (t.k.as_slice(), &t.a, &t.b, t.sum));
        std::iter::once((self.k.as_slice(), &self.a, &self.b, 0)).chain(more)
    }

    /// How many sums of products there are.
    #[must_use]
    pub fn sums(&self) -> usize {
        self.terms().map(|(.., sum)| sum + 1).max().unwrap_or(1)
    }

    /// Whether something is summed for every row besides.
    #[must_use]
    pub fn has_row_sum(&self) -> bool {
        self.a.expr.outputs().len() > 1
    }

    /// How many carries the epilogue has.
    #[must_use]
    pub fn carries(&self) -> usize {
        self.sums() + usize::from(self.has_row_sum())
    }
}

impl Loop {
    /// All bodies, each with the extents of its axes.
    #[must_use]
    pub fn bodies(&self) -> Vec<(&Body, Vec<usize>)> {
        match &self.kind {
            LoopKind::Map(m) => vec![(&m.body, m.domain.clone())],
            LoopKind::Row(r) => {
                let mut out: Vec<_> = r.phases.iter().map(|p| (&p.body, r.domain())).collect();
                out.push((&r.row_body, r.rows.clone()));
                out.push((&r.col_body, r.domain()));
                out
            }
            LoopKind::Contract(c) => {
                let factors = |(k, a, b, _)| {
                    [(a, [c.batch.as_slice(), &c.m, k].concat()), (b, [c.batch.as_slice(), &c.n, k].concat())]
                };
                c.terms().flat_map(factors).chain([(&c.epilogue, c.domain())]).collect()
            }
            LoopKind::Scatter(s) => {
                vec![(&s.ids, s.items.clone()), (&s.source, [s.items.as_slice(), &s.cols].concat())]
            }
            LoopKind::Update(u) => vec![(&u.body, vec![u.segments.iter().copied().max().unwrap_or(1)])],
            LoopKind::Attention(a) => a.bodies(),
        }
    }

    /// All bodies, mutably.
    pub fn bodies_mut(&mut self) -> Vec<&mut Body> {
        match &mut self.kind {
            LoopKind::Map(m) => vec![&mut m.body],
            LoopKind::Row(r) => {
                let mut out: Vec<_> = r.phases.iter_mut().map(|p| &mut p.body).collect();
                out.push(&mut r.row_body);
                out.push(&mut r.col_body);
                out
            }
            LoopKind::Contract(c) => {
                let more = c.more.iter_mut().flat_map(|t| [&mut t.a, &mut t.b]);
                [&mut c.a, &mut c.b].into_iter().chain(more).chain([&mut c.epilogue]).collect()
            }
            LoopKind::Scatter(s) => vec![&mut s.ids, &mut s.source],
            LoopKind::Update(u) => vec![&mut u.body],
            LoopKind::Attention(a) => a.bodies_mut(),
        }
    }

    /// The classification used by kernel families and reports.
    #[must_use]
    pub fn archetype(&self) -> Archetype {
        match &self.kind {
            LoopKind::Map(m) if m.body.loads.iter().any(|l| l.access.dynamic.is_some()) => Archetype::Gather,
            LoopKind::Map(m) if m.body.is_move() => Archetype::Move,
            LoopKind::Map(_) => Archetype::Map,
            LoopKind::Row(r) if !r.col_stores.is_empty() => Archetype::Row,
            LoopKind::Row(r) if r.is_window() => Archetype::Window,
            LoopKind::Row(_) => Archetype::Reduce,
            LoopKind::Contract(_) => Archetype::Contract,
            LoopKind::Scatter(_) => Archetype::Scatter,
            LoopKind::Update(_) => Archetype::Update,
            LoopKind::Attention(_) => Archetype::Attention,
        }
    }
}

impl Row {
    /// A reduction over a small window whose loads mix row and column axes: one thread per row is the right shape.
    fn is_window(&self) -> bool {
        let (rows, cols) = (self.rows.len(), self.cols.iter().product::<usize>());
        let mixes = |e: &crate::index::IndexExpr| {
            (0..rows).any(|a| e.uses(a)) && (rows..rows + self.cols.len()).any(|a| e.uses(a))
        };
        cols <= 256
            && self.phases.iter().any(|p| {
                p.body.loads.iter().any(|l| {
                    l.access.coords.iter().any(mixes) || l.access.valid.iter().any(|b| mixes(&b.expr))
                })
            })
    }
}
