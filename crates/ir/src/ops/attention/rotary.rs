//! Rotary position embedding.

use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::index::{Access, Bound, Domain, IndexExpr};
use crate::loops::Body;
use crate::ops::rule::need_dtype;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::{Scalar, UnaryFn};
use crate::types::{DType, TensorType, broadcast};
use serde::{Deserialize, Serialize};

/// Which elements of a head form the pairs that are rotated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RotaryStyle {
    /// Elements j and `j + R / 2` (`rotate_half`: Llama, GPT-NeoX, DINOv3).
    #[default]
    HalfSplit,
    /// Elements `2 j` and `2 j + 1` (GPT-J and the paper).
    Interleaved,
}

/// Rotates pairs of elements of every head by angles of a table (Su et al. 2021): for pair j with members a and b,
/// `(a cos - b sin, b cos + a sin)`, or by the opposite angle if `inverse`. Elements from R on stay as they are.
///
/// Inputs: x `[.., S, H, D]`, cos and sin of the angles, both `[S, R / 2]` or more dimensions that broadcast to
/// `[.., S, R / 2]`, with `R <= D`. Result: as x. It is one map, so it joins its neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Rotary {
    pub(crate) style: RotaryStyle,
    pub(crate) inverse: bool,
}

impl Rotary {
    /// Number of pairs.
    fn pairs(&self, inputs: &[TensorType]) -> Result<usize, String> {
        let (x, cos, sin) = (&inputs[0], &inputs[1], &inputs[2]);
        for (what, t) in [("the operand", x), ("cos", cos), ("sin", sin)] {
            need_dtype(what, t, DType::F32)?;
        }
        if x.rank() < 3 {
            return Err(format!("the operand must be [.., sequence, heads, width], it is {x}"));
        }
        let (Some(&pairs), true) = (cos.dims.last(), cos == sin) else {
            return Err(format!("cos and sin must have the same dimensions, they are {cos} and {sin}"));
        };
        let (rows, width) = (&x.dims[..x.rank() - 2], x.dims[x.rank() - 1]);
        if 2 * pairs > width {
            return Err(format!("{pairs} pairs are more than a head of {width} elements has"));
        }
        let angles = [rows, &[pairs]].concat();
        if broadcast(&cos.dims, &angles).as_ref() != Some(&angles) {
            return Err(format!("a table of {cos} does not broadcast to angles of {angles:?} for {x}"));
        }
        Ok(pairs)
    }

    /// Pair, partner and whether it is the first of its pair, of an element that is rotated.
    fn place(&self, d: usize, pairs: usize) -> (usize, usize, bool) {
        match self.style {
            RotaryStyle::HalfSplit => (d % pairs, (d + pairs) % (2 * pairs), d < pairs),
            RotaryStyle::Interleaved => (d / 2, d + 1 - 2 * (d % 2), d.is_multiple_of(2)),
        }
    }

    /// The same over the last axis of a domain; the last is where the element is the first of its pair.
    fn indices(&self, axis: usize, pairs: usize, domain: Domain<'_>) -> (IndexExpr, IndexExpr, Bound) {
        let (d, n) = (IndexExpr::axis(axis), pairs as i64);
        match self.style {
            RotaryStyle::HalfSplit => {
                let partner = d.plus_constant(n).rem(2 * n, domain);
                (d.rem(n, domain), partner, Bound::new(d, 0, n))
            }
            RotaryStyle::Interleaved => {
                let (pair, parity) = (d.div(2, domain), d.rem(2, domain));
                let partner = pair.times(2).plus_constant(1).plus(&parity.times(-1));
                (pair, partner, Bound::new(parity, 0, 1))
            }
        }
    }

    /// First and second members of all pairs of `x [.., D]`: two of `[.., pairs]`.
    fn members(&self, g: &mut Graph, x: Value, pairs: usize) -> [Value; 2] {
        let last = g.dims(x).len() - 1;
        let rotated = g.slice(x, last, 0, Some(2 * pairs as isize));
        let (extents, axis) = match self.style {
            RotaryStyle::HalfSplit => ([2, pairs], last),
            RotaryStyle::Interleaved => ([pairs, 2], last + 1),
        };
        let split = g.split_axis(rotated, last, &extents);
        [0, 1].map(|i| {
            let member = g.slice(split, axis, i, Some(i + 1));
            g.drop_axes(member, &[axis])
        })
    }
}

impl Rule for Rotary {
    fn arity(&self) -> Option<usize> {
        Some(3)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        self.pairs(inputs)?;
        Ok(vec![inputs[0].clone()])
    }

