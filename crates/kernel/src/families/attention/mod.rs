//! Attention and its gradients: one workgroup per block of queries (or keys) of a head.
//!
//! | kernel | a workgroup owns | runs over | sums in registers |
//! |---|---|---|---|
//! | forward | queries of a query head | the keys they see | results, rescaled as the running maximum grows |
//! | gradient of queries | queries, gradients of their results | the keys they see | `ds k` |
//! | gradients of keys and values | keys and values of a key head | the queries that see them, query head by query head | `ds^T q`, `p^T dy` |
//!
//! What is owned lies in workgroup memory; what is run over passes through it tile by tile, and so do the probabilities of a
//! tile. No tensor of the size of the scores exists. Where a target has too few bindings for keys and values together, each
//! has a dispatch of its own.
//!
//! | module | owns |
//! |---|---|
//! | `geometry`, `choose` | the closed table of layouts of a workgroup, the choice among them |
//! | `tile`, `product` | tiles in workgroup memory; scores, weights and sums of an invocation |
//! | `mask` | which pairs are seen, and their bias |
//! | `forward`, `gradient` | the kernels |
//! | `split` | keys in parts: what a part leaves behind, and the dispatch that puts parts together |
//! | `matrix` | the same for matrix units: forward and gradients from rounded operands |
//!
//! Invariants: tiles come in order and parts are added in order, so sums have a fixed order; rows past the end are zero and
//! are never stored; what a query does not see has probability 0 by selection.

mod choose;
mod forward;
mod geometry;
mod gradient;
mod mask;
mod matrix;
mod product;
mod split;
mod tile;

#[cfg(test)]
mod tests;

pub use choose::{choose, choose_among, ranked};
pub use geometry::Geometry;
pub(super) use geometry::rounded;

use super::contract::point::{Buffers, Sight};
use super::contract::tiling::Units;
use super::contract::view::View;
use super::emit::{Draft, decompose, fold_groups, unsupported};
use super::{Instance, Realisation};
use crate::KernelError;
use crate::kir::{Access, Builder, Expr};
use griffinfly_ir::loops::{Attention, AttentionVariant, Body, Loop, LoopKind};
use griffinfly_ir::target::{NumericClass, Target};
use griffinfly_ir::types::DType;
use split::Part;

/// The group of axes along which elements of a head lie.
const WIDTH: usize = 2;

/// Realises an attention loop by the default geometry.
///
/// # Errors
/// A loop of another kind, or one that needs more than the target allows.
pub fn realise(l: &Loop, target: &Target) -> Result<Realisation, KernelError> {
    let a = attention(l)?;
    realise_with(l, target, choose(a, target)?)
}

/// As [`realise`], by the best geometry of these numeric classes.
///
/// # Errors
/// As [`realise`].
pub fn realise_among(
    l: &Loop,
    target: &Target,
    classes: &[NumericClass],
) -> Result<Realisation, KernelError> {
    let a = attention(l)?;
    realise_with(l, target, choose_among(a, target, classes)?)
}

/// The geometry that a text names, if its kernel for a loop is of one of these numeric classes.
#[must_use]
pub fn parse(l: &Loop, text: &str, classes: &[NumericClass]) -> Option<Geometry> {
    let a = attention(l).ok()?;
    let (name, splits) = match text.split_once(" split") {
        Some((name, splits)) => (name, splits.parse().ok().filter(|n| geometry::SPLITS.contains(n))?),
        None => (text, 1),
    };
    let named = Geometry::all().into_iter().find(|g| g.to_string() == name)?;
    classes.contains(&named.class(a.variant)).then_some(named.with_splits(splits))
}

fn attention(l: &Loop) -> Result<&Attention, KernelError> {
    match &l.kind {
        LoopKind::Attention(a) => Ok(a),
        _ => Err(unsupported("attention", "the loop is no attention")),
    }
}

/// Realises an attention loop by a given geometry.
///
/// # Errors
/// As [`realise`]; also a geometry that the target cannot run.
pub fn realise_with(l: &Loop, target: &Target, geometry: Geometry) -> Result<Realisation, KernelError> {
    let a = attention(l)?;
    if !geometry.fits(a, target) {
        return Err(unsupported("attention", format!("{geometry} does not run on {}", target.name)));
    }
    let all: Vec<usize> = (0..l.results.len()).collect();
    let together = l.operands.len() + all.len() <= target.max_bindings as usize;
    let parts = if together || a.variant != AttentionVariant::GradKeyValue {
        vec![all]
    } else {
        all.into_iter().map(|result| vec![result]).collect()
    };
    let mut dispatches = parts
        .iter()
        .map(|results| instance(l, (a, geometry), results, target))
        .collect::<Result<Vec<_>, _>>()?;
    if geometry.splits == 1 {
        return Ok(Realisation { dispatches, ..Realisation::default() });
    }
    dispatches.push(split::merge(l, (a, geometry), target)?);
    let scratch = geometry.scratch(a).map_or_else(Vec::new, Vec::from);
    Ok(Realisation { dispatches, scratch, ..Realisation::default() })
}

