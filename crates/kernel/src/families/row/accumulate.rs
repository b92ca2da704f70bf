//! Accumulators: variables of one phase, how values join them, and the tree over the lanes of a row.

use crate::families::emit::{combine_value, element_type};
use crate::kir::{Builder, Expr, Literal, Scalar, Shared, Type, Var};
use griffinfly_ir::loops::{Combine, Phase};

/// A value and, for combinations that ask for it, the column it came from.
#[derive(Clone, Copy)]
pub(super) struct Item<'b> {
    pub(super) value: Expr<'b>,
    pub(super) index: Option<Expr<'b>>,
}

impl<'b> Item<'b> {
    /// The parts: the carries it stands for.
    pub(super) fn parts(self) -> impl Iterator<Item = Expr<'b>> {
        [Some(self.value), self.index].into_iter().flatten()
    }
}

/// One accumulator.
#[derive(Clone, Copy)]
pub(super) struct Accumulator<'b> {
    combine: Combine,
    value: Var<'b>,
    index: Option<Var<'b>>,
}

/// The item that changes nothing.
pub(super) fn neutral(b: &Builder, combine: Combine, scalar: Scalar) -> Item<'_> {
    let worst = |least: bool| match (scalar, least) {
        (Scalar::F32, true) => Literal::F32(f32::NEG_INFINITY.to_bits()),
        (Scalar::F32, false) => Literal::F32(f32::INFINITY.to_bits()),
        (Scalar::I32, true) => Literal::I32(i32::MIN),
        (Scalar::I32, false) => Literal::I32(i32::MAX),
        (_, true) => Literal::U32(0),
        (_, false) => Literal::U32(u32::MAX),
    };
    let value = match combine {
        Combine::Sum => Literal::zero(scalar),
        Combine::Max | Combine::MaxIndex => worst(true),
        Combine::Min | Combine::MinIndex => worst(false),
    };
    // Any real column is smaller.
    let index = combine.has_index().then(|| b.constant(i32::MAX));
    Item { value: b.literal(value), index }
}

/// The combination of two items; with an index in any order: the first NaN, else the better, else the first.
pub(super) fn join<'b>(combine: Combine, x: Item<'b>, y: Item<'b>) -> Item<'b> {
    let (Some(i), Some(j)) = (x.index, y.index) else {
        return Item { value: combine_value(combine, x.value, y.value), index: None };
    };
    let better = match combine {
        Combine::MinIndex => y.value.lt(x.value),
        _ => y.value.gt(x.value),
    };
    let is_first = j.lt(i);
    let is_taken = if x.value.ty().scalar == Scalar::F32 {
        let (x_nan, y_nan) = (x.value.is_nan(), y.value.is_nan());
        let among_nan = y_nan & (!x_nan | is_first);
        let among_numbers = !x_nan & (better | (y.value.equals(x.value) & is_first));
        among_nan | among_numbers
    } else {
        better | (y.value.equals(x.value) & is_first)
    };
    Item { value: is_taken.select(y.value, x.value), index: Some(is_taken.select(j, i)) }
}

/// Declares the accumulators of a phase.
pub(super) fn declare<'b>(b: &'b Builder, phase: &Phase) -> Vec<Accumulator<'b>> {
    let outputs = phase.body.expr.outputs();
    let types = outputs.iter().map(|output| element_type(phase.body.expr.dtype(*output)).scalar);
    let declare = |(combine, scalar): (&Combine, Scalar)| {
        let start = neutral(b, *combine, scalar);
        Accumulator {
            combine: *combine,
            value: b.var("sum", start.value),
            index: start.index.map(|index| b.var("at", index)),
        }
    };
    phase.combines.iter().zip(types).map(declare).collect()
}

impl<'b> Accumulator<'b> {
    pub(super) fn combine(&self) -> Combine {
        self.combine
    }

    pub(super) fn scalar(&self) -> Scalar {
        self.value.ty().scalar
    }

