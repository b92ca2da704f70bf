//! Leaves: where values enter the graph.

use super::{Graph, NodeId, Value};
use crate::attr::F32;
use crate::ops::Payload;
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How a parameter starts. Drawn from a counter-based generator keyed by seed and name, so order does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Init {
    /// All equal.
    Constant(F32),
    /// Uniform in `-bound..bound`.
    Uniform(F32),
    /// Normal with mean 0 and this standard deviation.
    Normal(F32),
}

impl Init {
    /// All zero.
    pub const ZEROS: Init = Init::Constant(F32::from_f32(0.0));
    /// All one.
    pub const ONES: Init = Init::Constant(F32::from_f32(1.0));
}

/// The data of a constant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConstantData {
    /// Every element the same.
    Splat(Scalar),
    /// One word per element.
    Words(Arc<[u32]>),
}

/// Which ids an id input may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdLimit {
    /// Ids must be in `0..limit`.
    pub limit: i32,
    /// An id that is allowed besides.
    pub ignore: Option<i32>,
}

/// The leaf operations.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeafKind {
    /// Set by the host before each step.
    Input,
    /// A scalar the host computes each step (learning rate, bias correction).
    StepScalar,
    /// Trained, owned by the weights.
    Parameter {
        /// How it starts.
        init: Init,
        /// Parameters of one adjacency group lie next to each other in declaration order.
        group: Option<String>,
    },
    /// Persistent, owned by the session.
    State {
        /// Every element starts as this.
        init: F32,
        /// State that has one tensor per parameter, at the parameter's own offset: (kind, parameter).
        mirrors: Option<(String, String)>,
    },
    /// Known at compile time.
    Constant(ConstantData),
}

/// A leaf with its name (constants have none) and type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Leaf {
    /// Unique in the graph; empty for constants.
    pub name: String,
    /// What it is.
    pub kind: LeafKind,
    /// Its type.
    pub ty: TensorType,
}

impl Graph {
    /// An `f32` input of these dimensions, set before each step.
    #[track_caller]
    pub fn input(&mut self, name: &str, dims: impl Into<Vec<usize>>) -> Value {
        self.add_leaf(name, LeafKind::Input, TensorType::f32(dims))
    }

    /// An input of `i32` ids (class labels, token ids). Ids are checked against their use when they are set.
    #[track_caller]
    pub fn input_ids(&mut self, name: &str, dims: impl Into<Vec<usize>>) -> Value {
        self.add_leaf(name, LeafKind::Input, TensorType::new(DType::I32, dims))
    }

    /// A scalar the host sets each step.
    #[track_caller]
    pub fn step_scalar(&mut self, name: &str) -> Value {
        self.add_leaf(name, LeafKind::StepScalar, TensorType::f32([]))
    }

    /// A trained `f32` tensor.
    #[track_caller]
    pub fn parameter(&mut self, name: &str, dims: impl Into<Vec<usize>>, init: Init) -> Value {
        self.add_leaf(name, LeafKind::Parameter { init, group: None }, TensorType::f32(dims))
    }

    /// A trained tensor that lies next to the others of its adjacency group (packed QKV, gate and up).
    #[track_caller]
    pub fn grouped_parameter(&mut self, name: &str, ty: TensorType, init: Init, group: &str) -> Value {
        self.add_leaf(name, LeafKind::Parameter { init, group: Some(group.into()) }, ty)
    }

    /// A persistent `f32` tensor that starts with every element `init`.
    #[track_caller]
    pub fn state(&mut self, name: &str, dims: impl Into<Vec<usize>>, init: f32) -> Value {
        let kind = LeafKind::State { init: F32::from_f32(init), mirrors: None };
        self.add_leaf(name, kind, TensorType::f32(dims))
    }

    /// State of a kind (a moment) that mirrors a parameter; named `parameter.kind`, starts as zeros.
    #[track_caller]
    pub fn mirror(&mut self, kind: &str, parameter: Value) -> Value {
        if parameter.is_poison() {
            return parameter;
        }
        let known = self.ty(parameter).and_then(|_| self.as_leaf(parameter.node));
        let Some(leaf) = known.cloned() else {
            return self.fail(
                "mirror",
                &[parameter],
                "mirrors a value that is no parameter of this graph".into(),
            );
        };
        let name = format!("{}.{kind}", leaf.name);
        let mirrors = Some((kind.to_string(), leaf.name));
        self.add_leaf(&name, LeafKind::State { init: F32::from_f32(0.0), mirrors }, leaf.ty)
    }

