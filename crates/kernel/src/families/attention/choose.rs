//! Which geometry an attention loop gets when nothing was measured.
//!
//! On hardware the one with the least estimated time. The estimate counts instructions of a subgroup per tile ([`Work`]) and
//! knows two limits: a compute unit issues for all its subgroups, four at a time, and the block with the most tiles runs them
//! one after the other. Its weights were fitted to all geometries for the shapes of the workloads on an NVIDIA H200. The
//! estimated best one is within 15 % (mostly 6 %) of the best one there, except for gradients of keys and values of very short sequences
//! (up to 23 %). Matrix units, where operands may be rounded and the target has them, compete by an estimate of their own in the same
//! unit. On software drivers few invocations with large register tiles are fastest, and what compiles sooner counts.

use super::Geometry;
use super::geometry::{SPLITS, quads};
use crate::KernelError;
use crate::families::contract::tiling::Units;
use crate::families::emit::unsupported;
use griffinfly_ir::loops::{Attention, AttentionVariant};
use griffinfly_ir::target::{NumericClass, Target};

/// Rows, columns, invocations high and wide for software drivers, better ones first.
const SOFTWARE: [[u32; 4]; 4] = [[16, 32, 4, 8], [8, 8, 8, 4], [4, 8, 4, 8], [4, 4, 4, 4]];

/// Subgroups that a compute unit issues for at a time, times their size.
const LANES: u32 = 128;

/// What the dispatch costs that puts parts together, in the unit of [`estimate`]: three microseconds of an NVIDIA H200.
const MERGE: u64 = 350_000;

/// Instructions of a written-out tile beyond which code leaves the instruction cache.
const LONG_CODE: u32 = 2450;

/// The geometry for a loop on a target.
///
/// # Errors
/// No head, row or element, or heads too wide for the target's workgroup memory.
pub fn choose(a: &Attention, target: &Target) -> Result<Geometry, KernelError> {
    choose_among(a, target, &[NumericClass::F32])
}

/// As [`choose`], with leave to round operands to these numeric classes.
///
/// # Errors
/// As [`choose`].
pub fn choose_among(
    a: &Attention,
    target: &Target,
    classes: &[NumericClass],
) -> Result<Geometry, KernelError> {
    let s = a.shape;
    ranked(a, target, classes, 1)?.into_iter().next().ok_or_else(|| {
        let bytes = target.max_workgroup_bytes;
        unsupported("attention", format!("heads of {} elements in {bytes} bytes of memory", s.width))
    })
}

/// Up to `most` geometries of these numeric classes for a loop on a target, the default one first, then by estimated time. On software drivers there are few: what
/// compiles slowly is not among them.
///
/// # Errors
/// No head, row or element.
pub fn ranked(
    a: &Attention,
    target: &Target,
    classes: &[NumericClass],
    most: usize,
) -> Result<Vec<Geometry>, KernelError> {
    let s = a.shape;
    if s.of_scores().iter().chain([&s.width]).any(|n| *n == 0) {
        return Err(unsupported("attention", format!("empty extents {s:?}")));
    }
    // Without matrix units their kernels only show what they would do.
    let has_units = |g: &Geometry| Units::of(target, g.class(a.variant)) != Units::Plain;
    let may = |g: &Geometry| {
        g.fits(a, target) && classes.contains(&g.class(a.variant)) && (!g.is_matrix || has_units(g))
    };
    let mut fitting: Vec<Geometry> = Geometry::all().into_iter().filter(may).collect();
    if target.is_hardware {
        let parts: Vec<Geometry> = fitting.iter().filter_map(|g| in_parts(*g, a, target)).collect();
        fitting.extend(parts);
        fitting.sort_by_cached_key(|g| estimate(*g, a, target));
    } else {
        let rank =
            |g: &Geometry| SOFTWARE.iter().position(|[r, c, h, w]| *g == Geometry::new(*r, *c, *h, *w));
        fitting.retain(|g| rank(g).is_some());
        fitting.sort_by_key(rank);
    }
    fitting.truncate(most);
    Ok(fitting)
}

/// The geometry with the keys in as many parts as fill the device, where its blocks leave half of it idle and there is something to
/// split.
fn in_parts(g: Geometry, a: &Attention, target: &Target) -> Option<Geometry> {
    let s = a.shape;
    let blocks = s.batch * s.heads * s.queries.div_ceil(g.rows as usize);
    let room = (target.compute_units as usize / blocks).min(s.keys / (2 * g.columns as usize));
    let splits = SPLITS.into_iter().rev().find(|splits| *splits as usize <= room)?;
    Some(g.with_splits(splits)).filter(|g| g.fits(a, target))
}

