//! Optimizers as part of the graph.
//!
//! [`attach`] turns a graph with a loss into a training graph: gradients, moments as state that mirrors the parameters,
//! one update operation per parameter, and the scalars a step needs. Nothing that changes from step to step is baked in:
//! learning rate and bias corrections are step scalars, given by [`step_scalars`] before each step.
//!
//! ```
//! use griffinfly_ir::graph::{Graph, Init};
//! use griffinfly_ir::optimizer::{Optimizer, attach};
//! let mut g = Graph::new();
//! let (x, y) = (g.input("x", [8, 3]), g.input("y", [8, 2]));
//! let w = g.parameter("w", [2, 3], Init::Normal(0.1.into()));
//! let guess = g.matmul_with(x, w, [false, true]);
//! let loss = g.mse(guess, y);
//! let attached = attach(&mut g, &Optimizer::adam(1e-3), loss)?;
//! assert_eq!(attached.gradients[0].0, "w");
//! assert!(g.leaf("w.adam_m").is_some());
//! # Ok::<(), griffinfly_ir::autodiff::AutodiffError>(())
//! ```

use crate::autodiff::{self, AutodiffError};
use crate::graph::{Graph, Region, Value};
use crate::ops::Payload;
use crate::ops::optimizer::{Adam, Sgd};
use serde::{Deserialize, Serialize};

/// Name of the step scalar that holds the learning rate.
pub const LEARNING_RATE: &str = "optimizer.learning_rate";
/// Name of the step scalar `1 / (1 - beta1^t)`.
pub const CORRECTION1: &str = "optimizer.correction1";
/// Name of the step scalar `1 / (1 - beta2^t)`.
pub const CORRECTION2: &str = "optimizer.correction2";

/// An optimizer with its hyperparameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// Stochastic gradient descent.
    Sgd(SgdConfig),
    /// Adam or AdamW.
    Adam(AdamConfig),
}

/// `d = g + weight_decay p`; with momentum `v = momentum v + d` and `d = v`, or `d + momentum v` for Nesterov;
/// `p -= learning_rate d`. The same as `torch.optim.SGD` without dampening.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SgdConfig {
    /// Learning rate to start with.
    pub learning_rate: f64,
    /// Momentum in 0..1; 0 keeps no velocity.
    pub momentum: f64,
    /// Nesterov momentum.
    pub nesterov: bool,
    /// L2 penalty, of all parameters.
    pub weight_decay: f64,
}

impl Default for SgdConfig {
    /// PyTorch's: learning rate 1e-3, no momentum, no weight decay.
    fn default() -> Self {
        Self { learning_rate: 1e-3, momentum: 0.0, nesterov: false, weight_decay: 0.0 }
    }
}

/// `m = beta1 m + (1 - beta1) g`, `v = beta2 v + (1 - beta2) g^2`,
/// `p -= learning_rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)`. The same as `torch.optim.Adam` and, with
/// decoupled weight decay, `torch.optim.AdamW`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdamConfig {
    /// Learning rate to start with.
    pub learning_rate: f64,
    /// Decay of the first moment, in 0..1.
    pub beta1: f64,
    /// Decay of the second moment, in 0..1.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Weight decay, of all parameters.
    pub weight_decay: f64,
    /// Weight decay acts on the parameter itself (AdamW), not on its gradient.
    pub decoupled: bool,
}

impl Default for AdamConfig {
    /// PyTorch's: learning rate 1e-3, betas 0.9 and 0.999, eps 1e-8, no weight decay.
    fn default() -> Self {
        Self { learning_rate: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.0, decoupled: false }
    }
}

impl AdamConfig {
    /// PyTorch's AdamW: as Adam with decoupled weight decay 1e-2.
    #[must_use]
    pub fn adamw() -> Self {
        Self { weight_decay: 1e-2, decoupled: true, ..Self::default() }
    }
}

impl Optimizer {
    /// Plain stochastic gradient descent.
    #[must_use]
    pub fn sgd(learning_rate: f64) -> Self {
        Optimizer::Sgd(SgdConfig { learning_rate, ..SgdConfig::default() })
    }

    /// Stochastic gradient descent with momentum.
    #[must_use]
    pub fn momentum(learning_rate: f64, momentum: f64) -> Self {
        Optimizer::Sgd(SgdConfig { learning_rate, momentum, ..SgdConfig::default() })
    }

    /// Adam with PyTorch's defaults.
    #[must_use]
    pub fn adam(learning_rate: f64) -> Self {
        Optimizer::Adam(AdamConfig { learning_rate, ..AdamConfig::default() })
    }

    /// AdamW with PyTorch's defaults.
    #[must_use]
    pub fn adamw(learning_rate: f64) -> Self {
        Optimizer::Adam(AdamConfig { learning_rate, ..AdamConfig::adamw() })
    }