/// The bodies as the kernel reads them, and the results it writes.
struct Views {
    q: View,
    k: View,
    v: View,
    bias: Option<View>,
    /// Gradient of the result, log-sum-exp, delta.
    saved: Option<[View; 3]>,
    /// Number and view of each result.
    results: Vec<(usize, View)>,
}

impl Views {
    fn new(l: &Loop, a: &Attention, results: &[usize]) -> Views {
        let types = (l.operands.as_slice(), l.results.as_slice());
        // The first two axes are sequence and head, then rows, then what is left.
        let view = |body: &Body, extents: Vec<usize>| {
            View::new(body, &[], [&extents[..2], &extents[2..3], &extents[3..]], types)
        };
        let s = a.shape;
        let mut carried = Body::new();
        let value = carried.expr.carry(0, DType::F32);
        carried.output(value);
        let domains = a.domains();
        let result = |&result: &usize| {
            let (stores, extents) = (&a.stores[result..=result], &domains[result]);
            let groups = [&extents[..2], &extents[2..3], &extents[3..]];
            (a.stores[result].result, View::new(&carried, stores, groups, types))
        };
        Views {
            q: view(&a.q, s.of_queries()),
            k: view(&a.k, s.of_keys()),
            v: view(&a.v, s.of_keys()),
            bias: a.bias.as_ref().map(|b| view(b, s.of_scores())),
            saved: a.saved.as_ref().map(|x| {
                [view(&x.dy, s.of_queries()), view(&x.lse, s.of_rows()), view(&x.delta, s.of_rows())]
            }),
            results: results.iter().map(result).collect(),
        }
    }

    /// Everything that is read.
    fn sights(&self) -> Vec<Sight<'_>> {
        let wide = [&self.q, &self.k, &self.v].into_iter().chain(self.saved.iter().map(|s| &s[0]));
        let narrow = self.bias.iter().chain(self.saved.iter().flat_map(|s| &s[1..]));
        wide.map(sight).chain(narrow.map(|view| (view, None))).collect()
    }
}

/// A view with the direction in which it can be read or written four elements at a time.
fn sight(view: &View) -> Sight<'_> {
    (view, view.allows_quads(WIDTH).then_some(WIDTH))
}

/// What every invocation knows.
struct Frame<'a, 'b> {
    b: &'b Builder,
    a: &'a Attention,
    geometry: Geometry,
    is_hardware: bool,
    /// What multiplies matrices, in geometries of them.
    units: Units,
    /// Most turns of a loop that are written out.
    written_out: u32,
    /// Whether the values of a forward tile lie beside its keys.
    has_both: bool,
    views: &'a Views,
    buffers: &'a Buffers<'b>,
    /// Queries and keys of a sequence.
    queries: Expr<'b>,
    keys: Expr<'b>,
    /// Head of the workgroup, counted through all sequences; first row of its block.
    head: Expr<'b>,
    first: Expr<'b>,
    /// Part of the keys; where its sums and statistics go.
    part: Option<Part<'b>>,
    /// Place of the invocation: (y, x).
    place: (Expr<'b>, Expr<'b>),
}

