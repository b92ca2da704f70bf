//! Reverse-mode differentiation of a graph.
//!
//! Input: a graph, a scalar loss, the values whose gradients are wanted. Output: one gradient per wanted value, as nodes in
//! the derivative region. Contributions to a value used several times are summed explicitly, in reverse order of the nodes.
//! A wanted value the loss does not depend on gets exact zeros. Values wrapped in `stop_gradient` pass nothing on.

use crate::graph::{Graph, Node, NodeId, Region, Value};
use crate::ops::{Lowering, Payload, Signature, Vjp};
use crate::types::{DType, TensorType};
use std::collections::BTreeMap;

/// Why a gradient cannot be formed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AutodiffError {
    /// The graph has build errors.
    #[error(transparent)]
    Build(#[from] crate::graph::BuildErrors),
    /// The loss is no `f32` scalar.
    #[error("the loss must be an f32 scalar, it is {0}")]
    Loss(String),
    /// A wanted value is not in the graph.
    #[error("the gradient of {0} is wanted, which is no value of this graph")]
    Wanted(String),
    /// An operation on the path has no gradient.
    #[error("no gradient through {op} (node {node}, {label}): {reason}")]
    NoGradient {
        /// The operation.
        op: String,
        /// Its node.
        node: usize,
        /// Where it came from.
        label: String,
        /// Why.
        reason: String,
    },
}

/// Gradients of `loss` with respect to `wanted`.
///
/// # Errors
/// Build errors, a loss that is no `f32` scalar, an operation on the path without a gradient.
pub fn gradients(g: &mut Graph, loss: Value, wanted: &[Value]) -> Result<Vec<Value>, AutodiffError> {
    g.finish()?;
    match g.ty(loss) {
        Some(t) if t.dtype == DType::F32 && t.elements() == 1 => {}
        Some(t) => return Err(AutodiffError::Loss(t.to_string())),
        None => return Err(AutodiffError::Loss("no value of this graph".into())),
    }
    if let Some(w) = wanted.iter().find(|w| g.ty(**w).is_none()) {
        return Err(AutodiffError::Wanted(w.to_string()));
    }
    let dims = g.dims(loss).to_vec();
    let found = g.in_region(Region::Derivative, |g| {
        let seed = g.splat(1.0, dims);
        backward(g, &[(loss, seed)], wanted, 0)
    })?;
    let out = wanted.iter().zip(found).map(|(w, d)| {
        d.unwrap_or_else(|| {
            let dims = g.dims(*w).to_vec();
            g.in_region(Region::Derivative, |g| g.splat(0.0, dims))
        })
    });
    let out = out.collect();
    g.finish()?;
    Ok(out)
}

/// The trainable parameters that no gradient of the value reaches: it does not depend on them, or only through ids, truth
/// values or `stop_gradient`.
#[must_use]
pub fn unreached_parameters(g: &Graph, loss: Value) -> Vec<String> {
    let reached = reached(g, &[loss], |v, node| {
        !matches!(node.op.0, Payload::StopGradient(_)) && g.ty(v).is_some_and(|t| t.dtype == DType::F32)
    });
    let parameter = |id: &NodeId| matches!(g.as_leaf(*id), Some(l) if l.is_trainable());
    g.ids()
        .filter(|id| parameter(id) && !reached[id.index()])
        .filter_map(|id| g.as_leaf(id).map(|l| l.name.clone()))
        .collect()
}

/// The nodes that lie behind `roots` along inputs that `follow` accepts.
fn reached(g: &Graph, roots: &[Value], follow: impl Fn(Value, &Node) -> bool) -> Vec<bool> {
    let mut reached = vec![false; g.nodes().len()];
    for r in roots {
        if let Some(n) = reached.get_mut(r.node().index()) {
            *n = true;
        }
    }
    for i in (0..reached.len()).rev() {
        if reached[i] {
            let node = &g.nodes()[i];
            for v in node.inputs().iter().filter(|v| follow(**v, node)) {
                reached[v.node().index()] = true;
            }
        }
    }
    reached
}

/// The core: from seeds (value, gradient) to the gradients of `wanted`, `None` where nothing flows. Only nodes from number
/// `start` on are differentiated.
fn backward(
    g: &mut Graph,
    seeds: &[(Value, Value)],
    wanted: &[Value],
    start: usize,
) -> Result<Vec<Option<Value>>, AutodiffError> {
    let count = g.nodes().len();
    let roots: Vec<Value> = seeds.iter().map(|s| s.0).collect();
    let on_path = reached(g, &roots, |_, _| true);
    let carries = depends_on(g, wanted, count);
    let mut grads: BTreeMap<Value, Vec<Value>> = BTreeMap::new();
    for (v, d) in seeds {
        grads.entry(*v).or_default().push(*d);
    }
    let first = wanted.iter().map(|v| v.node().index()).min().unwrap_or(0).max(start);
    for i in (first..count).rev().filter(|&i| on_path[i] && carries[i]) {
        let id = NodeId(i as u32);
        let outputs: Vec<Value> = g.results(id).collect();
        let upstream: Vec<Option<Value>> = outputs.iter().map(|v| summed(g, &mut grads, *v)).collect();
        if upstream.iter().all(Option::is_none) {
            continue;
        }
        for (v, d) in node_gradients(g, id, &outputs, &upstream, &carries)? {
            grads.entry(v).or_default().push(d);
        }
    }
    Ok(wanted.iter().map(|v| summed(g, &mut grads, *v)).collect())
}

