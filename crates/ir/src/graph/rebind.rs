//! Rebinding: the same graph for other input shapes.
//!
//! Types are inferred anew from the leaves, so one definition gives programs for every batch size over the same parameters.
//! Operations carry no extent that can be derived, which is what makes the replay mean the same.

use super::{BuildError, BuildErrors, Graph, Value};
use crate::ops::Payload;
use std::panic::Location;

impl Graph {
    /// This graph with other dimensions for some inputs.
    ///
    /// # Errors
    /// Unknown input names, and every operation that does not type-check with the new shapes.
    #[track_caller]
    pub fn rebind(&self, shapes: &[(&str, &[usize])]) -> Result<Graph, BuildErrors> {
        self.finish()?;
        let at = Location::caller();
        let error = |op: &str, reason: String| BuildError {
            op: op.into(),
            scope: String::new(),
            inputs: Vec::new(),
            reason,
            file: at.file().into(),
            line: at.line(),
        };
        let mut out = self.clone();
        let mut errors = Vec::new();
        for (name, dims) in shapes {
            match out.leaf(name).map(|v| v.node) {
                Some(id) if matches!(out.as_leaf(id), Some(l) if l.is_input()) => {
                    if let Payload::Leaf(leaf) = &mut out.nodes[id.index()].op.0 {
                        leaf.ty.dims = dims.to_vec();
                    }
                }
                _ => errors.push(error("rebind", format!("there is no input named '{name}'"))),
            }
        }
        for i in 0..out.nodes.len() {
            let types =
                out.nodes[i].inputs.iter().filter_map(|v: &Value| out.ty(*v).cloned()).collect::<Vec<_>>();
            let inferred = out.nodes[i].op.0.infer(&types);
            match inferred.and_then(|t| t.iter().try_for_each(|t| t.check()).map(|()| t)) {
                Ok(types) => out.nodes[i].types = types,
                Err(e) => {
                    let op = out.nodes[i].op.0.name();
                    let labels = out.nodes[i].labels.iter().map(|l| out.labels[*l as usize].as_str());
                    let labels: Vec<&str> = labels.collect();
                    errors.push(BuildError {
                        inputs: types,
                        ..error(op, format!("{} ({e})", labels.join(", ")))
                    });
                }
            }
        }
        if errors.is_empty() { Ok(out) } else { Err(BuildErrors(errors)) }
    }
}
