//! More faults that released systems had, each as a test of the whole kind: coefficients above losses, derived weights, cost of
//! gradients, order of axes. The list of all is in [`crate::pitfalls`].

use crate::support::{agree, assert_close, check_gradients, feeds, gradients_of, value, weighted};
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::loops::LoopKind;
use griffinfly_ir::ops::{AttentionOptions, Lowering, Reduction, RotaryStyle, Window2d};

fn ramp(n: usize) -> Vec<f64> {
    (0..n).map(|i| f64::from(((i * 7919 % 101) as f32 - 50.0) / 40.0)).collect()
}

/// A loss or reduction of `x` and `t`, both `[batch, 4]`, and ids `[batch]`.
type Reduces = fn(&mut Graph, Value, Value, Value) -> Value;

const REDUCES: [Reduces; 19] = [
    |g, x, _, _| g.sum(x, &[1]),
    |g, x, _, _| g.mean(x, &[0]),
    |g, x, _, _| g.mean_keep(x, &[0, 1]),
    |g, x, _, _| g.max(x, &[1]),
    |g, x, _, _| g.min(x, &[0]),
    |g, x, _, _| g.cumsum(x, 1),
    |g, x, _, _| g.topk(x, 2, 1).0,
    |g, x, _, _| g.softmax(x, 1),
    |g, x, _, _| g.log_softmax(x, 0),
    |g, x, t, _| g.mse(x, t),
    |g, x, t, _| g.l1_loss(x, t, Reduction::Sum),
    |g, x, t, _| g.huber_loss(x, t, 0.3, Reduction::None),
    |g, x, t, _| g.smooth_l1_loss(x, t, 0.3, Reduction::Mean),
    |g, x, t, _| g.kl_div(x, t, Reduction::Mean),
    |g, x, t, _| g.binary_cross_entropy_with_logits(x, t, None, Reduction::Mean),
    |g, x, t, _| g.cross_entropy_soft(x, t, Reduction::Mean),
    |g, x, _, ids| g.cross_entropy(x, ids),
    |g, x, _, ids| g.cross_entropy_rows(x, ids, Some(1)),
    |g, x, _, ids| g.cross_entropy_smoothed(x, ids, 2, 0.2).0,
];

/// Losses and reductions that take themselves for the last operation ignore what is behind them.
#[test]
fn losses_and_reductions_of_every_kind_honour_the_gradient_from_above() {
    for (i, reduce) in REDUCES.iter().enumerate() {
        for batch in [1, 2, 5] {
            let mut g = Graph::new();
            let [x, t] = ["x", "t"].map(|name| g.input(name, [batch, 4]));
            let ids = g.input_ids("ids", [batch]);
            let shrunk = g.scale(x, 0.75);
            let y = reduce(&mut g, shrunk, t, ids);
            let curved = g.sin(y);
            let loss = weighted(&mut g, curved);
            // Distinct values, targets between 0 and 1, one row that is ignored where a loss ignores.
            let n = batch * 4;
            let xs: Vec<f64> = (0..n).map(|i| (i * 7 % 23) as f64 * 0.13 - 1.2).collect();
            let ts: Vec<f64> = (0..n).map(|i| (i * 5 % 19) as f64 / 19.0 + 0.01).collect();
            let labels: Vec<f64> = (0..batch).map(|i| [3.0, 1.0, 0.0, 2.0][i % 4]).collect();
            let f = feeds(&g, &[("x", &xs), ("t", &ts), ("ids", &labels)]);
            let d = gradients_of(&g, loss, &["x"], &f).remove(0);
            // The logarithm of a probability along a single row is 0 whatever it is of.
            assert!(batch == 1 || d.iter().any(|d| d.abs() > 1e-4), "{i}: {d:?}");
            check_gradients(&g, loss, &["x", "t"], &f, 8);
        }
    }
}

/// The forward pass of one form of an activation with the derivative of another.
#[test]
fn every_activation_has_the_derivative_of_its_own_formula() {
    let activations: [fn(&mut Graph, Value) -> Value; 17] = [
        Graph::relu,
        Graph::relu6,
        |g, x| g.leaky_relu(x, 0.2),
        |g, x| g.elu(x, 1.5),
        |g, x| g.hardtanh(x, -1.0, 2.0),
        |g, x| g.clamp(x, Some(-1.5), Some(2.5)),
        Graph::gelu,
        Graph::gelu_tanh,
        Graph::silu,
        Graph::softplus,
        Graph::sigmoid,
        Graph::tanh,
        Graph::erf,
        |g, x| {
            let gate = g.scale(x, 0.7);
            g.swiglu(gate, x)
        },
        |g, x| {
            let gate = g.scale(x, 0.7);
            g.geglu(gate, x)
        },
        |g, x| {
            let gate = g.scale(x, 0.7);
            g.geglu_tanh(gate, x)
        },
        |g, x| {
            let curved = g.sin(x);
            g.abs(curved)
        },
    ];
    // None of the points is at a kink.
    let points: Vec<f64> = (0..40).map(|i| f64::from(i) * 0.4 - 8.1).collect();
    for activate in activations {
        let mut g = Graph::new();
        let x = g.input("x", [points.len()]);
        let y = activate(&mut g, x);
        let loss = weighted(&mut g, y);
        check_gradients(&g, loss, &["x"], &feeds(&g, &[("x", &points)]), points.len());
    }
}

