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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
        LoopKind::Contract(c) if target.is_hardware && target.backend.overlaps_dispatches() => work(c).into(),
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
        if *work == 0 || *work * 100 >= all * ALONE {
            Share::Alone
        } else if all >= units * FULL {
            Share::Beside
        } else {
            Share::Units(u32::try_from(units * *work / all).unwrap_or(u32::MAX).max(1))
        }
    };
    works.iter().zip(&schedule.place).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower;
    use griffinfly_ir::graph::Graph;
    use griffinfly_ir::graph::Init;

    /// Two products of one input by parameters with so many columns, a row loop beside them, and their results.
    fn schedule(rows: usize, columns: [usize; 2]) -> Schedule {
        let mut g = Graph::new();
        let x = g.input("x", [rows, 64]);
        for (i, n) in columns.into_iter().enumerate() {
            let w = g.parameter(["w0", "w1"][i], [64, n], Init::ZEROS);
            let y = g.matmul(x, w);
            g.output(["y0", "y1"][i], y);
        }
        let sum = g.sum(x, &[1]);
        g.output("sum", sum);
        crate::schedule::run(&lower::run(&g).unwrap()).unwrap()
    }

    fn shares(rows: usize, columns: [usize; 2]) -> Vec<Share> {
        let target = Target { is_hardware: true, compute_units: 100, ..Target::minimal_vulkan() };
        let schedule = schedule(rows, columns);
        let kinds = schedule.graph.loops.iter().map(|node| matches!(node.l.kind, LoopKind::Contract(_)));
        let all = run(&schedule, &target);
        assert!(kinds.zip(&all).all(|(is_contraction, share)| is_contraction || *share == Share::Alone));
        let is_contraction = |i: &usize| matches!(schedule.graph.loops[*i].l.kind, LoopKind::Contract(_));
        (0..all.len()).filter(is_contraction).map(|i| all[i]).collect()
    }

    #[test]
    fn by_work_where_a_level_is_small_and_beside_others_where_it_is_full() {
        let mut small = shares(64, [64, 192]);
        small.sort_by_key(|share| format!("{share:?}"));
        assert_eq!(small, [Share::Units(25), Share::Units(75)]);
        assert_eq!(shares(8192, [128, 128]), [Share::Beside; 2]);
        assert!(shares(64, [4, 1024]).contains(&Share::Alone));
    }
}
