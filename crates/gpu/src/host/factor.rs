//! One factor of a contraction: a matrix of free index by summed index, in place or packed into a panel.

use super::code::{Code, Source};
use super::evaluate::{Need, Scratch};
use super::memory::View;
use super::memory::product::{Elements, Matrix};
use super::points::LANES;
use super::scatter::to_floats;
use griffinfly_ir::index::IndexExpr;
use griffinfly_ir::loops::Body;
use griffinfly_ir::types::{DType, TensorType};
use std::ops::Range;

/// Extents of the axes of a factor: batch, free, summed.
#[derive(Clone, Copy)]
pub(super) struct Axes<'a> {
    /// Batch extents.
    pub(super) batch: &'a [usize],
    /// Extents of the output's row or column.
    pub(super) free: &'a [usize],
    /// Summed extents.
    pub(super) k: &'a [usize],
}

/// How the elements are found.
enum Access {
    /// In place: operand, offset over the original axes, strides of free and summed index.
    Direct { operand: usize, offset: IndexExpr, strides: [i64; 2] },
    /// Evaluated into a panel; whether the summed index is the inner one there.
    Packed { code: Code, inner_k: bool },
}

/// A factor.
pub(super) struct Factor {
    access: Access,
    batch: Vec<usize>,
    rank: usize,
    free: usize,
    k: usize,
}

/// A block of a factor: batch item, ranges of free and summed index.
#[derive(Clone)]
pub(super) struct Block {
    /// Batch item.
    pub(super) batch: usize,
    /// Free index.
    pub(super) free: Range<usize>,
    /// Summed index.
    pub(super) k: Range<usize>,
}

/// The stride of the flat index of a group of axes in an expression, if it has one.
pub(super) fn group_stride(e: &IndexExpr, first: usize, extents: &[usize]) -> Option<i64> {
    let mut found: Option<(i64, i64)> = None;
    for (i, &extent) in extents.iter().enumerate().rev() {
        if extent == 1 {
            continue;
        }
        let c = e.coefficient(first + i)?;
        let (stride, expected) = found.unwrap_or((c, c));
        if c != expected {
            return None;
        }
        found = Some((stride, expected.checked_mul(extent as i64)?));
    }
    Some(found.map_or(1, |f| f.0))
}

/// Coordinates of a flat index, followed by zeros.
pub(super) fn point(extents: &[usize], flat: usize, rank: usize) -> Vec<usize> {
    let mut rest = flat;
    let mut out = vec![0; rank];
    for (c, &e) in out.iter_mut().zip(extents).take(extents.len()).rev() {
        (*c, rest) = (rest % e, rest / e);
    }
    out
}

impl Factor {
    /// Plans a factor with registers from `first_register`.
    ///
    /// # Errors
    /// What does not compile, in words.
    pub(super) fn new(
        body: &Body,
        operands: &[TensorType],
        axes: Axes<'_>,
        first_register: usize,
    ) -> Result<Factor, String> {
        let (nb, nf, nk) = (axes.batch.len(), axes.free.len(), axes.k.len());
        let access = match direct(body, operands, axes) {
            Some(access) => access,
            None => {
                let extents = [axes.batch, axes.free, axes.k].concat();
                let source = Source { body, operands, extents: &extents, stores: &[], results: &[] };
                let inner_k: Vec<usize> = (0..nb + nf + nk).collect();
                let inner_free: Vec<usize> =
                    (0..nb).chain(nb + nf..nb + nf + nk).chain(nb..nb + nf).collect();
                let a = Code::new(&source, &inner_k, first_register)?;
                let b = Code::new(&source, &inner_free, first_register)?;
                let inner_k = a.nanoseconds(LANES) <= b.nanoseconds(LANES);
                Access::Packed { code: if inner_k { a } else { b }, inner_k }
            }
        };
        Ok(Factor {
            access,
            batch: axes.batch.to_vec(),
            rank: nb + nf + nk,
            free: axes.free.iter().product(),
            k: axes.k.iter().product(),
        })
    }

    /// Whether it is read in place.
    pub(super) fn is_direct(&self) -> bool {
        matches!(self.access, Access::Direct { .. })
    }

