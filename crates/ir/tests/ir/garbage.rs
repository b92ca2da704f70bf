//! Random calls on random values: nothing panics, and what is built is sound.

use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::graph::{Graph, Init, Value};
use griffinfly_ir::ops::{Extent, Interpolation, Window2d};
use griffinfly_ir::types::DType;
use proptest::prelude::*;

/// One call: which, on which values, with which numbers.
type Call = (u8, [usize; 3], [usize; 3]);

const NUMBERS: [usize; 10] = [0, 1, 2, 3, 4, 6, 7, 12, usize::MAX / 2, usize::MAX];

fn window(stride: usize, padding: usize, dilation: usize) -> Window2d {
    Window2d {
        ceil: padding.is_multiple_of(2),
        ..Window2d::strided(stride).padded(padding).dilated(dilation)
    }
}

fn mode(n: usize) -> Interpolation {
    if n.is_multiple_of(3) {
        Interpolation::Nearest
    } else {
        Interpolation::Linear { align_corners: n % 3 == 1 }
    }
}

fn call(g: &mut Graph, pool: &mut Vec<Value>, (which, on, with): Call) {
    let [a, b, c] = on.map(|i| pool[i % pool.len()]);
    let [p, q, r] = with.map(|i| NUMBERS[i % NUMBERS.len()]);
    let [sp, sq] = [p, q].map(|n| n as isize);
    let made = match which % 47 {
        0 => g.add(a, b),
        1 => g.mul(a, b),
        2 => g.div(a, b),
        3 => g.pow(a, b),
        4 => g.maximum(a, b),
        5 => g.equal(a, b),
        6 => g.and(a, b),
        7 => g.lt(a, b),
        8 => g.select(a, b, c),
        9 => a.gelu(g),
        10 => a.relu(g),
        11 => g.log(a),
        12 => g.not(a),
        13 => g.sum(a, &[sp]),
        14 => g.mean_keep(a, &[sp, sq]),
        15 => g.max(a, &[sp]),
        16 => g.argmax(a, sp),
        17 => g.softmax(a, sp),
        18 => g.log_softmax(a, sp),
        19 => g.layer_norm(a, b, c, if p > 9 { f32::NAN } else { p as f32 }),
        20 => g.rms_norm(a, b, 1e-5),
        21 => g.cross_entropy(a, b),
        22 => g.cross_entropy_ignoring(a, b, p as i32).0,
        23 => g.mse(a, b),
        24 => g.embedding(a, b),
        25 => g.permute(a, &[p, q]),
        26 => g.flatten(a, p),
        27 => g.merge_axes(a, p, q),
        28 => g.split_axis(a, p, &[q, r]),
        29 => g.insert_axes(a, &[p]),
        30 => g.drop_axes(a, &[p]),
        31 => g.slice_step(a, p, [sq, r as isize], p),
        32 => g.pad_spread(a, p % 5, [p, q, r], f32::INFINITY),
        33 => g.concat(&[a, b, c][..p % 4], q),
        34 => g.expand(a, &[(p, q), (r, p)]),
        35 => g.matmul_with(a, b, [p % 2 == 0, q % 2 == 0]),
        36 => g.transpose(a),
        37 => g.group_norm(a, p, [b, c], 1e-5),
        38 => g.batch_norm(a, [b, c], 1e-5)[q % 3],
        39 => g.batch_norm_inference(a, [b, c], [c, b], 1e-5),
        40 => g.conv2d_grouped(a, b, window(p, q, r), p),
        41 => g.conv1d(a, b, window(r, p, q), q % 3),
        42 => g.conv_transpose1d([a, b], window(p, q, r), r, p % 3),
        43 => g.max_pool1d(a, p, window(q, r, p)),
        44 => g.avg_pool1d(a, p, window(q, r, p), q % 2 == 0),
        45 => g.interpolate(a, &[(p, Extent::Size(q)), (2, Extent::Scale(r))][p % 2..], mode(q)),
        _ => {
            g.update(a, b);
            g.output(&format!("o{p}"), c);
            g.stop_gradient(a)
        }
    };
    pool.push(made);
}

fn build(calls: &[Call]) -> (Graph, Vec<Value>) {
    let mut other = Graph::new();
    let foreign = other.input("x", [2, 3]);
    let poison = other.input("", [1]);
    let mut g = Graph::new();
    let mut pool = vec![
        g.input("x", [2, 3]),
        g.parameter("w", [3], Init::ONES),
        g.parameter("m", [3, 4], Init::ZEROS),
        g.input_ids("ids", [2]),
        g.state("s", [2, 3], 0.0),
        g.scalar(0.5),
        g.input("t", [2, 1, 6]),
        g.parameter("k", [1, 1, 2], Init::ONES),
    ];
    let t = g.lt(pool[0], pool[1]);
    pool.extend([t, t, foreign, poison]);
    for c in calls {
        call(&mut g, &mut pool, *c);
    }
    (g, pool)
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let one = (any::<u8>(), any::<[usize; 3]>(), any::<[usize; 3]>());
    // Mostly the first nine sound values, so that long chains come about.
    let one = one.prop_map(|(w, on, with)| (w, on.map(|i| if i % 3 > 0 { i % 9 } else { i }), with));
    prop::collection::vec(one, 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn random_calls_never_panic_and_leave_a_sound_graph(calls in calls()) {
        let (mut g, pool) = build(&calls);
        // A refused call adds nothing, so the graph is sound whether or not there were errors.
        prop_assert_eq!(g.verify(), vec![]);
        if g.finish().is_ok() {
            // The pool starts with ten sound values and two of another graph.
            prop_assert!(pool.iter().skip(12).all(|v| g.ty(*v).is_some()));
        }
        let text = g.to_string();
        let back: Graph = text.parse().expect("a sound graph parses back");
        prop_assert_eq!(back.to_string(), text);
        let _ = g.id_limits();
        let _ = g.rebind(&[("x", &[4, 3])]);
        let wanted = [pool[0], pool[1], pool[2]];
        let scalar = |v: &&Value| g.ty(**v).is_some_and(|t| t.dtype == DType::F32 && t.elements() == 1);
        let loss = pool.iter().rev().find(scalar).copied();
        // Only sound graphs are differentiated: parse drops the recorded errors.
        let mut sound = back;
        let there = |v: Value| sound.results(v.node()).nth(v.result()).expect("the same nodes");
        let (wanted, loss) = (wanted.map(there), loss.map(there));
        if let Some(loss) = loss
            && let Ok(found) = gradients(&mut sound, loss, &wanted)
        {
            for (w, d) in wanted.iter().zip(found) {
                prop_assert_eq!(sound.ty(*w), sound.ty(d));
            }
            prop_assert_eq!(sound.verify(), vec![]);
            prop_assert!(sound.finish().is_ok());
        }
        g.input("again", [1]);
    }
}
