//! Attention over the grid: its reference against the formula, its gradients against finite differences in f64.

use crate::attention_grid::{Cell, LENGTHS, Mode, RATIOS, WIDTHS, grid};
use crate::support::{Feeds, value};
use griffinfly_ir::array::Array;
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::eval::{Evaluation, eval};
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::SampleInput;
use std::collections::BTreeSet;

/// A loss with an operation before attention and a factor behind it.
struct Problem {
    cell: Cell,
    g: Graph,
    /// What attention is given.
    operands: Vec<Value>,
    results: [Value; 2],
    loss: Value,
    feeds: Feeds,
}

impl Problem {
    fn new(cell: Cell) -> Self {
        let mut g = Graph::new();
        let leaves = cell.operands();
        let leaves: Vec<Value> = leaves.iter().map(|(name, dims)| g.input(name, dims.clone())).collect();
        let operands: Vec<Value> = leaves
            .iter()
            .map(|x| {
                let bent = g.tanh(*x);
                g.scale(bent, 2.0)
            })
            .collect();
        let results = cell.attend(&mut g, &operands);
        let sum = cell.loss(&mut g, results);
        let loss = g.scale(sum, -2.5);
        g.finish().unwrap_or_else(|e| panic!("{cell:?}: {e}"));
        let filled = |(i, (_, leaf)): (usize, (_, &griffinfly_ir::graph::Leaf))| {
            let sample = SampleInput::uniform(&leaf.ty.dims, -1.5, 1.5);
            (leaf.name.clone(), Array { data: sample.values(i as u64 + 1), ty: sample.ty })
        };
        let feeds = g.leaves().filter(|(_, l)| !l.name.is_empty()).enumerate().map(filled).collect();
        Problem { cell, g, operands, results, loss, feeds }
    }

    /// Evaluates everything once, and checks.
    fn check(&self) {
        let mut g = self.g.clone();
        let wanted: Vec<Value> = self.cell.operands().iter().map(|(name, _)| g.leaf(name).unwrap()).collect();
        let found = gradients(&mut g, self.loss, &wanted).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(g.verify(), vec![], "{:?}", self.cell);
        let all = eval(&g, &self.feeds).unwrap();
        self.check_forward(&all);
        for (seed, ((name, _), d)) in self.cell.operands().iter().zip(found).enumerate() {
            self.check_gradient(name, all.get(d), (all.get(self.loss).data[0], seed as u64 + 77));
        }
    }

    /// The change along a random direction of one leaf, by central differences and by the gradient.
    fn check_gradient(&self, name: &str, gradient: &Array<f64>, (loss, seed): (f64, u64)) {
        assert_eq!(gradient.ty, self.feeds[name].ty);
        let signs = SampleInput::f32(gradient.dims()).values(seed);
        let direction: Vec<f64> = signs.into_iter().map(f64::signum).collect();
        let moved = |h: f64| {
            let mut feeds = self.feeds.clone();
            let leaf = &mut feeds.get_mut(name).unwrap().data;
            leaf.iter_mut().zip(&direction).for_each(|(x, d)| *x += h * d);
            value(&self.g, &feeds, self.loss)[0]
        };
        let numeric = (moved(1e-4) - moved(-1e-4)) / 2e-4;
        let exact: f64 = gradient.data.iter().zip(&direction).map(|(x, d)| x * d).sum();
        // The size that a change along a random direction has.
        let norm = gradient.data.iter().map(|x| x * x).sum::<f64>().sqrt();
        // With one key, and log-sum-exps left out, only values matter.
        let counts = self.cell.keys > 1 || self.cell.every_query_sees_a_key();
        assert!(!counts || norm > 1e-3, "{:?}: the gradient of {name} is {norm}", self.cell);
        let close = (numeric - exact).abs() <= 1e-6 * norm + 1e-9 * (1.0 + loss.abs());
        assert!(close, "{:?} {name}: gradient {exact} ({norm}), differences {numeric}", self.cell);
    }

