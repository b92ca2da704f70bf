//! Bodies prepared for emission: flat addresses, merged axes, and which of them can be evaluated four points at a time.
//!
//! A contraction indexes each body by three flat numbers (batch and two of row, column, product). Where all addresses of
//! a body are affine in neighbouring axes of such a group with row-major proportions, those become one axis; what is left of
//! several axes is found by decomposing the flat number.

use super::problem::LAST;
use crate::families::emit::decompose;
use crate::kir::{Builder, Expr};
use griffinfly_ir::index::{Access, Atom, Bound, Domain, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Load};
use griffinfly_ir::scalar::{ScalarExpr, ScalarNode};
use griffinfly_ir::types::TensorType;
use std::ops::Range;

/// A body over three groups of axes.
#[derive(Clone, Debug)]
pub(in crate::families) struct View {
    /// The body.
    pub(in crate::families) body: Body,
    /// Where its outputs go, if it has stores.
    pub(super) stores: Vec<Store>,
    /// Types of the operands as the body sees them.
    pub(super) operands: Vec<TensorType>,
    /// Types of the results as the stores see them.
    pub(super) results: Vec<TensorType>,
    /// Extents of the axes of each group.
    pub(in crate::families) groups: [Vec<usize>; 3],
}

/// Operand and result types of the loop.
pub(in crate::families) type Types<'a> = (&'a [TensorType], &'a [TensorType]);

impl View {
    /// The view of a body, merged as far as possible.
    pub(in crate::families) fn new(
        body: &Body,
        stores: &[Store],
        groups: [&[usize]; 3],
        types: Types<'_>,
    ) -> Self {
        let mut view = View {
            body: body.clone(),
            stores: stores.to_vec(),
            operands: types.0.to_vec(),
            results: types.1.to_vec(),
            groups: groups.map(<[usize]>::to_vec),
        };
        if view.is_static() {
            view.flatten();
            for group in 0..3 {
                view = view.with_merged(group);
            }
        }
        view
    }

    /// Extents of all axes.
    pub(super) fn extents(&self) -> Vec<usize> {
        self.groups.concat()
    }

    fn start(&self, group: usize) -> usize {
        self.groups[..group].iter().map(Vec::len).sum()
    }

    /// No coordinate comes from data.
    fn is_static(&self) -> bool {
        self.body.loads.iter().all(|load| load.access.dynamic.is_none())
    }

    /// One coordinate per access: the element offset.
    fn flatten(&mut self) {
        for load in &mut self.body.loads {
            let offset = load.access.offset(&self.operands[load.operand].dims);
            load.access.coords = vec![offset];
        }
        for store in &mut self.stores {
            store.coords = vec![IndexExpr::flatten(&store.coords, &self.results[store.result].dims)];
        }
        for ty in self.operands.iter_mut().chain(&mut self.results) {
            ty.dims = vec![ty.elements()];
        }
    }

    /// The view with the axes of a group merged as far as addresses allow it, from the innermost out.
    fn with_merged(self, group: usize) -> View {
        let mut view = self;
        let mut last = view.groups[group].len();
        while last > 1 {
            // As many neighbours as there are in one go, else the axis stays as it is.
            let merged = (0..last - 1).find_map(|first| Some((first, view.merged(group, first..last)?)));
            last = match merged {
                Some((first, merged)) => {
                    view = merged;
                    first
                }
                None => last - 1,
            };
        }
        view
    }

    /// The view with some neighbouring axes of a group merged into one, if all addresses allow it.
    fn merged(&self, group: usize, axes: Range<usize>) -> Option<View> {
        let mut groups = self.groups.clone();
        let size = self.groups[group][axes.clone()].iter().product();
        groups[group].splice(axes.clone(), [size]);
        let (first, old) = (self.start(group) + axes.start, &self.groups[group][axes]);
        let merge = Merge { first, old, extents: &groups.concat() };
        let load = |load: &Load| {
            let valid = load.access.valid.iter().map(|bound| merge.bound(bound)).collect::<Option<_>>()?;
            let coords = merge.all(&load.access.coords)?;
            let access = Access { coords, valid, ..load.access.clone() };
            Some(Load { operand: load.operand, access })
        };
        let store = |store: &Store| Some(Store { result: store.result, coords: merge.all(&store.coords)? });
        let loads = self.body.loads.iter().map(load).collect::<Option<_>>()?;
        let stores = self.stores.iter().map(store).collect::<Option<_>>()?;
        let body = Body { loads, expr: merge.arithmetic(&self.body.expr)? };
        Some(View { body, stores, groups, ..self.clone() })
    }

