//! Contractions: matrix products and convolutions in all directions, by register tiles.
//!
//! `acc(b, m, n) = sum over k of a(b, m, k) * b(b, n, k)` in f32 (or of rounded operands, where the choice is of such a numeric
//! class), then the epilogue with `Carry(0) = acc` and its stores. Input:
//! a [`Loop`] of kind `Contract` and a [`Choice`]; output: one dispatch, or two when the products are split into parts
//! (partial sums to scratch, then added in the order of the parts, so results do not depend on timing). Where that pays, the
//! workgroup that finishes a tile last adds its parts in the same order, and there is one dispatch again.
//!
//! | module | owns |
//! |---|---|
//! | `tiling`, `choose` | the closed table of tilings, the choice among them |
//! | `candidates` | choices as text, and those worth measuring |
//! | `view` | bodies with flat addresses and merged axes; which can be evaluated four points at a time |
//! | `point` | evaluation of a body at one or four points; bindings |
//! | `problem` | a contraction on a target: views, sizes, parameter words, position of a tile |
//! | `tile`, `stage`, `slices` | the staged kernel; filling its tiles in workgroup memory; adding up its slices |
//! | `matrix`, `matrix_stage`, `rounding` | the kernel for matrix units; filling its tiles; terms of an operand |
//! | `direct` | the kernel without workgroup memory |
//! | `gemv`, `gemv_choice` | the kernel for few rows or columns, whose products lanes share; its choice |
//! | `finish`, `reduce` | sums to outputs or partial sums; the dispatch that adds parts |
//!
//! Invariants: extents (rows, columns, products, parts) are parameters, strides and maps are code; rows and columns past
//! the end are never stored, products past the end are zero in both factors; every address is inside its tensor. The
//! order of summation is fixed: products in order within a part (and within quadruples of rows unchanged), parts in order.

mod candidates;
mod choose;
mod direct;
mod finish;
mod gemv;
mod gemv_choice;
mod matrix;
mod matrix_stage;
pub(super) mod point;
mod problem;
mod reduce;
pub(super) mod rounding;
mod slices;
mod stage;
mod tile;
pub(super) mod tiling;
pub(super) mod view;

#[cfg(test)]
mod tests;

pub use candidates::{candidates, parse};
pub use choose::{Choice, Merge, Neighbours, choices, choose, choose_among, choose_for, work};
pub use tiling::{Staging, Tiling};

use super::emit::unsupported;
use super::{Instance, Realisation};
use crate::KernelError;
use griffinfly_ir::loops::{Loop, LoopKind};
use griffinfly_ir::target::{NumericClass, Target};
use point::Sight;
use problem::{LAST, Problem};

/// The dispatches of a contraction by the default choice.
///
/// # Errors
/// A loop of another kind, sizes beyond 32 bits, or more bindings than the target allows.
pub fn realise(l: &Loop, target: &Target) -> Result<Realisation, KernelError> {
    realise_among(l, target, &[NumericClass::F32])
}

/// As [`realise`], by the best choice among tilings of these numeric classes.
///
/// # Errors
/// As [`realise`].
pub fn realise_among(
    l: &Loop,
    target: &Target,
    classes: &[NumericClass],
) -> Result<Realisation, KernelError> {
    let LoopKind::Contract(contract) = &l.kind else {
        return Err(unsupported("contract", "the loop is not a contraction"));
    };
    realise_with(l, target, &choose_among(contract, target, classes))
}

