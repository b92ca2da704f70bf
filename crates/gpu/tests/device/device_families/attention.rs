//! Attention and its gradients.

use super::harness::{Case, results, run, with_device};
use crate::attention::{Problem, loops, problems, rotated, rotations};
use crate::under_test::is_full;
use griffinfly_compile::kernel::families::attention::{Geometry, parse, realise_with};
use griffinfly_compile::kernel::families::realise;
use griffinfly_ir::attr::F32;
use griffinfly_ir::loops::{Attention, AttentionMask, AttentionVariant, Loop, LoopKind};
use griffinfly_ir::target::{NumericClass, Target};

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

/// As hardware and as a software driver, in turn.
#[test]
fn attention_rotates_on_load() {
    with_device(|device| {
        let mut all = Vec::new();
        for (number, (problem, pairs)) in rotations().into_iter().enumerate() {
            let target = Target { is_hardware: number % 2 == 0, ..device.target().clone() };
            let made = rotated(&problem, pairs).into_iter();
            all.extend(made.map(|(name, l, operands)| Case::new(name, l, operands, |l| realise(l, &target))));
        }
        run(device, &all);
    });
}

/// Every geometry, with the code for hardware and for software drivers, against the interpreter; forward loops also in the
/// least memory.
#[test]
fn attention_has_equal_results_in_every_geometry() {
    with_device(|device| {
        let (full, causal) = (AttentionMask::FULL, AttentionMask::CAUSAL);
        let local = AttentionMask { causal: false, window: Some(9) };
        let problems = [
            ([1, 4, 2, 77, 83, 16], causal, None),
            ([2, 2, 2, 9, 75, 12], full, Some(vec![9, 75])),
            ([1, 3, 1, 70, 37, 9], local, None),
        ];
        let problems = problems.map(|(extents, mask, bias)| Problem { extents, mask, bias });
        let plain = Geometry::all().into_iter().filter(|g| !g.is_matrix);
        // Software drivers compile each for a second or two: there every other one.
        let step = if device.target().is_hardware || is_full() { 1 } else { 2 };
        for (number, geometry) in plain.enumerate().step_by(step) {
            let mut all = Vec::new();
            for (name, l, operands) in loops(&problems[number % problems.len()]) {
                let LoopKind::Attention(a) = l.kind.clone() else { continue };
                for target in targets(&a, geometry, device.target()) {
                    // A sample of the geometries suffices for the differences of software drivers and of little memory.
                    let is_plain = target.is_hardware
                        && target.max_workgroup_bytes == device.target().max_workgroup_bytes;
                    if !is_plain && number % 4 > 0 {
                        continue;
                    }
                    let realise = |l: &Loop| realise_with(l, &target, geometry);
                    all.push(Case::new(format!("{geometry} {name}"), l.clone(), operands.clone(), realise));
                }
            }
            assert!(!all.is_empty() || geometry.invocations() > device.target().max_invocations);
            run(device, &all);
        }
    });
}

/// Keys in parts: fewer keys than parts have tiles, parts that a mask leaves nothing, rows that see nothing, no quadruples.
#[test]
fn attention_puts_parts_of_the_keys_together() {
    with_device(|device| {
        let (full, causal) = (AttentionMask::FULL, AttentionMask::CAUSAL);
        let local = AttentionMask { causal: false, window: Some(9) };
        let problems = [
            ([1, 9, 3, 1, 300, 64], causal, None, "4x16 by 4x16 split4"),
            ([2, 2, 1, 3, 77, 20], full, Some(vec![3, 77]), "4x64 by 4x32 split8"),
            ([1, 4, 2, 2, 120, 9], local, None, "8x32 by 8x16 split16"),
            ([1, 2, 1, 50, 17, 6], causal, None, "8x8 by 8x4 split2"),
            ([1, 1, 1, 1, 5, 33], full, None, "4x4 by 4x4 split32"),
        ];
        let mut all = Vec::new();
        for (number, (extents, mask, bias, text)) in problems.into_iter().enumerate() {
            let (name, l, operands) = loops(&Problem { extents, mask, bias }).remove(0);
            let target = Target { is_hardware: number % 2 == 0, ..device.target().clone() };
            let geometry = parse(&l, text, &[NumericClass::F32]).unwrap();
            assert_eq!(geometry.to_string(), text);
            let case =
                Case::new(format!("{text} {name}"), l, operands, |l| realise_with(l, &target, geometry));
            assert_eq!(case.realisation.dispatches.len(), 2);
            all.push(case);
        }
        run(device, &all);
    });
}

