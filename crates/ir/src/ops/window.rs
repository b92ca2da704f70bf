//! Windows over two spatial axes: what convolutions and pooling have in common.
//!
//! Invariants of a [`Span`]: taps are `dilation` apart, so a window spans `reach = dilation (kernel - 1) + 1`;
//! `output = floor((before + input + after - reach) / stride) + 1` is at least 1, stride and dilation are not 0, and the
//! padded extent fits in 31 bits, so all index arithmetic does. In ceil mode the last window may reach beyond the padding,
//! but starts before it.

use crate::index::{Bound, Domain, IndexExpr, Store};
use crate::loops::{Body, Combine, LoopKind, Map, Phase, Row};
use crate::types::{DType, MAX_ELEMENTS};
use serde::{Deserialize, Serialize};

#[cfg(test)]
pub(crate) mod tests;

/// How windows move over the two last axes of `[N, C, H, W]`.
///
/// ```
/// use griffinfly_ir::ops::Window2d;
/// let halving = Window2d::strided(2).padded(1);
/// assert_eq!((halving.stride, halving.padding, halving.dilation), ([2, 2], [[1, 1], [1, 1]], [1, 1]));
/// assert_eq!(Window2d::same([3, 2]).padding, [[1, 1], [0, 1]]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Window2d {
    /// Distance of neighbouring windows along height and width.
    pub stride: [usize; 2],
    /// Elements added before and after the height, and before and after the width.
    pub padding: [[usize; 2]; 2],
    /// Distance of a window's neighbouring taps along height and width.
    #[serde(default = "ones", skip_serializing_if = "are_ones")]
    pub dilation: [usize; 2],
    /// Whether a last window that the padded input covers in part counts, if it starts before the padding after the input.
    /// For poolings.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ceil: bool,
}

fn ones() -> [usize; 2] {
    [1; 2]
}

fn are_ones(extents: &[usize; 2]) -> bool {
    *extents == [1; 2]
}

impl Default for Window2d {
    fn default() -> Self {
        Self::strided(1)
    }
}

impl Window2d {
    /// The same stride along both axes, no padding.
    #[must_use]
    pub const fn strided(stride: usize) -> Self {
        Self { stride: [stride; 2], padding: [[0; 2]; 2], dilation: [1; 2], ceil: false }
    }

    /// The same padding on all four sides.
    #[must_use]
    pub const fn padded(mut self, padding: usize) -> Self {
        self.padding = [[padding; 2]; 2];
        self
    }

    /// The same distance of taps along both axes.
    #[must_use]
    pub const fn dilated(mut self, dilation: usize) -> Self {
        self.dilation = [dilation; 2];
        self
    }

    /// With a last window that the padded input covers in part.
    #[must_use]
    pub const fn ceil(mut self) -> Self {
        self.ceil = true;
        self
    }

    /// The same along the width, nothing along a height of 1.
    pub(crate) fn along_width(mut self) -> Self {
        (self.stride[0], self.padding[0], self.dilation[0]) = (1, [0; 2], 1);
        self
    }

    /// Stride 1 and the padding that gives as many windows as elements; an even kernel pads one more after than before.
    #[must_use]
    pub fn same(kernel: [usize; 2]) -> Self {
        Self { padding: kernel.map(|k| [k.saturating_sub(1) / 2, k / 2]), ..Self::strided(1) }
    }

    /// Both axes, for an input of these extents.
    ///
    /// # Errors
    /// A stride, dilation, kernel or input extent of 0; windows larger than the padded input; extents beyond 31 bits.
    pub(crate) fn spans(&self, input: [usize; 2], kernel: [usize; 2]) -> Result<[Span; 2], String> {
        let span = |i: usize| {
            let fault = |reason: String| format!("{}: {reason}", ["height", "width"][i]);
            let ([before, after], stride, dilation) = (self.padding[i], self.stride[i], self.dilation[i]);
            let (input, kernel) = (input[i], kernel[i]);
            let padded = input.saturating_add(before).saturating_add(after);
            if [stride, dilation, kernel, input].contains(&0) {
                return Err(fault(format!(
                    "stride {stride}, dilation {dilation}, kernel {kernel}, extent {input}: none may be 0"
                )));
            }
            // One tap has no neighbours.
            let dilation = if kernel == 1 { 1 } else { dilation };
            // Products of them appear where windows are found from inputs.
            let together = if dilation == 1 { stride } else { stride.saturating_mul(stride.max(dilation)) };
            if padded.max(together) > MAX_ELEMENTS {
                return Err(fault(format!(
                    "padded extent {padded}, or stride {stride} with dilation {dilation}, is over {MAX_ELEMENTS}"
                )));
            }
            let span = Span { input, output: 0, kernel, stride, before, after, dilation };
            let over = padded.checked_sub(span.reach()).ok_or_else(|| {
                let spread = if dilation == 1 { String::new() } else { format!(" with dilation {dilation}") };
                fault(format!(
                    "the kernel of {kernel}{spread} is larger than the input of {input} padded with {before} and {after}"
                ))
            })?;
            let more = self.ceil && over % stride != 0 && (over / stride + 1) * stride < input + before;
            Ok(Span { output: over / stride + 1 + usize::from(more), ..span })
        };
        Ok([span(0)?, span(1)?])
    }
}

