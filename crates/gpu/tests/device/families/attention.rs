//! Attention and its gradients.

use super::harness::{Case, run, with_device};
use crate::attention::{Problem, loops, problems};
use griffinfly_compile::kernel::families::realise;
use griffinfly_gpu::Device;
use griffinfly_ir::loops::AttentionMask;
use griffinfly_ir::target::Target;

fn cases(problem: &Problem, target: &Target) -> Vec<Case> {
    let made = loops(problem).into_iter();
    made.map(|(name, l, operands)| Case::new(name, l, operands, |l| realise(l, target))).collect()
}

#[test]
fn attention_equals_the_interpreter() {
    with_device(|device| {
        let all: Vec<Case> = problems().iter().flat_map(|p| cases(p, device.target())).collect();
        run(device, &all);
    });
}

/// Every layout of a workgroup, by targets with less and less memory; groups beyond one dimension.
#[test]
fn attention_runs_in_little_memory() {
    with_device(|device| {
        let mask = AttentionMask::CAUSAL;
        let problem = Problem { extents: [1, 4, 2, 40, 50, 20], mask, bias: None };
        let mut names = std::collections::BTreeSet::new();
        let mut all = Vec::new();
        for kibibytes in [2, 3, 4, 6, 8, 12, 16, 24, 32] {
            let most = device.target().max_workgroup_bytes;
            let max_workgroup_bytes = most.min(kibibytes << 10);
            let max_groups = [3, 65_535, 65_535];
            let target = Target { max_workgroup_bytes, max_groups, ..device.target().clone() };
            for case in cases(&problem, &target) {
                if names.insert(case.realisation.dispatches[0].name.clone()) {
                    all.push(case);
                }
            }
        }
        assert!(names.len() > 9, "{names:?}");
        run(device, &all);
    });
}

/// Seven operands and two results do not fit eight bindings.
#[test]
fn gradients_of_keys_and_values_part_where_bindings_are_few() {
    with_device(|device| {
        let target = Target { max_bindings: 8, ..device.target().clone() };
        let bias = Some(vec![17, 17]);
        let problem = Problem { extents: [1, 4, 2, 17, 17, 20], mask: AttentionMask::FULL, bias };
        let all = cases(&problem, &target);
        let dispatches: Vec<usize> = all.iter().map(|case| case.realisation.dispatches.len()).collect();
        assert_eq!(dispatches.iter().max(), Some(&2));
        run(device, &all);
    });
}
