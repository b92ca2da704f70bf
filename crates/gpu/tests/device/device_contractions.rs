//! The contraction family on a device with kernels, every tiling against sums in f64.
//!
//! Results and scratch start as NaN,
//! and NaN follows every operand, so an element that is not written, or one that is read past the end, shows.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "helpers of tests")]

mod harness;
mod loops;
mod reference;

use crate::under_test::{is_full, with_kernels};
use griffinfly_compile::kernel::families::contract::{
    Choice, Merge, Staging, Tiling, choices, realise, realise_with,
};
use griffinfly_compile::kernel::families::prefetch;
use griffinfly_ir::loops::Loop;
use griffinfly_ir::target::{NumericClass, Target};
use harness::Suite;
use loops::{Epilogue, Further, Product, with_row_scale};

/// Opens a device, runs the cases a test adds to a suite for its target, and asserts that validation stayed silent.
fn check(cases: impl FnOnce(&mut Suite)) {
    with_kernels(0, |device| {
        let mut suite = Suite::new(device.target());
        cases(&mut suite);
        suite.run(device.as_ref());
    });
}

/// Whether the ordinary run takes a case: one in `of`.
fn takes(case: usize, of: usize) -> bool {
    is_full() || case.is_multiple_of(of)
}

/// The tilings the target can run; in the ordinary run of those for matrix units the smallest of each class and one larger.
fn tilings(target: &Target) -> Vec<Tiling> {
    let takes = |t: &Tiling| match t.staging {
        Staging::Matrix(class) => {
            let is_larger = match class {
                NumericClass::Bf16x2 | NumericClass::F32 => t.bm == 64 && t.bn == 64 && t.bk == 16,
                _ => t.bk == 64,
            };
            is_full() || t.bm == 32 || is_larger
        }
        _ => true,
    };
    let mut all: Vec<Tiling> =
        choices(target).into_iter().map(|choice| choice.tiling).filter(takes).collect();
    all.dedup();
    all
}

fn unsplit(tiling: Tiling) -> Choice {
    Choice::whole(tiling)
}

/// Sizes on both sides of a tile's: one, odd, prime, a multiple, larger.
fn sizes(t: &Tiling) -> Vec<[usize; 3]> {
    let [bm, bn, bk] = [t.bm, t.bn, if t.staging == Staging::Direct { 4 } else { t.bk }].map(|n| n as usize);
    vec![
        [1, 1, 1],
        [3, 5, 7],
        [bm, bn, bk],
        [bm * 2, bn, bk * 3],
        [bm + 4, bn + 8, bk * 2 + 4],
        [bm + 1, bn * 2 + 3, bk + 1],
        [2, bn + 13, 31],
    ]
}

#[test]
fn every_tiling_at_every_kind_of_size() {
    check(|suite| {
        for (i, tiling) in tilings(&suite.target).into_iter().enumerate() {
            for (_, [m, n, k]) in sizes(&tiling).iter().enumerate().filter(|(j, _)| takes(i + j, 3)) {
                suite.case(&Product::new(*m, *n, *k).build(), &unsplit(tiling));
            }
        }
    });
}

#[test]
fn every_tiling_with_transposes_and_batches() {
    check(|suite| {
        for (i, tiling) in tilings(&suite.target).into_iter().enumerate() {
            let [bm, bn] = [tiling.bm, tiling.bn].map(|n| n as usize);
            for (j, transposed) in [[false, true], [true, false], [true, true]].into_iter().enumerate() {
                let product = |m, n, k| Product { transposed, ..Product::new(m, n, k) };
                let batch = [vec![3], vec![2, 2], vec![5]][(i + j) % 3].clone();
                let cases = [
                    product(bm + 4, bn + 12, 40),
                    product(bm + 3, bn + 2, 37),
                    Product { batch, ..product(9, 20, 17) },
                ];
                for (_, case) in cases.iter().enumerate().filter(|(n, _)| takes(i + j + n, 3)) {
                    suite.case(&case.build(), &unsplit(tiling));
                }
            }
        }
    });
}

