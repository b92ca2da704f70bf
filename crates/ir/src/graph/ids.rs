//! Which ids an id input may hold, from how it is used, and which ids no host can check.

use super::{ConstantData, Graph, IdLimit, LeafKind, NodeId, Value};
use crate::ops::Payload;
use crate::types::{DType, TensorType};
use std::collections::BTreeMap;

/// Ids that are made on the device, or are stored there, and what they are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UncheckedIds {
    /// The ids, `i32`.
    pub ids: Value,
    /// The first operation that uses them so.
    pub user: NodeId,
    /// What they must be.
    pub limit: IdLimit,
}

impl Graph {
    /// For every `i32` input that some operation uses as ids, the tightest limit over all uses, followed through
    /// operations that only move elements. An ignored id is allowed only if all uses agree on it.
    #[must_use]
    pub fn id_limits(&self) -> BTreeMap<NodeId, IdLimit> {
        let mut limits: Vec<Option<IdLimit>> = vec![None; self.nodes.len()];
        for i in (0..self.nodes.len()).rev() {
            let node = &self.nodes[i];
            let types: Vec<TensorType> = node.inputs.iter().filter_map(|v| self.ty(*v).cloned()).collect();
            if types.len() != node.inputs.len() {
                continue;
            }
            for (k, v) in node.inputs.iter().enumerate().filter(|(k, _)| types[*k].dtype == DType::I32) {
                let own = node.op.0.id_limit(k, &types);
                let passed = if moves(&node.op.0, k) { limits[i] } else { None };
                let at = &mut limits[v.node.index()];
                *at = [own, passed].into_iter().flatten().chain(*at).reduce(tighter);
            }
        }
        let input = |id: &NodeId| matches!(self.as_leaf(*id), Some(l) if l.is_input());
        self.ids().filter(input).filter_map(|id| limits[id.index()].map(|l| (id, l))).collect()
    }

    /// The uses of ids, by operations some root needs, that [`Graph::id_limits`] does not cover: ids that are computed or
    /// stored on the device (state, parameters), and constants out of range. Equal uses of one value are one entry; in
    /// topological order of their first users.
    #[must_use]
    pub fn unchecked_ids(&self) -> Vec<UncheckedIds> {
        let (live, origins) = (self.live(), self.origins());
        let mut out: Vec<UncheckedIds> = Vec::new();
        for user in self.ids().filter(|id| live[id.index()]) {
            let node = self.node(user);
            let types: Vec<TensorType> = node.inputs.iter().filter_map(|v| self.ty(*v).cloned()).collect();
            if types.len() != node.inputs.len() {
                continue;
            }
            for (k, &ids) in node.inputs.iter().enumerate() {
                let Some(limit) = node.op.0.id_limit(k, &types) else { continue };
                let known = origins[ids.node.index()].is_within(limit);
                if !known && !out.iter().any(|u| (u.ids, u.limit) == (ids, limit)) {
                    out.push(UncheckedIds { ids, user, limit });
                }
            }
        }
        out
    }

    /// Positions within some axes of a node's operand are in range whatever a device computes.
    fn positions(&self, node: &super::Node, axes: &[usize]) -> Origin {
        let dims = node.inputs.first().map_or(&[][..], |v| self.dims(*v));
        let count: i64 = axes.iter().filter_map(|a| dims.get(*a)).map(|d| *d as i64).product();
        Origin::Host(Some([0, count - 1]))
    }

    /// For every node, what its `i32` results hold.
    fn origins(&self) -> Vec<Origin> {
        let mut all: Vec<Origin> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let origin = match &node.op.0 {
                Payload::Leaf(leaf) => match &leaf.kind {
                    LeafKind::Input => Origin::Host(None),
                    LeafKind::Constant(data) => constant_range(data),
                    _ => Origin::Device,
                },
                Payload::Extremum(e) => self.positions(node, &e.axes),
                Payload::TopK(t) => self.positions(node, &[t.axis]),
                op => {
                    let is_id = |v: &Value| self.ty(*v).is_some_and(|ty| ty.dtype == DType::I32);
                    let moved = (0..node.inputs.len()).filter(|k| moves(op, *k) && is_id(&node.inputs[*k]));
                    let from = moved.filter_map(|k| all.get(node.inputs[k].node.index()).copied());
                    let filled = match op {
                        Payload::Pad(pad) => Some(Origin::Host(Some([pad.value.get() as i64; 2]))),
                        _ => None,
                    };
                    from.chain(filled).reduce(Origin::with).unwrap_or(Origin::Device)
                }
            };
            all.push(origin);
        }
        all
    }
}

/// Where the elements of a value come from.
#[derive(Clone, Copy)]
enum Origin {
    /// Inputs, which are checked when they are set, and constants between these bounds.
    Host(Option<[i64; 2]>),
    /// Something a device computes or keeps.
    Device,
}

impl Origin {
    fn with(self, other: Origin) -> Origin {
        match (self, other) {
            (Origin::Host(a), Origin::Host(b)) => {
                Origin::Host([a, b].into_iter().flatten().reduce(|[a, b], [c, d]| [a.min(c), b.max(d)]))
            }
            _ => Origin::Device,
        }
    }

    fn is_within(self, limit: IdLimit) -> bool {
        match self {
            Origin::Host(None) => true,
            Origin::Host(Some([low, high])) => low >= 0 && high < i64::from(limit.limit),
            Origin::Device => false,
        }
    }
}

fn constant_range(data: &ConstantData) -> Origin {
    let id = |word: u32| i64::from(word as i32);
    Origin::Host(match data {
        ConstantData::Splat(s) => Some([id(s.bits()); 2]),
        ConstantData::Words(words) => {
            let ids = || words.iter().map(|w| id(*w));
            ids().min().zip(ids().max()).map(|(low, high)| [low, high])
        }
    })
}

/// Whether results hold elements of operand `k` unchanged.
fn moves(op: &Payload, k: usize) -> bool {
    match op {
        Payload::Reshape(_)
        | Payload::Permute(_)
        | Payload::Expand(_)
        | Payload::Slice(_)
        | Payload::Pad(_)
        | Payload::Concat(_)
        | Payload::Select(_)
        | Payload::StopGradient(_) => true,
        Payload::Embedding(_) | Payload::Gather(_) => k == 0,
        _ => false,
    }
}

fn tighter(a: IdLimit, b: IdLimit) -> IdLimit {
    IdLimit { limit: a.limit.min(b.limit), ignore: if a.ignore == b.ignore { a.ignore } else { None } }
}
