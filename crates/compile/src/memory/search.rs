//! Local search over arrangements.
//!
//! The first temporary that does not fit below the bound (or, less often, any) is placed earlier, or prefers another side, or
//! one of those it overlaps does. A change that makes nothing larger is kept; after many changes without success the search
//! goes on from another start. The generators of choices are fixed, and so is how many searches there are, so equal input gives an equal plan.

use super::Plan;
use super::pack::{Arrangement, Packed, Packer, Side};
use crate::parallel;

/// Most packings tried.
const TRIES: usize = 2000;
/// Most steps of all packings together: what bounds the time where there are many temporaries.
const WORK: usize = 8_000_000;
/// Changes without success before another start is taken.
const PATIENCE: usize = 150;
/// Searches that share the tries, on a thread each where there are so many.
const SEARCHES: usize = 4;
/// Starts that are tried whatever they cost.
const LEAST_STARTS: usize = 3;

/// A fixed sequence of choices: SplitMix64 (Steele, Lea and Flood 2014).
struct Choices(u64);

impl Choices {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    fn percent(&mut self, p: usize) -> bool {
        self.below(100) < p
    }
}

/// The smallest plan found from these starts.
pub(super) fn run(packer: &Packer, starts: &[Arrangement], bound: u64) -> Plan {
    let most = (WORK / packer.work().max(1)).min(TRIES);
    let starts = &starts[..starts.len().min(most.max(LEAST_STARTS))];
    let mut tried: Vec<(Arrangement, Packed)> = Vec::new();
    for some in starts.chunks(SEARCHES) {
        let packed = in_parallel(some, |start| packer.pack(start));
        tried.extend(some.iter().cloned().zip(packed));
        if let Some((_, packed)) = tried.iter().find(|(_, packed)| packed.plan.bytes() <= bound) {
            return packed.plan.clone();
        }
    }
    tried.sort_by_key(|(_, packed)| packed.plan.bytes());
    let tries = most.saturating_sub(tried.len()) / SEARCHES;
    let searches: Vec<usize> = (0..SEARCHES).collect();
    let found = in_parallel(&searches, |search| improve(packer, &tried, bound, (*search, tries)));
    found.into_iter().min_by_key(Plan::bytes).unwrap_or_default()
}

/// Results for all items in their order, on several threads.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    parallel::all(items, |item| Ok(work(item))).unwrap_or_else(|_| items.iter().map(&work).collect())
}

/// One search of several, which have other choices and begin at other starts.
fn improve(
    packer: &Packer,
    starts: &[(Arrangement, Packed)],
    bound: u64,
    (search, tries): (usize, usize),
) -> Plan {
    let Some(first) = starts.get(search % starts.len().max(1)) else { return Plan::default() };
    let (mut current, mut best) = (first.clone(), first.1.plan.clone());
    let (mut choices, mut start, mut stale) = (Choices(search as u64), search, 0);
    // Close to the bound the rest is not worth the time.
    let close = bound + bound / 128;
    for _ in 0..tries {
        if best.bytes() <= close {
            break;
        }
        if stale > PATIENCE {
            start = (start + 1) % starts.len();
            (current, stale) = (starts[start].clone(), 0);
        }
        let next = changed(packer, &current, &mut choices);
        let packed = packer.pack(&next);
        let (old, new) = (current.1.plan.bytes(), packed.plan.bytes());
        stale = if new < old { 0 } else { stale + 1 };
        if new < best.bytes() {
            best = packed.plan.clone();
        }
        if new <= old {
            current = (next, packed);
        }
    }
    best
}

fn changed(packer: &Packer, current: &(Arrangement, Packed), choices: &mut Choices) -> Arrangement {
    let (mut next, n) = (current.0.clone(), current.0.order.len());
    let any = next.order[choices.below(n)];
    let i = if choices.percent(70) { current.1.offender.unwrap_or(any) } else { any };
    let at = next.order.iter().position(|x| *x == i).unwrap_or(0);
    let kind = choices.below(10);
    if kind < 6 && at > 0 {
        let to = choices.below(at);
        next.order[to..=at].rotate_right(1);
    }
    if kind > 4 {
        next.sides[i] = side(choices);
    }
    let others = &packer.overlaps[i];
    if !others.is_empty() && choices.percent(50) {
        next.sides[others[choices.below(others.len())]] = side(choices);
    }
    next
}

fn side(choices: &mut Choices) -> Side {
    [Side::Lowest, Side::Highest, Side::Tightest][choices.below(3)]
}