/// Points that all loops of a graph visit.
fn work(g: &Graph) -> usize {
    let count = |extents: &[usize]| extents.iter().product::<usize>();
    let of = |kind: &LoopKind| match kind {
        LoopKind::Map(m) => count(&m.domain),
        LoopKind::Row(r) => count(&r.rows) * count(&r.cols) * (r.phases.len() + 1),
        LoopKind::Contract(c) => count(&c.batch) * count(&c.m) * count(&c.n) * count(&c.k),
        other => panic!("no loop of a norm: {other:?}"),
    };
    let g = g.expanded();
    let loops = g.ids().filter_map(|id| match g.lowering(id) {
        Lowering::Loop(l) => Some(of(&l.kind)),
        _ => None,
    });
    loops.sum()
}

/// A norm of rows, with weight and shift.
type Norm = fn(&mut Graph, Value, [Value; 2]) -> Value;

/// The gradient of a norm's weight once took rows times the square of the columns.
#[test]
fn gradients_of_norms_cost_as_much_as_their_elements() {
    let norms: [Norm; 4] = [
        |g, x, [gamma, beta]| g.layer_norm(x, gamma, beta, 1e-5),
        |g, x, [gamma, _]| g.rms_norm(x, gamma, 1e-5),
        |g, x, w| g.group_norm(x, 4, w, 1e-5),
        |g, x, w| g.batch_norm(x, w, 1e-5)[0],
    ];
    for norm in norms {
        let cost = |rows: usize, columns: usize| {
            let mut g = Graph::new();
            let x = g.input("x", [rows, columns]);
            let w = ["gamma", "beta"].map(|name| g.input(name, [columns]));
            let y = norm(&mut g, x, w);
            let loss = weighted(&mut g, y);
            let d = gradients(&mut g, loss, &[x, w[0], w[1]]).unwrap();
            d.iter().enumerate().for_each(|(i, d)| g.output(&i.to_string(), *d));
            g.finish().unwrap();
            work(&g)
        };
        let few = cost(32, 32);
        assert!(few >= 32 * 32, "{few}");
        for [rows, columns] in [[32, 128], [128, 32]] {
            let many = cost(rows, columns);
            assert!(many <= 5 * few, "{rows} x {columns}: {many}, 32 x 32: {few}");
        }
    }
}

/// Weights that are computed from parameters, of which gradients lost the way back.
#[test]
fn gradients_reach_parameters_behind_derived_weights() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 3, 4]);
    let parts = ["a", "b"].map(|name| g.input(name, [3, 2]));
    let joined = g.concat(&parts, 1);
    let turned = g.transpose(joined);
    let size = g.input("size", [4, 1]);
    let scaled = g.mul(turned, size);
    let w = g.softmax(scaled, 0);
    let w = g.pad(w, 1, [0, 1], 0.5);
    let w = g.slice(w, 1, 1, Some(4));
    let y = g.matmul(x, w);
    let [kernel, bias] =
        [("kernel", vec![3, 3, 1]), ("bias", vec![3])].map(|(name, dims)| g.input(name, dims));
    let weights = ["gamma", "beta"].map(|name| g.input(name, [3]));
    let running = [g.splat(0.25, [3]), g.splat(2.0, [3])];
    let [kernel, bias] = g.fold_batch_norm([kernel, bias], weights, running, 1e-3);
    let z = g.conv1d(y, kernel, Window2d::strided(1), 1);
    let bias = g.insert_axes(bias, &[1]);
    let z = g.add(z, bias);
    let loss = weighted(&mut g, z);
    g.finish().unwrap();
    let names = ["x", "a", "b", "size", "kernel", "bias", "gamma", "beta"];
    let data: Vec<Vec<f64>> = names
        .map(|name| ramp(g.dims(g.leaf(name).unwrap()).iter().product::<usize>() + 3)[3..].to_vec())
        .into();
    let fed: Vec<(&str, &[f64])> = names.iter().copied().zip(data.iter().map(Vec::as_slice)).collect();
    let f = feeds(&g, &fed);
    for (name, d) in names.iter().zip(gradients_of(&g, loss, &names, &f)) {
        assert!(d.iter().any(|d| d.abs() > 1e-3), "{name}: {d:?}");
    }
    check_gradients(&g, loss, &names, &f, 9);
}

