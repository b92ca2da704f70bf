//! Lowering: every operation of an expanded graph becomes a loop over tensors.
//!
//! Input: a graph of leaves and operations that lower to loops. Output: a [`LoopGraph`]. Constants that are one number are
//! written into the bodies, and step scalars are read from one slot (`scalars`); nothing else is joined here.

mod graph;
mod scalars;

pub use graph::{LoopGraph, LoopNode, Phase, Source, Tensor, TensorId, Update};
pub(crate) use scalars::pack;

use crate::error::CompileError;
use griffinfly_ir::graph::{Graph, LeafKind, NodeId, Region, Value};
use griffinfly_ir::loops::{Body, Loop};
use griffinfly_ir::ops::Lowering;
use griffinfly_ir::scalar::{Scalar, ScalarNode};
use std::collections::{BTreeSet, HashMap};

/// Lowers a graph.
///
/// # Errors
/// An operation that is neither leaf nor loop: the graph was not expanded.
pub fn run(g: &Graph) -> Result<LoopGraph, CompileError> {
    let mut out = LoopGraph::default();
    let mut image: HashMap<Value, TensorId> = HashMap::new();
    let limits = g.id_limits();
    for id in g.ids() {
        match g.lowering(id) {
            Lowering::Leaf => {
                let v = g.results(id).next();
                let tensor = leaf_tensor(g, id, limits.get(&id).copied());
                if let (Some(v), Some(t)) = (v, tensor) {
                    image.insert(v, out.add_tensor(t));
                }
            }
            Lowering::Loop(l) => lower_node(g, id, *l, &mut out, &mut image),
            Lowering::Expansion(_) => {
                let label = g.provenance(id).join(", ");
                return Err(CompileError::Faults {
                    stage: "graph",
                    faults: vec![format!("{label} is not expanded")],
                });
            }
        }
    }
    for o in g.outputs() {
        out.outputs.push((o.name.clone(), image[&o.value]));
    }
    for u in g.updates() {
        let leaf = g.results(u.leaf).next().map(|v| image[&v]);
        if let Some(leaf) = leaf {
            out.updates.push(Update { leaf, value: image[&u.value] });
        }
    }
    pack(&mut out);
    Ok(out)
}

fn leaf_tensor(g: &Graph, id: NodeId, ids: Option<griffinfly_ir::graph::IdLimit>) -> Option<Tensor> {
    let leaf = g.as_leaf(id)?;
    let source = match &leaf.kind {
        LeafKind::Input => Source::Input { name: leaf.name.clone(), ids },
        LeafKind::StepScalar => Source::StepScalar(leaf.name.clone()),
        LeafKind::Parameter { .. } => Source::Parameter(leaf.name.clone(), leaf.kind.clone()),
        LeafKind::State { init, mirrors } => {
            Source::State { name: leaf.name.clone(), init: *init, mirrors: mirrors.clone() }
        }
        LeafKind::Constant(data) => Source::Constant(data.clone()),
    };
    Some(Tensor { ty: leaf.ty.clone(), source, label: g.provenance(id).join(", ") })
}

fn lower_node(g: &Graph, id: NodeId, l: Loop, out: &mut LoopGraph, image: &mut HashMap<Value, TensorId>) {
    let node = g.node(id);
    let labels: BTreeSet<String> = g.provenance(id).into_iter().map(Into::into).collect();
    let label = labels.iter().next().cloned().unwrap_or_default();
    let outputs: Vec<TensorId> = g
        .results(id)
        .zip(node.types())
        .map(|(v, ty)| {
            let t =
                out.add_tensor(Tensor { ty: ty.clone(), source: Source::Temporary, label: label.clone() });
            image.insert(v, t);
            t
        })
        .collect();
    let inputs: Vec<TensorId> = node.inputs().iter().map(|v| image[v]).collect();
    let phase = match node.region() {
        Region::Forward => Phase::Forward,
        Region::Derivative => Phase::Backward,
        Region::Update => Phase::Update,
    };
    let mut lowered = LoopNode { l, inputs, outputs, labels, phase };
    inline_constants(&mut lowered, out);
    lowered.compact();
    out.loops.push(lowered);
}

/// Writes constants that are one number into the bodies.
fn inline_constants(node: &mut LoopNode, graph: &LoopGraph) {
    let splats: Vec<Option<Scalar>> = node.inputs.iter().map(|t| graph.tensor(*t).splat()).collect();
    if splats.iter().all(Option::is_none) {
        return;
    }
    for body in node.l.bodies_mut() {
        let old = std::mem::take(body);
        let mut new = Body::new();
        let roots = old.expr.outputs().to_vec();
        let images = new.import(&old, &roots, &mut |new, leaf| {
            let ScalarNode::Load(k) = leaf else { return None };
            let load = &old.loads[*k as usize];
            let value = splats[load.operand]?;
            let constant = new.expr.constant(value);
            if load.access.valid.is_empty() {
                return Some(constant);
            }
            let (inside, fill) =
                (new.expr.within(load.access.valid.clone()), new.expr.constant(load.access.fill));
            Some(new.expr.select(inside, constant, fill))
        });
        new.expr.set_outputs(images);
        *body = new;
    }
}