/// Which nodes have a wanted value among their ancestors (or are one) through float edges.
fn depends_on(g: &Graph, wanted: &[Value], count: usize) -> Vec<bool> {
    let mut carries = vec![false; count];
    for v in wanted {
        carries[v.node().index()] = true;
    }
    for i in 0..count {
        let node = &g.nodes()[i];
        let through =
            |v: &Value| carries[v.node().index()] && g.ty(*v).is_some_and(|t| t.dtype == DType::F32);
        if !matches!(node.op.0, Payload::StopGradient(_)) && node.inputs().iter().any(through) {
            carries[i] = true;
        }
    }
    carries
}

/// The sum of all contributions to a value, in order; kept as the single entry.
fn summed(g: &mut Graph, grads: &mut BTreeMap<Value, Vec<Value>>, v: Value) -> Option<Value> {
    let parts = grads.get(&v)?.clone();
    let total = parts.iter().copied().reduce(|a, b| g.add(a, b))?;
    grads.insert(v, vec![total]);
    Some(total)
}

fn node_gradients(
    g: &mut Graph,
    id: NodeId,
    outputs: &[Value],
    upstream: &[Option<Value>],
    carries: &[bool],
) -> Result<Vec<(Value, Value)>, AutodiffError> {
    let node = g.node(id).clone();
    let float = |v: &Value| g.ty(*v).is_some_and(|t| t.dtype == DType::F32);
    let wanted: Vec<bool> = node.inputs.iter().map(|v| carries[v.node().index()] && float(v)).collect();
    let gradients = vec![None; node.inputs.len()];
    let (result, gradients) = g.labelled_as(id, |g| {
        let mut vjp = Vjp { g, inputs: &node.inputs, outputs, upstream, wanted: &wanted, gradients };
        (node.op.0.gradient(&mut vjp), vjp.gradients)
    });
    if let Err(reason) = result {
        let (op, label) = (node.op.0.name().to_string(), g.provenance(id).join(", "));
        return Err(AutodiffError::NoGradient { op, node: id.index(), label, reason });
    }
    let pairs = node.inputs.iter().zip(gradients).zip(&wanted);
    Ok(pairs.filter_map(|((v, d), w)| d.filter(|d| *w && !d.is_poison()).map(|d| (*v, d))).collect())
}

impl Graph {
    /// Types of several values.
    pub(crate) fn types_of(&self, values: &[Value]) -> Vec<TensorType> {
        values.iter().filter_map(|v| self.ty(*v).cloned()).collect()
    }
}

impl Vjp<'_> {
    /// The gradient as the VJP of the operation's expansion, recomputed from the inputs.
    pub(crate) fn through_expansion(&mut self, op: &Payload) -> Result<(), String> {
        let (inputs, outputs) = (self.g.types_of(self.inputs), self.g.types_of(self.outputs));
        let Lowering::Expansion(fragment) = op.lower(&Signature { inputs: &inputs, outputs: &outputs })
        else {
            return Err("it has no expansion".into());
        };
        self.through(|g, inputs| g.inline(&fragment, inputs))
    }

    /// The gradient as the VJP of what `f` builds from the inputs. Only the new nodes are differentiated: an input that
    /// depends on another one is differentiated through by the caller's pass, not twice.
    pub(crate) fn through(
        &mut self,
        f: impl FnOnce(&mut Graph, &[Value]) -> Vec<Value>,
    ) -> Result<(), String> {
        let start = self.g.nodes().len();
        let results = f(self.g, self.inputs);
        let seeds: Vec<(Value, Value)> =
            results.iter().zip(self.upstream).filter_map(|(r, d)| d.map(|d| (*r, d))).collect();
        let wanted: Vec<Value> =
            self.inputs.iter().zip(self.wanted).filter(|(_, w)| **w).map(|(v, _)| *v).collect();
        let found = backward(self.g, &seeds, &wanted, start).map_err(|e| e.to_string())?;
        for (v, d) in wanted.iter().zip(found) {
            let at = self.inputs.iter().position(|x| x == v).unwrap_or(0);
            self.gradients[at] = d;
        }
        Ok(())
    }
}
