//! Attention on the host, with one thread and several.

use super::harness::check;
use crate::attention::{loops, problems, rotated, rotations};

#[test]
fn host_attends_as_the_interpreter() {
    for problem in problems() {
        for (_, l, operands) in loops(&problem) {
            check(&l, &operands, 2e-5);
        }
    }
}

#[test]
fn host_rotates_on_load() {
    for (problem, pairs) in rotations() {
        for (_, l, operands) in rotated(&problem, pairs) {
            check(&l, &operands, 2e-5);
        }
    }
}
