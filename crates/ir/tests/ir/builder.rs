//! Building: errors are collected with places, poison spreads quietly, names are checked.

use griffinfly_ir::array::Array;
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::eval::{EvalError, eval_value};
use griffinfly_ir::graph::{BuildError, Graph, Init, Value};
use griffinfly_ir::ops::{Interpolation, Window2d};
use griffinfly_ir::optimizer::{Optimizer, attach};
use griffinfly_ir::types::{DType, TensorType};
use std::cmp::Ordering;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

fn errors(g: &Graph) -> Vec<BuildError> {
    g.finish().err().map_or_else(Vec::new, |e| e.0)
}

#[test]
fn all_errors_are_collected_with_file_and_line() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 3]);
    let y = g.input("y", [4]);
    g.add(x, y);
    let line = line!() - 1;
    g.scoped("block", |g| g.matmul(x, y));
    let e = errors(&g);
    assert_eq!(e.len(), 2);
    assert_eq!((e[0].line, e[1].line), (line, line + 2));
    assert!(e.iter().all(|e| e.file == file!()), "{e:?}");
    assert_eq!((e[0].op.as_str(), e[1].scope.as_str()), ("binary", "block"));
    assert_eq!(e[0].inputs, [TensorType::f32([2, 3]), TensorType::f32([4])]);
    let text = g.finish().unwrap_err().to_string();
    assert!(text.contains("2 error(s)") && text.contains("f32[2,3], f32[4]"), "{text}");
}

type Call = fn(&mut Graph, Value, Value);

/// Wrong uses of builder methods on x `[2, 3]` and y `[7]`.
const CALLS: [Call; 37] = [
    |g, x, _| _ = g.sum(x, &[5]),
    |g, x, _| _ = g.sum_keep(x, &[5]),
    |g, x, _| _ = g.mean(x, &[-4]),
    |g, x, _| _ = g.max(x, &[5]),
    |g, x, _| _ = g.argmax(x, 5),
    |g, x, _| _ = g.softmax(x, 5),
    |g, x, _| _ = x.softmax(g, 5),
    |g, x, _| _ = x.log_softmax(g, -3),
    |g, x, y| _ = g.layer_norm(x, y, y, 1e-5),
    |g, x, y| _ = g.rms_norm(x, y, 1e-5),
    |g, x, y| _ = g.cross_entropy(x, y),
    |g, x, y| _ = g.cross_entropy_ignoring(x, y, 0),
    |g, x, y| _ = g.mse(x, y),
    |g, x, y| _ = g.embedding(x, y),
    |g, x, y| _ = g.gt(x, y),
    |g, x, _| _ = g.permute(x, &[0, 0]),
    |g, x, _| _ = g.flatten(x, 9),
    |g, x, _| _ = g.split_axis(x, 1, &[2, 0]),
    |g, x, _| _ = g.slice(x, 1, 3, None),
    |g, x, _| _ = g.pad(x, 2, [1, 1], 0.0),
    |g, x, y| _ = g.concat(&[x, y], 0),
    |g, x, y| _ = g.matmul(x, y),
    |g, x, _| g.update(x, x),
    |g, x, y| _ = g.group_norm(x, 2, [y, y], 1e-5),
    |g, x, y| _ = g.batch_norm(x, [y, y], 1e-5),
    |g, x, y| _ = g.batch_norm_inference(x, [y, y], [y, y], 1e-5),
    |g, x, y| _ = g.fold_batch_norm([x, y], [y, y], [y, y], 1e-5),
    |g, x, y| g.update_running(x, y, 0.1),
    |g, x, y| _ = g.conv2d_grouped(x, y, Window2d::strided(1), 2),
    |g, x, y| _ = g.conv1d(x, y, Window2d::strided(1), 1),
    |g, x, y| _ = g.conv_transpose2d([x, y], Window2d::strided(1), [0; 2], 1),
    |g, x, y| _ = g.conv_transpose1d([x, y], Window2d::strided(1), 0, 1),
    |g, x, _| _ = g.max_pool1d(x, 2, Window2d::strided(1)),
    |g, x, _| _ = g.avg_pool1d(x, 2, Window2d::strided(1), false),
    |g, _, y| _ = g.global_max_pool2d(y),
    |g, x, _| _ = g.upsample2d(x, [2, 2], Interpolation::Nearest),
    |g, x, _| _ = g.resize2d(x, [2, 2], Interpolation::Linear { align_corners: true }),
];

/// Builder methods made of others must still blame their caller.
#[test]
fn every_builder_method_reports_its_caller() {
    let constant: Call = |g, _, _| _ = g.constant(&[1.0], [2]);
    for (i, call) in CALLS.iter().chain([&constant]).enumerate() {
        let mut g = Graph::new();
        let (x, y) = (g.input("x", [2, 3]), g.input("y", [7]));
        call(&mut g, x, y);
        let e = errors(&g);
        assert_eq!(e.len(), 1, "call {i}: {e:?}");
        assert_eq!(e[0].file, file!(), "call {i}: {e:?}");
    }
}