/// One axis of a window operation: output `o` sees the inputs `stride o + dilation k - before` for every tap `k < kernel`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) kernel: usize,
    pub(crate) stride: usize,
    pub(crate) before: usize,
    pub(crate) after: usize,
    pub(crate) dilation: usize,
}

impl Span {
    /// Extent of a window, from its first tap to its last.
    pub(crate) fn reach(&self) -> usize {
        self.dilation.saturating_mul(self.kernel - 1).saturating_add(1)
    }

    /// The input that tap `k` of window `o` sees; `None` in the padding.
    pub(crate) fn position(&self, o: usize, k: usize) -> Option<usize> {
        (self.stride * o + self.dilation * k).checked_sub(self.before).filter(|i| *i < self.input)
    }

    /// Distance of the taps with which different windows see one input.
    fn tap_stride(&self) -> usize {
        self.stride / gcd(self.stride, self.dilation)
    }

    /// Most taps with which windows can see one input.
    pub(crate) fn taps(&self) -> usize {
        self.kernel.div_ceil(self.tap_stride())
    }

    /// `stride o + dilation k - before`.
    pub(crate) fn position_index(&self, o: &IndexExpr, k: &IndexExpr) -> IndexExpr {
        let taps = k.times(self.dilation as i64);
        o.times(self.stride as i64).plus(&taps).plus_constant(-(self.before as i64))
    }

    /// The `j`-th window that sees input `i`, the tap with which it does, and a remainder that must be 0, without trial.
    ///
    /// With `s = stride`, `d = dilation`, `f = gcd(s, d)`, `i + before = s q + r`: tap k must satisfy `d k = r` modulo s, so
    /// f divides r and `k = first + (s / f) j` with `first = (r / f) (d / f)^-1` modulo `s / f`; the window is
    /// `q + (r - d first) / s - (d / f) j`.
    pub(crate) fn window_index(&self, i: &IndexExpr, j: &IndexExpr, domain: Domain<'_>) -> [IndexExpr; 3] {
        let (s, d, f) = (self.stride as i64, self.dilation as i64, gcd(self.stride, self.dilation) as i64);
        let padded = i.plus_constant(self.before as i64);
        let (q, r) = (padded.div(s, domain), padded.rem(s, domain));
        let first = r.div(f, domain).times(inverse(d / f, s / f)).rem(s / f, domain);
        let moved = r.plus(&first.times(-d)).div(s, domain);
        [q.plus(&moved).plus(&j.times(-d / f)), first.plus(&j.times(s / f)), r.rem(f, domain)]
    }
}

pub(crate) fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The x in `0..n` with `a x = 1` modulo n, by the extended Euclidean algorithm; a and n have no common factor.
fn inverse(a: i64, n: i64) -> i64 {
    let (mut old, mut rest, mut x, mut next) = (n, a % n, 0, 1);
    while rest != 0 {
        let q = old / rest;
        (old, rest, x, next) = (rest, old - q * rest, next, x - q * next);
    }
    x.rem_euclid(n)
}

/// The sum of a body over `rows ++ cols` along the columns, stored in place; a map over the rows where there is one column,
/// so the body must not name axes of extent 1 (see [`axis`]).
pub(crate) fn sum_along(rows: Vec<usize>, cols: Vec<usize>, body: Body) -> LoopKind {
    let stores = vec![Store::identity(0, rows.len())];
    if cols.iter().all(|c| *c == 1) {
        return LoopKind::Map(Map { domain: rows, body, stores });
    }
    let mut row_body = Body::new();
    let sum = row_body.expr.carry(0, DType::F32);
    row_body.output(sum);
    let phases = vec![Phase { body, combines: vec![Combine::Sum] }];
    let (col_body, col_stores) = (Body::new(), Vec::new());
    LoopKind::Row(Row { rows, cols, phases, row_body, row_stores: stores, col_body, col_stores })
}

/// The index along an axis of these extents; 0 where the extent is 1.
pub(crate) fn axis(extents: &[usize], axis: usize) -> IndexExpr {
    if extents.get(axis) == Some(&1) { IndexExpr::constant(0) } else { IndexExpr::axis(axis) }
}

/// Adds `0 <= expr < extent` to the bounds unless it holds everywhere in the domain.
pub(crate) fn require(valid: &mut Vec<Bound>, expr: &IndexExpr, extent: usize, domain: &[usize]) {
    let (lo, hi) = expr.range(Domain::of(domain));
    let bound = Bound::new(expr.clone(), 0, extent as i64);
    if (lo < 0 || hi >= extent as i64) && !valid.contains(&bound) {
        valid.push(bound);
    }
}
