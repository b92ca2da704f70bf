//! A grid of convolutions, and what they mean by a walk over every product: an oracle that shares nothing with the library.
//!
//! Attributes: plain or transposed, over lines or images, and along each axis kernel, stride, dilation, padding before and
//! after, what the input has beyond the least extent, output padding (transposed); channels and groups. The grid covers every
//! pair of values of different attributes. It is drawn: of several random cells
//! that with the most new pairs is taken, of each kind in turn.

use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::Window2d;
use std::collections::BTreeSet;

/// How many values each attribute has.
const CHOICES: [usize; 15] = [2, 2, 5, 4, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 6];
/// Extents of kernels by axis.
const KERNELS: [[usize; 5]; 2] = [[1, 2, 3, 4, 5], [1, 2, 3, 7, 7]];
/// Groups with the channels on either side: dense, grouped, depthwise, depthwise with several results per channel.
const CHANNELS: [[usize; 3]; 6] = [[1, 1, 1], [1, 3, 5], [2, 4, 6], [3, 6, 3], [5, 5, 5], [3, 3, 6]];

/// One convolution: input `[2, C, H, W]` and weight.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) transposed: bool,
    /// Along one axis: height, kernel height, and all else of the height are those of one row.
    pub(crate) line: bool,
    pub(crate) window: Window2d,
    pub(crate) groups: usize,
    /// Images, channels and extents of the side that has an element per tap and that which has one per window.
    large: [usize; 4],
    small: [usize; 4],
    kernel: [usize; 2],
    rest: [usize; 2],
}

/// Numbers for draws: SplitMix64 (Steele, Lea, Flood 2014).
fn draw(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) % below as u64) as usize
}

/// One value of each attribute, the first two by the kind's number; those of the height are fixed for lines, and output padding is that of strides beyond 1.
fn picked(state: &mut u64, kind: usize) -> [usize; 15] {
    let mut picks = CHOICES.map(|n| draw(state, n));
    [picks[0], picks[1]] = [kind % 2, kind / 2 % 2];
    if picks[1] == 0 {
        [2, 4, 6, 8, 10, 12].into_iter().for_each(|i| picks[i] = 0);
    }
    picks
}

type Pairs = BTreeSet<[usize; 4]>;

fn pairs(picks: &[usize; 15]) -> impl Iterator<Item = [usize; 4]> {
    (0..15).flat_map(move |i| (i + 1..15).map(move |j| [i, j, picks[i], picks[j]]))
}

/// The cells. What pairs occur at all is found by drawing many.
pub(crate) fn grid() -> Vec<Cell> {
    let (mut state, mut left) = (7, Pairs::new());
    (0..6000).for_each(|n| left.extend(pairs(&picked(&mut state, n))));
    let mut cells = Vec::new();
    while !left.is_empty() {
        let candidates = (0..60).map(|_| picked(&mut state, cells.len()));
        let new = |picks: &[usize; 15]| pairs(picks).filter(|pair| left.contains(pair)).count();
        if let Some(best) = candidates.max_by_key(new) {
            pairs(&best).for_each(|pair| {
                left.remove(&pair);
            });
            cells.push(Cell::new(best));
        }
    }
    cells
}

