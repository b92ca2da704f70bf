//! The graph: a static, typed, pure dataflow program.
//!
//! Nodes have one or more typed results; an edge is a [`Value`], a node and a result number. Leaves are inputs, step scalars,
//! parameters, state and constants; roots are named outputs and updates of leaves. Nothing in the graph has side effects: all
//! updates commit after all reads of a step.
//!
//! Building never panics. A call that does not type-check records an error with the caller's file and line and gives a
//! poisoned value; [`Graph::finish`] returns all errors at once. Nodes are stored in topological order because a node can
//! only be made from values that exist.

mod build;
mod ids;
mod leaf;
mod lineage;
mod rebind;
mod text;
mod transform;
mod verify;

pub use build::{BuildError, BuildErrors};
pub use ids::UncheckedIds;
pub use leaf::{ConstantData, IdLimit, Init, Leaf, LeafKind};
pub use text::ParseError;
pub use transform::Replace;
pub use verify::Fault;

use crate::ops::Payload;
use crate::types::TensorType;
use lineage::{Lineage, Origin};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::Location;

/// A node of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// Position in the graph.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One result of one node. A handle: copy it freely; all methods take the graph. It is of use in the graph it was made in
/// and in clones made since; any other graph refuses it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Value {
    pub(crate) node: NodeId,
    pub(crate) result: u16,
    #[serde(skip)]
    pub(crate) origin: Origin,
}

impl Value {
    pub(crate) const POISON: Value = Value { node: NodeId(u32::MAX), result: 0, origin: Origin::ANY };

    /// The node.
    #[must_use]
    pub fn node(self) -> NodeId {
        self.node
    }

    /// Which of the node's results.
    #[must_use]
    pub fn result(self) -> usize {
        self.result as usize
    }

    pub(crate) fn is_poison(self) -> bool {
        self.node == NodeId(u32::MAX)
    }
}

/// Whether a node belongs to the forward pass or was made by differentiation or an optimizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Region {
    /// Written by the user.
    #[default]
    Forward,
    /// Made by differentiation.
    Derivative,
    /// Made by an optimizer: runs in the update section.
    Update,
}

/// An operation applied to values. Opaque outside this crate but for its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Op(pub(crate) Payload);

/// A node: operation, inputs, result types.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    pub(crate) op: Op,
    pub(crate) inputs: Vec<Value>,
    pub(crate) types: Vec<TensorType>,
    pub(crate) region: Region,
    pub(crate) labels: BTreeSet<u32>,
}

impl Node {
    /// The operation.
    #[must_use]
    pub fn op(&self) -> &Op {
        &self.op
    }

    /// What it reads.
    #[must_use]
    pub fn inputs(&self) -> &[Value] {
        &self.inputs
    }

    /// The types of its results.
    #[must_use]
    pub fn types(&self) -> &[TensorType] {
        &self.types
    }

    /// Where it came from.
    #[must_use]
    pub fn region(&self) -> Region {
        self.region
    }
}

/// A named result of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Unique among outputs.
    pub name: String,
    /// What it is.
    pub value: Value,
}

/// A leaf that takes a new value at the end of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// A parameter or state node.
    pub leaf: NodeId,
    /// Its next value.
    pub value: Value,
}

/// A graph under construction or finished.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) updates: Vec<Update>,
    pub(crate) names: BTreeMap<String, NodeId>,
    pub(crate) labels: Vec<String>,
    pub(crate) scope: Vec<String>,
    pub(crate) region: Region,
    /// Where errors and labels say a call was made, while a layer is applied; otherwise each call's own place.
    #[serde(skip)]
    pub(crate) place: Option<&'static Location<'static>>,
    #[serde(skip)]
    pub(crate) errors: Vec<BuildError>,
    /// Labels new nodes take instead of their own, while a pass works on behalf of a node.
    #[serde(skip)]
    pub(crate) inherited: Option<BTreeSet<u32>>,
    /// Nodes by a hash of operation and inputs, while a rebuild shares equal ones.
    #[serde(skip)]
    pub(crate) sharing: Option<HashMap<u64, Vec<NodeId>>>,
    /// Numbers of the labels, during a rebuild.
    #[serde(skip)]
    pub(crate) interned: Option<HashMap<String, u32>>,
    /// Which values are of this graph.
    #[serde(skip)]
    pub(crate) lineage: Lineage,
}

impl Clone for Graph {
    /// The same graph, in which the values of this one can be used.
    fn clone(&self) -> Self {
        Graph {
            nodes: self.nodes.clone(),
            outputs: self.outputs.clone(),
            updates: self.updates.clone(),
            names: self.names.clone(),
            labels: self.labels.clone(),
            scope: self.scope.clone(),
            region: self.region,
            place: self.place,
            errors: self.errors.clone(),
            inherited: self.inherited.clone(),
            sharing: self.sharing.clone(),
            interned: self.interned.clone(),
            lineage: self.lineage.descend(self.nodes.len()),
        }
    }
}

impl Graph {
    /// An empty graph.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All nodes in topological order.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// All node ids in topological order.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// The values a node gives.
    pub fn results(&self, id: NodeId) -> impl Iterator<Item = Value> + use<> {
        let n = self.nodes.get(id.index()).map_or(0, |n| n.types.len());
        let origin = self.lineage.own();
        (0..n as u16).map(move |result| Value { node: id, result, origin })
    }

    /// Named outputs in order of declaration.
    #[must_use]
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Updates in order of declaration.
    #[must_use]
    pub fn updates(&self) -> &[Update] {
        &self.updates
    }

    /// A result of a node of this graph.
    pub(crate) fn value(&self, node: NodeId, result: u16) -> Value {
        Value { node, result, origin: self.lineage.own() }
    }

    /// The type of a value; `None` for a poisoned one and for one of another graph.
    #[must_use]
    pub fn ty(&self, v: Value) -> Option<&TensorType> {
        let node = self.nodes.get(v.node.index()).filter(|_| self.lineage.has(v))?;
        node.types.get(v.result())
    }

    /// The dimensions of a value; empty for a poisoned one and for one of another graph.
    #[must_use]
    pub fn dims(&self, v: Value) -> &[usize] {
        self.ty(v).map_or(&[], |t| &t.dims)
    }

    /// The labels of a node: the user's scopes and operations it stands for.
    #[must_use]
    pub fn provenance(&self, id: NodeId) -> Vec<&str> {
        self.nodes[id.index()].labels.iter().map(|l| self.labels[*l as usize].as_str()).collect()
    }

    /// The leaf with this name.
    #[must_use]
    pub fn leaf(&self, name: &str) -> Option<Value> {
        self.names.get(name).map(|&node| self.value(node, 0))
    }

    /// How many results of all nodes refer to each node, roots included.
    #[must_use]
    pub fn use_counts(&self) -> Vec<usize> {
        let mut uses = vec![0; self.nodes.len()];
        let all = self.nodes.iter().flat_map(|n| n.inputs.iter().copied());
        let roots = self.outputs.iter().map(|o| o.value).chain(self.updates.iter().map(|u| u.value));
        for v in all.chain(roots) {
            if let Some(n) = uses.get_mut(v.node.index()) {
                *n += 1;
            }
        }
        uses
    }
}
