//! Each fault by the smallest kernel that has it.

use super::*;
use crate::kir::{Axis, Builder, Type};

const LIMITS: KernelLimits = KernelLimits {
    max_workgroup_bytes: 1024,
    max_invocations: 256,
    max_workgroup_size: [256, 256, 64],
    max_bindings: 2,
    max_parameter_bytes: 8,
};

fn faults_of(b: Builder) -> Vec<Fault> {
    faults(&b.finish().unwrap(), &LIMITS)
}

fn divergent(inside: Divergence) -> Vec<Fault> {
    vec![Fault::DivergentBarrier { inside }]
}

#[test]
fn reports_every_limit_at_once() {
    let b = Builder::new("big", [16, 32, 65]);
    for name in ["a", "b", "c"] {
        b.param(name);
        b.read(name, Type::F32);
    }
    b.shared("tile", Type::F32X4, 65);
    let found = faults_of(b);
    let expected = [
        Fault::WorkgroupSize { dimension: 2, size: 65, limit: 64 },
        Fault::Invocations { invocations: 16 * 32 * 65, limit: 256 },
        Fault::WorkgroupBytes { bytes: 1040, limit: 1024 },
        Fault::Bindings { bindings: 3, limit: 2 },
        Fault::ParameterBytes { bytes: 12, limit: 8 },
    ];
    assert_eq!(found, expected);
}

#[test]
fn accepts_limits_exactly() {
    let b = Builder::new("full", [256, 1, 1]);
    b.param("a");
    b.param("b");
    b.shared("tile", Type::F32X4, 64);
    assert_eq!(faults_of(b), []);
}

#[test]
fn zero_workgroup_is_a_fault() {
    assert_eq!(
        faults_of(Builder::new("none", [0, 1, 1])),
        [Fault::WorkgroupSize { dimension: 0, size: 0, limit: 256 }]
    );
}

#[test]
fn stores_need_write_access() {
    let b = Builder::new("store", [1, 1, 1]);
    b.read("x", Type::F32).store(0, 1.0);
    b.read_write("y", Type::F32).store(0, 1.0);
    assert_eq!(faults_of(b), [Fault::ReadOnlyStore { binding: "x".to_owned() }]);
}

#[test]
fn breaks_need_a_loop() {
    let b = Builder::new("stray", [1, 1, 1]);
    b.if_(b.param("n").gt(0), || b.break_());
    b.loop_(|| b.break_());
    assert_eq!(faults_of(b), [Fault::StrayBreak]);
}

#[test]
fn barriers_need_uniform_branches() {
    let b = Builder::new("if", [64, 1, 1]);
    b.if_(b.param("n").gt(0), || b.barrier());
    assert_eq!(faults_of(b), divergent(Divergence::UnmarkedIf));

    let b = Builder::new("claim", [64, 1, 1]);
    b.if_uniform(b.param("n").gt(0), || b.barrier());
    assert_eq!(faults_of(b), []);

    let b = Builder::new("lie", [64, 1, 1]);
    b.if_uniform(b.local_id(Axis::X).gt(0), || b.barrier());
    assert_eq!(faults_of(b), divergent(Divergence::FalseClaim));
}

#[test]
fn subgroups_wait_alone_in_branches_of_their_own() {
    let b = Builder::new("apart", [64, 1, 1]);
    b.if_subgroup_uniform((b.local_index() / 32).lt(1), || b.subgroup_barrier());
    assert_eq!(faults_of(b), []);
    let b = Builder::new("together", [64, 1, 1]);
    b.if_subgroup_uniform((b.local_index() / 32).lt(1), || b.barrier());
    assert_eq!(faults_of(b), divergent(Divergence::SubgroupIf));
    let b = Builder::new("inside", [64, 1, 1]);
    b.if_(b.local_index().lt(1), || {
        b.if_subgroup_uniform((b.local_index() / 32).lt(1), || b.subgroup_barrier());
    });
    assert_eq!(faults_of(b), divergent(Divergence::UnmarkedIf));
}

#[test]
fn barriers_need_uniform_loops() {
    let b = Builder::new("for", [64, 1, 1]);
    b.for_("i", (0, b.param("n")), 1, |_| b.barrier());
    assert_eq!(faults_of(b), []);

    let b = Builder::new("varying", [64, 1, 1]);
    b.for_("i", (b.local_index(), b.param("n")), 64, |_| b.barrier());
    assert_eq!(faults_of(b), divergent(Divergence::VaryingLoop));

    let b = Builder::new("early", [64, 1, 1]);
    b.loop_(|| {
        b.break_if(b.local_index().gt(3));
        b.barrier();
    });
    assert_eq!(faults_of(b), divergent(Divergence::VaryingBreak));

    let b = Builder::new("together", [64, 1, 1]);
    let turns = b.var("turns", 0_u32);
    b.while_(
        || turns.get().lt(4),
        || {
            turns.set(turns.get() + 1);
            b.barrier();
        },
    );
    assert_eq!(faults_of(b), divergent(Divergence::VaryingBreak));

    let b = Builder::new("claimed", [64, 1, 1]);
    let turns = b.var("turns", 0_u32);
    b.loop_(|| {
        b.break_if_uniform(turns.get().ge(4));
        turns.set(turns.get() + 1);
        b.barrier();
    });
    assert_eq!(faults_of(b), []);
}

