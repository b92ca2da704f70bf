//! Random graphs: optimised, unoptimised and the oracle agree, and the plan is close to its lower bound.
//!
//! A graph grows from genes, one operation each, over a pool of values; a gene whose operation does not fit is skipped. Values
//! stay near 1, so that errors are those of `f32` and not of the graph. The same graphs are made in every run.

use crate::programs::{check, feeds, network};
use griffinfly_compile::{Options, compile};
use griffinfly_ir::graph::{Graph, Init, Value};
use griffinfly_ir::ops::Window2d;
use griffinfly_ir::optimizer::{Optimizer, attach};
use griffinfly_ir::target::Target;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Largest value of a random graph.
const MOST_ELEMENTS: usize = 600;

/// What one gene does: operation, two operands, a detail.
type Gene = [u8; 4];

fn pointwise(g: &mut Graph, [a, b]: [Value; 2], which: u8) -> Value {
    match which {
        0 => {
            let sum = g.add(a, b);
            g.scale(sum, 0.5)
        }
        1 => {
            let difference = g.sub(a, b);
            g.scale(difference, 0.5)
        }
        2 => g.mul(a, b),
        3 => g.maximum(a, b),
        4 => {
            let less = g.lt(a, b);
            let more = g.not(less);
            g.select(more, b, a)
        }
        5 => g.tanh(a),
        6 => g.sigmoid(a),
        7 => g.relu(a),
        8 => g.silu(a),
        9 => g.gelu_tanh(a),
        10 => {
            let size = g.abs(a);
            let n = g.neg(size);
            g.exp(n)
        }
        11 => {
            let four = g.scalar(4.0);
            g.div(a, four)
        }
        12 => {
            let one = g.splat(1.0, [1]);
            g.mul(one, a)
        }
        _ => g.stop_gradient(a),
    }
}

fn view(g: &mut Graph, [a, b]: [Value; 2], which: u8, axis: usize) -> Value {
    match which {
        0 => g.transpose(a),
        1 => {
            let order: Vec<usize> = (0..g.dims(a).len()).rev().collect();
            g.permute(a, &order)
        }
        2 => g.flatten(a, axis),
        3 => g.slice(a, axis, 1, None),
        4 => g.slice_step(a, axis, [0, isize::MAX], 2),
        5 => g.pad(a, axis, [1, 2], 0.25),
        6 => g.concat(&[a, b], axis),
        7 => g.insert_axes(a, &[axis]),
        _ => g.split_axis(a, axis, &[2, 0]),
    }
}

fn row(g: &mut Graph, a: Value, which: u8, axis: isize) -> Value {
    match which {
        0 => g.mean(a, &[axis]),
        1 => g.mean_keep(a, &[axis]),
        2 => g.max(a, &[axis]),
        3 => g.softmax(a, axis),
        4 => {
            let y = g.log_softmax(a, axis);
            g.scale(y, 0.25)
        }
        _ => {
            let m = g.max(a, &[axis]);
            let m = g.insert_axes(m, &[axis as usize]);
            let d = g.sub(a, m);
            let e = g.exp(d);
            let sum = g.sum_keep(e, &[axis]);
            g.div(e, sum)
        }
    }
}

fn layer(g: &mut Graph, [a, b]: [Value; 2], which: u8, detail: u8) -> Value {
    let name = |what: &str, n: usize| format!("{what}{n}");
    let (n, last) = (g.nodes().len(), g.dims(a).last().copied().unwrap_or(1));
    let width = 2 + detail as usize % 4;
    let y = match which {
        0 => g.matmul(a, b),
        1 => g.matmul_with(a, b, [false, true]),
        2 => {
            let w = g.parameter(&name("w", n), [width, last], Init::ZEROS);
            let bias = g.parameter(&name("b", n), [width], Init::ZEROS);
            let y = g.matmul_with(a, w, [false, true]);
            g.add(y, bias)
        }
        3 => {
            let gamma = g.parameter(&name("gamma", n), [last], Init::ONES);
            let beta = g.parameter(&name("beta", n), [last], Init::ZEROS);
            g.layer_norm(a, gamma, beta, 0.1)
        }
        4 => {
            let gamma = g.parameter(&name("gamma", n), [last], Init::ONES);
            g.rms_norm(a, gamma, 0.1)
        }
        5 => {
            let channels = g.dims(a).get(1).copied().unwrap_or(1);
            let w = g.parameter(&name("w", n), [width, channels, 3, 2], Init::ZEROS);
            g.conv2d(a, w, Window2d::strided(1 + detail as usize % 2).padded(1))
        }
        _ => g.max_pool2d(a, [2, 2], Window2d::strided(2)),
    };
    g.scale(y, 0.5)
}

