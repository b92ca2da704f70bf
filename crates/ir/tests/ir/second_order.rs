//! Second derivatives of every operation that has them, against differences of first ones.

use crate::support::{Feeds, check_gradients, weighted};
use griffinfly_ir::array::Array;
use griffinfly_ir::autodiff::{AutodiffError, gradients};
use griffinfly_ir::ops::samples;
use griffinfly_ir::types::DType;

#[test]
fn derivatives_differentiate_again() {
    let mut refused = Vec::new();
    for s in samples() {
        let small = s.inputs.iter().map(|i| i.ty.elements()).sum::<usize>() <= 120;
        let floats: Vec<String> = (0..s.inputs.len())
            .filter(|i| s.inputs[*i].ty.dtype == DType::F32)
            .map(|i| i.to_string())
            .collect();
        let applied = s.graph();
        let float_result = applied.ty(applied.outputs()[0].value).unwrap().dtype == DType::F32;
        if !small || floats.is_empty() || !float_result || s.is_without_gradient() {
            continue;
        }
        let mut g = s.gradient_graph().unwrap();
        let firsts: Vec<_> = g.outputs()[1..].iter().map(|o| o.value).collect();
        let mut loss = g.scalar(0.0);
        for d in firsts {
            let part = weighted(&mut g, d);
            loss = g.add(loss, part);
        }
        let feeds: Feeds = (0..s.inputs.len())
            .map(|i| {
                let data = s.inputs[i].values(i as u64 + 1);
                (i.to_string(), Array { ty: s.inputs[i].ty.clone(), data })
            })
            .collect();
        let wanted: Vec<_> = floats.iter().map(|n| g.leaf(n).unwrap()).collect();
        match gradients(&mut g.clone(), loss, &wanted) {
            Ok(_) => {
                let names: Vec<&str> = floats.iter().map(String::as_str).collect();
                check_gradients(&g, loss, &names, &feeds, 3);
            }
            Err(AutodiffError::NoGradient { op, .. }) => refused.push(op),
            Err(e) => panic!("{}: {e}", s.describe()),
        }
    }
    assert_eq!(refused, Vec::<String>::new(), "operations without a second derivative");
}