#[test]
fn every_tiling_with_split_products() {
    check(|suite| {
        for (i, tiling) in tilings(&suite.target).into_iter().enumerate() {
            let (m, n) = (tiling.bm as usize + 1, tiling.bn as usize);
            let odd = Product { batch: vec![2], epilogue: Epilogue::BiasRelu, ..Product::new(7, 9, 131) };
            let even = Product { batch: vec![2], epilogue: Epilogue::Residual, ..Product::new(8, 12, 256) };
            let cases = [(Product::new(m, n, 150), 2), (odd, 3), (even, 4)];
            for (_, (product, split)) in cases.iter().enumerate().filter(|(j, _)| takes(i + j, 3)) {
                suite.case(&product.build(), &Choice::parts(tiling, *split));
                if tiling.is_staged() {
                    let joined = Choice { merge: Merge::Last, ..Choice::parts(tiling, *split) };
                    suite.case(&product.build(), &joined);
                }
            }
        }
    });
}

/// One NaN in the left factor and one infinity in the right one, at the last products: they reach their row and their column, and
/// nothing else.
#[test]
fn every_tiling_hands_on_what_is_not_finite() {
    check(|suite| {
        for (i, tiling) in tilings(&suite.target).into_iter().enumerate() {
            let (m, n, k) = (5, 8, 100);
            let l = Product { transposed: [false, true], ..Product::new(m, n, k) }.build();
            let mut operands: Vec<Vec<f32>> = l
                .operands
                .iter()
                .enumerate()
                .map(|(i, ty)| harness::values(i as u64, ty.elements()))
                .collect();
            operands[0][3 * k + k - 1] = f32::NAN;
            operands[1][6 * k + k - 2] = f32::INFINITY;
            let mut choices = vec![unsplit(tiling), Choice::parts(tiling, 3)];
            if tiling.is_staged() {
                choices.push(Choice { merge: Merge::Last, ..Choice::parts(tiling, 3) });
            }
            for (_, choice) in choices.iter().enumerate().filter(|(j, _)| takes(i + j, 2)) {
                let made = realise_with(&l, &suite.target, choice).unwrap();
                suite.with_operands(&l, made, operands.clone());
            }
        }
    });
}

/// Products of single numbers of all sizes: each within the bound of its class, and rounded as coarsely as that class says.
#[test]
fn terms_of_every_class() {
    check(|suite| {
        for tiling in
            tilings(&suite.target).into_iter().filter(|t| t.class() != NumericClass::F32 && t.bm == 32)
        {
            let l = Product::new(64, 32, 1).build();
            // f16 has a range; beyond it others have their say in the next test.
            let span = if tiling.class() == NumericClass::F16 { 6 } else { 50 };
            let sized = |seed: u64, count: usize| {
                let values = harness::values(seed, count);
                values
                    .iter()
                    .zip(0..)
                    .map(|(v, i)| (1.0 + v.abs()) * 2_f32.powi(i % span - span / 2))
                    .collect()
            };
            let operands: Vec<Vec<f32>> = vec![sized(1, 64), sized(2, 32)];
            let made = realise_with(&l, &suite.target, &unsplit(tiling)).unwrap();
            suite.relative(&l, made, operands);
        }
    });
}

/// The largest and smallest numbers: bf16 has the range of f32, f16 ends at 65504.
#[test]
fn terms_at_the_ends_of_the_range() {
    check(|suite| {
        for tiling in
            tilings(&suite.target).into_iter().filter(|t| t.class() != NumericClass::F32 && t.bm == 32)
        {
            let l = Product::new(4, 4, 1).build();
            let left = match tiling.class() {
                NumericClass::F16 => vec![65504.0, -65504.0, 65519.0, 6.2e-5],
                NumericClass::Bf16 => vec![3.38e38, -1e38, 1e-30, 0.0],
                _ => vec![3.38e38, -3.3e38, 1e-20, 0.0],
            };
            let made = realise_with(&l, &suite.target, &unsplit(tiling)).unwrap();
            suite.relative(&l, made, vec![left, vec![1.0, -0.5, 0.25, 0.0]]);
        }
    });
}

