//! The meaning of attention loops, one query at a time, with sums in `f64`.

use super::super::interpret::Run;
use super::{Attention, AttentionVariant};
use crate::array::each_point;
use crate::loops::Body;
use crate::scalar::Scalar;

/// The score a query that sees nothing has as its largest: exponentials of -inf less this are 0, not NaN.
const LOWEST: f64 = f32::MIN as f64;

/// Dense values of the bodies, and of the results.
struct Values {
    q: Vec<f64>,
    k: Vec<f64>,
    v: Vec<f64>,
    bias: Option<Vec<f64>>,
    saved: Option<[Vec<f64>; 3]>,
    results: Vec<Vec<f64>>,
}

impl Run<'_> {
    pub(in crate::loops) fn attention(&mut self, a: &Attention) {
        let s = a.shape;
        let dense = |body: &Body, extents: Vec<usize>| {
            let mut out = Vec::with_capacity(extents.iter().product());
            each_point(&extents, |p| out.push(self.body(body, p, &[])[0].to_f64()));
            out
        };
        let saved = a.saved.as_ref();
        let mut values = Values {
            q: dense(&a.q, s.of_queries()),
            k: dense(&a.k, s.of_keys()),
            v: dense(&a.v, s.of_keys()),
            bias: a.bias.as_ref().map(|b| dense(b, s.of_scores())),
            saved: saved.map(|x| {
                [dense(&x.dy, s.of_queries()), dense(&x.lse, s.of_rows()), dense(&x.delta, s.of_rows())]
            }),
            results: a.domains().iter().map(|d| vec![0.0; d.iter().product()]).collect(),
        };
        each_point(&s.of_rows(), |row| values.row(a, row));
        for ((domain, result), store) in a.domains().iter().zip(&values.results).zip(&a.stores) {
            let mut next = result.iter();
            each_point(domain, |p| {
                let value = Scalar::f32(next.next().map_or(f32::NAN, |x| *x as f32));
                self.store(std::slice::from_ref(store), p, &[value]);
            });
        }
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

fn add(to: &mut [f64], factor: f64, x: &[f64]) {
    to.iter_mut().zip(x).for_each(|(t, x)| *t += factor * x);
}

impl Values {
    /// Everything that one query contributes.
    fn row(&mut self, a: &Attention, row: &[usize]) {
        let (s, scale, [b, h, i]) = (a.shape, f64::from(a.scale.get()), [row[0], row[1], row[2]]);
        let number = (b * s.heads + h) * s.queries + i;
        let q = number * s.width..(number + 1) * s.width;
        let first = (b * s.kv_heads + h / s.group()) * s.keys;
        let key = |j: usize| (first + j) * s.width..(first + j + 1) * s.width;
        let seen = a.mask.keys(i, s.lengths());
        let scores: Vec<f64> = seen
            .clone()
            .map(|j| {
                let bias = self.bias.as_ref().map_or(0.0, |x| x[number * s.keys + j]);
                scale * dot(&self.q[q.clone()], &self.k[key(j)]) + bias
            })
            .collect();
        let Some([dy, lse, delta]) = &self.saved else {
            let larger = |m: f64, x: &f64| if m.is_nan() || x.is_nan() { f64::NAN } else { m.max(*x) };
            let shift = scores.iter().fold(LOWEST, larger);
            let sum: f64 = scores.iter().map(|x| (x - shift).exp()).sum();
            for (j, x) in seen.zip(scores) {
                let p = (x - shift).exp() / if sum > 0.0 { sum } else { 1.0 };
                add(&mut self.results[0][q.clone()], p, &self.v[key(j)]);
            }
            self.results[1][number] = shift + sum.ln();
            return;
        };
        let (dy, delta) = (&dy[q.clone()], delta[number]);
        let shift = if lse[number] < LOWEST { LOWEST } else { lse[number] };
        for (j, x) in seen.zip(scores) {
            let p = (x - shift).exp();
            let ds = p * (dot(dy, &self.v[key(j)]) - delta);
            if a.variant == AttentionVariant::GradQuery {
                add(&mut self.results[0][q.clone()], scale * ds, &self.k[key(j)]);
            } else {
                add(&mut self.results[0][key(j)], scale * ds, &self.q[q.clone()]);
                add(&mut self.results[1][key(j)], p, dy);
            }
        }
    }
}
