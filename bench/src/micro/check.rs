//! Results against `f64`, on a sample of their elements.
//!
//! Input: what a pass read and its results. Output: the largest relative L2 error of a result over the sample. Each element is
//! computed from its definition alone, so a wrong index in a kernel cannot hide.

use super::case::{Ready, Tensor, mixed};
use super::shape::{Pass, Shape};
use crate::error::BenchError;

/// Elements that are looked at, of products and convolutions.
const ELEMENTS: u64 = 256;
/// Queries that are looked at, of attention.
const QUERIES: u64 = 8;

/// The relative L2 error of a sample.
pub(super) fn error(ready: &Ready, shape: &Shape, pass: Pass) -> Result<f64, BenchError> {
    let given = |name: &str| ready.given.iter().find(|t| t.name == name);
    match shape {
        Shape::Attention { causal, .. } => {
            let (Some(q), Some(k), Some(v)) = (given("q"), given("k"), given("v")) else {
                return Ok(f64::NAN);
            };
            let heads = Heads { q, k, v, dy: given("dy"), causal: *causal };
            heads.error(&ready.results)
        }
        _ => {
            let y = ready.results.f32("y")?;
            let mut sum = Sums::default();
            for s in 0..ELEMENTS {
                let at = usize::try_from(mixed(s) % y.len().max(1) as u64).unwrap_or(0);
                let expected = match shape {
                    Shape::Gemm { m, n, k } => gemm(&ready.given, pass, ([*m, *n, *k], at)),
                    _ => conv(&ready.given, shape, (pass, at)),
                };
                sum.add(f64::from(y[at]), expected);
            }
            Ok(sum.relative())
        }
    }
}

/// Sums of squares of differences and of what is expected.
#[derive(Default)]
struct Sums {
    difference: f64,
    expected: f64,
}

impl Sums {
    fn add(&mut self, found: f64, expected: f64) {
        self.difference += (found - expected).powi(2);
        self.expected += expected.powi(2);
    }

    fn relative(&self) -> f64 {
        (self.difference / self.expected).sqrt()
    }
}

/// An element of a product: the operands are those of [`super::case`], in their order.
fn gemm(given: &[Tensor], pass: Pass, ([m, n, k], at): ([usize; 3], usize)) -> f64 {
    let (a, b) = (&given[0].values, &given[1].values);
    let product = |i: usize, j: usize| f64::from(a[i]) * f64::from(b[j]);
    match pass {
        Pass::InputGradient => (0..n).map(|c| product(at / k * n + c, c * k + at % k)).sum(),
        Pass::WeightGradient => (0..m).map(|c| product(c * n + at / k, c * k + at % k)).sum(),
        _ => (0..k).map(|c| product(at / n * k + c, at % n * k + c)).sum(),
    }
}

/// The index of an element, given its coordinates in four dimensions.
fn flat(dims: &[usize], c: [usize; 4]) -> usize {
    ((c[0] * dims[1] + c[1]) * dims[2] + c[2]) * dims[3] + c[3]
}

/// The coordinates of an element in four dimensions.
fn coordinates(dims: &[usize], at: usize) -> [usize; 4] {
    let (row, w) = (at / dims[3], at % dims[3]);
    let (plane, h) = (row / dims[2], row % dims[2]);
    [plane / dims[1], plane % dims[1], h, w]
}

/// An element of a convolution or of one of its gradients: the sum over all triples of positions it belongs to.
fn conv(given: &[Tensor], shape: &Shape, (pass, at): (Pass, usize)) -> f64 {
    let Shape::Conv { x, w, stride, padding, groups } = shape else { return f64::NAN };
    let (y, per) = (shape.result(), [w[0] / groups, w[1]]);
    // Where a tap of an output row or column lies in the input.
    let from = |axis: usize, out: usize, tap: usize| {
        (out * stride[axis] + tap).checked_sub(padding[axis][0]).filter(|i| *i < x[axis + 2])
    };
    let value = |i: usize, at: usize| f64::from(given[i].values[at]);
    let mut sum = 0.0;
    match pass {
        Pass::WeightGradient => {
            let [o, c, r, s] = coordinates(w, at);
            for (n, p, q) in triples([y[0], y[2], y[3]]) {
                if let (Some(h), Some(v)) = (from(0, p, r), from(1, q, s)) {
                    let input = flat(x, [n, o / per[0] * per[1] + c, h, v]);
                    sum += value(0, input) * value(2, flat(&y, [n, o, p, q]));
                }
            }
        }
        Pass::InputGradient => {
            let [n, c, h, v] = coordinates(x, at);
            let group = c / per[1];
            // The output whose tap reads this input.
            let out = |axis: usize, at: usize, tap: usize| {
                let reach = (at + padding[axis][0]).checked_sub(tap)?;
                let fits = reach % stride[axis] == 0 && reach / stride[axis] < y[axis + 2];
                fits.then(|| reach / stride[axis])
            };
            for (o, r, s) in triples([per[0], w[2], w[3]]) {
                if let (Some(p), Some(q)) = (out(0, h, r), out(1, v, s)) {
                    let o = group * per[0] + o;
                    sum += value(1, flat(w, [o, c % per[1], r, s])) * value(2, flat(&y, [n, o, p, q]));
                }
            }
        }
        _ => {
            let [n, o, p, q] = coordinates(&y, at);
            for (c, r, s) in triples([per[1], w[2], w[3]]) {
                if let (Some(h), Some(v)) = (from(0, p, r), from(1, q, s)) {
                    let input = flat(x, [n, o / per[0] * per[1] + c, h, v]);
                    sum += value(0, input) * value(1, flat(w, [o, c, r, s]));
                }
            }
        }
    }
    sum
}