#[test]
fn the_error_lists_all_faults() {
    let b = Builder::new("both", [512, 1, 1]);
    b.break_();
    let error = check(&b.finish().unwrap(), &LIMITS).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `both` is not valid: workgroup size 512 in dimension 0 is outside 1..=256; \
         512 invocations per workgroup, 256 allowed; break outside a loop"
    );
}

/// The bound for one workgroup of 8 and the given parameters.
fn bound(parameters: &[u32], build: impl Fn(&Builder)) -> Option<u64> {
    let b = Builder::new("count", [8, 1, 1]);
    build(&b);
    most_iterations(&b.finish().unwrap(), parameters, [5, 1, 1])
}

#[test]
fn counts_turns_and_the_last_test_of_each_loop() {
    let turns = bound(&[10], |b| b.for_("i", (3_u32, b.param("n")), 2_u32, |_| {}));
    assert_eq!(turns, Some(4 + 1));
    let nested = bound(&[10, 6], |b| {
        let (n, m) = (b.param("n"), b.param("m"));
        b.for_("i", (0_u32, n), 1_u32, |_| b.for_("j", (0_u32, m), 1_u32, |_| {}));
    });
    assert_eq!(nested, Some(10 * (6 + 1 + 1) + 1));
    let sides = bound(&[10], |b| {
        let n = b.param("n");
        let body = || b.for_("i", (0_u32, n), 1_u32, |_| {});
        b.if_else(b.local_index().lt(3_u32), body, || b.for_("i", (0_u32, 2_u32), 1_u32, |_| {}));
    });
    assert_eq!(sides, Some(11 + 3));
}

#[test]
fn counts_strided_parts_and_tails() {
    let strided = bound(&[1000], |b| {
        let n = b.param("n");
        let start = b.workgroup_id(Axis::X) * 8 + b.local_index();
        b.for_("i", (start, n), b.workgroup_count(Axis::X) * 8, |_| {});
    });
    assert_eq!(strided, Some(25 + 1));
    let part = bound(&[1000, 100], |b| {
        let (n, part) = (b.param("n"), b.param("part"));
        let start = (b.workgroup_id(Axis::X) * part).named("start");
        let end = (start + part).native_min(n);
        b.for_("i", (start + b.local_index(), end), 8_u32, |_| {});
    });
    assert_eq!(part, Some(13 + 1));
    // Division and remainder by powers of two become shifts and masks.
    let shifted = bound(&[1000, 100], |b| {
        let (n, part) = (b.param("n"), b.param("part"));
        let start = (b.workgroup_id(Axis::X) % 4_u32 * part).named("start");
        let end = (start + part).native_min(n);
        b.for_("i", (start + b.local_index() / 4, end), 2_u32, |_| {});
    });
    assert_eq!(shifted, Some(50 + 1));
    let tail = bound(&[20], |b| {
        let n = b.param("n");
        b.for_("i", (0_u32, n), 8_u32, |i| b.for_("j", (0_u32, (n - i).native_min(8_u32)), 1_u32, |_| {}));
    });
    assert_eq!(tail, Some(3 * (8 + 1 + 1) + 1));
}

#[test]
fn unknown_bounds_are_never_below_the_truth() {
    assert_eq!(bound(&[], |b| b.loop_(|| b.break_())), None);
    let loaded = bound(&[], |b| {
        let n = b.read("n", Type::U32).load(0_u32);
        b.for_("i", (0_u32, n), 1_u32, |_| {});
    });
    assert_eq!(loaded, Some(u64::from(u32::MAX) + 1));
    // `n - 5` wraps around for n = 3.
    let wrapped = bound(&[3], |b| {
        let end = b.param("n") - (b.local_index() + 1);
        b.for_("i", (0_u32, end), 1_u32, |_| {});
    });
    assert_eq!(wrapped, Some(u64::from(u32::MAX) + 1));
    let wide = check_iterations(&Builder::new("none", [1, 1, 1]).finish().unwrap(), &[], [1, 1, 1], 1);
    assert_eq!(wide, Ok(()));
    let b = Builder::new("many", [1, 1, 1]);
    b.for_("i", (0_u32, b.param("n")), 1_u32, |_| {});
    let kernel = b.finish().unwrap();
    assert!(check_iterations(&kernel, &[9], [1, 1, 1], 10).is_ok());
    let error = check_iterations(&kernel, &[10], [1, 1, 1], 10).unwrap_err();
    assert!(error.to_string().contains("up to 11 loop iterations per invocation, 10 allowed"), "{error}");
    assert!(check_iterations(&kernel, &[10], [1, 1, 1], u32::MAX).is_ok());
}
