//! Properties of the planner.

use super::*;
use proptest::prelude::*;

fn intervals() -> impl Strategy<Value = Vec<Interval>> {
    let one = (1u64..100_000, 0usize..30, 0usize..8)
        .prop_map(|(bytes, first, len)| Interval { bytes, first, last: first + len });
    prop::collection::vec(one, 0..40)
}

/// Chains like a network's: each temporary is made at one level and last read a few levels later.
fn chain() -> impl Strategy<Value = Vec<Interval>> {
    prop::collection::vec((1u64..64, 1usize..3), 2..40).prop_map(|v| {
        v.into_iter()
            .enumerate()
            .map(|(i, (k, len))| Interval { bytes: k * 4096, first: i, last: i + len })
            .collect()
    })
}

proptest! {
    #[test]
    fn live_bytes_never_overlap(intervals in intervals(), limit in 100_000u64..400_000) {
        let p = plan(&intervals, aligned(limit), Mode::Memory);
        for i in 0..intervals.len() {
            let (a, s) = (&intervals[i], p.spots[i]);
            prop_assert!(s.offset % 256 == 0 && s.offset + a.bytes <= p.chunks[s.chunk as usize]);
            prop_assert!(p.chunks.iter().all(|c| *c <= aligned(limit)));
            for j in 0..i {
                let (b, t) = (&intervals[j], p.spots[j]);
                let alive = a.first <= b.last && b.first <= a.last;
                let apart = s.chunk != t.chunk
                    || s.offset + a.bytes <= t.offset
                    || t.offset + b.bytes <= s.offset;
                prop_assert!(!alive || apart, "{i} and {j} overlap");
            }
        }
        prop_assert!(p.bytes() >= lower_bound(&intervals).0);
    }

    #[test]
    fn chains_are_packed_close_to_the_bound(intervals in chain()) {
        let p = plan(&intervals, 1 << 30, Mode::Memory);
        let (bound, _) = lower_bound(&intervals);
        prop_assert!(p.bytes() as f64 <= bound as f64 * 1.25, "{} bytes, bound {bound}", p.bytes());
    }
}