#[test]
fn every_tiling_with_several_terms() {
    let [same, other] = [Further { k: None, sum: 1 }, Further { k: Some(40), sum: 0 }];
    let kinds: [&[Further]; 4] = [
        &[other],
        &[same],
        &[Further { k: Some(3), sum: 1 }, Further { k: None, sum: 0 }],
        &[same, Further { k: Some(68), sum: 0 }, Further { k: None, sum: 1 }],
    ];
    check(|suite| {
        for (i, tiling) in tilings(&suite.target).into_iter().enumerate() {
            for (j, further) in kinds.into_iter().enumerate().filter(|(j, _)| takes(i + j, 4)) {
                let product =
                    Product { batch: vec![2], transposed: [false, true], ..Product::new(37, 68, 100 + j) };
                let l = product.with_terms(further);
                for choice in [unsplit(tiling), Choice::parts(tiling, 3)] {
                    suite.case_if_it_fits(&l, &choice);
                }
                if tiling.is_staged() {
                    suite.case_if_it_fits(&l, &Choice { merge: Merge::Last, ..Choice::parts(tiling, 4) });
                }
            }
        }
    });
}

/// Sizes around the tiling's, whole and in parts of either kind, with several terms.
#[test]
fn every_tiling_with_scaled_rows() {
    let [same, other] = [Further { k: None, sum: 1 }, Further { k: Some(40), sum: 0 }];
    check(|suite| {
        for (i, tiling) in tilings(&suite.target).into_iter().enumerate() {
            let [bm, bn] = [tiling.bm, tiling.bn].map(|n| n as usize);
            let product = |m, n, k| Product { transposed: [i % 2 == 1, true], ..Product::new(m, n, k) };
            let batched = Product { batch: vec![2], epilogue: Epilogue::Residual, ..product(8, 12, 256) };
            let loops = [
                product(bm + 1, bn + 3, 131).build(),
                batched.build(),
                product(5, 68, 100).with_terms(&[same]),
                product(9, 20, 70).with_terms(&[other, same]),
                product(1, bn, 192).with_terms(&[same]),
            ];
            for (_, l) in loops.into_iter().enumerate().filter(|(j, _)| takes(i + j, 5)) {
                let l = with_row_scale(l);
                if tiling.class() == NumericClass::F16 {
                    let error = realise_with(&l, &suite.target, &unsplit(tiling)).unwrap_err();
                    assert!(error.to_string().contains("sums of rows"), "{error}");
                    continue;
                }
                for choice in [unsplit(tiling), Choice::parts(tiling, 3)] {
                    suite.case_if_it_fits(&l, &choice);
                }
                if tiling.is_staged() {
                    suite.case_if_it_fits(&l, &Choice { merge: Merge::Last, ..Choice::parts(tiling, 3) });
                }
            }
        }
    });
}

/// What is not finite makes its row of results NaN or keeps it so, rows of zeros stay zeros, and squares that overflow make zeros.
#[test]
fn every_tiling_scales_rows_that_are_not_finite() {
    check(|suite| {
        for (i, tiling) in tilings(&suite.target).into_iter().enumerate() {
            if tiling.class() != NumericClass::F32 {
                continue;
            }
            let (m, n, k) = (6, 8, 100);
            let l = with_row_scale(Product { transposed: [false, true], ..Product::new(m, n, k) }.build());
            let mut operands: Vec<Vec<f32>> = l
                .operands
                .iter()
                .enumerate()
                .map(|(i, ty)| harness::values(i as u64, ty.elements()))
                .collect();
            operands[0][k..2 * k].fill(0.0);
            operands[0][3 * k + 7] = f32::NAN;
            operands[0][4 * k + k - 1] = f32::INFINITY;
            operands[0][5 * k..].iter_mut().for_each(|x| *x *= 1e24);
            let mut choices = vec![unsplit(tiling), Choice::parts(tiling, 3)];
            if tiling.is_staged() {
                choices.push(Choice { merge: Merge::Last, ..Choice::parts(tiling, 3) });
            }
            for (_, choice) in choices.iter().enumerate().filter(|(j, _)| takes(i + j, 2)) {
                let made = realise_with(&l, &suite.target, choice).unwrap();
                suite.with_operands(&l, made, operands.clone());
                suite.hold_to(k as f64);
            }
        }
    });
}

