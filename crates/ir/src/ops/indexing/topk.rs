//! The positions of the largest elements along an axis, in falling order.
//!
//! The order: NaN before everything, then larger values, and of equal ones the first position. One row loop finds a few
//! positions, a phase each: the phase takes the best among the elements that come after the one found before. More
//! positions are a chain of loops, each of which goes on after the last position of the one before. A loop gives positions
//! alone, one result each, so that even devices with 8 storage bindings take it.

use crate::array::Array;
use crate::graph::{Graph, Value};
use crate::index::{Access, Dynamic, IndexExpr, Store};
use crate::loops::{Body, Combine, LoopKind, Phase, Row};
use crate::ops::reduce::{check_axes, result_coords, row_split};
use crate::ops::rule::need_dtype;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::scalar::{BinaryFn, Scalar, ScalarExpr, ScalarId, UnaryFn};
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// Positions one loop finds.
const MOST: usize = 6;
/// Positions [`Graph::topk`] finds.
const MOST_CHAINED: usize = 256;
/// Carries of a phase: the value, its position, the first position in question.
const CARRIES: usize = 3;

/// The next `count` positions along `axis` in falling order of `x`. Inputs: x f32, and where the chain goes on the last
/// position found, i32 with extent 1 along the axis. Results: `count` positions like it; where no element is left, the last
/// position of the axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct TopK {
    pub(crate) axis: usize,
    pub(crate) count: usize,
}

/// The element found before: value and position.
type Last = Option<(ScalarId, ScalarId)>;

/// Whether an element comes after the last one found.
fn comes_after(
    e: &mut ScalarExpr,
    [x, at]: [ScalarId; 2],
    (last, position): (ScalarId, ScalarId),
) -> ScalarId {
    let (below, same) = (e.binary(BinaryFn::Lt, x, last), e.binary(BinaryFn::Eq, x, last));
    let (x_nan, last_nan) = (e.unary(UnaryFn::IsNan, x), e.unary(UnaryFn::IsNan, last));
    let both = e.binary(BinaryFn::And, x_nan, last_nan);
    let number = e.unary(UnaryFn::Not, x_nan);
    let (behind, equal) = (e.binary(BinaryFn::Lt, position, at), e.binary(BinaryFn::Or, same, both));
    let equal_behind = e.binary(BinaryFn::And, equal, behind);
    let left_nan = e.binary(BinaryFn::And, last_nan, number);
    let lower = e.binary(BinaryFn::Or, below, left_nan);
    e.binary(BinaryFn::Or, lower, equal_behind)
}

/// The element found by phase `j`. Where the maximum is -inf, all elements in question are, and so are those that are not:
/// the first in question is it.
fn found(e: &mut ScalarExpr, j: usize) -> (ScalarId, ScalarId) {
    let (v, at) = (e.carry(CARRIES * j, DType::F32), e.carry(CARRIES * j + 1, DType::I32));
    let (first, lowest) = (e.carry(CARRIES * j + 2, DType::I32), e.f32(f32::NEG_INFINITY));
    let all_lowest = e.binary(BinaryFn::Eq, v, lowest);
    (v, e.select(all_lowest, first, at))
}

impl TopK {
    fn phase(&self, io: &Signature<'_>, j: usize) -> Phase {
        let x = &io.inputs[0];
        let (rows, _, coords) = row_split(&x.dims, &[self.axis]);
        let mut body = Body::new();
        let mut last: Last = None;
        if j > 0 {
            last = Some(found(&mut body.expr, j - 1));
        } else if let Some(position) = io.inputs.get(1) {
            let at = body.load(1, position, Access::at(result_coords(x.rank(), &[self.axis], true)));
            let mut coords = coords.clone();
            coords[self.axis] = IndexExpr::constant(0);
            let dynamic = Some(Dynamic { dimension: self.axis, load: 0 });
            let v = body.load(0, x, Access { dynamic, ..Access::at(coords) });
            last = Some((v, at));
        }
        let v = body.load(0, x, Access::at(coords));
        let e = &mut body.expr;
        let at = e.index(IndexExpr::axis(rows.len()));
        let end = e.constant(Scalar::I32(x.dims[self.axis] as i32 - 1));
        let (mut value, mut first) = (v, at);
        if let Some(last) = last {
            let (after, lowest) = (comes_after(e, [v, at], last), e.f32(f32::NEG_INFINITY));
            (value, first) = (e.select(after, v, lowest), e.select(after, at, end));
        }
        body.output(value);
        body.output(first);
        Phase { body, combines: vec![Combine::MaxIndex, Combine::Min] }
    }
}

