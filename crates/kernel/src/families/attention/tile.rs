//! Tiles in workgroup memory: where their rows come from, fetching them into registers, putting them down.
//!
//! A tile lies row by row in quadruples of elements; elements past the width of a head and rows past the end are zero. On
//! hardware a tile can be fetched while the one before it is in use, and put down when that is done with.

use super::geometry::{quads, stride};
use super::{Frame, sight};
use crate::KernelError;
use crate::families::contract::tiling::matrix_stride;
use crate::families::contract::view::View;
use crate::families::contract::{point, rounding};
use crate::kir::{Expr, Shared, Type, Var};
use griffinfly_ir::target::NumericClass;

/// Most quadruples of a tile that an invocation keeps in registers.
const MOST_REGISTERS: u32 = 16;

/// Rows of a head: which head, first row, number of rows there are.
#[derive(Clone, Copy)]
pub(super) struct Rows<'b> {
    pub(super) head: Expr<'b>,
    pub(super) first: Expr<'b>,
    pub(super) end: Expr<'b>,
}

/// A tile and what it is filled with.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a, 'b> {
    pub(super) shared: Shared<'b>,
    /// How its elements are rounded, where they are.
    pub(super) rounded: Option<Rounded>,
    /// Rows.
    count: u32,
    view: &'a View,
    /// Factor of the elements.
    factor: Option<f32>,
}

/// How the elements of a tile are rounded: its terms lie one behind the other, each with rows as matrices are read from.
#[derive(Clone, Copy)]
pub(super) struct Rounded {
    pub(super) class: NumericClass,
    /// First quadruple of the first term, from a term to the next.
    first: u32,
    step: u32,
}

impl<'a, 'b> Tile<'a, 'b> {
    /// The same place for other rows.
    pub(super) fn of(self, view: &'a View) -> Self {
        Tile { view, factor: None, ..self }
    }
}

impl Tile<'_, '_> {
    /// First quadruples of its terms, the largest terms first.
    pub(super) fn terms(self) -> impl Iterator<Item = u32> {
        self.rounded.into_iter().flat_map(|r| (0..r.class.terms()).map(move |term| r.first + term * r.step))
    }

    /// How its elements are rounded.
    pub(super) fn class(self) -> NumericClass {
        self.rounded.map_or(NumericClass::F32, |rounded| rounded.class)
    }
}

/// Registers for the invocation's share of a tile; none on software drivers, where waiting for memory is no matter.
pub(super) type Registers<'b> = Option<Vec<Var<'b>>>;

impl<'a, 'b> Frame<'a, 'b> {
    pub(super) fn width(&self) -> u32 {
        self.a.shape.width as u32
    }

