//! A minimum cut through vertices.
//!
//! Vertices have capacities; edges, sources and sinks have none of their own and are never cut. Flow is pushed along shortest
//! augmenting paths (Edmonds and Karp 1972); what can still reach a sink afterwards lies behind the smallest cut that is
//! nearest to the sinks.

use std::collections::VecDeque;

/// What cannot be cut.
const UNBOUNDED: u64 = u64::MAX / 4;

struct Arc {
    to: usize,
    room: u64,
}

/// A network over numbered vertices. Each is two points with an arc of its capacity between them.
pub(super) struct Network {
    /// Arcs in pairs: the one at `i ^ 1` is the reverse of the one at `i`.
    arcs: Vec<Arc>,
    /// Arcs that leave each point.
    leaving: Vec<Vec<usize>>,
    vertices: usize,
}

impl Network {
    pub(super) fn new(vertices: usize) -> Network {
        Network { arcs: Vec::new(), leaving: vec![Vec::new(); 2 * vertices + 2], vertices }
    }

    /// Lets this much through a vertex.
    pub(super) fn vertex(&mut self, v: usize, capacity: u64) {
        self.arc(2 * v, 2 * v + 1, capacity);
    }

    pub(super) fn edge(&mut self, from: usize, to: usize) {
        self.arc(2 * from + 1, 2 * to, UNBOUNDED);
    }

    pub(super) fn source(&mut self, v: usize) {
        self.arc(self.start(), 2 * v, UNBOUNDED);
    }

    pub(super) fn sink(&mut self, v: usize) {
        self.arc(2 * v + 1, self.end(), UNBOUNDED);
    }

    fn start(&self) -> usize {
        2 * self.vertices
    }

    fn end(&self) -> usize {
        2 * self.vertices + 1
    }

    fn arc(&mut self, from: usize, to: usize, room: u64) {
        for (from, to, room) in [(from, to, room), (to, from, 0)] {
            self.leaving[from].push(self.arcs.len());
            self.arcs.push(Arc { to, room });
        }
    }

    /// Which vertices lie behind the cut: their two points both reach a sink and no source reaches them uncut.
    pub(super) fn behind_the_cut(mut self) -> Vec<bool> {
        while self.augment() {}
        let mut reaches = vec![false; self.leaving.len()];
        let mut queue = VecDeque::from([self.end()]);
        reaches[self.end()] = true;
        while let Some(point) = queue.pop_front() {
            // The reverse of an arc that leaves here arrives here.
            for &i in &self.leaving[point] {
                let from = self.arcs[i].to;
                if self.arcs[i ^ 1].room > 0 && !std::mem::replace(&mut reaches[from], true) {
                    queue.push_back(from);
                }
            }
        }
        (0..self.vertices).map(|v| reaches[2 * v] && reaches[2 * v + 1]).collect()
    }

    /// Pushes flow along one shortest path; gives whether there was one.
    fn augment(&mut self) -> bool {
        let (start, end) = (self.start(), self.end());
        let mut by: Vec<Option<usize>> = vec![None; self.leaving.len()];
        let mut queue = VecDeque::from([start]);
        while let Some(point) = queue.pop_front() {
            for &i in &self.leaving[point] {
                let Arc { to, room } = self.arcs[i];
                if room > 0 && to != start && by[to].is_none() {
                    by[to] = Some(i);
                    queue.push_back(to);
                }
            }
            if by[end].is_some() {
                break;
            }
        }
        let mut path = Vec::new();
        let mut point = end;
        while let Some(i) = by[point] {
            path.push(i);
            point = self.arcs[i ^ 1].to;
        }
        let Some(flow) = path.iter().map(|i| self.arcs[*i].room).min() else { return false };
        for i in path {
            self.arcs[i].room -= flow;
            self.arcs[i ^ 1].room += flow;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::Config;

    #[test]
    fn of_equal_cuts_the_one_nearest_to_the_sinks_is_taken() {
        let mut n = Network::new(3);
        (0..3).for_each(|v| n.vertex(v, 4));
        n.source(0);
        n.edge(0, 1);
        n.edge(1, 2);
        n.sink(2);
        assert_eq!(n.behind_the_cut(), [false; 3]);
    }

    #[test]
    fn several_results_of_one_are_computed_again() {
        let mut n = Network::new(4);
        (0..4).for_each(|v| n.vertex(v, 4));
        n.source(0);
        for v in 1..4 {
            n.edge(0, v);
            n.sink(v);
        }
        assert_eq!(n.behind_the_cut(), [false, true, true, true]);
    }

    #[test]
    fn what_costs_nothing_is_cut_first() {
        let mut n = Network::new(3);
        [4, 0, 4].into_iter().enumerate().for_each(|(v, c)| n.vertex(v, c));
        n.source(0);
        n.edge(0, 1);
        n.edge(1, 2);
        n.sink(2);
        assert_eq!(n.behind_the_cut(), [false, false, true]);
    }

    /// Bytes kept if these vertices are computed again: of all others that sinks or those read. None if impossible.
    fn kept(case: &Case, again: &[bool]) -> Option<u64> {
        if (0..again.len()).any(|v| again[v] && case.sources[v]) {
            return None;
        }
        let is_read =
            |v: usize| case.sinks[v] || (0..again.len()).any(|w| again[w] && case.edges.contains(&(v, w)));
        Some((0..again.len()).filter(|&v| !again[v] && is_read(v)).map(|v| case.bytes[v]).sum())
    }

    #[derive(Debug, Clone)]
    struct Case {
        bytes: Vec<u64>,
        sources: Vec<bool>,
        sinks: Vec<bool>,
        edges: Vec<(usize, usize)>,
    }

    fn cases() -> impl Strategy<Value = Case> {
        const N: usize = 8;
        let flags = || proptest::collection::vec(any::<bool>(), N);
        let edges = proptest::collection::vec((0..N, 0..N), 0..16);
        (proptest::collection::vec(0..5_u64, N), flags(), flags(), edges).prop_map(
            |(bytes, mut sources, sinks, edges)| {
                let edges: Vec<_> = edges.into_iter().filter(|(a, b)| a < b).collect();
                (0..N).for_each(|v| sources[v] |= !edges.iter().any(|e| e.1 == v));
                Case { bytes, sources, sinks, edges }
            },
        )
    }

    proptest! {
        #![proptest_config(Config { failure_persistence: None, ..Config::default() })]
        #[test]
        fn no_other_choice_keeps_fewer_bytes(case in cases()) {
            let mut n = Network::new(case.bytes.len());
            for v in 0..case.bytes.len() {
                n.vertex(v, case.bytes[v]);
                if case.sources[v] { n.source(v); }
                if case.sinks[v] { n.sink(v); }
            }
            case.edges.iter().filter(|e| !case.sources[e.1]).for_each(|&(a, b)| n.edge(a, b));
            let again = n.behind_the_cut();
            let found = kept(&case, &again).expect("sources are never computed again");
            let best = (0..1_u32 << case.bytes.len())
                .filter_map(|bits| kept(&case, &(0..case.bytes.len()).map(|v| bits >> v & 1 == 1).collect::<Vec<_>>()))
                .min();
            prop_assert_eq!(Some(found), best);
        }
    }
}
