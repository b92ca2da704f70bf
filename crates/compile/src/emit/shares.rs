//! How many compute units each contraction of a schedule can count on.
//!
//! Contractions of one level run side by side. Where together they do not fill the device, each gets the units that its share of
//! the multiplications of the level amounts to: chosen as if it had the device for itself, it would be split until it fills
//! that, and then wait for the others all the same. Where they do, each is split over the device, so that the units that are
//! done with one go on with the next, by tilings that leave room for others.

use crate::program::SectionKind;
use crate::schedule::Schedule;
use griffinfly_ir::loops::LoopKind;
use griffinfly_ir::target::Target;
use griffinfly_kernel::families::contract::work;
use std::collections::HashMap;

/// What a contraction can count on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// The device.
    Alone,
    /// So many of its compute units.
    Units(u32),
    /// What others leave of it.
    Beside,
}

/// Percentage of a level's multiplications from which on a contraction has the device for itself.
const ALONE: u128 = 90;
/// Multiplications of a level per unit from which on it fills the device.
const FULL: u128 = 1 << 20;

/// The share of each loop; of loops that are no contractions that of the device.
pub(crate) fn run(schedule: &Schedule, target: &Target) -> Vec<Share> {
    let work = |kind: &LoopKind| match kind {
        LoopKind::Contract(c) if target.is_hardware => work(c).into(),
        _ => 0,
    };
    let works: Vec<u128> = schedule.graph.loops.iter().map(|node| work(&node.l.kind)).collect();
    let mut levels: HashMap<(SectionKind, usize), u128> = HashMap::new();
    for (work, place) in works.iter().zip(&schedule.place) {
        *levels.entry(*place).or_default() += *work;
    }
    let units = u128::from(target.compute_units.max(1));
    let share = |(work, place): (&u128, &(SectionKind, usize))| {
        let all = levels.get(place).copied().unwrap_or(0);
        if *work * 100 >= all * ALONE {
            Share::Alone
        } else if all >= units * FULL {
            Share::Beside
        } else {
            Share::Units(u32::try_from(units * *work / all).unwrap_or(u32::MAX).max(1))
        }
    };
    works.iter().zip(&schedule.place).map(share).collect()
}
