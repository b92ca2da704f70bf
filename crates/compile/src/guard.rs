//! Ids made on the device: kernels clamp them, and a guard tells that one was out of range.
//!
//! Input: a graph. Output: the same graph with, for every use of ids that no host can check ([`Graph::unchecked_ids`]), a
//! check `id < 0 || id >= limit` over all ids. A *flag* collects the checks: state that is 0 while all is well, and else the
//! code of the first operation (in topological order) that met a wrong id. The flag stays raised until the host clears it,
//! and while it is raised no update happens: every updated leaf keeps its value, in the step that met the wrong id and in
//! all later ones. So parameters and state are those of the last good step, however many steps were in flight.
//!
//! A graph whose ids all come from the host is returned as it is.

use crate::program::{ExternalKind, IdCheck, IdGuard, Program};
use griffinfly_ir::graph::{Graph, IdLimit, Region, UncheckedIds, Update, Value};
use griffinfly_ir::types::{DType, TensorType};
use std::sync::Arc;

/// What a graph was guarded with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Guard {
    state: String,
    output: String,
    checks: Vec<IdCheck>,
}

impl Guard {
    /// Where the program made of the guarded graph keeps its flag.
    pub(crate) fn of(self, program: &Program) -> Option<IdGuard> {
        let find = |name: &str, kind: &ExternalKind| {
            program.externals.iter().position(|e| e.name == name && e.kind == *kind)
        };
        let state = find(&self.state, &ExternalKind::State)?;
        let output = find(&self.output, &ExternalKind::Output)?;
        Some(IdGuard { state, output, checks: self.checks })
    }
}

/// Guards a graph, if it needs it.
pub(crate) fn run(graph: &Graph) -> (Graph, Option<Guard>) {
    let uses = graph.unchecked_ids();
    if uses.is_empty() {
        return (graph.clone(), None);
    }
    let mut g = graph.clone();
    let (state, output) = names(graph);
    let flag = g.state(&state, [], 0.0);
    let mut raised = flag;
    for (i, u) in uses.iter().enumerate() {
        // The largest code wins: that of the first operation.
        let code = g.scoped("id_check", |g| check(g, u, (uses.len() - i) as f32));
        raised = g.maximum(raised, code);
    }
    let updates = g.take_updates();
    g.in_region(Region::Update, |g| {
        let zero = g.scalar(0.0);
        let fine = g.le(raised, zero);
        for Update { leaf, value } in updates {
            if let Some(old) = g.results(leaf).next() {
                let next = g.select(fine, value, old);
                g.update(old, next);
            }
        }
    });
    g.output(&output, raised);
    g.update(flag, raised);
    let checks = uses.iter().map(|u| described(graph, u)).collect();
    (g, Some(Guard { state, output, checks }))
}

/// Names for the flag that nothing of the graph has.
fn names(graph: &Graph) -> (String, String) {
    let taken = |name: &str| graph.leaf(name).is_some() || graph.outputs().iter().any(|o| o.name == name);
    let free = |name: &str| {
        let mut name = name.to_string();
        while taken(&name) {
            name.push('_');
        }
        name
    };
    (free("griffinfly.id_flag"), free("griffinfly.id_fault"))
}

/// `code` if any id is out of range, else 0: a scalar.
fn check(g: &mut Graph, u: &UncheckedIds, code: f32) -> Value {
    let IdLimit { limit, ignore } = u.limit;
    let [zero, limit] = [0, limit].map(|x| integer(g, x));
    let (low, high) = (g.lt(u.ids, zero), g.le(limit, u.ids));
    let mut wrong = g.or(low, high);
    if let Some(ignore) = ignore {
        let ignore = integer(g, ignore);
        let counts = g.not_equal(u.ids, ignore);
        wrong = g.and(wrong, counts);
    }
    let (code, fine) = (g.scalar(code), g.scalar(0.0));
    let codes = g.select(wrong, code, fine);
    let axes: Vec<isize> = (0..g.dims(codes).len() as isize).collect();
    if axes.is_empty() { codes } else { g.max(codes, &axes) }
}

fn integer(g: &mut Graph, x: i32) -> Value {
    g.constant_words(Arc::from([x as u32]), TensorType::new(DType::I32, []))
}

/// The check in words: the operation that uses the ids.
fn described(graph: &Graph, u: &UncheckedIds) -> IdCheck {
    let IdLimit { limit, ignore } = u.limit;
    IdCheck { operation: graph.provenance(u.user).join(", "), limit, ignore }
}
