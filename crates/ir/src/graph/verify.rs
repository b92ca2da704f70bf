//! The graph verifier.
//!
//! Invariants: inputs refer to earlier nodes and existing results; recorded types equal inferred ones; leaf names are
//! unique; output names are unique; updates target distinct persistent leaves with equal types.

use super::{Graph, NodeId};
use crate::ops::Payload;
use crate::types::TensorType;
use std::fmt;

/// One broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The node, if it concerns one.
    pub node: Option<NodeId>,
    /// What is broken.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node {
            Some(n) => write!(f, "node {}: {}", n.0, self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl Graph {
    /// All broken invariants; empty for a sound graph.
    #[must_use]
    pub fn verify(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for id in self.ids() {
            self.verify_node(id, &mut |what| faults.push(Fault { node: Some(id), what }));
        }
        self.verify_names(&mut |what| faults.push(Fault { node: None, what }));
        self.verify_roots(&mut |what| faults.push(Fault { node: None, what }));
        faults
    }

    fn verify_node(&self, id: NodeId, fault: &mut dyn FnMut(String)) {
        let node = self.node(id);
        let mut types = Vec::new();
        for v in &node.inputs {
            match self.ty(*v) {
                Some(t) if v.node < id => types.push(t.clone()),
                Some(_) => fault(format!("input %{} is not earlier", v.node.0)),
                None => fault(format!("input %{}.{} does not exist", v.node.0, v.result)),
            }
        }
        if types.len() == node.inputs.len() {
            match node.op.0.infer(&types) {
                Ok(t) if t == node.types => {}
                Ok(t) => fault(format!("recorded types {:?}, inferred {t:?}", node.types)),
                Err(e) => fault(e),
            }
        }
        for t in &node.types {
            if let Err(e) = TensorType::check(t) {
                fault(e);
            }
        }
        for l in node.labels.iter().filter(|l| **l as usize >= self.labels.len()) {
            fault(format!("label {l} does not exist"));
        }
    }

    fn verify_names(&self, fault: &mut dyn FnMut(String)) {
        let mut seen = std::collections::BTreeSet::new();
        for (id, leaf) in self.leaves().filter(|(_, l)| !l.name.is_empty()) {
            if !seen.insert(&leaf.name) {
                fault(format!("the name '{}' is used twice", leaf.name));
            }
            if self.names.get(&leaf.name) != Some(&id) {
                fault(format!("the name '{}' is not indexed", leaf.name));
            }
        }
    }

    fn verify_roots(&self, fault: &mut dyn FnMut(String)) {
        let mut seen = std::collections::BTreeSet::new();
        for o in &self.outputs {
            if self.ty(o.value).is_none() {
                fault(format!("output '{}' does not exist", o.name));
            }
            if !seen.insert(&o.name) {
                fault(format!("output '{}' is declared twice", o.name));
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        for u in &self.updates {
            let leaf = self.nodes.get(u.leaf.index()).map(|n| &n.op.0);
            match leaf {
                Some(Payload::Leaf(l)) if l.is_persistent() => {
                    if Some(&l.ty) != self.ty(u.value) {
                        fault(format!("'{}' is updated with another type", l.name));
                    }
                }
                _ => fault(format!("update of node {}, which is no persistent leaf", u.leaf.0)),
            }
            if !seen.insert(u.leaf) {
                fault(format!("node {} is updated twice", u.leaf.0));
            }
        }
    }
}
