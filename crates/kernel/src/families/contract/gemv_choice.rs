//! Which tiling with lanes a contraction of few rows or few columns gets on hardware: the one with the least estimated time.
//!
//! Each lane takes its loads mostly one after the other; all of them together are limited by the memory or by the work of
//! the workgroups (instructions, and adding up the lanes). The constants fit tables measured on an H200 of 132 units, whose
//! memory they stand for: 4.1 TB/s.

use super::tiling::Tiling;
use griffinfly_ir::loops::{Body, Contract};
use griffinfly_ir::target::Target;

/// Most rows (or columns): more are read again for each eight.
const FEW: u64 = 16;
/// Rows up to which tilings with lanes are best however large the problem is.
const VERY_FEW: u64 = 8;
/// Elements of the large factor up to which they are also best with more rows.
const SMALL: u64 = 1 << 22;
/// Fewest products worth the lanes.
const LEAST_PRODUCTS: u64 = 64;
/// Most products: longer sums keep more parts busy than a group has lanes.
const MOST_PRODUCTS: u64 = 8192;
/// Picoseconds of half a load in the chain of a lane: those of the small factor come from a cache and count half.
const HALF_LOAD: u64 = 40_000;
/// Picoseconds per element of the large factor.
const ELEMENT: u64 = 1;
/// Bytes that a workgroup must read side by side for that.
const SEGMENT: u64 = 86;
/// Picoseconds per invocation, and for each output that it adds to.
const INVOCATION: [u64; 2] = [5, 2];

/// The tiling, if one with lanes is best.
pub(super) fn choose(contract: &Contract, target: &Target) -> Option<Tiling> {
    ranked(contract, target).first().copied()
}

/// All tilings with lanes, better ones first, if the best tiling is one of them.
pub(super) fn ranked(contract: &Contract, target: &Target) -> Vec<Tiling> {
    let [batch, m, n, k] = contract.sizes().map(|size| size as u64);
    let (few_rows, few, many) = (m <= n, m.min(n), m.max(n));
    let fits = few <= VERY_FEW || (few <= FEW && many.saturating_mul(k) <= SMALL);
    let is_plain = [&contract.a, &contract.b].into_iter().all(is_plain);
    if !fits || !is_plain || !(LEAST_PRODUCTS..=MOST_PRODUCTS).contains(&k) {
        return Vec::new();
    }
    let (large, rows) =
        if few_rows { (&contract.b, contract.n.len()) } else { (&contract.a, contract.m.len()) };
    let by_products = !is_contiguous(large, contract.batch.len() + rows);
    let cost = |t: &&Tiling| {
        let (loads, few_tile, many_tile) =
            if few_rows { (2 * t.tn + t.tm, t.bm, t.bn) } else { (2 * t.tm + t.tn, t.bn, t.bm) };
        let [loads, few_tile, many_tile, lanes] = [loads, few_tile, many_tile, t.bk].map(u64::from);
        let tiles = batch * few.div_ceil(few_tile) * many.div_ceil(many_tile);
        let chain = loads * k.div_ceil(4 * lanes) * HALF_LOAD;
        let segment = if by_products { SEGMENT } else { 4 * many_tile };
        let memory = tiles * many_tile * k * ELEMENT * SEGMENT / SEGMENT.min(segment);
        let outputs = u64::from(t.tm * t.tn);
        let work = tiles * u64::from(t.invocations()) * (INVOCATION[0] + INVOCATION[1] * outputs);
        chain + memory.max(work)
    };
    let suits = |t: &&Tiling| {
        t.has_lanes()
            && t.fits(target, &target.numeric_classes)
            && (t.has_few_rows() == few_rows || t.bm == t.bn)
    };
    let mut all: Vec<Tiling> = Tiling::all().iter().filter(suits).copied().collect();
    all.sort_by_key(|tiling| cost(&tiling));
    all
}

/// Whether every load is inside its tensor: the taps of convolutions were not measured.
fn is_plain(body: &Body) -> bool {
    body.loads.iter().all(|load| load.access.valid.is_empty() && load.access.dynamic.is_none())
}

/// Whether neighbours along the last of the first `axes` axes lie side by side in memory.
fn is_contiguous(body: &Body, axes: usize) -> bool {
    let mut coords = body.loads.iter().filter_map(|load| load.access.coords.last());
    axes > 0 && coords.any(|c| c.coefficient(axes - 1) == Some(1))
}
