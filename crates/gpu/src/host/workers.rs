//! The threads of the host device and what each works with.
//!
//! Work is a number of tasks fixed by the plan, whatever the number of threads; which thread runs which task has no
//! influence on results, because tasks write disjoint elements or partial values that are combined in order later.

use super::evaluate::{Need, Scratch};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Estimated work below which threads cost more than they save.
const WORTH_NANOSECONDS: f64 = 40_000.0;

/// Threads and their scratch.
pub(super) struct Workers {
    pool: Option<ThreadPool>,
    scratch: Vec<Mutex<Scratch>>,
}

impl Workers {
    /// This many threads, the calling one included; fewer if the system refuses.
    pub(super) fn new(threads: usize) -> Workers {
        let pool = (threads > 1)
            .then(|| ThreadPoolBuilder::new().num_threads(threads - 1).thread_name(|i| format!("host {i}")))
            .and_then(|builder| builder.build().ok());
        let threads = pool.as_ref().map_or(1, |p| p.current_num_threads() + 1);
        Workers { pool, scratch: (0..threads).map(|_| Mutex::default()).collect() }
    }

    /// How many threads.
    pub(super) fn threads(&self) -> usize {
        self.scratch.len()
    }

    /// Makes room for a plan on every thread.
    pub(super) fn reserve(&mut self, need: &Need) {
        for s in &mut self.scratch {
            s.get_mut().unwrap_or_else(PoisonError::into_inner).reserve(need);
        }
    }

    /// Runs tasks `0..tasks` that take about `nanoseconds` together.
    pub(super) fn run(&self, tasks: usize, nanoseconds: f64, task: &(dyn Fn(usize, &mut Scratch) + Sync)) {
        let next = AtomicUsize::new(0);
        let work = |worker: usize| {
            let mut scratch = self.scratch[worker].lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                let t = next.fetch_add(1, Ordering::Relaxed);
                if t >= tasks {
                    break;
                }
                task(t, &mut scratch);
            }
        };
        match &self.pool {
            Some(pool) if tasks > 1 && nanoseconds > WORTH_NANOSECONDS => pool.in_place_scope(|scope| {
                let work = &work;
                for worker in 1..self.threads().min(tasks) {
                    scope.spawn(move |_| work(worker));
                }
                work(0);
            }),
            _ => work(0),
        }
    }
}
