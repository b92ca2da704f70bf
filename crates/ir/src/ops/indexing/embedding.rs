//! Rows of a table chosen by ids (embedding lookup), and the gradient that sums rows by id.

use super::{clamp, clamped};
use crate::array::{Array, each_point};
use crate::graph::{Graph, IdLimit, Value};
use crate::index::{Access, Dynamic, IndexExpr};
use crate::loops::{Body, LoopKind, Scatter};
use crate::ops::rule::need_dtype;
use crate::ops::{Lowering, Payload, Rule, SampleInput, Signature, Vjp};
use crate::real::Real;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};

/// `y[.., d] = table[ids[..], d]`. Inputs: table `[V, D..]` of any dtype, ids i32 `[..]`. Result: `[.., D..]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Embedding {}

fn row_limit(rows: Option<&usize>) -> Option<IdLimit> {
    rows.map(|&rows| IdLimit { limit: rows as i32, ignore: None })
}

impl Rule for Embedding {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let (table, ids) = (&inputs[0], &inputs[1]);
        need_dtype("the ids", ids, DType::I32)?;
        let Some((_, row)) = table.dims.split_first() else {
            return Err(format!("the table {table} has no rows"));
        };
        Ok(vec![TensorType::new(table.dtype, [&ids.dims, row].concat())])
    }

    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let (ids, dy) = (vjp.inputs[1], vjp.grad());
        let rows = vjp.g.dims(vjp.inputs[0])[0];
        let d = vjp.g.apply(Payload::EmbeddingGrad(EmbeddingGrad { rows }), &[ids, dy]);
        vjp.set(0, d);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (table, ids) = (inputs[0], inputs[1]);
        vec![Array::build(&outputs[0], |p| {
            let (item, within) = p.split_at(ids.ty.rank());
            let row = clamped(ids.at(item).f64(), table.dims()[0]);
            table.at(&[&[row], within].concat())
        })]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (table, ids) = (&io.inputs[0], &io.inputs[1]);
        let mut body = Body::new();
        body.load(1, ids, Access::identity(ids.rank()));
        let mut coords = vec![IndexExpr::constant(0)];
        coords.extend((ids.rank()..io.outputs[0].rank()).map(IndexExpr::axis));
        let dynamic = Some(Dynamic { dimension: 0, load: 0 });
        let y = body.load(0, table, Access { dynamic, ..Access::at(coords) });
        body.output(y);
        io.map(body)
    }

    fn id_limit(&self, input: usize, types: &[TensorType]) -> Option<IdLimit> {
        if input == 1 { row_limit(types[0].dims.first()) } else { None }
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let (f, ids) = (SampleInput::f32, SampleInput::ids);
        let s = || Embedding {};
        vec![
            (s(), vec![f(&[1, 1]), ids(&[1], 1)]),
            (s(), vec![f(&[5, 13]), ids(&[3, 7], 5)]),
            (s(), vec![f(&[97]), ids(&[11], 97)]),
            (s(), vec![f(&[4, 3, 2]), ids(&[], 4)]),
        ]
    }
}

/// `table[v, d] = sum of dy[.., d] over the items with ids[..] = v`, for `rows` ids: repeated ids sum, in item order.
/// Inputs: ids i32 `[..]`, dy `[.., D..]`. Result: `[rows, D..]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct EmbeddingGrad {
    pub(crate) rows: usize,
}

impl Rule for EmbeddingGrad {
    fn arity(&self) -> Option<usize> {
        Some(2)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        let (ids, dy) = (&inputs[0], &inputs[1]);
        need_dtype("the ids", ids, DType::I32)?;
        need_dtype("the gradient", dy, DType::F32)?;
        match dy.dims.strip_prefix(ids.dims.as_slice()) {
            Some(row) => Ok(vec![TensorType::f32([&[self.rows], row].concat())]),
            None => Err(format!("the gradient {dy} does not have one row per id of {ids}")),
        }
    }

    /// The adjoint of a sum by id is the lookup by id.
    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
        let (ids, u) = (vjp.inputs[0], vjp.grad());
        let d = vjp.g.embedding(u, ids);
        vjp.set(1, d);
        Ok(())
    }

    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>> {
        let (ids, dy) = (inputs[0], inputs[1]);
        let mut table = Array::filled(&outputs[0], R::of(0.0));
        each_point(dy.dims(), |p| {
            let (item, within) = p.split_at(ids.ty.rank());
            let row = clamped(ids.at(item).f64(), self.rows);
            let at = table.offset(&[&[row], within].concat());
            table.data[at] += dy.at(p);
        });
        vec![table]
    }

    fn lower(&self, io: &Signature<'_>) -> Lowering {
        let (ids, dy) = (&io.inputs[0], &io.inputs[1]);
        let (items, cols) = dy.dims.split_at(ids.rank());
        let mut id = Body::new();
        let raw = id.load(0, ids, Access::identity(ids.rank()));
        let inside = clamp(&mut id.expr, raw, self.rows);
        id.output(inside);
        io.loop_of(LoopKind::Scatter(Scatter {
            rows: self.rows,
            items: items.to_vec(),
            cols: cols.to_vec(),
            ids: id,
            source: Body::of_load(1, dy, Access::identity(dy.rank())),
        }))
    }

    fn id_limit(&self, input: usize, _: &[TensorType]) -> Option<IdLimit> {
        if input == 0 { row_limit(Some(&self.rows)) } else { None }
    }

    fn samples() -> Vec<(Self, Vec<SampleInput>)> {
        let (f, ids) = (SampleInput::f32, SampleInput::ids);
        let s = |rows| EmbeddingGrad { rows };
        vec![
            (s(1), vec![ids(&[1], 1), f(&[1, 1])]),
            (s(5), vec![ids(&[3, 7], 5), f(&[3, 7, 13])]),
            (s(97), vec![ids(&[11], 97), f(&[11])]),
            (s(3), vec![ids(&[65], 2), f(&[65, 2, 3])]),
        ]
    }
}

impl Graph {
    /// Rows of `table [V, D..]` chosen by `ids` i32 `[..]`: `[.., D..]`. Gradients of repeated ids sum.
    #[track_caller]
    pub fn embedding(&mut self, table: Value, ids: Value) -> Value {
        self.apply(Payload::Embedding(Embedding {}), &[table, ids])
    }
}
