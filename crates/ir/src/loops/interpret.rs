//! A slow, obvious interpreter of loops, one element at a time.
//!
//! It gives recipes a meaning independent of any device: the op suite compares recipes with op references through it, and
//! the devices are compared with it. Values are 32-bit words as in a buffer.

use super::{Body, Combine, Contract, Loop, LoopKind, Map, Row, Scatter, Update};
use crate::array::each_point;
use crate::index::Store;
use crate::scalar::{self, BinaryFn, Scalar, ScalarNode};
use crate::types::{TensorType, strides};

/// Runs a loop on operand words and returns result words. Elements no store reaches keep a NaN pattern.
#[must_use]
pub fn interpret(l: &Loop, operands: &[&[u32]]) -> Vec<Vec<u32>> {
    let mut run = Run {
        types: &l.operands,
        operands,
        result_types: &l.results,
        results: l.results.iter().map(|t| vec![0x7fc0_dead; t.elements()]).collect(),
    };
    match &l.kind {
        LoopKind::Map(m) => run.map(m),
        LoopKind::Row(r) => run.row(r),
        LoopKind::Contract(c) => run.contract(c),
        LoopKind::Scatter(s) => run.scatter(s),
        LoopKind::Update(u) => run.update(u),
        LoopKind::Attention(a) => run.attention(a),
    }
    run.results
}

pub(super) struct Run<'a> {
    types: &'a [TensorType],
    operands: &'a [&'a [u32]],
    result_types: &'a [TensorType],
    results: Vec<Vec<u32>>,
}

