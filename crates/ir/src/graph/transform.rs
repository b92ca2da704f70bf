//! Rebuilding a graph: the one way passes change graphs.
//!
//! A rebuild walks the live nodes of an old graph in order and makes a new one. For every node the pass may supply
//! replacement values; otherwise the node is copied. Equal operations on equal inputs are made once (common-subexpression
//! elimination), nodes no root needs are dropped (dead code), named leaves always stay, and labels of nodes that become one
//! are united.

use super::{Graph, Node, NodeId, Op, Output, Region, Update, Value};
use crate::ops::{Fragment, Lowering, Payload, Signature};
use crate::types::TensorType;
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// What a pass puts in place of a node, if anything: from the new graph, the old node and its inputs in the new graph, the
/// values that stand for the node's results.
pub type Replace<'a> = dyn FnMut(&mut Graph, NodeId, &[Value]) -> Option<Vec<Value>> + 'a;

/// What a result became in a rebuild.
fn at(image: &[Vec<Value>], v: Value) -> Value {
    image[v.node.index()][usize::from(v.result)]
}

fn hash(op: &Op, inputs: &[Value]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (op, inputs).hash(&mut hasher);
    hasher.finish()
}

impl Graph {
    /// A new graph in which `replace` may supply the results of a node (given the new graph and the node's inputs there).
    #[must_use]
    pub fn rebuild(&self, replace: &mut Replace<'_>) -> Graph {
        let live = self.live();
        let (sharing, interned) = (Some(HashMap::new()), Some(HashMap::new()));
        let mut new = Graph { errors: self.errors.clone(), sharing, interned, ..Graph::default() };
        // What became of the results of each node, and of each label.
        let mut image: Vec<Vec<Value>> = vec![Vec::new(); self.nodes.len()];
        let mut numbers: Vec<Option<u32>> = vec![None; self.labels.len()];
        for id in self.ids().filter(|id| live[id.index()]) {
            let node = self.node(id);
            let inputs: Vec<Value> = node.inputs.iter().map(|v| at(&image, *v)).collect();
            let number = |l: &u32| {
                let known = &mut numbers[*l as usize];
                *known.get_or_insert_with(|| new.intern(self.labels[*l as usize].clone()))
            };
            let labels: BTreeSet<u32> = node.labels.iter().map(number).collect();
            new.inherited = Some(labels.clone());
            new.region = node.region;
            let made = match replace(&mut new, id, &inputs) {
                Some(values) => {
                    values.iter().for_each(|v| new.add_labels(*v, &labels));
                    values
                }
                None => new.copy_node(node.op.clone(), inputs, node.types.clone(), labels),
            };
            image[id.index()] = made;
        }
        for o in &self.outputs {
            new.outputs.push(Output { name: o.name.clone(), value: at(&image, o.value) });
        }
        for u in &self.updates {
            let leaf = at(&image, self.value(u.leaf, 0)).node;
            new.updates.push(Update { leaf, value: at(&image, u.value) });
        }
        (new.inherited, new.sharing, new.interned, new.region) = (None, None, None, Region::Forward);
        new
    }

    /// Nodes some root needs, and all named leaves.
    pub(super) fn live(&self) -> Vec<bool> {
        let mut live = vec![false; self.nodes.len()];
        let roots = self.outputs.iter().map(|o| o.value).chain(self.updates.iter().map(|u| u.value));
        roots.for_each(|v| live[v.node.index()] = true);
        for (id, leaf) in self.leaves() {
            live[id.index()] |= !leaf.name.is_empty();
        }
        for i in (0..self.nodes.len()).rev() {
            if live[i] {
                self.nodes[i].inputs.iter().for_each(|v| live[v.node.index()] = true);
            }
        }
        live
    }

    /// Removes all updates and gives them, for a pass that declares others in their place.
    pub fn take_updates(&mut self) -> Vec<Update> {
        std::mem::take(&mut self.updates)
    }

    fn copy_node(
        &mut self,
        op: Op,
        inputs: Vec<Value>,
        types: Vec<TensorType>,
        labels: BTreeSet<u32>,
    ) -> Vec<Value> {
        let named = matches!(&op.0, Payload::Leaf(l) if !l.name.is_empty());
        let id = match self.shared(&op, &inputs) {
            Some(id) if !named => id,
            _ => self.push_raw(op, inputs, types, labels.clone()),
        };
        self.add_labels(self.value(id, 0), &labels);
        self.results(id).collect()
    }

    /// The node that computes this already, during a rebuild.
    pub(super) fn shared(&self, op: &Op, inputs: &[Value]) -> Option<NodeId> {
        let alike = self.sharing.as_ref()?.get(&hash(op, inputs))?;
        let is_equal = |id: &&NodeId| {
            let node = &self.nodes[id.index()];
            node.inputs == inputs && node.op == *op
        };
        alike.iter().rev().find(is_equal).copied()
    }

    pub(super) fn push_raw(
        &mut self,
        op: Op,
        inputs: Vec<Value>,
        types: Vec<TensorType>,
        labels: BTreeSet<u32>,
    ) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        if let Payload::Leaf(l) = &op.0
            && !l.name.is_empty()
        {
            self.names.insert(l.name.clone(), id);
        }
        if let Some(sharing) = &mut self.sharing {
            sharing.entry(hash(&op, &inputs)).or_default().push(id);
        }
        self.nodes.push(Node { op, inputs, types, region: self.region, labels });
        id
    }

    fn add_labels(&mut self, v: Value, labels: &BTreeSet<u32>) {
        if let Some(node) = self.nodes.get_mut(v.node.index()) {
            node.labels.extend(labels);
        }
    }

    /// What a node lowers to.
    #[must_use]
    pub fn lowering(&self, id: NodeId) -> Lowering {
        let node = self.node(id);
        let inputs = self.types_of(&node.inputs);
        node.op.0.lower(&Signature { inputs: &inputs, outputs: &node.types })
    }

    /// This graph with every composite replaced by its expansion, until only leaves and loops remain.
    #[must_use]
    pub fn expanded(&self) -> Graph {
        let mut g = self.rebuild(&mut |_, _, _| None);
        loop {
            let mut changed = false;
            let next = g.rebuild(&mut |new, id, inputs| match g.lowering(id) {
                Lowering::Expansion(fragment) => {
                    changed = true;
                    Some(new.inline(&fragment, inputs))
                }
                _ => None,
            });
            if !changed {
                return next;
            }
            g = next;
        }
    }

    /// Copies a fragment into this graph over these inputs and gives its outputs.
    pub fn inline(&mut self, fragment: &Fragment, inputs: &[Value]) -> Vec<Value> {
        let mut image: HashMap<Value, Value> = HashMap::new();
        image.extend(fragment.inputs.iter().copied().zip(inputs.iter().copied()));
        for id in fragment.graph.ids() {
            let node = fragment.graph.node(id);
            if image.contains_key(&fragment.graph.value(id, 0)) {
                continue;
            }
            let mapped: Vec<Value> = node.inputs.iter().map(|v| image[v]).collect();
            let results = self.apply_all(node.op.0.clone(), &mapped);
            image.extend(fragment.graph.results(id).zip(results));
        }
        fragment.outputs.iter().map(|v| image[v]).collect()
    }

    /// Runs `f` with new nodes taking the labels of a node of this graph.
    pub(crate) fn labelled_as<T>(&mut self, id: NodeId, f: impl FnOnce(&mut Graph) -> T) -> T {
        let labels = self.nodes[id.index()].labels.clone();
        let before = self.inherited.replace(labels);
        let out = f(self);
        self.inherited = before;
        out
    }
}
