//! What every operation must say about itself.

use super::SampleInput;
use crate::array::Array;
use crate::graph::{Graph, IdLimit, Value};
use crate::index::Store;
use crate::loops::{Body, Loop, LoopKind, Map};
use crate::real::Real;
use crate::types::{DType, TensorType};

/// The rules of one operation.
pub(crate) trait Rule: Sized {
    /// Number of inputs; `None` for one or more.
    fn arity(&self) -> Option<usize>;

    /// Number of results.
    fn results(&self) -> usize {
        1
    }

    /// Result types from input types, or what is wrong with them (with the numbers). The number of inputs is right already.
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String>;

    /// Adds the gradients of the inputs, or says why there is none.
    fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String>;

    /// The slow obvious meaning, written independently of the lowering.
    fn reference<R: Real>(&self, inputs: &[&Array<R>], outputs: &[TensorType]) -> Vec<Array<R>>;

    /// The loop it is, or the smaller operations it stands for.
    fn lower(&self, io: &Signature<'_>) -> Lowering;

    /// Which ids input `i` may hold, if it is an id input.
    fn id_limit(&self, _input: usize, _types: &[TensorType]) -> Option<IdLimit> {
        None
    }

    /// Example applications for the op suite: sizes 1, odd, prime, broadcast, large values.
    fn samples() -> Vec<(Self, Vec<SampleInput>)>;
}

/// Types around one application of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signature<'a> {
    /// Input types.
    pub(crate) inputs: &'a [TensorType],
    /// Result types.
    pub(crate) outputs: &'a [TensorType],
}

/// What an operation lowers to.
#[derive(Clone, Debug, PartialEq)]
pub enum Lowering {
    /// Nothing: its value comes from outside.
    Leaf,
    /// One loop whose operands are the inputs and whose results are the outputs.
    Loop(Box<Loop>),
    /// A graph over the inputs.
    Expansion(Box<Fragment>),
}

/// A graph with one placeholder per input and the values of the results.
#[derive(Clone, Debug, PartialEq)]
pub struct Fragment {
    /// The graph.
    pub graph: Graph,
    /// Placeholders in order of the inputs.
    pub inputs: Vec<Value>,
    /// Results in order.
    pub outputs: Vec<Value>,
}

impl Fragment {
    /// Builds a fragment over inputs of these types.
    pub fn new(inputs: &[TensorType], f: impl FnOnce(&mut Graph, &[Value]) -> Vec<Value>) -> Self {
        let mut graph = Graph::new();
        let input = |(i, t): (usize, &TensorType)| {
            graph.add_leaf(&i.to_string(), crate::graph::LeafKind::Input, t.clone())
        };
        let inputs: Vec<Value> = inputs.iter().enumerate().map(input).collect();
        let outputs = f(&mut graph, &inputs);
        Fragment { graph, inputs, outputs }
    }
}

impl Signature<'_> {
    /// Lowers to smaller operations.
    pub(crate) fn expand(&self, f: impl FnOnce(&mut Graph, &[Value]) -> Vec<Value>) -> Lowering {
        Lowering::Expansion(Box::new(Fragment::new(self.inputs, f)))
    }

    /// Lowers to a loop of this kind.
    pub(crate) fn loop_of(&self, kind: LoopKind) -> Lowering {
        let (operands, results) = (self.inputs.to_vec(), self.outputs.to_vec());
        Lowering::Loop(Box::new(Loop { operands, results, kind }))
    }

    /// Lowers to a map over the first result's dimensions with every result stored in place.
    pub(crate) fn map(&self, body: Body) -> Lowering {
        let domain = self.outputs[0].dims.clone();
        let stores = (0..self.outputs.len()).map(|r| Store::identity(r, domain.len())).collect();
        self.loop_of(LoopKind::Map(Map { domain, body, stores }))
    }
}

/// The state of one vector-Jacobian product: gradients of the results in, gradients of the inputs out.
pub(crate) struct Vjp<'a> {
    /// The graph the derivative is built in.
    pub(crate) g: &'a mut Graph,
    /// Inputs of the operation.
    pub(crate) inputs: &'a [Value],
    /// Results of the operation.
    pub(crate) outputs: &'a [Value],
    /// Gradient of each result, where the loss depends on it.
    pub(crate) upstream: &'a [Option<Value>],
    /// Which inputs need a gradient.
    pub(crate) wanted: &'a [bool],
    /// Gradients of the inputs, to be filled.
    pub(crate) gradients: Vec<Option<Value>>,
}

impl Vjp<'_> {
    /// Gradient of the first result; zeros if the loss does not depend on it.
    pub(crate) fn grad(&mut self) -> Value {
        self.grad_of(0)
    }

    /// Gradient of result `i`; zeros if the loss does not depend on it.
    pub(crate) fn grad_of(&mut self, i: usize) -> Value {
        self.upstream[i].unwrap_or_else(|| {
            let dims = self.g.dims(self.outputs[i]).to_vec();
            self.g.splat(0.0, dims)
        })
    }

    /// Whether input `i` needs a gradient.
    pub(crate) fn wants(&self, i: usize) -> bool {
        self.wanted[i]
    }

    /// Sets the gradient of input `i`.
    pub(crate) fn set(&mut self, i: usize, gradient: Value) {
        self.gradients[i] = Some(gradient);
    }

    /// Sets the gradient of input `i`, summed over the axes along which the input was broadcast.
    pub(crate) fn set_unbroadcast(&mut self, i: usize, gradient: Value) {
        let dims = self.g.dims(self.inputs[i]).to_vec();
        let summed = self.g.sum_to(gradient, &dims);
        self.set(i, summed);
    }
}

pub(crate) fn arity(arity: Option<usize>, inputs: &[TensorType]) -> Result<(), String> {
    match arity {
        Some(n) if n != inputs.len() => Err(format!("takes {n} operands, given {}", inputs.len())),
        None if inputs.is_empty() => Err("takes at least one operand".into()),
        _ => Ok(()),
    }
}

/// Fails unless a type has this dtype.
pub(crate) fn need_dtype(what: &str, ty: &TensorType, dtype: DType) -> Result<(), String> {
    if ty.dtype == dtype { Ok(()) } else { Err(format!("{what} must be {dtype}, it is {ty}")) }
}
