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
