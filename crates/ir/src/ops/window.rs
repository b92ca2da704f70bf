//! Windows over two spatial axes: what convolutions and pooling have in common.
//!
//! Invariants of a [`Span`]: `output = floor((before + input + after - kernel) / stride) + 1` is at least 1, the stride is
//! not 0, and the padded extent fits in 31 bits, so all index arithmetic does.

use crate::index::{Bound, Domain, IndexExpr};
use crate::types::MAX_ELEMENTS;
use serde::{Deserialize, Serialize};

#[cfg(test)]
pub(crate) mod tests;

/// How windows move over the two last axes of `[N, C, H, W]`.
///
/// ```
/// use griffinfly_ir::ops::Window2d;
/// let halving = Window2d::strided(2).padded(1);
/// assert_eq!(halving, Window2d { stride: [2, 2], padding: [[1, 1], [1, 1]] });
/// assert_eq!(Window2d::same([3, 2]).padding, [[1, 1], [0, 1]]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Window2d {
    /// Distance of neighbouring windows along height and width.
    pub stride: [usize; 2],
    /// Elements added before and after the height, and before and after the width.
    pub padding: [[usize; 2]; 2],
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
        Self { stride: [stride; 2], padding: [[0; 2]; 2] }
    }

    /// The same padding on all four sides.
    #[must_use]
    pub const fn padded(mut self, padding: usize) -> Self {
        self.padding = [[padding; 2]; 2];
        self
    }

    /// Stride 1 and the padding that gives as many windows as elements; an even kernel pads one more after than before.
    #[must_use]
    pub fn same(kernel: [usize; 2]) -> Self {
        Self { stride: [1; 2], padding: kernel.map(|k| [k.saturating_sub(1) / 2, k / 2]) }
    }

    /// Both axes, for an input of these extents.
    ///
    /// # Errors
    /// A stride, kernel or input extent of 0; a kernel larger than the padded input; extents beyond 31 bits.
    pub(crate) fn spans(&self, input: [usize; 2], kernel: [usize; 2]) -> Result<[Span; 2], String> {
        let span = |i: usize| {
            let name = ["height", "width"][i];
            let ([before, after], stride) = (self.padding[i], self.stride[i]);
            let (input, kernel) = (input[i], kernel[i]);
            let padded = input.saturating_add(before).saturating_add(after);
            if stride == 0 || kernel == 0 || input == 0 {
                return Err(format!(
                    "{name}: stride {stride}, kernel {kernel}, extent {input}: none may be 0"
                ));
            }
            if padded > MAX_ELEMENTS || stride > MAX_ELEMENTS {
                return Err(format!(
                    "{name}: padded extent {padded} or stride {stride} is over {MAX_ELEMENTS}"
                ));
            }
            if kernel > padded {
                return Err(format!(
                    "{name}: the kernel of {kernel} is larger than the input of {input} padded with {before} and {after}"
                ));
            }
            Ok(Span { input, output: (padded - kernel) / stride + 1, kernel, stride, before })
        };
        Ok([span(0)?, span(1)?])
    }
}

/// One axis of a window operation: output `o` sees the inputs `stride * o + k - before` for every tap `k < kernel`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) kernel: usize,
    pub(crate) stride: usize,
    pub(crate) before: usize,
}

impl Span {
    /// The input that tap `k` of window `o` sees; `None` in the padding.
    pub(crate) fn position(&self, o: usize, k: usize) -> Option<usize> {
        (self.stride * o + k).checked_sub(self.before).filter(|i| *i < self.input)
    }

    /// Most taps with which windows can see one input: those that differ by multiples of the stride.
    pub(crate) fn taps(&self) -> usize {
        self.kernel.div_ceil(self.stride)
    }

    /// `stride * o + k - before`.
    pub(crate) fn position_index(&self, o: &IndexExpr, k: &IndexExpr) -> IndexExpr {
        o.times(self.stride as i64).plus(k).plus_constant(-(self.before as i64))
    }

    /// The `j`-th window that sees input `i` and the tap with which it does, without trial: with
    /// `i + before = stride * q + r` they are window `q - j` and tap `stride * j + r`.
    pub(crate) fn window_index(&self, i: &IndexExpr, j: &IndexExpr, domain: Domain<'_>) -> [IndexExpr; 2] {
        let (padded, stride) = (i.plus_constant(self.before as i64), self.stride as i64);
        let window = padded.div(stride, domain).plus(&j.times(-1));
        [window, padded.rem(stride, domain).plus(&j.times(stride))]
    }
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
