//! The loop graph: loops over tensors, each tensor written by at most one loop.

use crate::error::CompileError;
use griffinfly_ir::attr::F32;
use griffinfly_ir::graph::{ConstantData, IdLimit, LeafKind};
use griffinfly_ir::loops::Loop;
use griffinfly_ir::scalar::Scalar;
use griffinfly_ir::types::TensorType;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::fmt;

/// A tensor of a loop graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorId(pub u32);

impl TensorId {
    /// Position in the table.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A tensor: what it is and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Type.
    pub ty: TensorType,
    /// Origin.
    pub source: Source,
    /// Label of the node it came from.
    pub label: String,
}

/// Where a tensor comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Set by the host each step.
    Input {
        /// Its name.
        name: String,
        /// Which ids it may hold, if it is an id input.
        ids: Option<IdLimit>,
    },
    /// A scalar set by the host each step.
    StepScalar(String),
    /// Scalars set by the host each step, one element for each of these tensors, whose bytes it holds.
    StepSlot(Vec<TensorId>),
    /// Owned by the weights.
    Parameter(String, LeafKind),
    /// Owned by the session.
    State {
        /// Its name.
        name: String,
        /// Initial value of every element.
        init: F32,
        /// (kind, parameter) for state that mirrors a parameter.
        mirrors: Option<(String, String)>,
    },
    /// Known at compile time.
    Constant(ConstantData),
    /// Written by a loop.
    Temporary,
}

impl Tensor {
    /// The number every element is, for such constants.
    #[must_use]
    pub fn splat(&self) -> Option<Scalar> {
        match &self.source {
            Source::Constant(ConstantData::Splat(s)) => Some(*s),
            Source::Constant(ConstantData::Words(w)) if w.len() == 1 => {
                Some(Scalar::from_bits(self.ty.dtype, w[0]))
            }
            _ => None,
        }
    }
}

/// When a loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// In the forward pass: what the user wrote.
    Forward,
    /// In the same section, made by differentiation: once the forward pass is done.
    Backward,
    /// In the update section.
    Update,
}

/// A loop with its tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopNode {
    /// The loop.
    pub l: Loop,
    /// Operand tensors.
    pub inputs: Vec<TensorId>,
    /// Result tensors.
    pub outputs: Vec<TensorId>,
    /// Labels of the nodes it computes.
    pub labels: BTreeSet<String>,
    /// When it runs.
    pub phase: Phase,
}

/// A leaf that takes a new value at the end of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// Parameter or state.
    pub leaf: TensorId,
    /// Its next value.
    pub value: TensorId,
}

/// Loops over tensors with named roots. Loops are in a topological order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopGraph {
    /// Tensors.
    pub tensors: Vec<Tensor>,
    /// Loops.
    pub loops: Vec<LoopNode>,
    /// Named outputs.
    pub outputs: Vec<(String, TensorId)>,
    /// Updates.
    pub updates: Vec<Update>,
}

impl LoopNode {
    /// Drops operands no body reads, joins equal ones, and prunes unused loads.
    pub fn compact(&mut self) {
        for body in self.l.bodies_mut() {
            *body = body.pruned();
        }
        let used: BTreeSet<usize> = self.l.bodies().iter().flat_map(|(b, _)| b.operands()).collect();
        let mut inputs: Vec<TensorId> = Vec::new();
        let mut types = Vec::new();
        let mut place = vec![0; self.inputs.len()];
        for i in used {
            let at = inputs.iter().position(|t| *t == self.inputs[i]).unwrap_or_else(|| {
                inputs.push(self.inputs[i]);
                types.push(self.l.operands[i].clone());
                inputs.len() - 1
            });
            place[i] = at;
        }
        for body in self.l.bodies_mut() {
            body.loads.iter_mut().for_each(|l| l.operand = place[l.operand]);
            *body = body.pruned();
        }
        self.inputs = inputs;
        self.l.operands = types;
    }

    /// Tensors bound: operands and results.
    #[must_use]
    pub fn bindings(&self) -> usize {
        self.inputs.len() + self.outputs.len()
    }
}

impl LoopGraph {
    /// Adds a tensor.
    pub fn add_tensor(&mut self, t: Tensor) -> TensorId {
        self.tensors.push(t);
        TensorId(self.tensors.len() as u32 - 1)
    }

    /// A tensor.
    #[must_use]
    pub fn tensor(&self, t: TensorId) -> &Tensor {
        &self.tensors[t.index()]
    }

    /// The loop that writes each tensor.
    #[must_use]
    pub fn producers(&self) -> Vec<Option<usize>> {
        let mut out = vec![None; self.tensors.len()];
        for (i, n) in self.loops.iter().enumerate() {
            n.outputs.iter().for_each(|t| out[t.index()] = Some(i));
        }
        out
    }

    /// The loops that read each tensor.
    #[must_use]
    pub fn consumers(&self) -> Vec<Vec<usize>> {
        let mut out = vec![Vec::new(); self.tensors.len()];
        for (i, n) in self.loops.iter().enumerate() {
            for t in &n.inputs {
                if out[t.index()].last() != Some(&i) {
                    out[t.index()].push(i);
                }
            }
        }
        out
    }