    /// Axes of the last group at product `from + product`, at most `last` before `end`, and whether that product is before the end.
    /// `from` is a multiple of `step`, the products of a tile. Where a tile lies along the innermost axis alone, the other axes
    /// are those of the tile, which is found once for all of its products.
    pub(super) fn products<'b>(
        &self,
        b: &'b Builder,
        (from, product): (Expr<'b>, Expr<'b>),
        (step, last): (u32, u32),
        end: Expr<'b>,
    ) -> (Vec<Expr<'b>>, Expr<'b>) {
        let group = &self.groups[LAST];
        let k = from + product;
        match group.split_last() {
            Some((inner, outer)) if !outer.is_empty() && inner.is_multiple_of(step as usize) => {
                let inner = *inner as u32;
                let tile = from.native_min(end - step);
                let mut axes = decompose(b, tile / inner, outer);
                axes.push(tile % inner + product);
                (axes, from.lt(end))
            }
            _ => (decompose(b, k.native_min(end - last), group), k.lt(end)),
        }
    }

    /// The innermost axis of a group.
    fn innermost(&self, group: usize) -> Option<usize> {
        self.groups[group].len().checked_sub(1).map(|last| self.start(group) + last)
    }

    /// Whether four points in a row along a group, from a multiple of four, can be evaluated together: every load is
    /// either the same element for all four or an aligned quadruple, and so is every store.
    pub(in crate::families) fn allows_quads(&self, group: usize) -> bool {
        let Some(axis) = self.innermost(group) else { return false };
        let extent = self.groups[group].last().copied().unwrap_or(1);
        let even = |bound: &Bound| steps(&bound.expr, axis).is_some_and(|s| s.is_even(bound));
        let load = |load: &Load| {
            let offset = load.access.coords.iter().map(|c| steps(c, axis)).collect::<Option<Vec<_>>>();
            let shape = matches!(offset.as_deref(), Some([s]) if s.slope == 0 || s.is_quad());
            shape && load.access.valid.iter().all(even)
        };
        let store = |store: &Store| matches!(store.coords.as_slice(), [c] if steps(c, axis).is_some_and(|s| s.is_quad()));
        let node = |node: &ScalarNode| match node {
            ScalarNode::Index(expr) => steps(expr, axis).is_some_and(|s| s.slope == 0),
            ScalarNode::Within(bounds) => bounds.iter().all(even),
            _ => true,
        };
        extent.is_multiple_of(4)
            && self.is_static()
            && self.body.loads.iter().all(load)
            && self.stores.iter().all(store)
            && self.body.expr.nodes().iter().all(node)
    }

    /// Whether a load reads a quadruple when points along a group are evaluated together.
    pub(super) fn is_wide(&self, load: usize, group: usize) -> bool {
        let axis = self.innermost(group);
        let offset = self.body.loads.get(load).and_then(|load| load.access.coords.first());
        matches!((axis, offset), (Some(axis), Some(c)) if steps(c, axis).is_some_and(|s| s.slope == 1))
    }

    /// Whether neighbours along a group mostly lie side by side in memory.
    pub(super) fn is_contiguous(&self, group: usize) -> bool {
        let Some(axis) = self.innermost(group) else { return false };
        let mut loads = self.body.loads.iter().filter_map(|load| load.access.coords.last());
        loads.any(|c| c.coefficient(axis) == Some(1))
    }
}

/// How a value changes over aligned quadruples along an axis.
#[derive(Clone, Copy)]
struct Steps {
    /// Increment per point.
    slope: i64,
    /// Whether it is a multiple of four at the start of each quadruple.
    aligned: bool,
}

impl Steps {
    fn is_quad(self) -> bool {
        self.slope == 1 && self.aligned
    }

