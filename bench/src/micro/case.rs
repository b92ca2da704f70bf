//! A case in one pass as a graph of one operation, with its inputs.
//!
//! The graph is built as the models build theirs, weights are parameters and gradients come from differentiation, so the
//! choice of kernels is that of whole programs.

use super::shape::{Pass, Shape};
use crate::error::BenchError;
use griffinfly::ir::autodiff::gradients;
use griffinfly::{AttentionOptions, Device, Graph, GraphExt, Init, Input, Session, Value, Weights, Window2d};

/// A tensor by name.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) name: &'static str,
    pub(super) dims: Vec<usize>,
    pub(super) values: Vec<f32>,
}

/// A graph that ran once.
pub(super) struct Ready {
    pub(super) session: Session,
    /// All that it reads, weights too.
    pub(super) given: Vec<Tensor>,
    pub(super) results: griffinfly::Outputs,
}

/// Builds, compiles and runs a case.
pub(super) fn ready(device: &Device, shape: &Shape, pass: Pass) -> Result<Ready, BenchError> {
    let given = tensors(shape, pass);
    let mut g = Graph::new();
    let leaf = |g: &mut Graph, t: &Tensor| match t.name {
        "w" => g.parameter("w", t.dims.clone(), Init::ZEROS),
        name => g.input(name, t.dims.clone()),
    };
    let leaves: Vec<Value> = given.iter().map(|t| leaf(&mut g, t)).collect();
    let results = results(&mut g, shape, (pass, &leaves))?;
    let graph = g.inference(results)?;
    let weights = Weights::empty(device, graph.graph())?;
    let read = given.iter().filter(|t| graph.graph().leaf(t.name).is_some());
    let (parameters, inputs): (Vec<&Tensor>, Vec<&Tensor>) = read.partition(|t| t.name == "w");
    parameters.iter().try_for_each(|t| weights.set(t.name, &t.values))?;
    let mut session = Session::with_weights(graph, &weights)?;
    let inputs: Vec<_> = inputs.iter().map(|t| (t.name, Input::f32(&t.values))).collect();
    let results = session.run(&inputs)?;
    Ok(Ready { session, given, results })
}

/// What a pass reads, drawn evenly from -1 to 1.
fn tensors(shape: &Shape, pass: Pass) -> Vec<Tensor> {
    let dy = ("dy", shape.result());
    let all = match shape {
        Shape::Gemm { m, n, k } => [("x", vec![*m, *k]), ("w", vec![*n, *k])].to_vec(),
        Shape::Conv { x, w, .. } => [("x", x.to_vec()), ("w", w.to_vec())].to_vec(),
        Shape::Attention { q, k, .. } => [("q", q.to_vec()), ("k", k.to_vec()), ("v", k.to_vec())].to_vec(),
    };
    let chosen = match (pass, shape) {
        (Pass::Forward, _) => all,
        // Convolutions are differentiated, so both operands stand in the graph that is differentiated.
        (Pass::ForwardBackward, _) | (_, Shape::Conv { .. }) => all.into_iter().chain([dy]).collect(),
        (Pass::InputGradient, _) => vec![dy, all[1].clone()],
        (Pass::WeightGradient, _) => vec![dy, all[0].clone()],
    };
    let tensor = |(seed, (name, dims)): (u64, (&'static str, Vec<usize>))| {
        let values = (0..dims.iter().product::<usize>() as u64).map(|i| drawn(seed, i)).collect();
        Tensor { name, dims, values }
    };
    (0..).zip(chosen).map(tensor).collect()
}

/// A number from -1 to 1 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014).
fn drawn(seed: u64, index: u64) -> f32 {
    let bits = mixed((seed << 48) + index);
    ((bits >> 40) as f32) / (1 << 23) as f32 - 1.0
}

/// The finisher of SplitMix64.
pub(super) fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

type Named = Vec<(&'static str, Value)>;

/// The results of a pass.
fn results(g: &mut Graph, shape: &Shape, (pass, v): (Pass, &[Value])) -> Result<Named, BenchError> {
    Ok(match shape {
        Shape::Gemm { .. } => vec![(
            "y",
            match pass {
                Pass::InputGradient => g.matmul(v[0], v[1]),
                Pass::WeightGradient => g.matmul_with(v[0], v[1], [true, false]),
                _ => g.matmul_with(v[0], v[1], [false, true]),
            },
        )],
        Shape::Conv { stride, padding, groups, .. } => {
            let window = Window2d { stride: *stride, padding: *padding, ..Window2d::default() };
            let y = g.conv2d_grouped(v[0], v[1], window, *groups);
            match pass {
                Pass::InputGradient => vec![("y", differentiated(g, (y, v[2]), &v[..1])?[0])],
                Pass::WeightGradient => vec![("y", differentiated(g, (y, v[2]), &v[1..2])?[0])],
                _ => vec![("y", y)],
            }
        }
        Shape::Attention { causal, .. } => {
            let options = if *causal { AttentionOptions::causal() } else { AttentionOptions::default() };
            let y = g.scaled_dot_product_attention(v[0], v[1], v[2], &options);
            if pass == Pass::Forward {
                return Ok(vec![("y", y)]);
            }
            let gradients = differentiated(g, (y, v[3]), &v[..3])?;
            ["dq", "dk", "dv"].into_iter().zip(gradients).chain([("y", y)]).collect()
        }
    })
}

/// Gradients of `sum(y dy)`, for which `dy` is the gradient of y.
fn differentiated(g: &mut Graph, (y, dy): (Value, Value), of: &[Value]) -> Result<Vec<Value>, BenchError> {
    let product = g.mul(y, dy);
    let loss = g.sum_all(product);
    Ok(gradients(g, loss, of).map_err(griffinfly::Error::from)?)
}