    /// A few rows of the reference against the formula.
    fn check_forward(&self, all: &Evaluation<f64>) {
        let c = self.cell;
        let x: Vec<&Array<f64>> = self.operands.iter().map(|v| all.get(*v)).collect();
        let [y, lse] = self.results.map(|v| all.get(v));
        for n in 0..3 {
            let (b, h, i) = (n % c.batch, (n * 5 + 1) % c.heads(), (n * 601 + c.queries - 1) % c.queries);
            let position = i as i64 + c.keys as i64 - c.queries as i64;
            let seen = |j: &usize| match (c.mode, *j as i64 - position) {
                (Mode::Full | Mode::Bias, _) => true,
                (Mode::Causal | Mode::CausalBias, ahead) => ahead <= 0,
                (Mode::Sliding, ahead) => (-6..=0).contains(&ahead),
                (Mode::Local, ahead) => (-3..=3).contains(&ahead),
            };
            let score = |j: usize| {
                let at = |d| x[0].at(&[b, i, h, d]) * x[1].at(&[b, j, h / c.ratio, d]);
                let bias = x.get(3).map_or(0.0, |bias| bias.at_broadcast(&[b, h, i, j]));
                (0..c.width).map(at).sum::<f64>() / f64::from((c.width as f32).sqrt()) + bias
            };
            let weights: Vec<(usize, f64)> = (0..c.keys).filter(seen).map(|j| (j, score(j).exp())).collect();
            let total: f64 = weights.iter().map(|(_, e)| e).sum();
            let close = |x: f64, y: f64| x == y || (x - y).abs() < 1e-6;
            assert!(close(lse.at(&[b, h, i]), total.ln()), "{c:?} lse of {:?}", [b, h, i]);
            for d in [0, c.width / 2, c.width - 1] {
                let sum: f64 = weights.iter().map(|(j, e)| e * x[2].at(&[b, *j, h / c.ratio, d])).sum();
                let expected = if weights.is_empty() { 0.0 } else { sum / total };
                assert!(close(y.at(&[b, i, h, d]), expected), "{c:?} {:?}", [b, h, i, d]);
            }
        }
    }
}

#[test]
fn attention_and_its_gradients_are_right_over_the_grid() {
    let cells = &grid();
    std::thread::scope(|scope| {
        for half in 0..2 {
            let half = cells.iter().skip(half).step_by(2);
            scope.spawn(|| half.for_each(|cell| Problem::new(*cell).check()));
        }
    });
}

/// Values, and which of them a cell has.
type List = (&'static [usize], fn(&Cell) -> usize);

#[test]
fn attention_grid_covers_every_pair() {
    let cells = grid();
    let lists: [List; 4] =
        [(&WIDTHS, |c| c.width), (&LENGTHS, |c| c.queries), (&LENGTHS, |c| c.keys), (&RATIOS, |c| c.ratio)];
    for (n, (first, of_first)) in lists.iter().enumerate() {
        for (second, of_second) in &lists[n + 1..] {
            let pairs: BTreeSet<_> = cells.iter().map(|c| (of_first(c), of_second(c))).collect();
            assert_eq!(pairs.len(), first.len() * second.len(), "{pairs:?}");
        }
        // A bias counts as one mode, over whichever keys.
        let modes: BTreeSet<_> = cells.iter().map(|c| (of_first(c), c.mode.min(Mode::Bias))).collect();
        assert_eq!(modes.len(), first.len() * 5, "{modes:?}");
    }
    let has = |what: fn(&Cell) -> bool| cells.iter().filter(|c| what(c)).count();
    assert!(has(|c| c.mode == Mode::Bias) > 2 && has(|c| c.mode == Mode::CausalBias) > 2);
    assert!(has(|c| c.batch > 1) > 9 && has(|c| c.kv_heads > 1) > 9);
    assert!(has(|c| c.queries == 1500 && c.keys == 1500) == 1);
}
