//! Updates: how new values of leaves reach the leaves' memory, and which update loops become one multi-tensor dispatch.
//!
//! An update whose value is made, element for element, by a pointwise loop of the update section is written in place;
//! any other value is copied at the end of the step. Loops that update different parameters by the same arithmetic form an
//! [`UpdateGroup`]; in memory their operands mirror the parameter layout, so a group is a few flat windows.

use crate::lower::{LoopGraph, LoopNode, Phase, Source, Tensor, TensorId, Update};
use griffinfly_ir::index::{Access, Store};
use griffinfly_ir::loops::{Body, Loop, LoopKind, Map};
use griffinfly_ir::types::TensorType;
use std::collections::HashMap;

/// What an operand or result of an update loop is, besides belonging to the parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// The parameter itself.
    Parameter,
    /// State of this kind that mirrors the parameter.
    Mirror(String),
    /// The parameter's gradient.
    Gradient,
    /// Scalars shared by the whole group: each load reads one element, the same for every element of the parameter.
    Shared(u32),
}

/// Update loops with equal arithmetic over different parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateGroup {
    /// (loop, parameter) pairs.
    pub members: Vec<(usize, TensorId)>,
    /// What each operand is.
    pub operands: Vec<Lane>,
    /// What each result is.
    pub results: Vec<Lane>,
}

/// Makes every output a tensor of its own and every update either in place or a copy at the end of the step.
///
/// Returns, for each tensor written in place, the leaf whose memory it takes.
#[must_use]
pub fn settle(graph: &mut LoopGraph) -> HashMap<TensorId, TensorId> {
    let mut links = Links { producers: graph.producers(), consumers: graph.consumers() };
    settle_outputs(graph, &mut links);
    let mut in_place = HashMap::new();
    let updates = graph.updates.clone();
    for (i, u) in updates.iter().enumerate() {
        let again = updates[..i].iter().any(|o| o.value == u.value);
        if !again && is_in_place(graph, &links, u) {
            in_place.insert(u.value, u.leaf);
            continue;
        }
        let updated_leaf = updates.iter().any(|o| o.leaf == u.value);
        let source =
            if updated_leaf { add_copy(graph, &mut links, u.value, Phase::Forward) } else { u.value };
        let copy = add_copy(graph, &mut links, source, Phase::Update);
        graph.updates[i].value = copy;
        in_place.insert(copy, u.leaf);
    }
    in_place
}

/// Who writes and who reads each tensor, while copies are added.
struct Links {
    producers: Vec<Option<usize>>,
    consumers: Vec<Vec<usize>>,
}

fn settle_outputs(graph: &mut LoopGraph, links: &mut Links) {
    for i in 0..graph.outputs.len() {
        let t = graph.outputs[i].1;
        let leaf = graph.tensor(t).source != Source::Temporary;
        let twice = graph.outputs[..i].iter().any(|(_, o)| *o == t);
        let updated = graph.updates.iter().any(|u| u.value == t);
        if leaf || twice || updated {
            graph.outputs[i].1 = add_copy(graph, links, t, Phase::Forward);
        }
    }
}

/// Adds a loop that copies a tensor and gives the copy. Copies of values made in the update section run there.
fn add_copy(graph: &mut LoopGraph, links: &mut Links, t: TensorId, phase: Phase) -> TensorId {
    let tensor = graph.tensor(t).clone();
    let (ty, rank) = (tensor.ty.clone(), tensor.ty.rank());
    let made = links.producers[t.index()].map_or(Phase::Forward, |p| graph.loops[p].phase);
    let mut body = Body::new();
    let (inputs, operands) = match tensor.splat() {
        Some(s) => {
            let v = body.expr.constant(s);
            body.output(v);
            (Vec::new(), Vec::new())
        }
        None => {
            body = Body::of_load(0, &ty, Access::identity(rank));
            (vec![t], vec![ty.clone()])
        }
    };
    let map = Map { domain: ty.dims.clone(), body, stores: vec![Store::identity(0, rank)] };
    let labels = [tensor.label.clone()].into();
    let copy = graph.add_tensor(Tensor { ty: ty.clone(), source: Source::Temporary, label: tensor.label });
    let l = Loop { operands, results: vec![ty], kind: LoopKind::Map(map) };
    inputs.iter().for_each(|i: &TensorId| links.consumers[i.index()].push(graph.loops.len()));
    links.producers.push(Some(graph.loops.len()));
    links.consumers.push(Vec::new());
    graph.loops.push(LoopNode { l, inputs, outputs: vec![copy], labels, phase: phase.max(made) });
    copy
}

/// Whether the value is made element for element in the update section and nobody else there needs the old value.
fn is_in_place(graph: &LoopGraph, links: &Links, u: &Update) -> bool {
    let Some(p) = links.producers[u.value.index()] else { return false };
    let node = &graph.loops[p];
    let LoopKind::Map(map) = &node.l.kind else { return false };
    let dims = &graph.tensor(u.leaf).ty.dims;
    let pointwise = map.body.loads.iter().all(|l| {
        node.inputs[l.operand] != u.leaf
            || l.access.is_identity(&node.l.operands[l.operand].dims, &map.domain)
    });
    let readers = &links.consumers[u.leaf.index()];
    let alone = readers.iter().all(|&i| i == p || graph.loops[i].phase != Phase::Update);
    let named = graph.outputs.iter().any(|(_, t)| *t == u.value);
    node.phase == Phase::Update && pointwise && alone && !named && map.domain == *dims
}

