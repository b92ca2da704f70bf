//! Levels: dispatches that run together.
//!
//! The level of a dispatch is one more than the largest level of those it must come after. Levels are therefore as wide as
//! memory allows, and correct whatever the planner did.

use super::order::dependencies;
use crate::program::{Binding, BindingAccess, Dispatch, DispatchId, SectionKind};

/// The levels of each section that has dispatches, in the order of the sections.
pub(super) fn run(
    dispatches: &[Dispatch],
    sections: &[SectionKind],
) -> Vec<(SectionKind, Vec<Vec<DispatchId>>)> {
    let after = dependencies(dispatches, sections);
    let mut level = vec![0; dispatches.len()];
    let mut out = Vec::new();
    for kind in super::order::SECTIONS {
        let mut levels: Vec<Vec<DispatchId>> = Vec::new();
        for i in (0..dispatches.len()).filter(|i| sections[*i] == kind) {
            level[i] = after[i].iter().map(|d| level[*d] + 1).max().unwrap_or(0);
            if levels.len() <= level[i] {
                levels.resize(level[i] + 1, Vec::new());
            }
            levels[level[i]].push(DispatchId(i as u32));
        }
        if !levels.is_empty() {
            out.push((kind, levels));
        }
    }
    out
}

/// Whether two dispatches must not run at the same time.
pub(crate) fn conflict(a: &Dispatch, b: &Dispatch) -> bool {
    a.bindings.iter().any(|x| b.bindings.iter().any(|y| writes(x, y) && overlap(x, y)))
}

fn writes(x: &Binding, y: &Binding) -> bool {
    x.access == BindingAccess::Write || y.access == BindingAccess::Write
}

/// Whether two ranges share bytes.
pub(crate) fn overlap(x: &Binding, y: &Binding) -> bool {
    x.arena == y.arena && x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes
}
