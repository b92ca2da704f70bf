//! From the sums of slices to outputs.
//!
//! In: for every invocation the register tile of its slice. Each invocation finishes the quadruples of outputs of that register
//! tile whose number leaves the number of its slice when divided by the slices. Register tiles go through the array of the left
//! factor, a few quadruples of every invocation at a time; whoever finishes one adds the slices in order.

use super::finish::Accumulators;
use super::stage::Stage;
use super::tile::Place;
use super::tiling::Tiling;
use crate::kir::{Builder, Expr};

/// Most quadruples of an invocation that are exchanged between two barriers.
const TOGETHER: u32 = 4;

/// Quadruples in the array of the left factor.
pub(super) const fn length(tiling: &Tiling) -> u32 {
    tiling.buffers() * tiling.bk * Tiling::stride(tiling.bm)
}

/// Quadruples of every invocation exchanged at once.
pub(super) const fn together(tiling: &Tiling) -> u32 {
    let mut count = TOGETHER;
    while count > 1 && count * tiling.invocations() > length(tiling) {
        count /= 2;
    }
    count
}

/// Rows in the tile that an invocation finishes, and the first of the four columns.
type Members<'b> = (Vec<Expr<'b>>, Expr<'b>);

/// The finished sums of an invocation. Nobody may still read the staged tiles.
pub(super) fn add_up<'b>(
    (b, tiling): (&'b Builder, &Tiling),
    place: &Place<'b>,
    left: &Stage<'_, 'b>,
    sums: &Accumulators<'b>,
) -> (Members<'b>, Accumulators<'b>) {
    let (slices, wide, (count, columns)) = (tiling.slices(), tiling.tn / 4, tiling.finished());
    let slice = place.slice;
    // Quadruple f * slices + slice of the register tile, row by row.
    let row = |f: u32| (slice / wide + f * (slices / wide)).named("row");
    let rows: Vec<Expr<'b>> = (0..count).map(row).collect();
    let quads: Vec<Expr<'b>> = rows.iter().map(|i| place.row + (*i / 4) * (tiling.bm / tiling.tm)).collect();
    let members = rows.iter().zip(&quads).map(|(i, quad)| *quad * 4 + *i % 4).collect();
    let column = (place.column + (slice % wide) * (tiling.bn / tiling.tn)) * 4;

    let besides = left.row_sums(&quads);
    let finished = Accumulators::new(b, sums.sums.len(), (count, columns));
    let (array, size) = (left.shared, b.invocations());
    let together = together(tiling);
    // Slices that finish something of each exchange.
    let served = together.min(slices);
    if !besides.is_empty() {
        b.barrier();
    }
    for (from, to) in sums.sums.iter().zip(&finished.sums) {
        let quads: Vec<_> = from.iter().flatten().collect();
        for (turn, quads) in (0..).zip(quads.chunks(together as usize)) {
            let first = turn * together;
            (0..).zip(quads).for_each(|(g, quad)| array.store(b.local_index() + g * size, quad.get()));
            b.barrier();
            let take = || {
                for g in (0..together).step_by(served as usize) {
                    let sum = to[((first + g) / slices) as usize][0];
                    let at = (slice % served + g) * size + place.number;
                    for other in 0..slices {
                        sum.set(sum.get() + array.load(at + other * (size / slices)));
                    }
                }
            };
            if served == slices {
                take();
            } else {
                b.if_((slice / served).equals(first % slices / served), take);
            }
            b.barrier();
        }
    }
    let besides: Vec<Expr<'b>> =
        (besides.iter().zip(&rows)).map(|(var, i)| var.get().lane_at(*i % 4)).collect();
    let packed = besides.chunks(4).map(|rows| {
        let last = rows.len() - 1;
        let quad: Vec<Expr<'b>> = (0..4).map(|i| rows[i.min(last)]).collect();
        b.var("rows", b.vector(&quad))
    });
    ((members, column), finished.with_rows(packed.collect()))
}