    /// The learning rate to start with.
    #[must_use]
    pub fn learning_rate(&self) -> f64 {
        match self {
            Optimizer::Sgd(c) => c.learning_rate,
            Optimizer::Adam(c) => c.learning_rate,
        }
    }

    /// The operation, and the kinds of state each parameter has, in order of the operation's inputs.
    fn rule(&self) -> (Payload, &'static [&'static str]) {
        match self {
            Optimizer::Sgd(c) => {
                let (momentum, weight_decay) = (c.momentum.into(), c.weight_decay.into());
                let op = Sgd { momentum, nesterov: c.nesterov, weight_decay };
                (Payload::Sgd(op), if c.momentum == 0.0 { &[] } else { &["sgd_velocity"] })
            }
            Optimizer::Adam(c) => {
                let op = Adam {
                    beta1: c.beta1.into(),
                    beta2: c.beta2.into(),
                    eps: c.eps.into(),
                    weight_decay: c.weight_decay.into(),
                    decoupled: c.decoupled,
                };
                (Payload::Adam(op), &["adam_m", "adam_v"])
            }
        }
    }

    fn scalars(&self) -> &'static [&'static str] {
        match self {
            Optimizer::Sgd(_) => &[LEARNING_RATE],
            Optimizer::Adam(_) => &[LEARNING_RATE, CORRECTION1, CORRECTION2],
        }
    }
}

/// What [`attach`] made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Name and gradient of every trained parameter, in order of declaration.
    pub gradients: Vec<(String, Value)>,
    /// Parameters the loss does not depend on: they are not updated.
    pub unreached: Vec<String>,
}

/// Adds to the graph the gradients of `loss` with respect to every parameter it depends on, and their updates.
///
/// Each parameter gets zero-initialised state that mirrors it (`parameter.adam_m`, `parameter.adam_v`,
/// `parameter.sgd_velocity`). Parameters the loss does not depend on are left alone and reported. On an error the graph is
/// as it was.
///
/// # Errors
/// Errors of building, hyperparameters out of range among them; a loss that is no `f32` scalar; an operation on the way to
/// a parameter without a gradient.
pub fn attach(g: &mut Graph, optimizer: &Optimizer, loss: Value) -> Result<Attached, AutodiffError> {
    let unreached = autodiff::unreached_parameters(g, loss);
    let trained: Vec<(String, Value)> = g
        .leaves()
        .filter(|(_, l)| l.is_trainable() && !unreached.contains(&l.name))
        .map(|(node, l)| (l.name.clone(), g.value(node, 0)))
        .collect();
    let mut work = g.clone();
    let parameters: Vec<Value> = trained.iter().map(|(_, p)| *p).collect();
    let gradients = autodiff::gradients(&mut work, loss, &parameters)?;
    work.in_region(Region::Update, |g| add_updates(g, optimizer, &trained, &gradients));
    work.finish()?;
    *g = work;
    let gradients = trained.into_iter().map(|(name, _)| name).zip(gradients).collect();
    Ok(Attached { gradients, unreached })
}

fn add_updates(g: &mut Graph, optimizer: &Optimizer, trained: &[(String, Value)], gradients: &[Value]) {
    let (op, kinds) = optimizer.rule();
    let scalars: Vec<Value> = optimizer.scalars().iter().map(|name| g.step_scalar(name)).collect();
    for ((name, parameter), gradient) in trained.iter().zip(gradients) {
        let moments: Vec<Value> = kinds.iter().map(|kind| g.mirror(kind, *parameter)).collect();
        let inputs = [&[*parameter, *gradient], moments.as_slice(), &scalars].concat();
        let next = g.scoped(name, |g| g.apply_all(op.clone(), &inputs));
        for (leaf, value) in [*parameter].into_iter().chain(moments).zip(next) {
            g.update(leaf, value);
        }
    }
}

/// The step scalars of step `step`, the first of which is 1 (0 counts as 1), with this learning rate.
///
/// Bias corrections are computed in `f64`, so they are right for late steps too, where `beta^t` vanishes.
#[must_use]
pub fn step_scalars(optimizer: &Optimizer, step: u64, learning_rate: f64) -> Vec<(&'static str, f32)> {
    let mut scalars = vec![(LEARNING_RATE, learning_rate as f32)];
    if let Optimizer::Adam(c) = optimizer {
        let t = step.max(1) as f64;
        // 1 - beta^t without cancellation for beta near 1.
        let correction = |beta: f64| -1.0 / (t * beta.ln()).exp_m1();
        scalars.push((CORRECTION1, correction(c.beta1) as f32));
        scalars.push((CORRECTION2, correction(c.beta2) as f32));
    }
    scalars
}