#[test]
fn every_tiling_with_prologues_and_epilogues() {
    check(|suite| {
        let epilogues = [Epilogue::BiasRelu, Epilogue::Residual, Epilogue::Transposed];
        for (i, tiling) in tilings(&suite.target).into_iter().enumerate() {
            for (j, epilogue) in epilogues.into_iter().enumerate() {
                let sizes = [(20, 36), (19, 35)];
                for (_, (m, n)) in sizes.iter().enumerate().filter(|(s, _)| takes(i + j + s, 4)) {
                    let product = Product { prologue: true, epilogue, ..Product::new(*m, *n, 24) };
                    suite.case(&product.build(), &unsplit(tiling));
                }
            }
        }
    });
}

/// Few rows and few columns: with every number of them, products that are no quadruples, and one or few of the other.
#[test]
fn tilings_with_lanes() {
    check(|suite| {
        let epilogues = [Epilogue::Plain, Epilogue::BiasRelu, Epilogue::Residual, Epilogue::Transposed];
        let lanes = tilings(&suite.target).into_iter().filter(Tiling::has_lanes);
        for (i, tiling) in lanes.enumerate() {
            for few in 1..=8 {
                let case = i * 5 + few;
                let (many, k) = ([1, 7, 192, 20][case % 4], [1, 3, 5, 576, 4097, 260][case % 6]);
                let (m, n) = if tiling.bn < tiling.bm { (many, few) } else { (few, many) };
                let batch = if case.is_multiple_of(3) { vec![2] } else { vec![] };
                let transposed = [case.is_multiple_of(2), case.is_multiple_of(3)];
                let (prologue, epilogue) = (case.is_multiple_of(5), epilogues[case % 4]);
                let product = Product { batch, m, n, k, transposed, prologue, epilogue };
                let split = if case.is_multiple_of(7) { 3 } else { 1 };
                if takes(i + few, 3) {
                    suite.case(&product.build(), &Choice::parts(tiling, split));
                }
            }
        }
    });
}

#[test]
fn every_tiling_on_convolutions() {
    check(|suite| {
        let loops = convolutions();
        for (i, tiling) in tilings(&suite.target).into_iter().enumerate() {
            for (_, l) in loops.iter().enumerate().filter(|(j, _)| takes(i * 5 + j, 6)) {
                suite.case(l, &unsplit(tiling));
            }
        }
    });
}

fn convolutions() -> Vec<Loop> {
    let same = loops::Conv { batch: 2, channels: [3, 8], size: [7, 8], filter: 3, stride: 1, pad: 1 };
    let strided = loops::Conv { batch: 1, channels: [4, 5], size: [9, 11], filter: 3, stride: 2, pad: 1 };
    let point = loops::Conv { batch: 2, channels: [8, 12], size: [4, 4], filter: 1, stride: 1, pad: 0 };
    [same, strided, point]
        .iter()
        .flat_map(|c| [c.forward(), c.forward_channels_last(), c.input_gradient(), c.weight_gradient()])
        .collect()
}

/// Reading ahead reads nothing outside and changes nothing, whatever the size.
#[test]
fn prefetches_change_nothing() {
    check(|suite| {
        for k in [1, 9, 100, 4099] {
            let l = Product::new(5, 8, k).build();
            let mut realisation = realise_with(&l, &suite.target, &unsplit(Tiling::SMALL)).unwrap();
            let read = prefetch(l.operands[0].bytes() as u64, &suite.target).unwrap();
            realisation.dispatches.insert(0, read);
            realisation.scratch.push(4);
            suite.realised(&l, realisation);
        }
    });
}

