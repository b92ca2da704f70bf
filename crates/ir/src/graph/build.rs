//! Building: applying operations, collecting errors, scopes and roots.

use super::{Graph, Op, Output, Region, Update, Value};
use crate::ops::Payload;
use crate::types::TensorType;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::Location;

/// A call that did not fit, with where it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    /// The operation.
    pub op: String,
    /// The user's scope.
    pub scope: String,
    /// Types of the values it was given.
    pub inputs: Vec<TensorType>,
    /// What is wrong, with the numbers.
    pub reason: String,
    /// The caller's file.
    pub file: String,
    /// The caller's line.
    pub line: u32,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.op)?;
        if !self.scope.is_empty() {
            write!(f, " in {}", self.scope)?;
        }
        if !self.inputs.is_empty() {
            let types: Vec<String> = self.inputs.iter().map(ToString::to_string).collect();
            write!(f, " of {}", types.join(", "))?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// All errors of a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct BuildErrors(pub Vec<BuildError>);

impl fmt::Display for BuildErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the graph has {} error(s)", self.0.len())?;
        self.0.iter().try_for_each(|e| write!(f, "\n  {e}"))
    }
}

impl Graph {
    /// Whether the graph was built without errors.
    ///
    /// # Errors
    /// All errors recorded while building.
    pub fn finish(&self) -> Result<(), BuildErrors> {
        if self.errors.is_empty() { Ok(()) } else { Err(BuildErrors(self.errors.clone())) }
    }

    /// Records an error for the caller's call and gives a poisoned value.
    #[track_caller]
    pub(crate) fn fail(&mut self, op: &str, inputs: &[Value], reason: String) -> Value {
        let at = self.here();
        let inputs = inputs.iter().filter_map(|v| self.ty(*v).cloned()).collect();
        let (file, line) = (at.file().to_string(), at.line());
        self.errors.push(BuildError {
            op: op.into(),
            scope: self.scope.join("."),
            inputs,
            reason,
            file,
            line,
        });
        Value::POISON
    }

    /// Whether a value comes from a failed call, which has been recorded already unless it was made on another graph.
    #[track_caller]
    fn poisoned(&mut self, op: &str, values: &[Value]) -> bool {
        let poisoned = values.iter().any(|v| v.is_poison());
        if poisoned && self.errors.is_empty() {
            self.fail(op, values, "an operand comes from a failed call on another graph".into());
        }
        poisoned
    }

    /// Applies an operation and gives all its results.
    #[track_caller]
    pub(crate) fn apply_all(&mut self, op: Payload, inputs: &[Value]) -> Vec<Value> {
        let results = op.result_count();
        if self.poisoned(op.name(), inputs) {
            return vec![Value::POISON; results];
        }
        let types: Option<Vec<TensorType>> = inputs.iter().map(|v| self.ty(*v).cloned()).collect();
        let Some(types) = types else {
            self.fail(op.name(), &[], "an operand is a value of another graph".into());
            return vec![Value::POISON; results];
        };
        let inferred = op.infer(&types).and_then(|t| t.iter().try_for_each(TensorType::check).map(|()| t));
        match inferred {
            Ok(types) => {
                let v = self.push_node(op, inputs.to_vec(), types, self.here());
                self.results(v.node).collect()
            }
            Err(reason) => {
                self.fail(op.name(), inputs, reason);
                vec![Value::POISON; results]
            }
        }
    }

    /// Applies an operation and gives its first result.
    #[track_caller]
    pub(crate) fn apply(&mut self, op: Payload, inputs: &[Value]) -> Value {
        self.apply_all(op, inputs)[0]
    }

    pub(crate) fn push_node(
        &mut self,
        op: Payload,
        inputs: Vec<Value>,
        types: Vec<TensorType>,
        at: &Location<'_>,
    ) -> Value {
        let op = Op(op);
        if let Some(node) = self.shared(&op, &inputs) {
            return self.value(node, 0);
        }
        let labels = self.inherited.clone().unwrap_or_else(|| {
            let label = match (&op.0, self.scope.is_empty()) {
                (Payload::Leaf(l), _) if !l.name.is_empty() => l.name.clone(),
                (other, false) => format!("{}.{}", self.scope.join("."), other.name()),
                (other, true) => format!("{}@{}:{}", other.name(), file_name(at.file()), at.line()),
            };
            BTreeSet::from([self.intern(label)])
        });
        let node = self.push_raw(op, inputs, types, labels);
        self.value(node, 0)
    }

    /// The number of a label, which is added if it is new.
    pub(super) fn intern(&mut self, label: String) -> u32 {
        let found = match &self.interned {
            Some(interned) => interned.get(&label).copied(),
            None => self.labels.iter().position(|l| *l == label).map(|at| at as u32),
        };
        found.unwrap_or_else(|| {
            let at = self.labels.len() as u32;
            if let Some(interned) = &mut self.interned {
                interned.insert(label.clone(), at);
            }
            self.labels.push(label);
            at
        })
    }

    /// Where the current call was made, as the user sees it.
    #[track_caller]
    pub(super) fn here(&self) -> &'static Location<'static> {
        match self.place {
            Some(place) => place,
            None => Location::caller(),
        }
    }

    /// Runs `f` inside a named scope; nodes made there are labelled with it.
    pub fn scoped<T>(&mut self, name: &str, f: impl FnOnce(&mut Graph) -> T) -> T {
        self.scope.push(name.into());
        let out = f(self);
        self.scope.pop();
        out
    }

    /// Runs `f` inside a named scope on behalf of the caller: errors made there name the caller's line, not one of `f`. For
    /// layers, whose users do not know their code; a layer made of layers names the line of the outermost.
    #[track_caller]
    pub fn layer<T>(&mut self, name: &str, f: impl FnOnce(&mut Graph) -> T) -> T {
        let before = self.place.replace(self.here());
        let out = self.scoped(name, f);
        self.place = before;
        out
    }

    /// Runs `f` with new nodes marked as belonging to a region.
    pub fn in_region<T>(&mut self, region: Region, f: impl FnOnce(&mut Graph) -> T) -> T {
        let before = std::mem::replace(&mut self.region, region);
        let out = f(self);
        self.region = before;
        out
    }

    /// Declares a named output.
    #[track_caller]
    pub fn output(&mut self, name: &str, value: Value) {
        if self.poisoned("output", &[value]) {
            return;
        }
        if self.ty(value).is_none() {
            self.fail("output", &[], format!("'{name}' is a value of another graph"));
            return;
        }
        if self.outputs.iter().any(|o| o.name == name) {
            self.fail("output", &[value], format!("the output '{name}' is declared already"));
            return;
        }
        self.outputs.push(Output { name: name.into(), value });
    }

    /// Declares that a parameter or state takes this value at the end of the step.
    #[track_caller]
    pub fn update(&mut self, leaf: Value, value: Value) {
        if self.poisoned("update", &[leaf, value]) {
            return;
        }
        if [leaf, value].iter().any(|v| self.ty(*v).is_none()) {
            self.fail("update", &[leaf, value], "a value of another graph".into());
            return;
        }
        let updatable = self.as_leaf(leaf.node).is_some_and(|l| l.is_persistent());
        if !updatable {
            self.fail("update", &[leaf, value], "only parameters and state can be updated".into());
        } else if self.ty(leaf) != self.ty(value) {
            self.fail("update", &[leaf, value], "the new value has another type".into());
        } else if self.updates.iter().any(|u| u.leaf == leaf.node) {
            self.fail("update", &[leaf, value], "this leaf is updated already".into());
        } else {
            self.updates.push(Update { leaf: leaf.node, value });
        }
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
