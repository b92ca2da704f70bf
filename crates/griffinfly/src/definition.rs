//! The two uses of one graph: training towards a loss, and inference of outputs.

use crate::error::Error;
use griffinfly_compile::{CompileError, rewrite};
use griffinfly_ir::autodiff::{self, AutodiffError};
use griffinfly_ir::graph::{BuildErrors, Graph, Value};
use griffinfly_ir::optimizer::{Attached, Optimizer, attach};
use griffinfly_ir::types::DType;

/// Name of the output that holds the loss.
pub(crate) const LOSS: &str = "loss";

/// The uses of a graph.
pub trait GraphExt {
    /// This graph as something to train: the loss becomes the output `loss`, beside those the graph declares.
    ///
    /// # Errors
    /// Build errors; a loss that is no `f32` scalar of this graph; another output named `loss`.
    fn training(&self, loss: Value) -> Result<TrainingGraph, Error>;

    /// This graph as something to run: these outputs, beside those the graph declares, without dropout, and with batch norms
    /// that work from their running averages. What they do not need is left out, so inputs that only the loss needs are not
    /// asked for.
    ///
    /// # Errors
    /// Build errors; a value of another graph; an output name used twice.
    fn inference<'a>(
        &self,
        outputs: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> Result<InferenceGraph, Error>;
}

impl GraphExt for Graph {
    fn training(&self, loss: Value) -> Result<TrainingGraph, Error> {
        check(self)?;
        match self.ty(loss) {
            Some(ty) if ty.dtype == DType::F32 && ty.elements() == 1 => {}
            Some(ty) => return Err(AutodiffError::Loss(ty.to_string()).into()),
            None => return Err(AutodiffError::Loss("no value of this graph".into()).into()),
        }
        let mut graph = self.clone();
        if !graph.outputs().iter().any(|o| o.name == LOSS && o.value == loss) {
            graph.output(LOSS, loss);
        }
        graph.finish()?;
        Ok(TrainingGraph { graph, loss })
    }

    fn inference<'a>(
        &self,
        outputs: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> Result<InferenceGraph, Error> {
        check(self)?;
        let mut graph = self.clone();
        for (name, value) in outputs {
            if graph.ty(value).is_none() {
                let faults = vec![format!("the output '{name}' is no value of this graph")];
                return Err(CompileError::Faults { stage: "graph", faults }.into());
            }
            if !graph.outputs().iter().any(|o| o.name == name && o.value == value) {
                graph.output(name, value);
            }
        }
        graph.finish()?;
        if graph.outputs().is_empty() {
            let reason = "name at least one".into();
            return Err(Error::Value { what: "the list of outputs", value: "empty".into(), reason });
        }
        let graph = graph.with_running_averages().without_dropout();
        graph.finish()?;
        Ok(InferenceGraph { graph })
    }
}

fn check(graph: &Graph) -> Result<(), Error> {
    graph.finish()?;
    let faults: Vec<String> = graph.verify().iter().map(ToString::to_string).collect();
    if faults.is_empty() { Ok(()) } else { Err(CompileError::Faults { stage: "graph", faults }.into()) }
}

/// A graph with the loss to train towards.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingGraph {
    graph: Graph,
    loss: Value,
}

impl TrainingGraph {
    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The loss.
    #[must_use]
    pub fn loss(&self) -> Value {
        self.loss
    }

    /// The same for other input dimensions.
    ///
    /// # Errors
    /// Unknown inputs, operations that do not fit the new shapes.
    #[track_caller]
    pub fn rebind(&self, shapes: &[(&str, &[usize])]) -> Result<TrainingGraph, BuildErrors> {
        Ok(TrainingGraph { graph: self.graph.rebind(shapes)?, loss: self.loss })
    }

    /// This graph as something that computes the loss and, without any update, its gradients: the outputs `loss` and, of every
    /// parameter the loss depends on, `grad.NAME`.
    ///
    /// # Errors
    /// An operation without a gradient; an output that has one of these names.
    pub fn gradients(&self) -> Result<InferenceGraph, Error> {
        let (mut graph, loss) = self.recognised()?;
        let unreached = autodiff::unreached_parameters(&graph, loss);
        let trained = graph.leaves().filter(|(_, l)| l.is_trainable() && !unreached.contains(&l.name));
        let (names, parameters): (Vec<String>, Vec<Value>) =
            trained.filter_map(|(_, l)| Some((format!("grad.{}", l.name), graph.leaf(&l.name)?))).unzip();
        let gradients = autodiff::gradients(&mut graph, loss, &parameters)?;
        names.iter().zip(gradients).for_each(|(name, gradient)| graph.output(name, gradient));
        graph.finish()?;
        Ok(InferenceGraph { graph })
    }

    /// The graph a trainer compiles, with gradients and updates.
    ///
    /// # Errors
    /// No gradient, hyperparameters out of range.
    pub(crate) fn differentiated(&self, optimizer: &Optimizer) -> Result<(Graph, Attached), Error> {
        let (mut graph, loss) = self.recognised()?;
        let attached = attach(&mut graph, optimizer, loss)?;
        Ok((graph, attached))
    }

    /// The graph with composites that were written out recognised, and its loss: their own gradients use saved statistics,
    /// where those of the small operations would go through every intermediate.
    fn recognised(&self) -> Result<(Graph, Value), Error> {
        let graph = rewrite::recognise(&self.graph);
        let loss = graph.outputs().iter().find(|output| output.name == LOSS).map(|output| output.value);
        let loss = loss.ok_or_else(|| AutodiffError::Loss("no output of the graph".into()))?;
        Ok((graph, loss))
    }
}

/// A graph with outputs to compute.
#[derive(Clone, Debug, PartialEq)]
pub struct InferenceGraph {
    graph: Graph,
}

impl InferenceGraph {
    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The same for other input dimensions.
    ///
    /// # Errors
    /// Unknown inputs, operations that do not fit the new shapes.
    #[track_caller]
    pub fn rebind(&self, shapes: &[(&str, &[usize])]) -> Result<InferenceGraph, BuildErrors> {
        Ok(InferenceGraph { graph: self.graph.rebind(shapes)? })
    }
}
