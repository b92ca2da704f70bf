//! The oracle's own errors.

use crate::support::{feeds, value};
use griffinfly_ir::array::Array;
use griffinfly_ir::eval::{EvalError, eval, eval_value};
use griffinfly_ir::graph::{Graph, Init};
use griffinfly_ir::types::TensorType;
use std::collections::HashMap;

fn graph() -> Graph {
    let mut g = Graph::new();
    let x = g.input("x", [2]);
    let w = g.parameter("w", [2], Init::ONES);
    let lr = g.step_scalar("lr");
    let s = g.state("s", [2], 0.5);
    let y = [w, lr, s].into_iter().fold(x, |a, b| g.add(a, b));
    g.output("y", y);
    g
}

#[test]
fn an_unset_leaf_is_named() {
    let g = graph();
    let mut f = feeds(&g, &[("x", &[1.0, 2.0]), ("w", &[3.0, 4.0]), ("lr", &[10.0])]);
    assert_eq!(value(&g, &f, g.outputs()[0].value), [14.5, 16.5]);
    for name in ["x", "w", "lr"] {
        let kept = f.remove(name).unwrap();
        assert_eq!(eval(&g, &f).unwrap_err(), EvalError::Unset(name.into()));
        f.insert(name.into(), kept);
    }
}

#[test]
fn state_starts_as_declared_unless_fed() {
    let g = graph();
    let f = feeds(&g, &[("x", &[1.0, 2.0]), ("w", &[3.0, 4.0]), ("lr", &[10.0]), ("s", &[0.0, 1.0])]);
    assert_eq!(value(&g, &f, g.outputs()[0].value), [14.0, 17.0]);
}

#[test]
fn a_wrong_type_says_both() {
    let g = graph();
    let f: HashMap<String, Array<f32>> =
        HashMap::from([("x".into(), Array::filled(&TensorType::f32([1, 2]), 0.0))]);
    let error = eval_value(&g, &f, g.leaf("x").unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "'x' is f32[2], given f32[1,2]");
}

#[test]
fn references_run_in_f32_too() {
    let mut g = Graph::new();
    let x = g.input("x", [3]);
    let y = g.softmax(x, 0);
    let f: HashMap<String, Array<f32>> =
        HashMap::from([("x".into(), Array { ty: TensorType::f32([3]), data: vec![1.0, 2.0, 3.0] })]);
    let sum: f32 = eval_value(&g, &f, y).unwrap().data.iter().sum();
    assert!((sum - 1.0).abs() < 1e-6);
}
