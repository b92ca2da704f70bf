//! Faults planted in real kernels: each is found when the kernel runs on the CPU, and is called what it is.
//!
//! Input: kernels with barriers, of each family that has such, and changes of their texts. Output: the report of each change.

use super::Realised;
use super::execute::{Case, Problem, execute, is_skipped, text};
use griffinfly_ir::loops::Loop;
use griffinfly_ir::target::NumericClass;
use griffinfly_ir::types::TensorType;
use griffinfly_kernel::families::Realisation;

const BARRIER: &str = "metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);\n";
/// Beginnings of the names of kernels with barriers, and how many barriers must be missed at least. Some are needed for other
/// sizes only, or for what is not stored.
const FAMILIES: [(&str, usize); 7] = [
    ("row on-chip", 12),
    ("row streaming", 4),
    ("scatter", 1),
    ("contract gemv", 2),
    ("contract 64x32", 4),
    ("contract f32 ", 3),
    ("attention dq", 3),
];

/// The largest sample that has a realisation whose first kernel has a name that begins so and a text that contains `part`.
fn find(begin: &str, part: &str) -> (Problem, Case) {
    let has = |made: &&Realisation| {
        let first = &made.dispatches[0];
        first.name.starts_with(begin) && text(&first.kernel).contains(part)
    };
    let with = |one: &'static Realised| one.made.iter().find(has).map(|made| (one, made));
    let elements = |l: &Loop| l.operands.iter().chain(&l.results).map(TensorType::elements).sum::<usize>();
    let largest = super::realised().iter().filter_map(with).max_by_key(|(one, _)| elements(&one.l));
    let (one, made) = largest.unwrap_or_else(|| panic!("no kernel {begin} with {part}"));
    let problem = Problem::new(one);
    let case = problem.case(made);
    (problem, case)
}

/// The case with a changed text.
fn changed(case: &Case, change: impl FnOnce(&str) -> String) -> Case {
    let mut case = case.clone();
    let text = change(&case.texts[0]);
    assert_ne!(text, case.texts[0], "{}: nothing was changed", case.name);
    case.texts[0] = text;
    case
}

/// Without each of its barriers in turn.
fn without_barriers(case: &Case) -> Vec<Case> {
    let places: Vec<usize> = case.texts[0].match_indices(BARRIER).map(|(at, _)| at).collect();
    let without = |at: usize| changed(case, |text| [&text[..at], &text[at + BARRIER.len()..]].concat());
    places.into_iter().map(without).collect()
}

#[test]
fn a_missing_barrier_is_found() {
    if is_skipped() {
        return;
    }
    let families = FAMILIES.map(|(begin, _)| without_barriers(&find(begin, BARRIER).1));
    let (faults, _) = execute("metal-barriers", &families.concat());
    let mut rest = faults.as_slice();
    for ((begin, least), cases) in FAMILIES.iter().zip(&families) {
        let (faults, others) = rest.split_at(cases.len());
        rest = others;
        let found = faults.iter().filter(|faults| !faults.is_empty()).count();
        println!("{begin}: {found} of {} barriers are missed", cases.len());
        let races = faults.iter().flatten().filter(|fault| fault.contains(": race: ")).count();
        assert!(found >= *least && races > 0, "{begin}: {faults:#?}");
    }
}

#[test]
fn planted_faults_are_found() {
    if is_skipped() {
        return;
    }
    let (_, row) = find("row on-chip", BARRIER);
    let (_, map) = find("map", "y0_[");
    let (problem, rounded) = find("contract bf16x1", BARRIER);
    assert!(map.realisation.dispatches[0].groups[0] > 1, "two threadgroups, for a race between them");
    let both = format!("if (local_index == 0u) {{\n{BARRIER}}} else {{\n{BARRIER}}}\n");
    let early = format!("if (local_index == 0u) {{ return; }}\n{BARRIER}");
    let begin = "\n) {\n";
    let same = format!("{begin}y0_[0u] = static_cast<float>(workgroup_id.x);\n");
    let mut exact = rounded.clone();
    exact.bounds = problem.bounds(NumericClass::F16);
    let store =
        row.texts[0].lines().find(|line| line.contains(".inner[") && line.contains("] = ")).expect("a store");
    let plants = [
        ("index 4000", changed(&row, |text| text.replacen("x0_[", "x0_[4000000000u + ", 1))),
        ("index 5", changed(&row, |text| text.replacen(".inner[", ".inner[5000u + ", 1))),
        ("barrier not reached by all", changed(&row, |text| text.replacen(BARRIER, &early, 1))),
        ("barriers not reached by all", changed(&row, |text| text.replacen(BARRIER, &both, 1))),
        ("race: word 0 of buffer ", changed(&map, |text| text.replacen(begin, &same, 1))),
        ("differ", changed(&map, |text| text.replacen("= x0_[", "= 1.5 * x0_[", 1))),
        ("NaN instead of", changed(&row, |text| text.replacen(store, "", 1))),
        ("differ", exact),
    ];
    let mut cases: Vec<Case> = plants.iter().map(|(_, case)| case.clone()).collect();
    cases.extend([row, map, rounded]);
    let (faults, _) = execute("metal-planted", &cases);
    for ((what, case), found) in plants.iter().zip(&faults) {
        assert!(found.len() == 1 && found[0].contains(what), "{what}: {found:?}\n{}", case.texts[0]);
    }
    assert_eq!(faults[plants.len()..].concat(), Vec::<String>::new());
}
