//! State of a model on its way from the trainer that updates it to the other programs over the same weights.
//!
//! Running averages are state of the model: sessions need those that go with the parameters. Before a step a program takes over
//! what the trainer that made the last step left, or what came with the parameters from a file since, by name and type, where
//! that changed since it did so last. A session does so for the state that its graph reads and does not update (what it updates
//! is its own), a trainer for all of its model's.
//!
//! Invariants: moments and gradients belong to one trainer and are never taken over; parameters and averages of one file are
//! taken together, by all programs over the weights, and stay until the next training step.

use crate::error::Error;
use crate::tensors::Tensors;
use crate::weights::{ModelState, Weights};
use griffinfly_ir::graph::{Graph, LeafKind};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a program takes over and gives.
pub(crate) struct Following {
    /// Names of the state it takes over.
    names: BTreeSet<String>,
    /// Its own, for the others: after a step of a trainer, or after a file was loaded.
    kept: Option<Arc<Tensors>>,
    /// The version of what it has.
    seen: u64,
}

impl Following {
    /// Of a program of this graph with this state; `trains` where its updates are the model's.
    pub(crate) fn new(graph: &Graph, state: &Tensors, trains: bool) -> Following {
        let updated = |id| graph.updates().iter().any(|update| update.leaf == id);
        let is_models = |kind: &LeafKind| matches!(kind, LeafKind::State { mirrors: None, .. });
        let leaves = graph.leaves().filter(|(id, leaf)| is_models(&leaf.kind) && (trains || !updated(*id)));
        let names: BTreeSet<String> = leaves.map(|(_, leaf)| leaf.name.clone()).collect();
        let kept = (!names.is_empty()).then(|| Arc::new(state.subset(|name| names.contains(name))));
        Following { names, kept, seen: 0 }
    }

    /// Takes over what changed since the last time.
    pub(crate) fn follow(&mut self, weights: &Weights, state: &Tensors) -> Result<(), Error> {
        let Some(ModelState { tensors, version }) = weights.model_state() else { return Ok(()) };
        let own = self.kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, &tensors));
        if version != self.seen && !own {
            state.copy_from(&tensors, |name| self.names.contains(name))?;
        }
        self.seen = version;
        Ok(())
    }

    /// Gives its own to the others, as what belongs to this version of the weights.
    pub(crate) fn give(&mut self, weights: &Weights, version: u64) {
        if let Some(tensors) = self.kept.clone() {
            weights.set_model_state(ModelState { tensors, version });
            self.seen = version;
        }
    }

    /// Goes on where another program of the same model is.
    pub(crate) fn adopt(&mut self, state: &Tensors, other: (&Following, &Tensors)) -> Result<(), Error> {
        state.copy_from(other.1, |name| self.names.contains(name))?;
        self.seen = other.0.seen;
        Ok(())
    }
}
