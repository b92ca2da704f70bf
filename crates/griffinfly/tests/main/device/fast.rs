//! The fast contract from end to end, with the kernels of rounded terms that a table of choices asks for: on devices without
//! matrix units they run by ordinary arithmetic.

use super::tested;
use crate::fixtures::{batch, branches};
use griffinfly::compile::{Options, tuning};
use griffinfly::{Choices, Contract, Data, Device, NumericClass, Session, Weights};

const TERMS: &str = "bf16x2/3 32x32x32/16x16";

/// Loss and gradients of a batch, and the numeric classes of the kernels.
fn gradients(device: &Device, contract: Contract) -> (Vec<Vec<f32>>, Vec<NumericClass>) {
    let graph = branches().gradients().unwrap();
    let weights = Weights::init(device, graph.graph(), 1).unwrap();
    let mut session = Session::with_settings(graph, &weights, contract).unwrap();
    let outputs = session.run(&batch()).unwrap();
    let floats = outputs.all().iter().filter_map(|output| match &output.data {
        Data::F32(values) => Some(values.clone()),
        _ => None,
    });
    let classes = session.program().kernels.iter().map(|kernel| kernel.numeric).collect();
    (floats.collect(), classes)
}

/// A table that asks for the same kernel for every contraction of the program under a contract.
fn table(device: &Device, contract: Contract) -> Choices {
    let options = Options { contract, ..Options::default() };
    let graph = branches().gradients().unwrap();
    let problems = tuning::problems(graph.graph(), device.target(), &options).unwrap();
    let mut choices = Choices::new();
    problems.into_iter().for_each(|problem| choices.insert(problem.key, TERMS));
    choices
}

#[test]
fn rounded_terms_give_the_gradients_of_f32_and_only_where_they_are_allowed() {
    let tested = tested();
    if tested.log.is_none() {
        return;
    }
    let device = &tested.device;
    let (exact, classes) = gradients(device, Contract::Strict);
    assert!(classes.iter().all(|class| *class == NumericClass::F32));
    // The keys of the fast contract say nothing to a strict program, and what those of the strict one ask for is not strict.
    for contract in [Contract::Strict, Contract::Fast] {
        let (same, _) = gradients(&device.with_choices(table(device, contract)), Contract::Strict);
        assert_eq!(same, exact);
    }
    let fast = device.with_choices(table(device, Contract::Fast));
    let (rounded, classes) = gradients(&fast, Contract::Fast);
    assert!(classes.contains(&NumericClass::Bf16x2), "{classes:?}");
    assert_ne!(rounded, exact, "nothing was rounded");
    for (rounded, exact) in rounded.iter().zip(&exact) {
        let norm = |x: &mut dyn Iterator<Item = f32>| x.map(|v| f64::from(v).powi(2)).sum::<f64>().sqrt();
        let error = norm(&mut rounded.iter().zip(exact).map(|(a, b)| a - b));
        let size = norm(&mut exact.iter().copied());
        assert!(error <= 2e-4 * size, "{error} of {size}");
    }
}