    /// Tensors that outputs and updates name: they must exist in memory.
    #[must_use]
    pub fn roots(&self) -> Vec<bool> {
        let mut out = vec![false; self.tensors.len()];
        self.outputs.iter().for_each(|(_, t)| out[t.index()] = true);
        self.updates.iter().for_each(|u| out[u.value.index()] = true);
        out
    }

    /// Drops loops none of whose results are needed, and results that nobody needs where the loop has others.
    pub fn drop_dead(&mut self) {
        let mut needed = self.roots();
        for n in self.loops.iter().rev() {
            if n.outputs.iter().any(|t| needed[t.index()]) {
                n.inputs.iter().for_each(|t| needed[t.index()] = true);
            }
        }
        self.loops.retain(|n| n.outputs.iter().any(|t| needed[t.index()]));
    }

    /// Puts the loops in a topological order, earlier ones first where free.
    ///
    /// # Errors
    /// A circle of loops.
    pub fn sort(&mut self) -> Result<(), CompileError> {
        let producers = self.producers();
        let mut waits = vec![0; self.loops.len()];
        let mut dependents = vec![Vec::new(); self.loops.len()];
        for (i, node) in self.loops.iter().enumerate() {
            let before = node.inputs.iter().filter_map(|t| producers[t.index()]).filter(|p| *p != i);
            for p in before.collect::<BTreeSet<usize>>() {
                waits[i] += 1;
                dependents[p].push(i);
            }
        }
        let mut ready: BinaryHeap<Reverse<usize>> =
            (0..waits.len()).filter(|i| waits[*i] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(waits.len());
        while let Some(Reverse(i)) = ready.pop() {
            order.push(i);
            for &d in &dependents[i] {
                waits[d] -= 1;
                if waits[d] == 0 {
                    ready.push(Reverse(d));
                }
            }
        }
        if order.len() < waits.len() {
            return Err(CompileError::Cycle((0..waits.len()).filter(|i| waits[*i] > 0).collect()));
        }
        let mut loops: Vec<Option<LoopNode>> =
            std::mem::take(&mut self.loops).into_iter().map(Some).collect();
        self.loops = order.into_iter().filter_map(|i| loops[i].take()).collect();
        Ok(())
    }

    /// Verifies every loop, the types around it, and that the order is topological.
    ///
    /// # Errors
    /// All faults.
    pub fn check(&self) -> Result<(), CompileError> {
        let mut faults = Vec::new();
        let mut written = vec![false; self.tensors.len()];
        for (i, n) in self.loops.iter().enumerate() {
            let label = n.labels.iter().next().map_or("", String::as_str);
            faults.extend(n.l.verify().into_iter().map(|f| format!("loop {i} ({label}): {f}")));
            for (t, ty) in n.inputs.iter().zip(&n.l.operands).chain(n.outputs.iter().zip(&n.l.results)) {
                if self.tensor(*t).ty != *ty {
                    faults.push(format!(
                        "loop {i} ({label}): tensor {} is {}, used as {ty}",
                        t.0,
                        self.tensor(*t).ty
                    ));
                }
            }
            if n.inputs.len() != n.l.operands.len() || n.outputs.len() != n.l.results.len() {
                faults.push(format!("loop {i} ({label}): operand or result counts differ"));
            }
            for t in &n.inputs {
                if self.tensor(*t).source == Source::Temporary && !written[t.index()] {
                    faults.push(format!("loop {i} ({label}) reads tensor {} before it is written", t.0));
                }
            }
            for t in &n.outputs {
                if std::mem::replace(&mut written[t.index()], true) {
                    faults.push(format!("tensor {} is written twice", t.0));
                }
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(CompileError::Faults { stage: "loop graph", faults }) }
    }
}

impl LoopGraph {
    /// What a tensor is called in the text form: leaves by their name, others by number.
    fn name(&self, t: TensorId) -> String {
        match &self.tensor(t).source {
            Source::Input { name, .. } | Source::State { name, .. } => name.clone(),
            Source::StepScalar(name) | Source::Parameter(name, _) => name.clone(),
            Source::StepSlot(members) => {
                let names: Vec<String> = members.iter().map(|member| self.name(*member)).collect();
                format!("[{}]", names.join(" "))
            }
            Source::Constant(_) | Source::Temporary => format!("t{}", t.0),
        }
    }
}

impl fmt::Display for LoopGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, n) in self.loops.iter().enumerate() {
            let list = |ts: &[TensorId]| -> String {
                let parts: Vec<String> =
                    ts.iter().map(|t| format!("{}:{}", self.name(*t), self.tensor(*t).ty)).collect();
                parts.join(", ")
            };
            let labels: Vec<&str> = n.labels.iter().map(String::as_str).collect();
            writeln!(
                f,
                "{i}: {:?} ({}) -> ({})  # {}",
                n.l.archetype(),
                list(&n.inputs),
                list(&n.outputs),
                labels.join(" ")
            )?;
        }
        for (name, t) in &self.outputs {
            writeln!(f, "output {name} = {}", self.name(*t))?;
        }
        let update = |u: &Update| (self.name(u.leaf), self.name(u.value));
        self.updates.iter().map(update).try_for_each(|(leaf, value)| writeln!(f, "update {leaf} = {value}"))
    }
}