/// The groups of update loops that can run as one multi-tensor dispatch: those of one level.
#[must_use]
pub fn groups(
    graph: &LoopGraph,
    in_place: &HashMap<TensorId, TensorId>,
    level: &dyn Fn(usize) -> usize,
) -> Vec<UpdateGroup> {
    let consumers = graph.consumers();
    let mut taken: Vec<TensorId> = Vec::new();
    let mut out: Vec<(String, UpdateGroup)> = Vec::new();
    for (i, node) in graph.loops.iter().enumerate() {
        let Some((parameter, operands, results)) = lanes(graph, node, in_place) else { continue };
        let gradients: Vec<TensorId> = node
            .inputs
            .iter()
            .zip(&operands)
            .filter(|(_, l)| **l == Lane::Gradient)
            .map(|(t, _)| *t)
            .collect();
        let shared = gradients.iter().any(|t| {
            taken.contains(t)
                || consumers[t.index()].iter().any(|&c| c != i && graph.loops[c].phase == Phase::Update)
        });
        if gradients.len() > 1 || shared {
            continue;
        }
        taken.extend(gradients);
        let LoopKind::Map(map) = &node.l.kind else { continue };
        let key = format!("{} {:?} {operands:?} {results:?}", level(i), flat_body(map, &operands));
        match out.iter_mut().find(|(k, _)| *k == key) {
            Some((_, g)) => g.members.push((i, parameter)),
            None => out.push((key, UpdateGroup { members: vec![(i, parameter)], operands, results })),
        }
    }
    out.into_iter().map(|(_, g)| g).collect()
}

/// The body over one flat axis, as it is for every member of a group with these operands.
#[must_use]
pub fn flat_body(map: &Map, operands: &[Lane]) -> Body {
    let mut body = map.body.clone();
    for load in &mut body.loads {
        if !matches!(operands[load.operand], Lane::Shared(_)) {
            load.access = Access::identity(1);
        }
    }
    body
}

/// The loop of one window of a group: `elements` consecutive words of every lane.
#[must_use]
pub fn window(group: &UpdateGroup, node: &LoopNode, elements: usize) -> Loop {
    let ty = |lane: &Lane, own: &TensorType| match lane {
        Lane::Shared(_) => own.clone(),
        _ => TensorType::new(own.dtype, [elements]),
    };
    let operands = group.operands.iter().zip(&node.l.operands).map(|(l, t)| ty(l, t)).collect();
    let results: Vec<TensorType> = group.results.iter().zip(&node.l.results).map(|(l, t)| ty(l, t)).collect();
    let kind = match &node.l.kind {
        LoopKind::Map(map) => LoopKind::Map(Map {
            domain: vec![elements],
            body: flat_body(map, &group.operands),
            stores: (0..results.len()).map(|r| Store::identity(r, 1)).collect(),
        }),
        other => other.clone(),
    };
    Loop { operands, results, kind }
}

/// What the tensors around an update loop are, if it updates one parameter element for element.
fn lanes(
    graph: &LoopGraph,
    node: &LoopNode,
    in_place: &HashMap<TensorId, TensorId>,
) -> Option<(TensorId, Vec<Lane>, Vec<Lane>)> {
    let LoopKind::Map(map) = &node.l.kind else { return None };
    let is_parameter = |t: &TensorId| matches!(graph.tensor(*t).source, Source::Parameter(..));
    let parameter = *node.inputs.iter().find(|t| is_parameter(t))?;
    let Source::Parameter(name, _) = &graph.tensor(parameter).source else { return None };
    let lane = |t: TensorId| -> Option<Lane> {
        match &graph.tensor(t).source {
            Source::Parameter(other, _) => (other == name).then_some(Lane::Parameter),
            Source::State { mirrors: Some((kind, of)), .. } => {
                (of == name).then(|| Lane::Mirror(kind.clone()))
            }
            Source::StepScalar(_) | Source::StepSlot(_) => Some(Lane::Shared(t.0)),
            Source::Temporary if graph.tensor(t).ty.dims.is_empty() => Some(Lane::Shared(t.0)),
            Source::Temporary if graph.tensor(t).ty == graph.tensor(parameter).ty => Some(Lane::Gradient),
            _ => None,
        }
    };
    let operands: Vec<Lane> = node.inputs.iter().map(|t| lane(*t)).collect::<Option<_>>()?;
    let results: Option<Vec<Lane>> = node.outputs.iter().map(|t| lane(*in_place.get(t)?)).collect();
    let pointwise = map.body.loads.iter().all(|l| match operands[l.operand] {
        Lane::Shared(_) => is_one_element(&l.access),
        _ => l.access.is_identity(&node.l.operands[l.operand].dims, &map.domain),
    });
    let flat = node.phase == Phase::Update && pointwise && !map.body.expr.nodes().iter().any(uses_axes);
    if !flat || graph.tensor(parameter).ty.dims.is_empty() {
        return None;
    }
    Some((parameter, operands, results?))
}

/// Whether the access reads the same element everywhere.
fn is_one_element(access: &Access) -> bool {
    let fixed = access.coords.iter().all(|c| c.as_constant().is_some());
    fixed && access.valid.is_empty() && access.dynamic.is_none()
}

fn uses_axes(n: &griffinfly_ir::scalar::ScalarNode) -> bool {
    use griffinfly_ir::scalar::ScalarNode::{Index, Within};
    matches!(n, Index(_) | Within(_))
}