/// What a subgroup does for one tile, in instructions.
pub(super) struct Work {
    multiplications: u32,
    /// 128-bit reads of workgroup memory.
    reads: u32,
    /// Everything else: exponentials, masks, exchange, loads of the next tile.
    rest: u32,
}

impl Work {
    pub(super) fn new(g: Geometry, a: &Attention) -> Self {
        let width = a.shape.width as u32;
        let (rows, columns, lanes) = (g.row_count(), g.column_count(), g.weight_lanes());
        let (scored, weighed) = match a.variant {
            AttentionVariant::Forward => (1, 1),
            AttentionVariant::GradQuery => (2, 1),
            AttentionVariant::GradKeyValue => (2, 2),
        };
        let chunks = g.columns / lanes / g.parts(width);
        let sums = g.sum_count(width);
        let exchanged = if a.variant == AttentionVariant::Forward { g.wide * rows.div_ceil(4) } else { 0 };
        let fetched = (2 * g.columns * quads(width)).div_ceil(g.invocations());
        Self {
            multiplications: scored * quads(width) * 4 * rows * columns
                + weighed * chunks * 4 * lanes * rows * sums,
            reads: scored * quads(width) * (rows + columns) + weighed * chunks * (rows + lanes * sums),
            rest: 42 * rows * columns + 20 * rows + 2 * exchanged + 14 * fetched,
        }
    }

    /// Whether the products of a tile, written out, are more than an instruction cache takes.
    pub(super) const fn is_long(&self) -> bool {
        self.multiplications + self.reads > LONG_CODE
    }

    /// Issue slots.
    fn slots(&self) -> u64 {
        u64::from(self.multiplications + self.reads * 14 / 5 + self.rest)
    }
}

/// Estimated time of a geometry for matrix units, in the unit of [`estimate`]: of the block with most tiles, since each of its
/// subgroups waits for its own results and there are few of them.
fn estimate_matrices(g: Geometry, a: &Attention, (blocks, most): (u64, u64)) -> u64 {
    // Tiles of 32 columns of heads of 64 elements in blocks of 96 rows. Fewer rows have less to do with a tile that costs the same.
    let tile: u64 = match a.variant {
        AttentionVariant::Forward => 140_000,
        AttentionVariant::GradQuery => 275_000,
        AttentionVariant::GradKeyValue => 315_000,
    };
    let width = a.shape.width as u64;
    let rows = u64::from(g.rows.min(96));
    // A second block on a compute unit takes half as long again.
    tile * u64::from(g.columns) / 32 * (width + 32) / 96 * (rows + 96) / (2 * rows)
        * (most + 1)
        * (blocks + 1)
        / 2
}

/// Estimated time in some unit.
fn estimate(g: Geometry, a: &Attention, target: &Target) -> u64 {
    let s = a.shape;
    let (heads, rows, columns, group) = match a.variant {
        AttentionVariant::GradKeyValue => (s.kv_heads, s.keys, s.queries, s.group()),
        _ => (s.heads, s.queries, s.keys, 1),
    };
    let (blocks, splits) = (rows.div_ceil(g.rows as usize), g.splits as usize);
    let tiles = |first: usize| {
        let last = (first + g.rows as usize).min(rows) - 1;
        let [first, last] = [first, last].map(|row| match a.variant {
            AttentionVariant::GradKeyValue => a.mask.queries(row, s.lengths()),
            _ => a.mask.keys(row, s.lengths()),
        });
        let seen = first.end.max(last.end).saturating_sub(first.start.min(last.start)).min(columns);
        seen.div_ceil(g.columns as usize * splits) * group
    };
    let all: Vec<usize> = (0..blocks).map(|block| tiles(block * g.rows as usize)).collect();
    let (most, total) = (all.iter().copied().max().unwrap_or(0) as u64, all.iter().sum::<usize>() as u64);
    let resident =
        ((s.batch * heads * blocks * splits) as u64).div_ceil(u64::from(target.compute_units.max(1)));
    if g.is_matrix {
        return estimate_matrices(g, a, (resident, most));
    }
    let slots = Work::new(g, a).slots();
    let issued = resident * u64::from(g.invocations().div_ceil(LANES)) * slots * total / blocks as u64;
    let merge = if g.splits > 1 { MERGE } else { 0 };
    (issued * 92).max(most * slots * 100) + merge
}