    /// A constant of these dimensions with every element `value`.
    #[track_caller]
    pub fn splat(&mut self, value: f32, dims: impl Into<Vec<usize>>) -> Value {
        let data = ConstantData::Splat(Scalar::f32(value));
        self.add_leaf("", LeafKind::Constant(data), TensorType::f32(dims))
    }

    /// A scalar constant.
    #[track_caller]
    pub fn scalar(&mut self, value: f32) -> Value {
        self.splat(value, [])
    }

    /// A constant `f32` tensor, row-major.
    #[track_caller]
    pub fn constant(&mut self, values: &[f32], dims: impl Into<Vec<usize>>) -> Value {
        let words: Arc<[u32]> = values.iter().map(|v| v.to_bits()).collect();
        self.constant_words(words, TensorType::f32(dims))
    }

    /// A constant of any dtype from stored words.
    #[track_caller]
    pub fn constant_words(&mut self, words: Arc<[u32]>, ty: TensorType) -> Value {
        if words.len() != ty.elements() {
            let e = format!("{} values for {ty}", words.len());
            return self.fail("constant", &[], e);
        }
        self.add_leaf("", LeafKind::Constant(ConstantData::Words(words)), ty)
    }

    /// Adds any leaf: checks name and type.
    #[track_caller]
    pub fn add_leaf(&mut self, name: &str, kind: LeafKind, ty: TensorType) -> Value {
        let what = match &kind {
            LeafKind::Input => "input",
            LeafKind::StepScalar => "step scalar",
            LeafKind::Parameter { .. } => "parameter",
            LeafKind::State { .. } => "state",
            LeafKind::Constant(_) => "constant",
        };
        let constant = matches!(kind, LeafKind::Constant(_));
        if !constant && let Err(e) = self.check_name(name) {
            return self.fail(what, &[], e);
        }
        if let Err(e) = ty.check() {
            return self.fail(what, &[], format!("'{name}': {e}"));
        }
        let at = self.here();
        let leaf = Payload::Leaf(Leaf { name: name.into(), kind, ty: ty.clone() });
        let value = self.push_node(leaf, Vec::new(), vec![ty], at);
        if !constant {
            self.names.insert(name.into(), value.node);
        }
        value
    }

    /// Whether a leaf may have this name.
    pub(super) fn check_name(&self, name: &str) -> Result<(), String> {
        if name.is_empty() || name.len() > 255 {
            return Err(format!("name '{name}' has {} bytes, 1 to 255 are allowed", name.len()));
        }
        if let Some(c) = name.chars().find(|c| c.is_whitespace() || c.is_control() || "\"'@%".contains(*c)) {
            return Err(format!("name '{name}' contains the character {c:?}"));
        }
        if self.names.contains_key(name) {
            return Err(format!("the name '{name}' is used already"));
        }
        Ok(())
    }

    /// The leaf behind a node, if it is one.
    #[must_use]
    pub fn as_leaf(&self, id: NodeId) -> Option<&Leaf> {
        match &self.nodes.get(id.index())?.op.0 {
            Payload::Leaf(leaf) => Some(leaf),
            _ => None,
        }
    }

    /// All leaves in order.
    pub fn leaves(&self) -> impl Iterator<Item = (NodeId, &Leaf)> {
        self.ids().filter_map(|id| self.as_leaf(id).map(|l| (id, l)))
    }

    /// The scalar every element of a constant has, if the value is such a constant.
    #[must_use]
    pub fn as_splat(&self, v: Value) -> Option<Scalar> {
        let ty = self.ty(v)?;
        match &self.as_leaf(v.node)?.kind {
            LeafKind::Constant(ConstantData::Splat(s)) => Some(*s),
            LeafKind::Constant(ConstantData::Words(w)) if w.len() == 1 => {
                Some(Scalar::from_bits(ty.dtype, w[0]))
            }
            _ => None,
        }
    }
}

impl Leaf {
    /// Whether the value persists from step to step.
    #[must_use]
    pub fn is_persistent(&self) -> bool {
        matches!(self.kind, LeafKind::Parameter { .. } | LeafKind::State { .. })
    }

    /// Whether it is trained.
    #[must_use]
    pub fn is_parameter(&self) -> bool {
        matches!(self.kind, LeafKind::Parameter { .. })
    }

    /// Whether it is trained and a gradient can reach it.
    #[must_use]
    pub fn is_trainable(&self) -> bool {
        self.is_parameter() && self.ty.dtype == DType::F32
    }

    /// Whether the host sets it before each step.
    #[must_use]
    pub fn is_input(&self) -> bool {
        self.kind == LeafKind::Input
    }
}
