//! The oracle: evaluates a graph node by node with the operations' references, in any real type, without lowering.

use crate::array::Array;
use crate::graph::{Graph, LeafKind, Value};
use crate::real::Real;
use std::collections::HashMap;

/// Why a graph cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The value asked for is not of the graph.
    #[error("{0} is no value of this graph")]
    Foreign(Value),
    /// A leaf was given no value.
    #[error("'{0}' was given no value")]
    Unset(String),
    /// A leaf was given a value of another type.
    #[error("'{name}' is {expected}, given {given}")]
    Type {
        /// The leaf.
        name: String,
        /// Its type.
        expected: String,
        /// The given type.
        given: String,
    },
}

/// All values of an evaluated graph.
#[derive(Clone, Debug)]
pub struct Evaluation<R> {
    values: Vec<Vec<Array<R>>>,
}

impl<R: Real> Evaluation<R> {
    /// A value.
    #[must_use]
    pub fn get(&self, v: Value) -> &Array<R> {
        &self.values[v.node().index()][v.result()]
    }
}

/// Evaluates the nodes up to that of one value and gives it.
///
/// # Errors
/// A value of another graph or a poisoned one, and as [`eval`].
pub fn eval_value<R: Real>(
    g: &Graph,
    feeds: &HashMap<String, Array<R>>,
    v: Value,
) -> Result<Array<R>, EvalError> {
    if g.ty(v).is_none() {
        return Err(EvalError::Foreign(v));
    }
    Ok(eval_nodes(g, feeds, v.node().index() + 1)?.get(v).clone())
}

/// Evaluates all nodes. `feeds` gives inputs, step scalars and parameters by name; state starts as declared unless fed.
///
/// # Errors
/// A leaf without a value, or with one of another type.
pub fn eval<R: Real>(g: &Graph, feeds: &HashMap<String, Array<R>>) -> Result<Evaluation<R>, EvalError> {
    eval_nodes(g, feeds, g.nodes().len())
}

fn eval_nodes<R: Real>(
    g: &Graph,
    feeds: &HashMap<String, Array<R>>,
    count: usize,
) -> Result<Evaluation<R>, EvalError> {
    let mut values: Vec<Vec<Array<R>>> = Vec::with_capacity(count);
    for id in g.ids().take(count) {
        let node = g.node(id);
        let result = match g.as_leaf(id) {
            Some(leaf) if feeds.contains_key(&leaf.name) => {
                let fed = &feeds[&leaf.name];
                if fed.ty != leaf.ty {
                    let (expected, given) = (leaf.ty.to_string(), fed.ty.to_string());
                    return Err(EvalError::Type { name: leaf.name.clone(), expected, given });
                }
                vec![fed.clone()]
            }
            Some(leaf) if !matches!(leaf.kind, LeafKind::Constant(_) | LeafKind::State { .. }) => {
                return Err(EvalError::Unset(leaf.name.clone()));
            }
            _ => {
                let inputs: Vec<&Array<R>> =
                    node.inputs().iter().map(|v| &values[v.node().index()][v.result()]).collect();
                node.op.0.reference(&inputs, node.types())
            }
        };
        values.push(result);
    }
    Ok(Evaluation { values })
}
