//! A grid of attention problems for the gradient checks here and for the devices: head widths, numbers of queries, numbers of
//! keys, and query heads per key head.
//!
//! Width `w`, queries `s` and keys `t` (as numbers in their lists) form a Latin square, `w + s + t = 4 (mod 6)`, and the
//! ratio is `w + 2 s + 2 (mod 3)`: every pair of values from different lists occurs among its 36 cells. The sum is chosen
//! so that the longest products belong to the narrowest heads. By a table each mode meets every value of every list. What the
//! square leaves out, self-attention at the other widths, follows it.

use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::loops::AttentionMask;
use griffinfly_ir::ops::AttentionOptions;

pub(crate) const WIDTHS: [usize; 6] = [32, 64, 72, 80, 128, 256];
pub(crate) const LENGTHS: [usize; 6] = [1, 2, 17, 50, 128, 1500];
pub(crate) const RATIOS: [usize; 3] = [1, 3, 8];

/// Which keys a query sees, and whether scores are biased. With more or fewer keys than queries each is cross attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Full,
    Causal,
    /// The last 7 keys.
    Sliding,
    /// Up to 3 keys to either side.
    Local,
    /// A bias, over all keys.
    Bias,
    /// A bias, over the keys so far.
    CausalBias,
}

use Mode::{Bias, Causal, CausalBias, Full, Local, Sliding};

/// Modes by width and number of queries.
const MODES: [[Mode; 6]; 6] = [
    [Sliding, Full, Local, Local, Bias, Causal],
    [Bias, Full, Causal, Full, Local, Sliding],
    [Causal, Bias, Sliding, Bias, Full, Local],
    [Bias, Causal, Full, Causal, Local, Sliding],
    [Local, Sliding, Bias, Sliding, Causal, Full],
    [Full, Local, Causal, Bias, Sliding, Bias],
];

/// One problem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) batch: usize,
    pub(crate) kv_heads: usize,
    pub(crate) ratio: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    pub(crate) width: usize,
    pub(crate) mode: Mode,
    /// Which axes the bias has.
    form: usize,
}

/// The 36 cells of the square and the squares of lengths at the widths it gives none.
pub(crate) fn grid() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (w, width) in WIDTHS.into_iter().enumerate() {
        for (s, queries) in LENGTHS.into_iter().enumerate() {
            let (keys, ratio) = (LENGTHS[(16 - w - s) % 6], RATIOS[(w + 2 * s + 2) % 3]);
            let mode = if MODES[w][s] == Bias && w % 2 == 1 { CausalBias } else { MODES[w][s] };
            cells.push(Cell::new([queries, keys, width], ratio, mode, s));
        }
    }
    cells.extend([
        Cell::new([50, 50, 64], 8, Causal, 0),
        Cell::new([128, 128, 80], 3, Causal, 1),
        Cell::new([17, 17, 256], 8, CausalBias, 2),
        Cell::new([128, 128, 256], 1, Full, 3),
    ]);
    cells
}

impl Cell {
    /// Small problems come with several sequences and several key heads.
    fn new([queries, keys, width]: [usize; 3], ratio: usize, mode: Mode, form: usize) -> Self {
        let small = queries * keys * width * ratio < 1 << 20;
        let [batch, kv_heads] = if small { [1 + (form + 1) % 2, 1 + form.div_ceil(2) % 2] } else { [1, 1] };
        Cell { batch, kv_heads, ratio, queries, keys, width, mode, form }
    }

    pub(crate) fn heads(&self) -> usize {
        self.ratio * self.kv_heads
    }

    /// Dimensions of queries, keys, values and, where there is one, the bias, by name.
    pub(crate) fn operands(&self) -> Vec<(&'static str, Vec<usize>)> {
        let (b, s, t) = (self.batch, self.queries, self.keys);
        let kv = vec![b, t, self.kv_heads, self.width];
        let mut all = vec![("q", vec![b, s, self.heads(), self.width]), ("k", kv.clone()), ("v", kv)];
        if matches!(self.mode, Bias | CausalBias) {
            let forms = [vec![s, t], vec![self.heads(), 1, t], vec![b, 1, s, t], vec![b, self.heads(), s, t]];
            all.push(("bias", forms[self.form % 4].clone()));
        }
        all
    }

    pub(crate) fn mask(&self) -> AttentionMask {
        match self.mode {
            Full | Bias => AttentionMask::FULL,
            Causal | CausalBias => AttentionMask::CAUSAL,
            Sliding => AttentionMask::sliding_window(7),
            Local => AttentionMask { causal: false, window: Some(4) },
        }
    }

    /// Whether every log-sum-exp is finite.
    pub(crate) fn every_query_sees_a_key(&self) -> bool {
        (0..self.queries).all(|i| !self.mask().keys(i, [self.queries, self.keys]).is_empty())
    }

    /// Attention over values with the dimensions of the operands, and its log-sum-exps.
    pub(crate) fn attend(&self, g: &mut Graph, v: &[Value]) -> [Value; 2] {
        let options = AttentionOptions { mask: self.mask(), scale: None, bias: v.get(3).copied() };
        g.attention_with_lse([v[0], v[1], v[2]], &options).into()
    }

    /// The sum of results and log-sum-exps (where all are finite), weighed by inputs "c" and "e".
    pub(crate) fn loss(&self, g: &mut Graph, [y, lse]: [Value; 2]) -> Value {
        let mut weighed = |name: &str, v: Value| {
            let dims = g.dims(v).to_vec();
            let axes: Vec<isize> = (0..dims.len() as isize).collect();
            let c = g.input(name, dims);
            let product = g.mul(c, v);
            g.sum(product, &axes)
        };
        let of_results = weighed("c", y);
        if !self.every_query_sees_a_key() {
            return of_results;
        }
        let of_rows = weighed("e", lse);
        g.add(of_results, of_rows)
    }
}