/// Geometries for matrix units: whole and partial tiles, groups, masks, a bias, rotation on load.
#[test]
fn attention_by_matrices_is_as_good_as_its_class() {
    with_device(|device| {
        let (full, causal) = (AttentionMask::FULL, AttentionMask::CAUSAL);
        let local = AttentionMask { causal: false, window: Some(9) };
        let p = |extents, mask, bias| Problem { extents, mask, bias };
        let problems = [
            (p([1, 4, 2, 77, 83, 16], causal, None), 0),
            (p([2, 2, 1, 60, 75, 32], full, Some(vec![60, 75])), 0),
            (p([1, 3, 1, 70, 37, 16], local, None), 4),
            (p([1, 2, 2, 40, 50, 32], full, None), 0),
            (p([2, 3, 3, 5, 9, 48], causal, None), 0),
        ];
        let geometries: Vec<Geometry> = Geometry::all().into_iter().filter(|g| g.is_matrix).collect();
        let mut count = 0;
        for (number, (problem, pairs)) in problems.iter().enumerate() {
            let made = if *pairs > 0 { rotated(problem, *pairs) } else { loops(problem) };
            let mut all = Vec::new();
            for (name, l, operands) in made {
                let LoopKind::Attention(a) = &l.kind else { continue };
                for (turn, geometry) in geometries.iter().enumerate() {
                    // Software drivers compile these for seconds each: there a sample, and as hardware only where the code is small.
                    let is_hardware = device.target().is_hardware;
                    let most = if a.variant == AttentionVariant::Forward { 48 * 32 } else { 16 * 16 };
                    let is_sample = (turn + number) % 3 == 0 && geometry.rows * geometry.columns <= most;
                    let target =
                        Target { is_hardware: is_hardware || turn + number == 0, ..device.target().clone() };
                    if !geometry.fits(a, &target) || !is_hardware && !is_sample {
                        continue;
                    }
                    let class = geometry.class(a.variant);
                    let realise = |l: &Loop| realise_with(l, &target, *geometry);
                    let case = Case::new(format!("{geometry} {name}"), l.clone(), operands.clone(), realise);
                    assert_eq!(case.realisation.dispatches[0].numeric, class);
                    all.push(Case { tolerance: class.error() as f32, ..case });
                }
            }
            count += all.len();
            // One at a time: together these kernels take lavapipe minutes.
            all.iter().for_each(|case| assert_eq!(run(device, std::slice::from_ref(case)), 1));
        }
        assert!(count > 8, "{count}");
    });
}

/// Scores that grow from tile to tile, far beyond what a reference holds: sums are scaled again and again. Queries, keys and the scale
/// are such that scores are exact in half precision, so what is left is the rounding of values.
#[test]
fn attention_by_matrices_takes_new_references() {
    with_device(|device| {
        let problem = Problem { extents: [1, 2, 1, 33, 120, 16], mask: AttentionMask::FULL, bias: None };
        let (_, mut l, mut operands) = loops(&problem).remove(0);
        let LoopKind::Attention(a) = &mut l.kind else { panic!("{:?}", l.kind) };
        a.scale = F32::from_f32(std::f32::consts::LN_2 / 4.0);
        let integers =
            |count: usize, one: fn(usize) -> usize| (0..count).map(|i| (one(i) as f32).to_bits()).collect();
        // Rows of queries are heads of 16 elements; keys grow by one every third row.
        operands[0] = integers(operands[0].len(), |i| 1 + i / 16 % 2);
        operands[1] = integers(operands[1].len(), |i| i / 48);
        let (a, mut count) = (a.clone(), 0);
        for geometry in Geometry::all().into_iter().filter(|g| g.is_matrix) {
            let is_small = geometry.rows * geometry.columns <= 48 * 32 && geometry.columns == 32;
            if !geometry.fits(&a, device.target()) || !device.target().is_hardware && !is_small {
                continue;
            }
            let realise = |l: &Loop| realise_with(l, device.target(), geometry);
            let case = Case::new(geometry.to_string(), l.clone(), operands.clone(), realise);
            count += run(device, &[Case { tolerance: 1e-3, ..case }]);
        }
        assert!(count > 2, "{count}");
    });
}

/// What a key holds that f16 does not shows in every result, and keys that are not seen show in none.
#[test]
fn attention_by_matrices_hides_no_overflow() {
    with_device(|device| {
        let problem = Problem { extents: [1, 2, 2, 20, 20, 16], mask: AttentionMask::CAUSAL, bias: None };
        let (_, l, mut operands) = loops(&problem).remove(0);
        let geometry = parse(&l, "matrix 16x16", &[NumericClass::F16]).unwrap();
        // Keys 18 and 19 of both heads: the first element is beyond f16, and of the sign that makes scores small.
        for key in [18, 19] {
            for head in 0..2 {
                operands[1][(key * 2 + head) * 16] = (-7e4_f32).to_bits();
            }
        }
        (0..20 * 2).for_each(|row| operands[0][row * 16] = 1e-4_f32.to_bits());
        let case = Case::new("overflow", l, operands, |l| realise_with(l, device.target(), geometry));
        let results = results(device, &case);
        let row =
            |query: usize| results[0][query * 32..(query + 1) * 32].iter().map(|word| f32::from_bits(*word));
        assert!((0..18).all(|query| row(query).all(f32::is_finite)));
        assert!((18..20).all(|query| row(query).all(f32::is_nan)));
    });
}

/// Targets like a device: as hardware, as a software driver, and with little memory, as far as a geometry fits.
fn targets(a: &Attention, geometry: Geometry, device: &Target) -> Vec<Target> {
    let of = |is_hardware, max_workgroup_bytes| Target { is_hardware, max_workgroup_bytes, ..device.clone() };
    let most = device.max_workgroup_bytes;
    let least = (1..=most >> 8).map(|n| n << 8).find(|bytes| geometry.fits(a, &of(true, *bytes)));
    let least = least.filter(|_| a.variant == AttentionVariant::Forward);
    let all = [of(true, most), of(false, most)].into_iter().chain(least.map(|bytes| of(true, bytes)));
    all.filter(|target| geometry.fits(a, target)).collect()
}

/// The default in less and less memory; groups beyond one dimension.
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
        assert!(names.len() > 6, "{names:?}");
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