/// Whatever else is wrong with a call, a value of another graph is what is said, once.
#[test]
fn every_builder_method_refuses_values_of_another_graph() {
    for (i, call) in CALLS.iter().enumerate() {
        let mut other = Graph::new();
        let (x, y) = (other.input("x", [2, 3]), other.input("y", [7]));
        let mut g = Graph::new();
        let (mine, _) = (g.input("x", [2, 3]), g.input("y", [7]));
        call(&mut g, x, y);
        let e = errors(&g);
        assert!(matches!(&e[..], [e] if e.reason.contains("another graph")), "call {i}: {e:?}");
        assert_eq!(e[0].file, file!(), "call {i}: {e:?}");
        assert_eq!((g.nodes().len(), mine), (2, x), "call {i}");
    }
}

#[test]
fn poison_spreads_without_further_errors() {
    let mut g = Graph::new();
    let x = g.input("x", [2]);
    let bad = g.reshape_badly(x);
    let worse = g.add(bad, x).relu(&mut g).flatten(&mut g, 0);
    let (loss, _) = g.cross_entropy_ignoring(worse, bad, 3);
    g.mse(bad, x);
    g.mirror("kind", bad);
    g.output("y", loss);
    g.update(bad, x);
    assert_eq!(errors(&g).len(), 1);
    assert!(g.outputs().is_empty() && g.updates().is_empty());
    assert_eq!((g.ty(bad), g.dims(bad).len()), (None, 0));
    assert_eq!(g.verify(), vec![]);
}

trait Badly {
    fn reshape_badly(&mut self, x: Value) -> Value;
}

impl Badly for Graph {
    fn reshape_badly(&mut self, x: Value) -> Value {
        self.drop_axes(x, &[0])
    }
}

#[test]
fn values_of_another_graph_are_refused() {
    let mut other = Graph::new();
    let twin = other.parameter("x", [1], Init::ZEROS);
    let poison = other.input("", [1]);
    let far = (0..9).map(|_| other.scalar(0.0)).last().unwrap();
    for foreign in [twin, poison, far] {
        let calls: [Call; 5] = [
            |g, x, v| _ = g.add(x, v),
            |g, _, v| g.output("v", v),
            |g, x, v| g.update(x, v),
            |g, x, v| g.update(v, x),
            |g, _, v| g.update(v, v),
        ];
        for call in calls {
            let mut g = Graph::new();
            let x = g.parameter("x", [1], Init::ZEROS);
            call(&mut g, x, foreign);
            let e = errors(&g);
            assert!(matches!(&e[..], [e] if e.reason.contains("another graph")), "{e:?}");
            assert_eq!(e[0].file, file!());
            assert_eq!(g.verify(), vec![]);
            assert_eq!((g.ty(foreign), g.as_splat(foreign)), (None, None));
        }
    }
    let mut g = Graph::new();
    let x = g.parameter("x", [1], Init::ZEROS);
    g.mirror("m", twin);
    let loss = g.mean_all(x);
    assert!(errors(&g)[0].reason.contains("of this graph"));
    assert!(gradients(&mut other, loss, &[]).is_err());
    for foreign in [twin, poison] {
        let feeds = [("x".to_owned(), Array { ty: TensorType::f32([1]), data: vec![0.5] })].into();
        assert_eq!(eval_value(&g, &feeds, foreign), Err(EvalError::Foreign(foreign)));
    }
}

#[test]
fn a_clone_takes_what_its_original_had_and_nothing_made_later() {
    let mut g = Graph::new();
    let x = g.input("x", [2]);
    let mut first = g.clone();
    let mut second = first.clone();
    let (mine, theirs) = (g.exp(x), first.neg(x));
    assert_eq!(mine, theirs, "both are the node after x");
    for (graph, own, foreign) in [(&mut g, mine, theirs), (&mut first, theirs, mine)] {
        graph.add(x, own);
        graph.finish().unwrap();
        assert!(graph.ty(own).is_some() && graph.ty(foreign).is_none());
        graph.add(x, foreign);
        assert!(errors(graph)[0].reason.contains("another graph"));
    }
    for later in [mine, theirs] {
        assert_eq!(second.ty(later), None);
    }
    let y = second.log(x);
    let mut rebound = second.rebind(&[("x", &[5])]).unwrap();
    assert_eq!((rebound.dims(x), rebound.dims(y)), (&[5][..], &[5][..]));
    rebound.add(x, y);
    rebound.finish().unwrap();
}