    /// `dx` is the opposite rotation of dy; `dcos = sum over heads of da a + db b`, `dsin = sum of db a - da b`.
    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let (dy, [x, cos, sin]) = (vjp.grad(), [0, 1, 2].map(|i| vjp.inputs[i]));
        if vjp.wants(0) {
            let back = Rotary { style: self.style, inverse: !self.inverse };
            let dx = vjp.g.apply(Payload::Rotary(back), &[dy, cos, sin]);
            vjp.set(0, dx);
        }
        for i in (1..3).filter(|i| vjp.wanted[*i]) {
            let g = &mut *vjp.g;
            let pairs = g.dims(cos).last().copied().unwrap_or(0);
            let ([a, b], [da, db]) = (self.members(g, x, pairs), self.members(g, dy, pairs));
            let angle = if i == 1 {
                let (first, second) = (g.mul(da, a), g.mul(db, b));
                g.add(first, second)
            } else {
                let (first, second) = (g.mul(db, a), g.mul(da, b));
                if self.inverse { g.sub(second, first) } else { g.sub(first, second) }
            };
            let sum = g.sum(angle, &[-2]);
            vjp.set_unbroadcast(i, sum);
        }
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (x, cos, sin) = (inputs[0], inputs[1], inputs[2]);
        let pairs = cos.dims()[cos.ty.rank() - 1];
        vec![Array::build(&outputs[0], |p| {
            let (rows, d) = (&p[..p.len() - 2], p[p.len() - 1]);
            if d >= 2 * pairs {
                return x.at(p);
            }
            let (pair, partner, is_first) = self.place(d, pairs);
            let other = x.at(&[&p[..p.len() - 1], &[partner]].concat());
            let at = [rows, &[pair]].concat();
            let at = &at[at.len() - cos.ty.rank()..];
            let turn = other * sin.at_broadcast(at);
            x.at(p) * cos.at_broadcast(at) + if is_first != self.inverse { -turn } else { turn }
        })]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (x, table) = (&io.inputs[0], &io.inputs[1]);
        let Ok(pairs) = self.pairs(io.inputs) else { return Lowering::Leaf };
        let last = x.rank() - 1;
        let is_rotated = Bound::new(IndexExpr::axis(last), 0, 2 * pairs as i64);
        let valid: Vec<Bound> = (2 * pairs < x.dims[last]).then_some(is_rotated).into_iter().collect();
        let (pair, partner, first) = self.indices(last, pairs, Domain { extents: &x.dims, bounds: &valid });
        let mut angle = Access::broadcast(&table.dims[..table.rank() - 1], &x.dims[..last - 1]).coords;
        angle.push(pair);
        let mut other: Vec<IndexExpr> = (0..last).map(IndexExpr::axis).collect();
        other.push(partner);
        let access = |coords: &[IndexExpr]| Access::at(coords.to_vec()).when(valid.clone(), Scalar::f32(0.0));
        let mut body = Body::new();
        let own = body.load(0, x, Access::identity(x.rank()));
        let other = body.load(0, x, access(&other));
        let (cos, sin) = (body.load(1, table, access(&angle)), body.load(2, table, access(&angle)));
        let e = &mut body.expr;
        let (first, negative) = (e.within(vec![first]), e.unary(UnaryFn::Neg, sin));
        let sin = if self.inverse { e.select(first, sin, negative) } else { e.select(first, negative, sin) };
        let (straight, turn) = (e.mul(own, cos), e.mul(other, sin));
        let mut y = e.add(straight, turn);
        if !valid.is_empty() {
            let inside = e.within(valid);
            y = e.select(inside, y, own);
        }
        body.output(y);
        io.map(body)
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let f = SampleInput::f32;
        let sample = |style, inverse, x: &[usize], table: &[usize]| {
            (Rotary { style, inverse }, vec![f(x), f(table), f(table)])
        };
        let (half, interleaved) = (RotaryStyle::HalfSplit, RotaryStyle::Interleaved);
        vec![
            sample(half, false, &[1, 1, 2], &[1, 1]),
            sample(half, false, &[2, 5, 3, 8], &[5, 4]),
            sample(half, true, &[2, 3, 2, 7], &[2, 3, 2]),
            sample(interleaved, false, &[2, 5, 3, 6], &[1, 5, 3]),
            sample(interleaved, true, &[3, 2, 9], &[3, 2]),
        ]
    }
}

/// Cosines and sines of rotary angles `position base^(-2 j / width)` for j in `0..width / 2`, row by row, computed in `f64`.
#[must_use]
pub fn rotary_table(positions: impl IntoIterator<Item = f64>, width: usize, base: f64) -> [Vec<f32>; 2] {
    let mut table = [Vec::new(), Vec::new()];
    for position in positions {
        for j in 0..width / 2 {
            let angle = position * base.powf(-2.0 * j as f64 / width as f64);
            table[0].push(angle.cos() as f32);
            table[1].push(angle.sin() as f32);
        }
    }
    table
}

impl Graph {
    /// Rotates the heads of `x [.., S, H, D]` by the angles whose `[cos, sin]` are given, `[S, R / 2]` or broadcasting to
    /// `[.., S, R / 2]`; elements from R on stay as they are. Axial (2-d) embeddings are tables of their own.
    #[track_caller]
    pub fn rotary_embedding(&mut self, x: Value, [cos, sin]: [Value; 2], style: RotaryStyle) -> Value {
        self.apply(Payload::Rotary(Rotary { style, inverse: false }), &[x, cos, sin])
    }

    /// Constant tables `[cos, sin]`, each `[count, width / 2]`, of positions `0..count` (see [`rotary_table`]).
    #[track_caller]
    pub fn rotary_constants(&mut self, count: usize, width: usize, base: f64) -> [Value; 2] {
        let table = rotary_table((0..count).map(|p| p as f64), width, base);
        table.map(|values| self.constant(&values, [count, width / 2]))
    }

    /// Tables `[cos, sin]`, each `[.., S, width / 2]`, of positions `f32 [.., S]` known only when the program runs.
    #[track_caller]
    pub fn rotary_tables(&mut self, positions: Value, width: usize, base: f64) -> [Value; 2] {
        let frequencies: Vec<f32> =
            (0..width / 2).map(|j| base.powf(-2.0 * j as f64 / width as f64) as f32).collect();
        let frequencies = self.constant(&frequencies, [width / 2]);
        let positions = self.per_row(positions);
        let angles = self.mul(positions, frequencies);
        [self.cos(angles), self.sin(angles)]
    }
}