/// Tiles of products that lie along the innermost of several axes.
#[test]
fn every_tiling_with_products_by_taps() {
    let forward = loops::Conv { batch: 2, channels: [64, 9], size: [5, 6], filter: 3, stride: 1, pad: 1 };
    let backward = loops::Conv { channels: [12, 64], ..forward };
    let strided = loops::Conv { stride: 2, size: [7, 5], ..forward };
    let loops = [
        forward.forward_by_taps(),
        strided.forward_by_taps(),
        backward.input_gradient_by_taps(),
        forward.forward_channels_last(),
    ];
    check(|suite| {
        for (i, tiling) in tilings(&suite.target).into_iter().enumerate() {
            for (j, l) in loops.iter().enumerate().filter(|(j, _)| takes(i + j, 4)) {
                let split = Choice::parts(tiling, 2 + j as u32);
                suite.case(l, &if takes(i, 2) { split } else { unsplit(tiling) });
            }
        }
    });
}

#[test]
fn convolutions_with_split_products() {
    check(|suite| {
        for (i, l) in convolutions().iter().enumerate() {
            let tiling = [Tiling::DIRECT_4X4, Tiling::SMALL, Tiling::MIDDLE][i % 3];
            suite.case(l, &Choice::parts(tiling, 2));
        }
    });
}

/// More products than one invocation may run loop iterations for, on drivers with such a limit.
#[test]
fn every_tiling_with_very_many_products() {
    check(|suite| {
        let long = Product::new(5, 6, 70_001).build();
        for (i, tiling) in tilings(&suite.target).into_iter().enumerate() {
            if takes(i, 3) {
                suite.case(&long, &unsplit(tiling));
            }
        }
        let target = suite.target.clone();
        for l in [Product::new(4, 8, 140_000).build(), Product::new(1, 1, 300_007).build()] {
            suite.realised(&l, realise(&l, &target).unwrap());
        }
    });
}

/// The same code under a limit that small sizes reach.
#[test]
fn every_tiling_under_a_small_limit() {
    check(|suite| {
        let target = Target { max_iterations: 100, ..suite.target.clone() };
        for (i, tiling) in tilings(&target).into_iter().enumerate() {
            for (_, k) in [700, 1501].into_iter().enumerate().filter(|(j, _)| takes(i + j, 2)) {
                let l = Product { batch: vec![2], ..Product::new(9, 8, k) }.build();
                let made = realise_with(&l, &target, &unsplit(tiling)).unwrap();
                assert!(!tiling.is_direct() || made.dispatches.len() == 2, "{tiling}");
                suite.realised(&l, made);
            }
        }
    });
}

#[test]
fn default_choices() {
    check(|suite| {
        let target = suite.target.clone();
        for (m, n, k) in [
            (1, 1, 1),
            (2, 300, 70),
            (64, 10, 300),
            (130, 70, 33),
            (16, 9, 4000),
            (3, 5, 2048),
            (1, 576, 576),
            (40, 2, 4097),
        ] {
            let l = Product { epilogue: Epilogue::BiasRelu, ..Product::new(m, n, k) }.build();
            suite.realised(&l, realise(&l, &target).unwrap());
        }
    });
}

#[test]
fn refusals_are_typed() {
    let mut target = Target::minimal_vulkan();
    let l = Product { epilogue: Epilogue::BiasRelu, ..Product::new(64, 64, 64) }.build();
    let double = unsplit(Tiling::LARGE_DOUBLE);
    assert!(realise_with(&l, &target, &double).unwrap_err().to_string().contains("128x128x16/8x8/db"));
    target.max_bindings = 2;
    assert!(realise_with(&l, &target, &unsplit(Tiling::SMALL)).unwrap_err().to_string().contains("bindings"));
    target.max_bindings = 8;
    target.max_binding_bytes = 1 << 14;
    let split = Choice::parts(Tiling::SMALL, 4);
    assert!(realise_with(&l, &target, &split).unwrap_err().to_string().contains("partial sums"));
}
