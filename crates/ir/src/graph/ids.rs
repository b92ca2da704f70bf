//! Which ids an id input may hold, from how it is used.

use super::{Graph, IdLimit, NodeId};
use crate::ops::Payload;
use crate::types::{DType, TensorType};
use std::collections::BTreeMap;

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
        Payload::Embedding(_) => k == 0,
        _ => false,
    }
}

fn tighter(a: IdLimit, b: IdLimit) -> IdLimit {
    IdLimit { limit: a.limit.min(b.limit), ignore: if a.ignore == b.ignore { a.ignore } else { None } }
}
