//! Partial results of chunks in scratch: word `(carry * chunks + chunk) * rows + row`, whatever its kind.

use super::accumulate::{self, Arrays, Item, Seat};
use super::point::Frame;
use crate::families::emit::Bindings;
use crate::kir::{Access, Buffer, Expr, Scalar, Type};
use griffinfly_ir::loops::Phase;

/// The scratch buffer of a split row.
pub(super) struct Partials<'b> {
    words: Buffer<'b>,
}

impl<'b> Partials<'b> {
    /// Binds it.
    pub(super) fn new(bindings: &mut Bindings<'b>, is_written: bool) -> Self {
        let access = if is_written { Access::ReadWrite } else { Access::Read };
        Self { words: bindings.scratch(0, Type::U32, access) }
    }

    fn at(frame: &Frame<'_, 'b>, carry: usize, chunk: Expr<'b>) -> Expr<'b> {
        (frame.partials * (carry as u32) + chunk) * frame.rows + frame.row
    }
}

/// Writes the carries of a chunk, from number `first` on.
pub(super) fn store<'b>(partials: &Partials<'b>, items: &[Item<'b>], first: usize, frame: &Frame<'_, 'b>) {
    frame.b.if_(frame.is_first_of_chunk, || {
        for (i, part) in items.iter().flat_map(|item| item.parts()).enumerate() {
            let place = Partials::at(frame, first + i, frame.chunk);
            partials.words.store(place, part.bitcast(Scalar::U32));
        }
    });
}

/// Merges the chunks of a phase whose carries begin at number `first`: the invocations of a row share the chunks.
pub(super) fn merge<'b>(
    partials: &Partials<'b>,
    (phase, first): (&Phase, usize),
    frame: &Frame<'_, 'b>,
    seat: &Seat<'b>,
    arrays: &mut Arrays<'b>,
) -> Vec<Item<'b>> {
    let all = accumulate::declare(frame.b, phase);
    frame.b.for_("k", (frame.lane(), frame.partials), frame.lanes(), |chunk| {
        let mut carry = first;
        let mut part = |scalar: Scalar| {
            let word = partials.words.load(Partials::at(frame, carry, chunk));
            carry += 1;
            word.bitcast(scalar)
        };
        for accumulator in &all {
            let value = part(accumulator.scalar());
            let index = accumulator.combine().has_index().then(|| part(Scalar::I32));
            accumulator.add(Item { value, index });
        }
    });
    accumulate::tree(frame.b, &all, seat, arrays);
    all.iter().map(|accumulator| accumulator.get()).collect()
}