fn instance(
    l: &Loop,
    (a, geometry): (&Attention, Geometry),
    results: &[usize],
    target: &Target,
) -> Result<Instance, KernelError> {
    let s = a.shape;
    let what = match (a.variant, results) {
        (AttentionVariant::Forward, _) => "",
        (AttentionVariant::GradQuery, _) => " dq",
        (AttentionVariant::GradKeyValue, [0]) => " dk",
        (AttentionVariant::GradKeyValue, [1]) => " dv",
        (AttentionVariant::GradKeyValue, _) => " dk dv",
    };
    let name = format!("attention{what} {geometry}");
    let (heads, rows) = match a.variant {
        AttentionVariant::GradKeyValue => (s.kv_heads, s.keys),
        _ => (s.heads, s.queries),
    };
    let blocks = rows.div_ceil(geometry.rows as usize);
    let total = (s.batch * heads * blocks) as u64 * u64::from(geometry.splits);
    let views = Views::new(l, a, results);
    let class = geometry.class(a.variant);
    let b = Builder::new(name.clone(), [geometry.invocations(), 1, 1]);
    let [queries, keys, heads_word, blocks_word, total_word] =
        ["queries", "keys", "heads", "blocks", "total"].map(|name| b.param(name));
    let mut buffers = Buffers::new((&b, target), l, &views.sights());
    let scratch = (geometry.splits > 1).then(|| split::Scratch::new(&mut buffers, Access::ReadWrite));
    for (result, view) in views.results.iter().filter(|_| scratch.is_none()) {
        buffers.result(l, *result, sight(view).1.is_some());
    }
    let id = b.flat_workgroup_id().named("id");
    let mut outcome = Ok(());
    b.if_uniform(id.lt(total_word), || {
        let (head, block) = ((id % heads_word).named("head"), id / heads_word);
        let part = scratch.map(|scratch| Part { scratch, number: (block / blocks_word).named("part") });
        let block = if part.is_some() { block % blocks_word } else { block };
        // Blocks with much to do come first: under a causal mask the last queries and the first keys.
        let is_reversed = a.mask.causal && a.variant != AttentionVariant::GradKeyValue;
        let block = if is_reversed { blocks_word - 1 - block } else { block };
        let frame = Frame {
            b: &b,
            a,
            geometry,
            is_hardware: target.is_hardware,
            units: Units::of(target, class),
            written_out: written_out(geometry, a, target),
            has_both: geometry.has_both(s.width as u32, target),
            views: &views,
            buffers: &buffers,
            queries,
            keys,
            head,
            first: (block * geometry.rows).named("first"),
            part,
            place: place(&b, geometry, target.is_hardware),
        };
        outcome = match (a.variant, &views.saved, geometry.is_matrix) {
            (AttentionVariant::GradKeyValue, Some(saved), false) => frame.grad_key_value(saved),
            (AttentionVariant::GradKeyValue, Some(saved), true) => frame.matrix_grad_key_value(saved),
            (_, Some(saved), false) => frame.grad_query(saved),
            (_, Some(saved), true) => frame.matrix_grad_query(saved),
            (_, None, false) => frame.forward(),
            (_, None, true) => frame.matrix_forward(),
        };
    });
    outcome?;
    let parameters = [s.queries, s.keys, s.batch * heads, blocks]
        .map(|n| n as u32)
        .into_iter()
        .chain([total as u32])
        .collect();
    let groups = fold_groups(total, target)?;
    let draft = Draft { name, bindings: buffers.slots(), parameters, groups };
    Ok(Instance { numeric: class, ..draft.finish(b, target)? })
}

/// How many turns of a loop are written out: on hardware straight code schedules best as long as it stays in the instruction
/// cache, on software drivers code size costs compilation.
fn written_out(g: Geometry, a: &Attention, target: &Target) -> u32 {
    match target.is_hardware {
        false => 2,
        true if choose::Work::new(g, a).is_long() => 4,
        true => 8,
    }
}

/// Place of an invocation. On hardware a subgroup covers 4 rows and 8 columns, such that pairs of neighbours and pairs two
/// apart share them: then 128-bit reads of a tile take two passes instead of four.
fn place(b: &Builder, g: Geometry, is_hardware: bool) -> (Expr<'_>, Expr<'_>) {
    let lane = b.local_index();
    if g.is_matrix || !is_hardware || !g.high.is_multiple_of(4) || !g.wide.is_multiple_of(8) {
        return ((lane / g.wide).named("y"), (lane % g.wide).named("x"));
    }
    let (subgroup, across) = (lane / 32, g.wide / 8);
    let y = (subgroup / across) * 4 + (((lane >> 4) & 1) * 2 + (lane & 1));
    let x = (subgroup % across) * 8 + ((lane >> 1) & 7);
    (y.named("y"), x.named("x"))
}

impl<'b> Frame<'_, 'b> {
    /// The axes of a row of a head, in a view.
    fn axes(&self, view: &View, head: Expr<'b>, row: Expr<'b>) -> Vec<Expr<'b>> {
        axes(self.b, view, head, row)
    }
}

/// The axes of a row of a head, in a view.
fn axes<'b>(b: &'b Builder, view: &View, head: Expr<'b>, row: Expr<'b>) -> Vec<Expr<'b>> {
    let mut axes = decompose(b, head, &view.groups[0]);
    axes.extend(decompose(b, row, &view.groups[1]));
    axes
}