impl Cell {
    fn new(picks: [usize; 15]) -> Self {
        let along = |axis: usize| {
            let of = |attribute: usize| picks[2 + 2 * attribute + axis];
            let (kernel, stride, dilation) = (KERNELS[axis][of(0)], of(1) + 1, of(2) + 1);
            (kernel, stride, dilation, [of(3), of(4)], [0, 1, 2, 5][of(5)])
        };
        let (transposed, line, axes) = (picks[0] == 1, picks[1] == 0, [along(0), along(1)]);
        let window = Window2d {
            stride: axes.map(|a| a.1),
            padding: axes.map(|a| a.3),
            dilation: axes.map(|a| a.2),
            ceil: false,
        };
        let [groups, mut c, mut o] = CHANNELS[picks[14]];
        if transposed {
            (c, o) = (o, c);
        }
        let [mut large, mut small, mut rest] = [[0; 2]; 3];
        for (axis, (kernel, stride, dilation, padding, more)) in axes.into_iter().enumerate() {
            let (reach, padded) = (dilation * (kernel - 1) + 1, padding[0] + padding[1]);
            let least = reach.saturating_sub(padded).max(1);
            large[axis] = if line && axis == 0 { 1 } else { least + more };
            small[axis] = (large[axis] + padded - reach) / stride + 1;
            // What no window reaches at the end: output padding of the transposed convolution.
            rest[axis] = (large[axis] + padded - reach) % stride;
        }
        let image = |channels, size: [usize; 2]| [2, channels, size[0], size[1]];
        let (large, small) = (image(c, large), image(o, small));
        Cell { transposed, line, window, groups, large, small, kernel: axes.map(|a| a.0), rest }
    }

    /// Dimensions of input, weight and result.
    pub(crate) fn dims(&self) -> [Vec<usize>; 3] {
        let weight = [self.small[1], self.large[1] / self.groups, self.kernel[0], self.kernel[1]];
        let (x, y) = if self.transposed { (self.small, self.large) } else { (self.large, self.small) };
        [x, weight, y].map(|dims| {
            let mut dims = dims.to_vec();
            if self.line {
                dims.remove(2);
            }
            dims
        })
    }

    /// The convolution of an input and a weight.
    pub(crate) fn build(&self, g: &mut Graph, [x, w]: [Value; 2]) -> Value {
        match (self.transposed, self.line) {
            (false, false) => g.conv2d_grouped(x, w, self.window, self.groups),
            (false, true) => g.conv1d(x, w, self.window, self.groups),
            (true, false) => g.conv_transpose2d([x, w], self.window, self.rest, self.groups),
            (true, true) => g.conv_transpose1d([x, w], self.window, self.rest[1], self.groups),
        }
    }

    /// Result, gradient of the input and gradient of the weight, for an input, a weight and a gradient of the result.
    pub(crate) fn by_hand(&self, x: &[f64], w: &[f64], dy: &[f64]) -> [Vec<f64>; 3] {
        let [mut y, mut dx, mut dw] = [dy.len(), x.len(), w.len()].map(|n| vec![0.0; n]);
        self.each_product(|large, small, weight| {
            let (x_at, y_at) = if self.transposed { (small, large) } else { (large, small) };
            y[y_at] += x[x_at] * w[weight];
            dx[x_at] += dy[y_at] * w[weight];
            dw[weight] += dy[y_at] * x[x_at];
        });
        [y, dx, dw]
    }

    /// Calls `f` with the places, in the large side, the small side and the weight, of all that are multiplied.
    fn each_product(&self, mut f: impl FnMut(usize, usize, usize)) {
        let ([images, c, h, w], [_, o, rows, columns], [kh, kw]) = (self.large, self.small, self.kernel);
        let (per_group, outputs, win) = (c / self.groups, o / self.groups, self.window);
        let place = |axis: usize, at: usize, tap: usize| {
            (at * win.stride[axis] + tap * win.dilation[axis]).checked_sub(win.padding[axis][0])
        };
        for n in 0..images * o * per_group {
            let (image, small_channel, part) = (n / per_group / o, n / per_group % o, n % per_group);
            let channel = small_channel / outputs * per_group + part;
            for at in 0..rows * columns * kh * kw {
                let (i, j) = (at / (kh * kw) / columns, at / (kh * kw) % columns);
                let (tap_i, tap_j) = (at / kw % kh, at % kw);
                let (Some(y), Some(x)) = (place(0, i, tap_i), place(1, j, tap_j)) else { continue };
                if y < h && x < w {
                    let large = ((image * c + channel) * h + y) * w + x;
                    let small = ((image * o + small_channel) * rows + i) * columns + j;
                    f(large, small, ((small_channel * per_group + part) * kh + tap_i) * kw + tap_j);
                }
            }
        }
    }
}