/// All triples below three extents.
fn triples([a, b, c]: [usize; 3]) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..a).flat_map(move |i| (0..b).flat_map(move |j| (0..c).map(move |k| (i, j, k))))
}

/// Attention, row by row.
struct Heads<'a> {
    q: &'a Tensor,
    k: &'a Tensor,
    v: &'a Tensor,
    dy: Option<&'a Tensor>,
    causal: bool,
}

/// A query's probabilities, its row of y, and the gradients of its scores.
struct Row {
    p: Vec<f64>,
    y: Vec<f64>,
    ds: Vec<f64>,
}

impl Heads<'_> {
    fn row<'a>(t: &'a Tensor, c: [usize; 3]) -> impl Iterator<Item = f64> + 'a {
        let start = flat(&t.dims, [c[0], c[1], c[2], 0]);
        t.values[start..start + t.dims[3]].iter().map(|x| f64::from(*x))
    }

    fn dot(a: &Tensor, i: [usize; 3], (b, j): (&Tensor, [usize; 3])) -> f64 {
        Self::row(a, i).zip(Self::row(b, j)).map(|(x, y)| x * y).sum()
    }

    fn scale(&self) -> f64 {
        1.0 / (self.q.dims[3] as f64).sqrt()
    }

    fn at(&self, [b, i, h]: [usize; 3]) -> Row {
        let head = h / (self.q.dims[2] / self.k.dims[2]);
        let (sq, sk) = (self.q.dims[1], self.k.dims[1]);
        let seen = if self.causal { (i + 1 + sk).saturating_sub(sq).min(sk) } else { sk };
        let scores: Vec<f64> =
            (0..seen).map(|j| self.scale() * Self::dot(self.q, [b, i, h], (self.k, [b, j, head]))).collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = scores.iter().map(|s| (s - most).exp()).sum();
        let p: Vec<f64> = scores.iter().map(|s| (s - most).exp() / total).collect();
        let mut y = vec![0.0; self.q.dims[3]];
        for (j, p) in p.iter().enumerate() {
            y.iter_mut().zip(Self::row(self.v, [b, j, head])).for_each(|(y, v)| *y += p * v);
        }
        let ds = self.dy.map_or_else(Vec::new, |dy| {
            let dp: Vec<f64> = (0..seen).map(|j| Self::dot(dy, [b, i, h], (self.v, [b, j, head]))).collect();
            let delta: f64 = Self::row(dy, [b, i, h]).zip(&y).map(|(d, y)| d * y).sum();
            p.iter().zip(dp).map(|(p, dp)| p * (dp - delta)).collect()
        });
        Row { p, y, ds }
    }

    /// The largest error of all results: y and dq at some queries, dk and dv at one key.
    fn error(&self, results: &griffinfly::Outputs) -> Result<f64, BenchError> {
        let [batch, sq, heads, d] = [0, 1, 2, 3].map(|axis| self.q.dims[axis]);
        let pick = |s: u64, n: usize| usize::try_from(mixed(s) % n.max(1) as u64).unwrap_or(0);
        let (mut of_y, mut of_dq) = (Sums::default(), Sums::default());
        let y = results.f32("y")?;
        for s in 0..QUERIES {
            let c = [pick(3 * s, batch), pick(3 * s + 1, sq), pick(3 * s + 2, heads)];
            let (row, start) = (self.at(c), flat(&self.q.dims, [c[0], c[1], c[2], 0]));
            y[start..start + d].iter().zip(&row.y).for_each(|(y, e)| of_y.add(f64::from(*y), *e));
            if self.dy.is_some() {
                let head = c[2] / (heads / self.k.dims[2]);
                let mut dq = vec![0.0; d];
                for (j, ds) in row.ds.iter().enumerate() {
                    let k = Self::row(self.k, [c[0], j, head]);
                    dq.iter_mut().zip(k).for_each(|(q, k)| *q += self.scale() * ds * k);
                }
                let found = &results.f32("dq")?[start..start + d];
                found.iter().zip(&dq).for_each(|(x, e)| of_dq.add(f64::from(*x), *e));
            }
        }
        let Some(dy) = self.dy else { return Ok(of_y.relative()) };
        let key = [pick(90, batch), pick(91, self.k.dims[1]), pick(92, self.k.dims[2])];
        let of_key = self.key_error(results, key, dy)?;
        Ok(of_y.relative().max(of_dq.relative()).max(of_key))
    }

    /// The error of dk and dv at one key, to which all queries of its heads add.
    fn key_error(
        &self,
        results: &griffinfly::Outputs,
        [b, j, head]: [usize; 3],
        dy: &Tensor,
    ) -> Result<f64, BenchError> {
        let (d, group) = (self.q.dims[3], self.q.dims[2] / self.k.dims[2]);
        let (mut dk, mut dv) = (vec![0.0; d], vec![0.0; d]);
        for h in head * group..(head + 1) * group {
            for i in 0..self.q.dims[1] {
                let row = self.at([b, i, h]);
                let (Some(p), Some(ds)) = (row.p.get(j), row.ds.get(j)) else { continue };
                let q = Self::row(self.q, [b, i, h]);
                dk.iter_mut().zip(q).for_each(|(k, q)| *k += self.scale() * ds * q);
                dv.iter_mut().zip(Self::row(dy, [b, i, h])).for_each(|(v, dy)| *v += p * dy);
            }
        }
        let start = flat(&self.k.dims, [b, j, head, 0]);
        let mut worst = 0.0_f64;
        for (name, expected) in [("dk", dk), ("dv", dv)] {
            let mut sums = Sums::default();
            let found = &results.f32(name)?[start..start + d];
            found.iter().zip(&expected).for_each(|(x, e)| sums.add(f64::from(*x), *e));
            worst = worst.max(sums.relative());
        }
        Ok(worst)
    }
}
