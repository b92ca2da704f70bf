//! Levels from byte ranges.
//!
//! Dispatches come in a valid sequential order. A dispatch must come after every earlier one with which it shares bytes that
//! either writes (read after write, write after read, write after write); its level is one more than the largest level of
//! those. Levels are therefore as wide as memory allows, and correct whatever the planner did.

use crate::program::{Binding, BindingAccess, Dispatch, DispatchId, SectionKind};

/// The levels of one section.
pub(super) fn run(
    dispatches: &[Dispatch],
    sections: &[SectionKind],
    kind: SectionKind,
) -> Vec<Vec<DispatchId>> {
    let mut placed: Vec<(usize, usize)> = Vec::new();
    let mut levels: Vec<Vec<DispatchId>> = Vec::new();
    for (i, d) in dispatches.iter().enumerate().filter(|(i, _)| sections[*i] == kind) {
        let after = placed.iter().filter(|(j, _)| conflict(&dispatches[*j], d)).map(|(_, l)| l + 1).max();
        let level = after.unwrap_or(0);
        if levels.len() <= level {
            levels.resize(level + 1, Vec::new());
        }
        levels[level].push(DispatchId(i as u32));
        placed.push((i, level));
    }
    levels
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
