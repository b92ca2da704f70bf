//! Dependencies and timetables of random dispatches, against every pair of them.

use super::super::levels::{self, conflict};
use super::*;
use crate::program::{LoopId, Work as Runs};
use proptest::prelude::*;
use proptest::test_runner::Config;

fn dispatch() -> impl Strategy<Value = (Dispatch, SectionKind)> {
    let binding =
        (0u32..3, 0u64..12, 1u64..6, any::<bool>()).prop_map(|(arena, offset, bytes, writes)| Binding {
            arena: ArenaId(arena),
            offset,
            bytes,
            access: if writes { BindingAccess::Write } else { BindingAccess::Read },
        });
    (prop::collection::vec(binding, 0..4), 0usize..3).prop_map(|(bindings, section)| {
        let (instance, provenance) = (String::new(), Vec::new());
        (Dispatch { work: Runs::Loop, source: LoopId(0), bindings, instance, provenance }, SECTIONS[section])
    })
}

fn pairs<'a>(d: &'a [Dispatch], s: &'a [SectionKind]) -> impl Iterator<Item = (usize, usize)> + 'a {
    let all = (0..d.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
    all.filter(|(i, j)| s[*i] == s[*j] && conflict(&d[*i], &d[*j]))
}

/// Sections in order, no more than `width` at a time, and what conflicts in its order.
fn assert_sound(d: &[Dispatch], s: &[SectionKind], t: &Timetable, width: usize) -> Result<(), TestCaseError> {
    for (i, j) in pairs(d, s) {
        prop_assert!(t.times[i] < t.times[j], "{} and {} conflict", i, j);
    }
    for (i, j) in (0..d.len()).flat_map(|j| (0..d.len()).map(move |i| (i, j))) {
        prop_assert!(s[i] >= s[j] || t.times[i] < t.times[j]);
    }
    for time in 0..t.end {
        let together = t.times.iter().filter(|x| **x == time).count();
        prop_assert!((1..=width).contains(&together) && together <= t.width);
    }
    prop_assert!(t.times.iter().all(|time| *time < t.end));
    Ok(())
}

proptest! {
    #![proptest_config(Config { cases: 256, failure_persistence: None, ..Config::default() })]

    #[test]
    fn levels_and_timetables_keep_every_conflict(all in prop::collection::vec(dispatch(), 0..24), width in 1usize..5) {
        let (d, s): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        // The level of a dispatch by its definition.
        let mut level = vec![0; d.len()];
        for (i, j) in pairs(&d, &s) {
            level[j] = level[j].max(level[i] + 1);
        }
        for (kind, levels) in levels::run(&d, &s) {
            for (l, ids) in levels.iter().enumerate() {
                prop_assert!(ids.iter().all(|id| s[id.index()] == kind && level[id.index()] == l));
            }
        }
        let after = dependencies(&d, &s);
        let touched: Vec<Vec<usize>> = (0..d.len()).map(|i| vec![i / 3, i / 2]).collect();
        let bytes: Vec<u64> = (0..d.len() as u64).map(|n| 1 + n * 7 % 5).collect();
        let work = Work { sections: &s, after: &after, touched: &touched, bytes: &bytes };
        let wide = Timetable::early(&work, usize::MAX);
        assert_sound(&d, &s, &wide, d.len().max(1))?;
        for (i, time) in wide.times.iter().enumerate() {
            let first = (0..d.len()).filter(|j| s[*j] == s[i]).map(|j| wide.times[j]).min().unwrap_or(0);
            prop_assert_eq!(*time - first, level[i]);
        }
        assert_sound(&d, &s, &Timetable::early(&work, width), width)?;
        assert_sound(&d, &s, &Timetable::frugal(&work, width), width)?;
    }
}

/// Branches that are finished one after the other hold less than all branches side by side.
#[test]
fn frugal_goes_depth_first() {
    // Four times a large temporary, then a small one made of it.
    let after: Vec<Vec<usize>> = (0..8).map(|i| if i < 4 { vec![] } else { vec![i - 4] }).collect();
    let touched: Vec<Vec<usize>> = (0..8).map(|i| if i < 4 { vec![i] } else { vec![i - 4, i] }).collect();
    let bytes = [[100; 4], [1; 4]].concat();
    let sections = [SectionKind::ForwardBackward; 8];
    let work = Work { sections: &sections, after: &after, touched: &touched, bytes: &bytes };
    assert_eq!(Timetable::frugal(&work, 1).order(), [0, 4, 1, 5, 2, 6, 3, 7]);
    assert_eq!(Timetable::early(&work, 1).order(), [0, 1, 2, 3, 4, 5, 6, 7]);
}