/// Every result of an operation takes a gradient, not the first alone.
#[test]
fn gradients_enter_at_every_result_of_an_operation() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 3, 2, 4]);
    let (y, lse) = g.attention_with_lse([x, x, x], &AttentionOptions::causal());
    let [gamma, beta] = [g.splat(1.5, [3]), g.splat(0.5, [3])];
    let [normal, mean, variance] = g.batch_norm(x, [gamma, beta], 1e-2);
    let (top, _) = g.topk(x, 2, 3);
    let losses = [y, lse, normal, mean, variance, top].map(|v| weighted(&mut g, v));
    let f = feeds(&g, &[("x", &ramp(48))]);
    let each: Vec<Vec<f64>> =
        losses.iter().map(|loss| gradients_of(&g, *loss, &["x"], &f).remove(0)).collect();
    assert!(each.iter().all(|d| d.iter().any(|d| d.abs() > 1e-6)));
    let loss = losses.into_iter().reduce(|a, b| g.add(a, b)).expect("six");
    let sums: Vec<f64> = (0..48).map(|i| each.iter().map(|d| d[i]).sum()).collect();
    assert_close(&gradients_of(&g, loss, &["x"], &f)[0], &sums, 1e-10);
    check_gradients(&g, loss, &["x"], &f, 48);
}

/// A gradient that takes targets for a single 1, or for a distribution.
#[test]
fn soft_targets_need_not_sum_to_one() {
    let mut g = Graph::new();
    let [x, p] = ["x", "p"].map(|name| g.input(name, [3, 4]));
    let rows = g.cross_entropy_soft(x, p, Reduction::None);
    let loss = weighted(&mut g, rows);
    let targets = [0.0, 1.0, 0.0, 0.0, 0.9, 0.8, 0.7, 0.6, 0.0, 0.0, 0.0, 0.0];
    let f = feeds(&g, &[("x", &ramp(12)), ("p", &targets)]);
    check_gradients(&g, loss, &["x", "p"], &f, 12);
    let d = gradients_of(&g, loss, &["x"], &f).remove(0);
    assert_eq!(d[8..], [0.0; 4], "nothing is asked of the last row");
}

/// A transpose of many axes taken for a new name of the same elements.
#[test]
fn transposes_of_four_axes_move_their_elements() {
    let dims = [2, 3, 4, 5];
    let data: Vec<f64> = (0..120).map(f64::from).collect();
    let orders = (0..256).map(|n| [n / 64, n / 16 % 4, n / 4 % 4, n % 4]);
    let mut tried = 0;
    for order in orders.filter(|o| (0..4).all(|axis| o.contains(&axis))) {
        let mut g = Graph::new();
        let x = g.input("x", dims);
        let y = g.permute(x, &order);
        g.output("y", y);
        let loss = weighted(&mut g, y);
        let d = gradients(&mut g, loss, &[x]).unwrap()[0];
        g.output("d", d);
        let found = agree(&g, &feeds(&g, &[("x", &data)]));
        let moved = order.map(|axis| dims[axis]);
        griffinfly_ir::array::each_point(&moved, |p| {
            let mut from = [0; 4];
            (0..4).for_each(|i| from[order[i]] = p[i]);
            let at = |dims: [usize; 4], p: &[usize]| p.iter().zip(dims).fold(0, |at, (i, d)| at * d + i);
            assert_eq!(found[0][at(moved, p)], data[at(dims, &from)], "{order:?} {p:?}");
            let weight = 0.5 + f64::from((at(moved, p) * 37 % 19) as f32 / 19.0);
            assert!((found[1][at(dims, &from)] + 2.5 * weight).abs() < 1e-6, "{order:?} {p:?}");
        });
        tried += 1;
    }
    assert_eq!(tried, 24);
}

/// Checkpoints of one convention under the rotation of the other are plausible and wrong.
#[test]
fn the_two_rotations_differ_by_the_order_of_their_pairs() {
    let (sequence, width) = (5, 6);
    let mut g = Graph::new();
    let x = g.input("x", [1, sequence, 2, width]);
    let tables = g.rotary_constants(sequence, width, 100.0);
    let half = g.rotary_embedding(x, tables, RotaryStyle::HalfSplit);
    let plain = g.rotary_embedding(x, tables, RotaryStyle::Interleaved);
    // Elements (j, j + 3) become neighbours, are rotated, and go back.
    let pairs = g.split_axis(x, 3, &[2, width / 2]);
    let neighbours = g.permute(pairs, &[0, 1, 2, 4, 3]);
    let neighbours = g.merge_axes(neighbours, 3, 2);
    let turned = g.rotary_embedding(neighbours, tables, RotaryStyle::Interleaved);
    let back = g.split_axis(turned, 3, &[width / 2, 2]);
    let back = g.permute(back, &[0, 1, 2, 4, 3]);
    let back = g.merge_axes(back, 3, 2);
    let f = feeds(&g, &[("x", &ramp(60))]);
    assert_close(&value(&g, &f, half), &value(&g, &f, back), 1e-12);
    let apart =
        value(&g, &f, half).iter().zip(value(&g, &f, plain)).filter(|(a, b)| (*a - b).abs() > 0.1).count();
    assert!(apart > 20, "{apart}");
}
