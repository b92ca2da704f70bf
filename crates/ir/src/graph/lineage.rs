//! Which values belong to a graph.
//!
//! Every graph has a number of its own and every [`Value`] carries the number of the graph it was made in, so that a value
//! of another graph is refused instead of being taken for whatever has its position here. A clone goes on from its original:
//! it also takes the values the original had when it was cloned, but none that were made there later.
//!
//! Invariant: the numbers are no part of what a graph or a value is. Text and serialised forms leave them out, comparison,
//! order and hashing ignore them, so two builds of one description are the same in every respect. The counter behind them is
//! the only thing in this crate that outlives a call.

use super::Value;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering as Access};

/// The next graph's number; 0 stands for no graph in particular.
static NEXT: AtomicU32 = AtomicU32::new(1);

/// The number of the graph a value was made in. All are equal: see the module.
#[derive(Clone, Copy, Default)]
pub(crate) struct Origin(u32);

impl Origin {
    /// Of no graph in particular: of values that were read from a file, and of poisoned ones.
    pub(crate) const ANY: Origin = Origin(0);
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Origin {}

impl PartialOrd for Origin {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Origin {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

impl Hash for Origin {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// A graph's number, and those of the graphs it was cloned from with the nodes it had then. All are equal.
pub(crate) struct Lineage {
    own: Origin,
    ancestors: Vec<(Origin, u32)>,
}

impl Lineage {
    /// What values made in the graph carry.
    pub(crate) fn own(&self) -> Origin {
        self.own
    }

    /// That of a clone of a graph with so many nodes.
    pub(crate) fn descend(&self, nodes: usize) -> Self {
        let mut ancestors = self.ancestors.clone();
        ancestors.push((self.own, nodes as u32));
        Lineage { ancestors, ..Self::default() }
    }

    /// Whether a value was made in the graph, or in one it was cloned from, before.
    pub(crate) fn has(&self, v: Value) -> bool {
        let Origin(number) = v.origin;
        let before = |(ancestor, nodes): &(Origin, u32)| ancestor.0 == number && v.node.0 < *nodes;
        number == self.own.0 || number == Origin::ANY.0 || self.ancestors.iter().any(before)
    }
}

impl Default for Lineage {
    /// That of a new graph.
    fn default() -> Self {
        // After 2^32 graphs numbers come again; a mistake may then go unseen, a right use is never refused.
        Lineage { own: Origin(NEXT.fetch_add(1, Access::Relaxed)), ancestors: Vec::new() }
    }
}

impl PartialEq for Lineage {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lineage")
    }
}
