//! Sums of products by subscripts, against a loop over all subscripts.

use crate::support::{agree, assert_close, check_gradients, feeds, weighted};
use griffinfly_ir::array::each_point;
use griffinfly_ir::graph::Graph;

/// Extents of the subscripts, all different.
fn extent(label: char) -> usize {
    match label {
        'b' => 2,
        'h' => 3,
        'q' => 5,
        'k' => 4,
        'd' => 7,
        _ => 1,
    }
}

fn ramp(n: usize, salt: usize) -> Vec<f64> {
    (0..n).map(|i| f64::from(((i * 7919 + salt) % 101) as f32 - 50.0) / 64.0).collect()
}

/// The sum over all subscripts, one point at a time.
fn slow(equation: &str, operands: &[Vec<f64>]) -> Vec<f64> {
    let (left, right) = equation.split_once("->").unwrap();
    let parts: Vec<&str> = left.split(',').collect();
    let mut all: Vec<char> = left.chars().filter(char::is_ascii_alphabetic).collect();
    all.sort_unstable();
    all.dedup();
    let extents: Vec<usize> = all.iter().map(|c| extent(*c)).collect();
    let at = |text: &str, point: &[usize]| {
        text.chars().fold(0, |n, c| n * extent(c) + point[all.iter().position(|l| *l == c).unwrap()])
    };
    let mut out = vec![0.0; right.chars().map(extent).product()];
    each_point(&extents, |p| {
        let product: f64 = parts.iter().zip(operands).map(|(t, x)| x[at(t, p)]).product();
        out[at(right, p)] += product;
    });
    out
}

#[test]
fn equations_of_one_and_two_operands() {
    let equations = [
        "bhqd,bhkd->bhqk",
        "bhqk,bhkd->bqhd",
        "qd,kd->qk",
        "dq,dk->kq",
        "qd,d->q",
        "q,k->qk",
        "q,q->",
        "qk,qk->qk",
        "bqd,bqk->dk",
        "hqd,bhkd->bq",
        "bqhd,hdk->bqk",
        "qd->dq",
        "bqd->d",
        "bqd->",
        "bqd->qbd",
        "b,qd->bdq",
    ];
    for equation in equations {
        let mut g = Graph::new();
        let parts: Vec<&str> = equation.split("->").next().unwrap().split(',').collect();
        let dims = |text: &str| text.chars().map(extent).collect::<Vec<_>>();
        let names = ["x0", "x1"];
        let operands: Vec<_> = parts.iter().zip(names).map(|(t, n)| g.input(n, dims(t))).collect();
        let y = g.einsum(equation, &operands);
        g.output("y", y);
        g.finish().unwrap_or_else(|e| panic!("{equation}: {e}"));
        let result: Vec<usize> = dims(equation.split("->").nth(1).unwrap());
        assert_eq!(g.dims(y), result, "{equation}");
        let data: Vec<Vec<f64>> =
            parts.iter().enumerate().map(|(i, t)| ramp(dims(t).iter().product(), 13 * i)).collect();
        let fed: Vec<(&str, &[f64])> = names.iter().zip(&data).map(|(n, d)| (*n, d.as_slice())).collect();
        let f = feeds(&g, &fed);
        assert_close(&agree(&g, &f)[0], &slow(equation, &data), 1e-12);
        let loss = weighted(&mut g, y);
        check_gradients(&g, loss, &names[..parts.len()], &f, 4);
    }
}

/// Other input dimensions over the same equation.
#[test]
fn equations_rebind() {
    let mut g = Graph::new();
    let (a, b) = (g.input("a", [2, 3, 5]), g.input("b", [7, 5]));
    let y = g.einsum("bqd, kd -> qbk", &[a, b]);
    g.output("y", y);
    let g = g.rebind(&[("a", &[4, 3, 5])]).unwrap();
    assert_eq!(g.dims(g.outputs()[0].value), [3, 4, 7]);
}

#[test]
fn errors_name_subscript_and_extent() {
    let wrong = [
        ("qd,kd->qk", "subscript 'd' is 3 in operand 0 and 4 in operand 1"),
        ("qdk,kd->q", "operand 0 has 2 dimensions, 'qdk' has 3"),
        ("qq,kd->q", "subscript 'q' is twice in 'qq'"),
        ("qd,dk->qz", "subscript 'z' of the result is in no operand"),
        ("qd,dk", "no '->'"),
        ("qd->q", "names 1 operands, given 2"),
        ("q...,kd->q", "'.' is no subscript"),
    ];
    for (equation, reason) in wrong {
        let mut g = Graph::new();
        let (a, b) = (g.input("a", [2, 3]), g.input("b", [5, 4]));
        let y = g.einsum(equation, &[a, b]);
        assert!(g.ty(y).is_none());
        let errors = g.finish().unwrap_err().0;
        assert_eq!((errors.len(), errors[0].op.as_str()), (1, "einsum"));
        assert!(errors[0].reason.contains(reason), "{equation}: {}", errors[0]);
    }
    let mut g = Graph::new();
    let y = g.einsum("->", &[]);
    assert!(g.ty(y).is_none() && g.finish().is_err());
}