    pub(super) fn get(&self) -> Item<'b> {
        Item { value: self.value.get(), index: self.index.map(Var::get) }
    }

    pub(super) fn set(&self, item: Item<'b>) {
        self.value.set(item.value);
        if let (Some(var), Some(index)) = (self.index, item.index) {
            var.set(index);
        }
    }

    /// Folds an item in.
    pub(super) fn add(&self, item: Item<'b>) {
        self.set(join(self.combine, self.get(), item));
    }

    /// Folds in the value of a body at column `col` where `is_inside` holds (`None`: everywhere).
    pub(super) fn add_value(&self, value: Expr<'b>, col: Expr<'b>, is_inside: Option<Expr<'b>>) {
        let index = self.index.map(|_| col.bitcast(Scalar::I32));
        let item = Item { value, index };
        let Some(is_inside) = is_inside else { return self.add(item) };
        let none = neutral(value.builder(), self.combine, self.scalar());
        let choose = |yes: Expr<'b>, no: Expr<'b>| is_inside.select(yes, no);
        let index = item.index.zip(none.index).map(|(yes, no)| choose(yes, no));
        self.add(Item { value: choose(value, none.value), index });
    }
}

/// Workgroup arrays that phases share: one per accumulator part of a kind.
pub(super) struct Arrays<'b> {
    b: &'b Builder,
    length: u32,
    arrays: Vec<Shared<'b>>,
}

impl<'b> Arrays<'b> {
    pub(super) fn new(b: &'b Builder, length: u32) -> Self {
        Self { b, length, arrays: Vec::new() }
    }

    /// Arrays for parts of these kinds, reused where there are some.
    fn of(&mut self, kinds: &[Scalar]) -> Vec<Shared<'b>> {
        let mut taken = vec![false; self.arrays.len()];
        let mut found = Vec::new();
        for kind in kinds {
            let free =
                (0..self.arrays.len()).find(|i| !taken[*i] && self.arrays[*i].element().scalar == *kind);
            let at = free.unwrap_or_else(|| {
                let element = Type::new(*kind, crate::kir::Lanes::One);
                self.arrays.push(self.b.shared("lanes", element, self.length));
                taken.push(false);
                self.arrays.len() - 1
            });
            taken[at] = true;
            found.push(self.arrays[at]);
        }
        found
    }
}

/// Where an invocation stands in the tree of its row.
#[derive(Clone, Copy)]
pub(super) struct Seat<'b> {
    /// Its lane.
    pub(super) lane: Expr<'b>,
    /// Its place in the arrays.
    pub(super) place: Expr<'b>,
    /// Distance in the arrays between neighbouring lanes.
    pub(super) stride: u32,
    /// Lanes of a row, a power of two.
    pub(super) lanes: u32,
}

/// Merges the accumulators over the lanes of each row; afterwards all lanes have the result.
pub(super) fn tree<'b>(b: &'b Builder, all: &[Accumulator<'b>], seat: &Seat<'b>, arrays: &mut Arrays<'b>) {
    if seat.lanes == 1 || all.is_empty() {
        return;
    }
    let kinds: Vec<Scalar> =
        all.iter().flat_map(|a| [Some(a.scalar()), a.index.map(|_| Scalar::I32)]).flatten().collect();
    let arrays = arrays.of(&kinds);
    let store = || {
        let parts = all.iter().flat_map(|a| a.get().parts());
        parts.zip(&arrays).for_each(|(part, array)| array.store(seat.place, part));
    };
    let load = |place: Expr<'b>| {
        let mut next = arrays.iter();
        let mut part = || next.next().map(|array| array.load(place));
        let items = all.iter().filter_map(|a| {
            let value = part()?;
            Some(Item { value, index: a.index.and_then(|_| part()) })
        });
        items.collect::<Vec<_>>()
    };
    store();
    b.barrier();
    let mut half = seat.lanes / 2;
    while half > 0 {
        b.if_(seat.lane.lt(half), || {
            let others = load(seat.place + half * seat.stride);
            all.iter().zip(others).for_each(|(a, other)| a.add(other));
            store();
        });
        b.barrier();
        half /= 2;
    }
    let first = load(seat.place - seat.lane * seat.stride);
    all.iter().zip(first).for_each(|(a, item)| a.set(item));
    b.barrier();
}