impl Run<'_> {
    fn load(&self, body: &Body, k: usize, point: &[usize]) -> Scalar {
        let load = &body.loads[k];
        let ty = &self.types[load.operand];
        if !load.access.valid.iter().all(|b| b.holds(point)) {
            return load.access.fill;
        }
        let mut offset = 0;
        for (i, (c, s)) in load.access.coords.iter().zip(ty.strides()).enumerate() {
            let coord = match &load.access.dynamic {
                Some(d) if d.dimension == i => {
                    let id = self.load(body, d.load, point).bits() as i32;
                    id.clamp(0, ty.dims[i] as i32 - 1) as usize
                }
                _ => c.eval(point) as usize,
            };
            offset += coord * s;
        }
        Scalar::from_bits(ty.dtype, self.operands[load.operand][offset])
    }

    pub(super) fn body(&self, body: &Body, point: &[usize], carries: &[Scalar]) -> Vec<Scalar> {
        let live = body.expr.reachable(body.expr.outputs());
        let mut values: Vec<Scalar> = Vec::with_capacity(live.len());
        for (node, live) in body.expr.nodes().iter().zip(&live) {
            if !live {
                values.push(Scalar::U32(0));
                continue;
            }
            let at = |id: &scalar::ScalarId| values[id.index()];
            let value = match node {
                ScalarNode::Const(c) => Some(*c),
                ScalarNode::Load(k) => Some(self.load(body, *k as usize, point)),
                ScalarNode::Carry(k) => Some(carries[*k as usize]),
                ScalarNode::Index(e) => Some(Scalar::I32(e.eval(point) as i32)),
                ScalarNode::Within(b) => Some(Scalar::Bool(b.iter().all(|b| b.holds(point)))),
                ScalarNode::Unary(f, x) => scalar::unary(*f, at(x)),
                ScalarNode::Binary(f, a, b) => scalar::binary(*f, at(a), at(b)),
                ScalarNode::Select(c, a, b) => scalar::select(at(c), at(a), at(b)),
                ScalarNode::Cast(d, x) => Some(scalar::cast(*d, at(x))),
            };
            values.push(value.expect("verified expressions are well typed"));
        }
        body.expr.outputs().iter().map(|o| values[o.index()]).collect()
    }

    pub(super) fn store(&mut self, stores: &[Store], point: &[usize], values: &[Scalar]) {
        for (s, v) in stores.iter().zip(values) {
            let strides = strides(&self.result_types[s.result].dims);
            let offset: usize = s.coords.iter().zip(strides).map(|(c, st)| c.eval(point) as usize * st).sum();
            self.results[s.result][offset] = v.bits();
        }
    }

    fn map(&mut self, m: &Map) {
        each_point(&m.domain, |p| {
            let v = self.body(&m.body, p, &[]);
            self.store(&m.stores, p, &v);
        });
    }

    fn row(&mut self, r: &Row) {
        each_point(&r.rows, |row| {
            let mut carries: Vec<Scalar> = Vec::new();
            for phase in &r.phases {
                let mut acc: Option<Vec<(Scalar, i32)>> = None;
                let mut col = 0;
                each_point(&r.cols, |c| {
                    let values = self.body(&phase.body, &[row, c].concat(), &carries);
                    acc = Some(match acc.take() {
                        None => values.into_iter().map(|v| (v, col)).collect(),
                        Some(old) => old
                            .into_iter()
                            .zip(values)
                            .zip(&phase.combines)
                            .map(|((a, v), c)| combine(*c, a, (v, col)))
                            .collect(),
                    });
                    col += 1;
                });
                for ((v, i), c) in acc.unwrap_or_default().into_iter().zip(&phase.combines) {
                    carries.push(v);
                    if c.has_index() {
                        carries.push(Scalar::I32(i));
                    }
                }
            }
            let v = self.body(&r.row_body, row, &carries);
            self.store(&r.row_stores, row, &v);
            if !r.col_stores.is_empty() {
                each_point(&r.cols, |c| {
                    let p = [row, c].concat();
                    let v = self.body(&r.col_body, &p, &carries);
                    self.store(&r.col_stores, &p, &v);
                });
            }
        });
    }

    fn contract(&mut self, c: &Contract) {
        let (nb, nm) = (c.batch.len(), c.m.len());
        each_point(&c.domain(), |p| {
            let (batch, m, n) = (&p[..nb], &p[nb..nb + nm], &p[nb + nm..]);
            let mut sums = vec![0.0f32; c.carries()];
            if c.has_row_sum() {
                each_point(&c.k, |k| {
                    let besides = self.body(&c.a, &[batch, m, k].concat(), &[])[1];
                    let sum = &mut sums[c.carries() - 1];
                    *sum = (f64::from(*sum) + besides.to_f64()) as f32;
                });
            }
            for (extents, left, right, sum) in c.terms() {
                each_point(extents, |k| {
                    let a = self.body(left, &[batch, m, k].concat(), &[]);
                    let b = self.body(right, &[batch, n, k].concat(), &[]);
                    sums[sum] = (f64::from(sums[sum]) + a[0].to_f64() * b[0].to_f64()) as f32;
                });
            }
            let carries: Vec<Scalar> = sums.into_iter().map(Scalar::f32).collect();
            let v = self.body(&c.epilogue, p, &carries);
            self.store(&c.stores, p, &v);
        });
    }

    fn scatter(&mut self, s: &Scatter) {
        let cols: usize = s.cols.iter().product();
        let mut sums = vec![0.0f32; s.rows * cols];
        each_point(&s.items, |item| {
            let id = self.body(&s.ids, item, &[])[0].bits() as i32;
            if (0..s.rows as i32).contains(&id) {
                let mut j = 0;
                each_point(&s.cols, |c| {
                    let v = self.body(&s.source, &[item, c].concat(), &[])[0];
                    sums[id as usize * cols + j] += v.to_f64() as f32;
                    j += 1;
                });
            }
        });
        self.results[0] = sums.into_iter().map(f32::to_bits).collect();
    }

    fn update(&mut self, u: &Update) {
        let shared = u.segments.len() * u.lanes;
        for (s, &n) in u.segments.iter().enumerate() {
            let lanes = (0..u.lanes).map(|l| s * u.lanes + l).chain(shared..self.operands.len());
            let lanes: Vec<usize> = lanes.collect();
            let types: Vec<TensorType> = lanes.iter().map(|&l| flat(&self.types[l])).collect();
            let operands: Vec<&[u32]> = lanes.iter().map(|&l| self.operands[l]).collect();
            let outputs = u.body.expr.outputs().len();
            let run = Run { types: &types, operands: &operands, result_types: &[], results: Vec::new() };
            for i in 0..n {
                for (o, v) in run.body(&u.body, &[i], &[]).into_iter().enumerate() {
                    self.results[s * outputs + o][i] = v.bits();
                }
            }
        }
    }
}

/// Updates see every segment as one flat axis (and shared operands as scalars).
fn flat(ty: &TensorType) -> TensorType {
    if ty.dims.is_empty() { ty.clone() } else { TensorType::new(ty.dtype, [ty.elements()]) }
}

fn combine(c: Combine, a: (Scalar, i32), b: (Scalar, i32)) -> (Scalar, i32) {
    let f = match c {
        Combine::Sum => BinaryFn::Add,
        Combine::Max => BinaryFn::Max,
        Combine::Min => BinaryFn::Min,
        Combine::MaxIndex | Combine::MinIndex => {
            let is_nan = |s: Scalar| s.to_f64().is_nan();
            let better = if c == Combine::MaxIndex {
                b.0.to_f64() > a.0.to_f64()
            } else {
                b.0.to_f64() < a.0.to_f64()
            };
            return if !is_nan(a.0) && (better || is_nan(b.0)) { b } else { a };
        }
    };
    (scalar::binary(f, a.0, b.0).expect("verified reductions are well typed"), a.1)
}