    /// A tile of so many rows.
    pub(super) fn tile(
        &self,
        name: &str,
        count: u32,
        (view, factor): (&'a View, Option<f32>),
    ) -> Tile<'a, 'b> {
        let shared = self.b.shared(name, Type::F32X4, count * stride(self.width()));
        Tile { shared, rounded: None, count, view, factor }
    }

    /// A tile of so many rows of elements rounded to terms of a class, in an array from a place on.
    pub(super) fn rounded_tile(
        &self,
        (shared, first): (Shared<'b>, u32),
        class: NumericClass,
        count: u32,
        (view, factor): (&'a View, Option<f32>),
    ) -> Tile<'a, 'b> {
        let rounded = Rounded { class, first, step: count * matrix_stride(self.width()) };
        Tile { shared, rounded: Some(rounded), count, view, factor }
    }

    /// Puts down a quadruple of a tile.
    fn lay(&self, tile: Tile<'a, 'b>, [row, quad]: [Expr<'b>; 2], value: Expr<'b>) {
        let Some(rounded) = tile.rounded else {
            return tile.shared.store(row * stride(self.width()) + quad, value);
        };
        let place = row * matrix_stride(self.width()) + quad;
        let terms = rounding::terms(self.b, value, rounded.class, self.units);
        for (first, term) in tile.terms().zip(terms) {
            tile.shared.store(place + first, term);
        }
    }

    /// Fills tiles; on hardware all loads are under way before the first is waited for.
    pub(super) fn fill(&self, tiles: &[(Tile<'a, 'b>, Rows<'b>)]) -> Result<(), KernelError> {
        let registers: Vec<Registers<'b>> = tiles.iter().map(|(tile, _)| self.registers(*tile)).collect();
        for ((tile, rows), registers) in tiles.iter().zip(&registers) {
            self.fetch(*tile, *rows, registers)?;
        }
        for ((tile, rows), registers) in tiles.iter().zip(&registers) {
            self.put(*tile, *rows, registers)?;
        }
        Ok(())
    }

    fn turns(&self, tile: Tile<'a, 'b>) -> u32 {
        (tile.count * quads(self.width())).div_ceil(self.geometry.invocations())
    }

    /// Registers for a tile.
    pub(super) fn registers(&self, tile: Tile<'a, 'b>) -> Registers<'b> {
        let turns = self.turns(tile);
        let zero = || self.b.zero(Type::F32X4);
        (self.is_hardware && turns <= MOST_REGISTERS)
            .then(|| (0..turns).map(|_| self.b.var("fetched", zero())).collect())
    }

    /// Loads into registers what the invocation puts down later.
    pub(super) fn fetch(
        &self,
        tile: Tile<'a, 'b>,
        rows: Rows<'b>,
        registers: &Registers<'b>,
    ) -> Result<(), KernelError> {
        let last = tile.count * quads(self.width()) - 1;
        let is_whole = (last + 1).is_multiple_of(self.geometry.invocations());
        for (turn, register) in (0..).zip(registers.iter().flatten()) {
            let [row, quad] = self.spot(turn, if is_whole { None } else { Some(last) });
            register.set(self.element(tile, rows, (row, quad))?);
        }
        Ok(())
    }

    /// Row and quadruple of the invocation's element of a turn, at most the last one if there is one.
    fn spot(&self, turn: u32, last: Option<u32>) -> [Expr<'b>; 2] {
        let (lane, per_row, step) = (self.b.local_index(), quads(self.width()), self.geometry.invocations());
        match last {
            None if step.is_multiple_of(per_row) => {
                [lane / per_row + turn * (step / per_row), lane % per_row]
            }
            _ => {
                let number = lane + turn * step;
                let number = last.map_or(number, |last| number.native_min(last));
                [number / per_row, number % per_row]
            }
        }
    }

    /// Puts down what was fetched, or loads it now.
    pub(super) fn put(
        &self,
        tile: Tile<'a, 'b>,
        rows: Rows<'b>,
        registers: &Registers<'b>,
    ) -> Result<(), KernelError> {
        let (b, per_row, step) = (self.b, quads(self.width()), self.geometry.invocations());
        let (total, turns, lane) = (tile.count * per_row, self.turns(tile), b.local_index());
        if let Some(registers) = registers {
            for (turn, register) in (0..).zip(registers) {
                let store = || self.lay(tile, self.spot(turn, None), register.get());
                if (turn + 1) * step <= total {
                    store()
                } else {
                    b.if_((lane + turn * step).lt(total), store)
                }
            }
            return Ok(());
        }
        let mut outcome = Ok(());
        let mut one = |number: Expr<'b>| {
            let spot = [number / per_row, number % per_row];
            let value = self.element(tile, rows, (spot[0], spot[1]));
            outcome = outcome.clone().and(value.map(|value| self.lay(tile, spot, value)));
        };
        if turns > self.written_out {
            b.for_("s", (lane, total), step, one);
            return outcome;
        }
        for turn in 0..turns {
            let number = lane + turn * step;
            if (turn + 1) * step <= total {
                one(number);
            } else {
                b.if_(number.lt(total), || one(number));
            }
        }
        outcome
    }

    /// A quadruple of a tile: times its factor, zero past the end.
    fn element(
        &self,
        tile: Tile<'a, 'b>,
        rows: Rows<'b>,
        (row, quad): (Expr<'b>, Expr<'b>),
    ) -> Result<Expr<'b>, KernelError> {
        let at = rows.first + row;
        let value = self.quad(tile.view, (rows.head, at.native_min(rows.end - 1)), quad)?;
        let value = tile.factor.map_or(value, |factor| value * factor);
        Ok(at.lt(rows.end).select(value, self.b.zero(Type::F32X4)))
    }

    /// Four elements of a row; zeros past the width.
    fn quad(
        &self,
        view: &View,
        (head, row): (Expr<'b>, Expr<'b>),
        quad: Expr<'b>,
    ) -> Result<Expr<'b>, KernelError> {
        let (b, width) = (self.b, self.width());
        let axes = self.axes(view, head, row);
        let sight = sight(view);
        let at = |d: Expr<'b>| -> Result<Expr<'b>, KernelError> {
            let axes = [axes.as_slice(), &[d]].concat();
            Ok(point::outputs(b, self.buffers, sight, &axes, &[])?[0])
        };
        if sight.1.is_some() {
            return at(quad * 4);
        }
        let lanes = (0..4).map(|e| {
            let d = quad * 4 + e;
            let value = at(d.native_min(width - 1))?;
            Ok(if width.is_multiple_of(4) { value } else { d.lt(width).select(value, 0.0) })
        });
        Ok(b.vector(&lanes.collect::<Result<Vec<_>, KernelError>>()?))
    }

    /// The value of a body that every row has one of.
    pub(super) fn of_row(&self, view: &View, head: Expr<'b>, row: Expr<'b>) -> Result<Expr<'b>, KernelError> {
        Ok(point::outputs(self.b, self.buffers, (view, None), &self.axes(view, head, row), &[])?[0])
    }
}