    /// Whether a bound on such values holds for all of a quadruple or for none.
    fn is_even(self, bound: &Bound) -> bool {
        self.slope == 0 || (self.is_quad() && bound.lo % 4 == 0 && bound.hi % 4 == 0)
    }
}

/// The steps of an expression, if it is affine within every aligned quadruple.
fn steps(expr: &IndexExpr, axis: usize) -> Option<Steps> {
    let mut sum = Steps { slope: 0, aligned: expr.offset() % 4 == 0 };
    for (coefficient, atom) in expr.terms() {
        let part = match atom {
            Atom::Axis(a) if *a == axis => Steps { slope: 1, aligned: true },
            Atom::Axis(_) => Steps { slope: 0, aligned: false },
            Atom::Mod(inner, n) => match steps(inner, axis)? {
                still if still.slope == 0 => Steps { aligned: still.aligned && n % 4 == 0, ..still },
                quad if quad.is_quad() && n % 4 == 0 => quad,
                _ => return None,
            },
            Atom::Div(inner, n) => match steps(inner, axis)? {
                part if part.slope == 0 || (part.is_quad() && n % 4 == 0) => {
                    Steps { slope: 0, aligned: false }
                }
                _ => return None,
            },
        };
        sum.slope += coefficient * part.slope;
        sum.aligned &= part.aligned || coefficient % 4 == 0;
    }
    Some(sum)
}

/// Replacement of neighbouring axes by their row-major number.
struct Merge<'a> {
    first: usize,
    old: &'a [usize],
    extents: &'a [usize],
}

impl Merge<'_> {
    fn all(&self, exprs: &[IndexExpr]) -> Option<Vec<IndexExpr>> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    /// The same arithmetic where it looks at the axes.
    fn arithmetic(&self, expr: &ScalarExpr) -> Option<ScalarExpr> {
        let (mut merged, mut fits) = (ScalarExpr::new(), true);
        let outputs = merged.graft(expr, expr.outputs(), &mut |merged, node, _| match node {
            ScalarNode::Index(e) => {
                let e = self.expr(e);
                fits &= e.is_some();
                e.map(|e| merged.index(e))
            }
            ScalarNode::Within(bounds) => {
                let bounds: Option<Vec<Bound>> = bounds.iter().map(|bound| self.bound(bound)).collect();
                fits &= bounds.is_some();
                bounds.map(|bounds| merged.within(bounds))
            }
            _ => None,
        });
        merged.set_outputs(outputs);
        fits.then_some(merged)
    }

    fn bound(&self, bound: &Bound) -> Option<Bound> {
        Some(Bound::new(self.expr(&bound.expr)?, bound.lo, bound.hi))
    }

    fn expr(&self, expr: &IndexExpr) -> Option<IndexExpr> {
        let inside = |axis: usize| (self.first..self.first + self.old.len()).contains(&axis);
        let domain = Domain::of(self.extents);
        let mut sum = IndexExpr::constant(expr.offset());
        let mut found = vec![0; self.old.len()];
        for (coefficient, atom) in expr.terms() {
            let image = match atom {
                Atom::Axis(axis) if inside(*axis) => {
                    found[*axis - self.first] = *coefficient;
                    continue;
                }
                Atom::Axis(axis) if *axis < self.first => IndexExpr::axis(*axis),
                Atom::Axis(axis) => IndexExpr::axis(axis + 1 - self.old.len()),
                Atom::Div(inner, n) => self.expr(inner)?.div(*n, domain),
                Atom::Mod(inner, n) => self.expr(inner)?.rem(*n, domain),
            };
            sum = sum.plus(&image.times(*coefficient));
        }
        Some(sum.plus(&IndexExpr::axis(self.first).times(self.unit(&found)?)))
    }

    /// The coefficient of the merged axis, if the given ones have row-major proportions (axes of extent 1 are 0).
    fn unit(&self, coefficients: &[i64]) -> Option<i64> {
        let (mut stride, mut unit) = (1, None);
        for (extent, coefficient) in self.old.iter().zip(coefficients).rev().filter(|(e, _)| **e > 1) {
            let unit = *unit.get_or_insert(*coefficient);
            if *coefficient != unit * stride {
                return None;
            }
            stride *= *extent as i64;
        }
        Some(unit.unwrap_or(0))
    }
}
