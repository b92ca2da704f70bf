//! Evaluation of a body at one point or at four in a row, and the buffers it reads.

use super::view::View;
use crate::KernelError;
use crate::families::Slot;
use crate::families::emit::{self, Bindings, Env};
use crate::kir::{Access, Buffer, Builder, Expr, Lanes, Type};
use griffinfly_ir::loops::{Body, Loop};
use griffinfly_ir::scalar::ScalarExpr;
use griffinfly_ir::target::{Backend, Target};
use griffinfly_ir::types::DType;

/// A view together with the group along which four points are evaluated at once, if any.
pub(in crate::families) type Sight<'a> = (&'a View, Option<usize>);

/// The buffers of a kernel, each bound with scalar elements, with quadruples, or both ways where both are needed. Where no two
/// bindings may overlap, what is needed both ways is bound with scalar elements, and quadruples are made of four.
pub(in crate::families) struct Buffers<'b> {
    bindings: Bindings<'b>,
    wide: Vec<Option<Buffer<'b>>>,
}

impl<'b> Buffers<'b> {
    /// Binds what these bodies read.
    pub(in crate::families) fn new(
        (b, target): (&'b Builder, &Target),
        l: &Loop,
        sights: &[Sight<'_>],
    ) -> Self {
        let mut buffers = Self { bindings: Bindings::new(b, l), wide: vec![None; l.operands.len()] };
        let uses: Vec<(usize, bool)> = sights
            .iter()
            .flat_map(|(view, quads)| {
                let wide = move |k: usize| quads.is_some_and(|group| view.is_wide(k, group));
                emit::needed(&view.body).into_iter().map(move |k| (view.body.loads[k].operand, wide(k)))
            })
            .collect();
        for (operand, ty) in l.operands.iter().enumerate() {
            let element = emit::element_type(ty.dtype);
            let is_narrow = uses.contains(&(operand, false));
            let may_overlap = target.backend != Backend::WebGpu;
            if uses.contains(&(operand, true)) && (may_overlap || !is_narrow) {
                let buffer = buffers.bindings.operand(operand, element.with_lanes(Lanes::Four));
                buffers.wide[operand] = Some(buffer);
                buffers.bindings.operands[operand] = None;
            }
            if is_narrow {
                buffers.bindings.operand(operand, element);
            }
        }
        buffers
    }

    /// Binds the results.
    pub(super) fn results(&mut self, l: &Loop, quads: bool) {
        (0..l.results.len()).for_each(|result| self.result(l, result, quads));
    }

    /// Binds one result.
    pub(in crate::families) fn result(&mut self, l: &Loop, result: usize, quads: bool) {
        let lanes = if quads { Lanes::Four } else { Lanes::One };
        self.bindings.result(result, emit::element_type(l.results[result].dtype).with_lanes(lanes));
    }

    /// Binds the partial sums.
    pub(super) fn partials(&mut self, quads: bool, access: Access) -> Buffer<'b> {
        self.bindings.scratch(0, if quads { Type::F32X4 } else { Type::F32 }, access)
    }

    /// Binds a scratch buffer.
    pub(in crate::families) fn scratch(
        &mut self,
        number: usize,
        element: Type,
        access: Access,
    ) -> Buffer<'b> {
        self.bindings.scratch(number, element, access)
    }

    /// Binds the counters.
    pub(super) fn counters(&mut self) -> Buffer<'b> {
        self.bindings.counters()
    }

    /// What each binding refers to.
    pub(in crate::families) fn slots(self) -> Vec<Slot> {
        self.bindings.slots()
    }
}

/// The outputs of a body at the point (or the four points from there on).
pub(in crate::families) fn outputs<'b>(
    b: &'b Builder,
    buffers: &Buffers<'b>,
    (view, quads): Sight<'_>,
    axes: &[Expr<'b>],
    carries: &[Expr<'b>],
) -> Result<Vec<Expr<'b>>, KernelError> {
    let extents = view.extents();
    let env = Env { carries, ..buffers.bindings.env(&view.operands, &extents, axes) };
    let Some(group) = quads else { return emit::body(b, &view.body, &env) };
    let mut loads = vec![None; view.body.loads.len()];
    for k in emit::needed(&view.body) {
        loads[k] = Some(if view.is_wide(k, group) {
            quadruple(b, buffers, (view, k), &env)?
        } else {
            emit::body(b, &single(view, k), &env)?[0]
        });
    }
    let outputs = emit::body_of_loads(b, &view.body, &env, &loads)?;
    Ok(outputs.into_iter().map(|value| value.splat(Lanes::Four)).collect())
}

/// Writes the outputs of an epilogue where its stores say.
pub(in crate::families) fn store<'b>(
    b: &'b Builder,
    buffers: &Buffers<'b>,
    (view, quads): Sight<'_>,
    axes: &[Expr<'b>],
    values: &[Expr<'b>],
) -> Result<(), KernelError> {
    let extents = view.extents();
    let env = buffers.bindings.env(&view.operands, &extents, axes);
    for (store, value) in view.stores.iter().zip(values) {
        let buffer = buffers.bindings.target(store.result)?;
        if quads.is_some() {
            let offset = emit::index(b, &store.coords[0], &env);
            buffer.store(offset / 4, emit::to_stored(*value));
        } else {
            emit::store(b, store, (buffer, &view.results[store.result]), *value, &env);
        }
    }
    Ok(())
}

/// The body that is one load of another.
fn single(view: &View, k: usize) -> Body {
    let load = view.body.loads[k].clone();
    let dtype = view.operands.get(load.operand).map_or(DType::F32, |ty| ty.dtype);
    let mut expr = ScalarExpr::new();
    let value = expr.load(0, dtype);
    expr.output(value);
    Body { loads: vec![load], expr }
}

/// Four elements side by side.
fn quadruple<'b>(
    b: &'b Builder,
    buffers: &Buffers<'b>,
    (view, k): (&View, usize),
    env: &Env<'_, 'b>,
) -> Result<Expr<'b>, KernelError> {
    let load = &view.body.loads[k];
    let missing = || emit::unsupported("contract", format!("operand {} is not bound", load.operand));
    let wide = buffers.wide.get(load.operand).copied().flatten();
    let narrow = buffers.bindings.operands.get(load.operand).copied().flatten();
    let ty = view.operands.get(load.operand).ok_or_else(missing)?;
    if wide.or(narrow).is_none() {
        return Err(missing());
    }
    // The quadruple of this number.
    let load_at = |offset: Expr<'b>| match (wide, narrow) {
        (None, Some(narrow)) => b.vector(&[0, 1, 2, 3].map(|lane: u32| narrow.load(offset * 4 + lane))),
        (Some(wide), _) => wide.load(offset),
        (None, None) => offset,
    };
    let offset = emit::index(b, &load.access.coords[0], env) / 4;
    if load.access.valid.is_empty() {
        return Ok(emit::from_stored(load_at(offset), ty.dtype));
    }
    let mut guard = ScalarExpr::new();
    let within = guard.within(load.access.valid.clone());
    guard.output(within);
    let inside = emit::body(b, &Body { loads: Vec::new(), expr: guard }, env)?[0];
    let value = emit::from_stored(load_at(inside.select(offset, 0_u32)), ty.dtype);
    Ok(inside.select(value, emit::constant(b, load.access.fill).splat(Lanes::Four)))
}
