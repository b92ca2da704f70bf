//! Running averages of batch norms: how training keeps them, and the graph that works from them.
//!
//! Input: a graph in which updates let state follow the statistics of batch norms. Output: the same graph for inference.
//! Invariant: leaves keep their names and order, so both graphs have the same parameters and state.

use crate::graph::{Graph, LeafKind, NodeId, Update, Value};
use crate::ops::Payload;
use std::collections::BTreeMap;

/// Which results of a batch norm the running averages follow.
const MEAN: usize = 1;
const VARIANCE: usize = 3;

/// The state that follows mean and variance of a batch norm.
#[derive(Clone, Copy, Default)]
struct Running {
    mean: Option<NodeId>,
    variance: Option<NodeId>,
}

impl Graph {
    /// Declares that `running`, a state, follows `value`: after the step it is `running + momentum (value - running)`.
    #[track_caller]
    pub fn update_running(&mut self, running: Value, value: Value, momentum: f32) {
        let distance = self.sub(value, running);
        if distance.is_poison() {
            return;
        }
        let moved = self.scale(distance, momentum);
        let next = self.add(running, moved);
        self.update(running, next);
    }

    /// This graph for inference: every batch norm whose mean and variance are followed by states
    /// ([`Graph::update_running`]) works from these instead of the batch, and they stay as they are. Other batch norms have
    /// nothing else to work from and keep to the batch.
    ///
    /// Recorded as an error: a state that is declared behind its batch norm.
    #[must_use]
    pub fn with_running_averages(&self) -> Graph {
        let norms: BTreeMap<NodeId, [NodeId; 2]> = self
            .running()
            .into_iter()
            .filter_map(|(norm, running)| Some((norm, [running.mean?, running.variance?])))
            .collect();
        if norms.is_empty() {
            return self.clone();
        }
        let mut still = self.clone();
        let updates = still.take_updates();
        for Update { leaf, value } in updates {
            if !norms.values().flatten().any(|running| *running == leaf) {
                still.update(still.value(leaf, 0), value);
            }
        }
        still.rebuild(&mut |new, id, inputs| {
            let Payload::BatchNorm(op) = &self.node(id).op.0 else { return None };
            Some(self.normalized(new, *norms.get(&id)?, inputs, op.eps.get()))
        })
    }

    /// The results of a batch norm in `new` from the running averages, which are leaves of this graph.
    fn normalized(&self, new: &mut Graph, running: [NodeId; 2], inputs: &[Value], eps: f32) -> Vec<Value> {
        let name = |id: NodeId| self.as_leaf(id).map_or("", |leaf| leaf.name.as_str());
        let [Some(mean), Some(variance)] = running.map(|id| new.leaf(name(id))) else {
            let reason = format!("declare '{}' before the batch norm it follows", name(running[0]));
            return vec![new.fail("batch_norm", inputs, reason); 4];
        };
        let y = new.batch_norm_inference(inputs[0], [inputs[1], inputs[2]], [mean, variance], eps);
        let eps = new.scalar(eps);
        let shifted = new.add(variance, eps);
        vec![y, mean, new.rsqrt(shifted), variance]
    }

    /// The states that follow statistics of batch norms, by batch norm.
    fn running(&self) -> BTreeMap<NodeId, Running> {
        let mut norms: BTreeMap<NodeId, Running> = BTreeMap::new();
        for update in self.updates() {
            let Some(statistic) = self.followed(update) else { continue };
            let running = norms.entry(statistic.node()).or_default();
            match statistic.result() {
                MEAN => running.mean = Some(update.leaf),
                VARIANCE => running.variance = Some(update.leaf),
                _ => {}
            }
        }
        norms
    }

    /// The result of a batch norm that an update makes its leaf follow: it depends on the leaf, constants and nothing else.
    fn followed(&self, update: &Update) -> Option<Value> {
        let (mut found, mut open) = (None, vec![update.value]);
        while let Some(v) = open.pop() {
            let node = self.node(v.node());
            match (&node.op.0, self.as_leaf(v.node())) {
                (Payload::BatchNorm(_), _) if found.is_none_or(|other| other == v) => found = Some(v),
                (Payload::BatchNorm(_), _) => return None,
                (_, Some(leaf)) if v.node() == update.leaf || matches!(leaf.kind, LeafKind::Constant(_)) => {}
                (_, Some(_)) => return None,
                (_, None) => open.extend(&node.inputs),
            }
        }
        found
    }
}