impl Rule for TopK {
    fn arity(&self) -> Option<usize> {
        None
    }

    fn results(&self) -> usize {
        self.count
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let x = &inputs[0];
        check_axes(&[self.axis], x)?;
        need_dtype("the operand", x, DType::F32)?;
        if !(1..=MOST).contains(&self.count) {
            return Err(format!("finds 1 to {MOST} positions, not {}", self.count));
        }
        let mut position = TensorType::new(DType::I32, x.dims.clone());
        position.dims[self.axis] = 1;
        match &inputs[1..] {
            [] => {}
            [last] if *last == position => {}
            [last] => return Err(format!("the last position must be {position}, it is {last}")),
            _ => return Err(format!("takes 1 or 2 operands, given {}", inputs.len())),
        }
        Ok(vec![position; self.count])
    }

    /// No gradient flows through positions.
    fn gradient(&self, _: &mut Vjp<'_>) -> Result<(), String> {
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let n = inputs[0].dims()[self.axis];
        let order = |p: &[usize]| {
            let row = crate::ops::normalize::row_of(inputs[0], p, self.axis);
            let mut order: Vec<usize> = (0..n).collect();
            // A stable sort: equal elements stay in order of position.
            order.sort_by(|&a, &b| match (row[a].is_nan(), row[b].is_nan()) {
                (false, false) => row[b].total_cmp(&row[a]).then(a.cmp(&b)),
                (a, b) => b.cmp(&a),
            });
            let last = inputs.get(1).map(|last| last.at(p).f64() as usize);
            let skip = last.and_then(|l| order.iter().position(|i| *i == l)).map_or(0, |at| at + 1);
            order.split_off(skip)
        };
        let result = |(j, ty)| Array::build(ty, |p| R::of(*order(p).get(j).unwrap_or(&(n - 1)) as f64));
        outputs.iter().enumerate().map(result).collect()
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let x = &io.inputs[0];
        let (rows, cols, _) = row_split(&x.dims, &[self.axis]);
        let phases = (0..self.count).map(|j| self.phase(io, j)).collect();
        let mut row_body = Body::new();
        for j in 0..self.count {
            let (_, at) = found(&mut row_body.expr, j);
            row_body.output(at);
        }
        let coords = result_coords(x.rank(), &[self.axis], true);
        let row_stores = (0..self.count).map(|result| Store { result, coords: coords.clone() }).collect();
        let (col_body, col_stores) = (Body::new(), Vec::new());
        io.loop_of(LoopKind::Row(Row { rows, cols, phases, row_body, row_stores, col_body, col_stores }))
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let (d, ids) = (SampleInput::distinct, SampleInput::ids);
        let s = |axis, count| TopK { axis, count };
        vec![
            (s(0, 1), vec![d(&[1])]),
            (s(1, 6), vec![d(&[5, 131])]),
            (s(0, 3), vec![d(&[7, 2, 3])]),
            (s(1, 2), vec![d(&[3, 17, 2]), ids(&[3, 1, 2], 17)]),
        ]
    }
}

impl Graph {
    /// The `k` largest elements along an axis (negative ones count from the end) in falling order, and their positions,
    /// i32: both as `x` with extent `k` along the axis. NaN is largest; of equal elements the first comes first. Gradients
    /// flow through the values. `k` is at most 256 and the extent of the axis.
    #[track_caller]
    pub fn topk(&mut self, x: Value, k: usize, axis: isize) -> (Value, Value) {
        let axis = self.resolve_axis(x, axis);
        let extent = self.dims(x).get(axis).copied().unwrap_or(usize::MAX);
        if k == 0 || k > extent.min(MOST_CHAINED) {
            let e = format!(
                "k is {k}, it must be in 1..={MOST_CHAINED} and at most the extent {extent} of axis {axis}"
            );
            let poison = self.fail("topk", &[x], e);
            return (poison, poison);
        }
        let mut chunks: Vec<Value> = Vec::new();
        let mut last: Option<Value> = None;
        let mut left = k;
        while left > 0 {
            let count = left.min(MOST);
            let inputs: Vec<Value> = [Some(x), last].into_iter().flatten().collect();
            let found = self.apply_all(Payload::TopK(TopK { axis, count }), &inputs);
            last = found.last().copied();
            chunks.push(self.concat(&found, axis));
            left -= count;
        }
        // A few operands at a time: a loop that reads many tensors does not fit every device.
        while chunks.len() > 1 {
            chunks = chunks.chunks(MOST).map(|c| self.concat(c, axis)).collect();
        }
        let at = chunks[0];
        let values = self.apply(Payload::Gather(super::Gather { axis }), &[x, at]);
        (values, at)
    }
}