    /// Scratch needed, panels apart.
    pub(super) fn need(&self) -> Need {
        match &self.access {
            Access::Direct { .. } => Need::default(),
            Access::Packed { code, .. } => Need::of(code),
        }
    }

    /// First register not used.
    pub(super) fn end_register(&self, first: usize) -> usize {
        if let Access::Packed { code, .. } = &self.access { code.end_register } else { first }
    }

    /// Estimated nanoseconds to pack an element.
    pub(super) fn nanoseconds(&self) -> f64 {
        if let Access::Packed { code, .. } = &self.access { code.nanoseconds(LANES) } else { 0.0 }
    }

    /// To be called once per task.
    pub(super) fn begin(&self, scratch: &mut Scratch) {
        if let Access::Packed { code, .. } = &self.access {
            code.begin(scratch);
        }
    }

    /// Where batch items start, for factors in place.
    pub(super) fn starts(&self) -> Vec<i64> {
        let Access::Direct { offset, .. } = &self.access else { return Vec::new() };
        let items: usize = self.batch.iter().product();
        (0..items).map(|b| offset.eval(&point(&self.batch, b, self.rank))).collect()
    }

    /// Evaluates a block into a panel (nothing to do for factors in place).
    pub(super) fn pack(&self, scratch: &mut Scratch, operands: &[View], block: &Block, panel: &mut [f32]) {
        let Access::Packed { code, inner_k } = &self.access else { return };
        let (outer, inner) = if *inner_k { (&block.free, &block.k) } else { (&block.k, &block.free) };
        let (outers, inners) = if *inner_k { (self.free, self.k) } else { (self.k, self.free) };
        let row = |i: usize| (block.batch * outers + i) * inners;
        if inner.len() == inners {
            let count = outer.len() * inners;
            span(code, scratch, operands, row(outer.start), &mut panel[..count]);
            return;
        }
        for (i, out) in outer.clone().zip(panel.chunks_exact_mut(inner.len())) {
            span(code, scratch, operands, row(i) + inner.start, out);
        }
    }

    /// The block as a matrix of free by summed index.
    pub(super) fn matrix<'a>(
        &self,
        operands: &'a [View],
        starts: &[i64],
        block: &Block,
        panel: &'a [f32],
    ) -> Matrix<'a> {
        match &self.access {
            Access::Direct { operand, strides: [free, k], .. } => Matrix {
                elements: Elements::View(&operands[*operand]),
                offset: starts[block.batch] + free * block.free.start as i64 + k * block.k.start as i64,
                row: *free,
                column: *k,
            },
            Access::Packed { inner_k, .. } => {
                let (row, column) =
                    if *inner_k { (block.k.len() as i64, 1) } else { (1, block.free.len() as i64) };
                Matrix { elements: Elements::Panel(panel), offset: 0, row, column }
            }
        }
    }
}

/// A body that is one plain load whose offset is affine in the flat free and summed index.
fn direct(body: &Body, operands: &[TensorType], axes: Axes<'_>) -> Option<Access> {
    let body = body.pruned();
    let load = body.loads.first().filter(|_| body.is_move())?;
    let ty = operands.get(load.operand)?;
    let plain = load.access.valid.is_empty() && load.access.dynamic.is_none() && ty.dtype == DType::F32;
    let offset = load.access.offset(&ty.dims);
    let (nb, nf) = (axes.batch.len(), axes.free.len());
    let strides = [group_stride(&offset, nb, axes.free)?, group_stride(&offset, nb + nf, axes.k)?];
    plain.then_some(Access::Direct { operand: load.operand, offset, strides })
}

/// Evaluates consecutive points.
fn span(code: &Code, scratch: &mut Scratch, operands: &[View], start: usize, out: &mut [f32]) {
    let Some(&(register, dtype)) = code.outputs.first() else { return };
    for (i, out) in out.chunks_mut(LANES).enumerate() {
        code.evaluate(scratch, operands, start + i * LANES, out.len());
        to_floats(dtype, &scratch.registers[register][..out.len()], out);
    }
}
