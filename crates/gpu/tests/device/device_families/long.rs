//! More elements than one invocation may run loop iterations for, on drivers with such a limit; values whose sums are exact.

use super::harness::{Case, floats, run, with_device};
use super::maps::broadcast;
use super::rows::{extremes, softmax};
use super::scatters::scatter;
use griffinfly_compile::kernel::KernelError;
use griffinfly_compile::kernel::families::{RowRealisation, realise, realise_row_as};
use griffinfly_compile::kernel::verify::Fault;
use griffinfly_ir::loops::Loop;
use griffinfly_ir::target::{LEAST_ITERATIONS, Target};

/// Multiples of 1/8 in -1..=1: sums and sums of squares of a hundred thousand are exact in f32.
fn eighths(count: usize, seed: u64) -> Vec<u32> {
    floats(count, seed).into_iter().map(|x| ((f32::from_bits(x) * 8.0).round() / 8.0).to_bits()).collect()
}

fn is_refusal(error: &KernelError) -> bool {
    matches!(error, KernelError::Invalid { faults, .. } if matches!(faults[..], [Fault::Iterations { .. }]))
}

/// The default realisation and all others that the target allows; the ones refused must be refused for their length.
fn row_cases(l: &Loop, name: &str, target: &Target, contents: &[Vec<u32>]) -> Vec<Case> {
    let mut cases = vec![Case::new(name, l.clone(), contents.to_vec(), |l| realise(l, target))];
    for way in [RowRealisation::Serial, RowRealisation::Streaming, RowRealisation::Split] {
        match realise_row_as(l, target, way) {
            Ok(made) => {
                let name = format!("{name} {}", way.name());
                cases.push(Case::new(name, l.clone(), contents.to_vec(), |_| Ok(made)));
            }
            Err(error) => assert!(is_refusal(&error), "{name} {}: {error}", way.name()),
        }
    }
    cases
}

/// Sums and extremes of eighths; softmax of values whose exponentials are 1 or 0, so that their sums are exact too.
fn long_rows((rows, cols): (usize, usize), transposed: bool, name: &str, target: &Target) -> Vec<Case> {
    let mut cases = row_cases(&extremes(rows, cols, transposed), name, target, &[eighths(rows * cols, 3)]);
    let steps = floats(rows * cols, 6).into_iter();
    let steps = steps.map(|x| if f32::from_bits(x) > -0.5 { 0 } else { (-200.0_f32).to_bits() }).collect();
    cases.extend(row_cases(&softmax(rows, cols, transposed), name, target, &[steps]));
    cases
}

#[test]
fn rows_and_columns() {
    with_device(|device| {
        let mut cases = Vec::new();
        for (rows, cols, transposed) in [(2, 70_001, false), (3, 70_001, true), (1, 140_003, true)] {
            let name = format!("{rows} rows of {cols}, transposed {transposed}");
            cases.extend(long_rows((rows, cols), transposed, &name, device.target()));
        }
        run(device, &cases);
    });
}

#[test]
fn the_longest_row_of_one_invocation() {
    with_device(|device| {
        let target = Target { max_iterations: LEAST_ITERATIONS, ..device.target().clone() };
        // The last test of the loop's condition counts as well.
        let longest = LEAST_ITERATIONS as usize - 1;
        let serial = |l: &Loop| realise_row_as(l, &target, RowRealisation::Serial);
        let refusal = serial(&extremes(2, longest + 1, true)).unwrap_err();
        assert!(
            refusal.to_string().contains("65536 loop iterations per invocation, 65535 allowed"),
            "{refusal}"
        );
        run(
            device,
            &[Case::new("longest", extremes(2, longest, true), vec![eighths(2 * longest, 4)], serial)],
        );
    });
}

#[test]
fn items_of_one_row() {
    with_device(|device| {
        let (l, mut operands) = scatter(2, 140_003, 3);
        // The worst case: one invocation adds every item.
        operands[0].iter_mut().for_each(|id| *id = 1);
        operands[1] = eighths(operands[1].len(), 5);
        let case = Case::new("one row", l, operands, |l| realise(l, device.target()));
        let dispatches = case.realisation.dispatches.len();
        assert_eq!(dispatches > 1, device.target().max_iterations < 140_003);
        run(device, &[case]);
    });
}

/// The same code under a limit that small sizes reach.
#[test]
fn all_families_under_a_small_limit() {
    with_device(|device| {
        let target = Target { max_iterations: 600, compute_units: 1, ..device.target().clone() };
        let mut cases = Vec::new();
        for (rows, cols, transposed) in [(3, 70_001, false), (40, 20_011, true), (2, 601, true)] {
            let name = format!("{rows} rows of {cols} under a limit");
            cases.extend(long_rows((rows, cols), transposed, &name, &target));
        }
        let (l, mut operands) = scatter(7, 5003, 5);
        operands[1] = eighths(operands[1].len(), 7);
        let ranges = Case::new("ranges of items", l, operands, |l| realise(l, &target));
        assert!(ranges.realisation.dispatches.len() > 5);
        cases.push(ranges);
        let one_group = Target { max_iterations: 17, ..target.clone() };
        let l = broadcast(&[300, 700], &[700], &[300, 700]);
        let operands = vec![floats(300 * 700, 8), floats(700, 9)];
        cases.push(Case::new("map", l, operands, |l| realise(l, &one_group)));
        run(device, &cases);
    });
}