/// Adds the value of a gene, if its operation fits.
fn grow(g: &mut Graph, pool: &mut Vec<Value>, gene: Gene) {
    let pick = |i: u8| pool[pool.len() - 1 - i as usize % pool.len()];
    // The first operand is a recent value, so that graphs are deep and not only wide.
    let mut operands = [pick(gene[1] % 4), pick(gene[2])];
    if gene[0] % 36 >= 34 {
        operands[0] = *pool.iter().rfind(|v| g.dims(**v).len() == 4).unwrap_or(&pool[0]);
    }
    let axis = gene[3] as usize % g.dims(operands[0]).len().max(1);
    let mut next = g.clone();
    let made = match gene[0] % 36 {
        which @ 0..14 => pointwise(&mut next, operands, which),
        which @ 14..23 => view(&mut next, operands, which - 14, axis),
        which @ 23..29 => row(&mut next, operands[0], which - 23, axis as isize),
        which => layer(&mut next, operands, which - 29, gene[3]),
    };
    let small = next.ty(made).is_some_and(|t| t.elements() <= MOST_ELEMENTS);
    if next.finish().is_ok() && small {
        *g = next;
        pool.push(made);
    }
}

/// The graph of these genes, with a training step if asked for.
fn graph(genes: &[Gene], train: bool) -> Graph {
    let mut g = Graph::new();
    let mut pool = vec![
        g.input("image", [2, 3, 5, 4]),
        g.parameter("bias", [3, 1, 1], Init::ZEROS),
        g.input("x", [6, 4]),
        g.parameter("p", [6, 4], Init::ZEROS),
    ];
    genes.iter().for_each(|gene| grow(&mut g, &mut pool, *gene));
    let state = g.state("running", [], 0.25);
    let last = pool[pool.len() - 1];
    let mut loss = g.scalar(0.0);
    for &v in pool.iter().rev().take(3) {
        let square = g.mul(v, v);
        let mean = g.mean_all(square);
        loss = g.add(loss, mean);
    }
    g.output("last", last);
    g.output("middle", pool[pool.len() / 2]);
    g.output("loss", loss);
    let next = g.add(state, loss);
    g.update(state, next);
    if train {
        attach(&mut g, &Optimizer::momentum(0.1, 0.9), loss).expect("differentiable");
    }
    g
}

/// The plan of the optimised program is within 5 % of the bytes alive at its fullest level.
fn assert_close_to_the_bound(g: &Graph) {
    let memory = compile(g, &Target::host(), &Options::default()).expect("compiles").memory;
    let (bytes, bound) = (memory.scratch_bytes as f64, memory.scratch_lower_bound as f64);
    assert!(bytes <= 1.05 * bound, "{bytes} bytes of scratch, lower bound {bound}");
}

#[test]
fn optimised_unoptimised_and_oracle_agree() {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let config = Config { cases: 120, failure_persistence: None, max_shrink_iters: 60, ..Config::default() };
    let genes = prop::collection::vec(any::<Gene>(), 4..24);
    let agree = |(genes, train): (Vec<Gene>, bool)| {
        let g = graph(&genes, train);
        check(&g, &feeds(&g), "random graph");
        assert_close_to_the_bound(&g);
        Ok(())
    };
    TestRunner::new_with_rng(config, rng).run(&(genes, any::<bool>()), agree).expect("every graph agrees");
}

#[test]
fn the_scratch_of_a_training_step_is_close_to_the_bound() {
    assert_close_to_the_bound(&network());
}

/// Found by a random graph: the guarded load of a truth value had a float as its fill.
#[test]
fn a_padded_choice_loads_its_condition_guarded() {
    let mut g = Graph::new();
    let (x, y) = (g.input("x", [3, 4]), g.input("y", [3, 4]));
    let c = g.lt(x, y);
    g.output("c", c);
    let chosen = g.select(c, y, x);
    let padded = g.pad(chosen, 1, [1, 2], 0.25);
    g.output("padded", padded);
    check(&g, &feeds(&g), "padded choice");
}