/// What tells graphs apart is no part of what they are.
#[test]
fn two_builds_of_one_description_are_the_same() {
    let build = || {
        let mut g = Graph::new();
        let (x, w) = (g.input("x", [2, 3]), g.parameter("w", [4, 3], Init::ONES));
        let y = g.matmul_with(x, w, [false, true]).relu(&mut g);
        let loss = g.mean_all(y);
        g.output("loss", loss);
        attach(&mut g, &Optimizer::adam(1e-3), loss).unwrap();
        (g, loss)
    };
    let hash = |v: Value| BuildHasherDefault::<DefaultHasher>::default().hash_one(v);
    let ((a, p), (b, q)) = (build(), build());
    assert_eq!((p, hash(p), p.cmp(&q)), (q, hash(q), Ordering::Equal));
    assert_eq!((&a, a.to_string(), format!("{a:?}")), (&b, b.to_string(), format!("{b:?}")));
    assert_eq!(serde_json::to_string(&a).unwrap(), serde_json::to_string(&b).unwrap());
    assert_eq!((a.ty(q), b.ty(p)), (None, None), "and yet they are two");
    fn is_a_plain_handle<T: Copy + Send + Sync + 'static>(_: T) {}
    is_a_plain_handle(p);
}

#[test]
fn names_are_unique_and_printable() {
    let long = "n".repeat(256);
    for bad in ["", "a b", "tab\t", "quote\"", "it's", "at@", "per%cent", "new\nline", &long] {
        let mut g = Graph::new();
        let v = g.input(bad, [1]);
        assert_eq!(errors(&g).len(), 1, "{bad:?}");
        assert!(g.ty(v).is_none());
    }
    for good in ["x", "model.layers.0.self_attn.q_proj.weight", "größe", &long[1..]] {
        let mut g = Graph::new();
        g.input(good, [1]);
        g.finish().unwrap();
    }
    let mut g = Graph::new();
    let w = g.parameter("w", [1], Init::ZEROS);
    g.input("w", [1]);
    g.state("w.m", [1], 0.0);
    g.mirror("m", w);
    let e = errors(&g);
    assert_eq!(e.len(), 2);
    assert!(e[0].reason.contains("'w'") && e[1].reason.contains("'w.m'"), "{e:?}");
}

#[test]
fn empty_and_oversized_tensors_are_refused_with_numbers() {
    let mut g = Graph::new();
    g.input("empty", [3, 0]);
    g.input("huge", [1 << 20, 1 << 20]);
    g.input("overflowing", [usize::MAX, usize::MAX]);
    let x = g.input("x", [1 << 15, 1]);
    let y = g.input("y", [1 << 16]);
    g.add(x, y);
    g.pad(x, 1, [usize::MAX, usize::MAX], 0.0);
    g.expand(x, &[(1, 0)]);
    let e = errors(&g);
    assert_eq!(e.len(), 6);
    assert!(e[0].reason.contains("dimension 1 of f32[3,0]"), "{}", e[0]);
    assert!(e[3].reason.contains("f32[32768,65536] has more than"), "{}", e[3]);
}

#[test]
fn roots_are_checked() {
    let mut g = Graph::new();
    let x = g.input("x", [2]);
    let w = g.parameter("w", [2], Init::ZEROS);
    let s = g.state("s", [3], 0.0);
    let y = g.add(x, w);
    g.output("y", y);
    g.output("y", x);
    g.update(y, x);
    g.update(x, y);
    g.update(s, y);
    g.update(w, y);
    g.update(w, x);
    let reasons: Vec<String> = errors(&g).into_iter().map(|e| e.reason).collect();
    assert_eq!(reasons.len(), 5, "{reasons:?}");
    for (reason, part) in reasons.iter().zip(["'y'", "only", "only", "another type", "already"]) {
        assert!(reason.contains(part), "{reason}");
    }
    assert_eq!((g.outputs().len(), g.updates().len()), (1, 1));
}

#[test]
fn dtypes_are_checked() {
    let mut g = Graph::new();
    let (x, ids) = (g.input("x", [4, 3]), g.input_ids("ids", [4]));
    let word = g.constant_words([7].into(), TensorType::new(DType::U32, [1]));
    let calls: [fn(&mut Graph, [Value; 3]); 7] = [
        |g, [_, ids, _]| _ = g.softmax(ids, 0),
        |g, [x, _, w]| _ = g.embedding(x, w),
        |g, [x, ids, _]| _ = g.add(x, ids),
        |g, [x, _, _]| _ = g.not(x),
        |g, [x, ids, _]| _ = g.select(ids, x, x),
        |g, [_, ids, _]| _ = g.exp(ids),
        |g, [_, ids, _]| _ = g.mean(ids, &[0]),
    ];
    for call in calls {
        call(&mut g, [x, ids, word]);
    }
    assert_eq!(errors(&g).len(), calls.len());
}
