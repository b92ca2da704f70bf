//! How many compute units each contraction of a schedule can count on.
//!
//! Contractions of one level run side by side. A kernel chosen as if it had the device for itself is split until it fills the
//! device, and then waits for the others all the same. So each gets the units that its share of the multiplications of its level
//! amounts to, and all are done at about the same time.

use crate::program::SectionKind;
use crate::schedule::Schedule;
use griffinfly_ir::loops::LoopKind;
use griffinfly_ir::target::Target;
use griffinfly_kernel::families::contract::work;
use std::collections::HashMap;

/// Percentage of a level's multiplications from which on a contraction has the device for itself.
const ALONE: u128 = 90;

/// For each loop the units it can count on, where it is a contraction that shares its level with others; `None` elsewhere.
pub(crate) fn run(schedule: &Schedule, target: &Target) -> Vec<Option<u32>> {
    let works: Vec<u128> = schedule
        .graph
        .loops
        .iter()
        .map(|node| match &node.l.kind {
            LoopKind::Contract(c) if target.is_hardware => work(c).into(),
            _ => 0,
        })
        .collect();
    let mut levels: HashMap<(SectionKind, usize), u128> = HashMap::new();
    for (work, place) in works.iter().zip(&schedule.place) {
        *levels.entry(*place).or_default() += *work;
    }
    let share = |(work, place): (&u128, &(SectionKind, usize))| {
        let all = levels.get(place).copied().unwrap_or(0);
        let is_shared = *work > 0 && *work * 100 < all * ALONE;
        let units = u128::from(target.compute_units) * *work / all.max(1);
        is_shared.then(|| u32::try_from(units).unwrap_or(u32::MAX).max(1))
    };
    works.iter().zip(&schedule.place).map(share).collect()
}