/// The dispatches of a contraction by a given choice; a split that leaves parts without products is reduced.
///
/// # Errors
/// As [`realise`]; also a tiling that the target cannot run, and partial sums over its limits.
pub fn realise_with(l: &Loop, target: &Target, choice: &Choice) -> Result<Realisation, KernelError> {
    if !choice.tiling.fits(target, &target.numeric_classes) {
        return Err(unsupported("contract", format!("{} does not run on {}", choice.tiling, target.name)));
    }
    let problem = Problem::new(l, target, *choice)?;
    if problem.has_row_sum && choice.tiling.class() == NumericClass::F16 {
        // Rows that are scaled after the product may be of any size before.
        let tiling = choice.tiling;
        return Err(unsupported("contract", format!("sums of rows beside the products of {tiling}")));
    }
    if problem.is_joined() {
        match joined(&problem) {
            // The parts, the counters, and all operands and results in one kernel are too many for some devices; tiles that are
            // padded may be too large for a binding.
            Err(KernelError::Invalid { .. } | KernelError::Unsupported { .. }) => {}
            result => return result,
        }
    }
    let problem = Problem::new(l, target, Choice { merge: Merge::Dispatch, ..*choice })?;
    let mut dispatches = vec![product(&problem)?];
    let mut scratch = Vec::new();
    if problem.is_split() {
        let bytes = 4 * problem.points() * u64::from(problem.parts()) * problem.carries() as u64;
        check_partials(bytes, target)?;
        dispatches.push(reduce::instance(&problem, format!("contract reduce {}", problem.parts()))?);
        scratch.push(bytes);
    }
    Ok(Realisation { dispatches, scratch, counters: 0 })
}

/// One dispatch, in which the last workgroup of a tile adds its parts.
fn joined(problem: &Problem<'_>) -> Result<Realisation, KernelError> {
    let (tiling, (_, _, total)) = (problem.choice.tiling, problem.tiles());
    // Every invocation leaves the sums of its rows too, in quadruples.
    let own = tiling.invocations() * tiling.finished().0.next_multiple_of(4);
    let rows = if problem.has_row_sum { own } else { 0 };
    let tile = u64::from(tiling.bm * tiling.bn) * problem.sums as u64 + u64::from(rows);
    let bytes = 4 * total * tile;
    check_partials(bytes, problem.target)?;
    let counters = 4 * total / u64::from(problem.parts());
    Ok(Realisation { dispatches: vec![product(problem)?], scratch: vec![bytes], counters })
}

fn check_partials(bytes: u64, target: &Target) -> Result<(), KernelError> {
    if bytes <= target.max_binding_bytes.min(target.chunk_bytes()) {
        return Ok(());
    }
    let limit = target.max_binding_bytes;
    Err(unsupported("contract", format!("{bytes} bytes of partial sums, {limit} allowed in one binding")))
}

fn product(problem: &Problem<'_>) -> Result<Instance, KernelError> {
    let tiling = problem.choice.tiling;
    let factors = match tiling.staging {
        Staging::Direct | Staging::Lanes => direct::factors(problem),
        Staging::Single | Staging::Double | Staging::Sliced(_) => tile::factors(problem),
        Staging::Matrix(_) => matrix::factors(problem),
    };
    let mut name = format!("contract {tiling}");
    for (term, [a, b]) in problem.terms.iter().zip(factors) {
        if term.is_joint {
            name.push_str(&format!("&b{}", width(b)));
        } else {
            let besides = if a.0.body.expr.outputs().len() > 1 { "+rows" } else { "" };
            name.push_str(&format!(" a{}{besides} b{}", width(a), width(b)));
        }
    }
    if problem.is_split() {
        name.push_str(&format!(" split{}", problem.parts()));
        name.push_str(if problem.is_joined() { " joined" } else { "" });
    } else if problem.outputs().1.is_some() && tiling.tn.is_multiple_of(4) && !tiling.has_lanes() {
        name.push_str(" y4");
    }
    match tiling.staging {
        Staging::Direct => direct::instance(problem, name),
        Staging::Lanes => gemv::instance(problem, name),
        Staging::Single | Staging::Double | Staging::Sliced(_) => tile::instance(problem, name),
        Staging::Matrix(class) => matrix::instance(problem, name, class),
    }
}

/// How a factor is read, for names: elements at once and the direction.
fn width((_, quads): Sight<'_>) -> &'static str {
    match quads {
        Some(LAST) => "4k",
        Some(_) => "4r",
        None => "1",
    }
}
