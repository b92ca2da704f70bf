//! Operations: one file each, holding name, shape rule, gradient, reference, lowering and samples.
//!
//! `Payload` is the closed list; a missing rule is a compile error. A payload holds attributes only, never inputs or extents
//! that can be derived from its inputs. Gradient operations are operations like all others.
//!
//! To add an operation: write its file with a payload type, `impl Rule` and the builder methods on
//! [`Graph`](crate::graph::Graph), and add one line to the list below. The op suite picks up its samples.

mod rule;
mod sample;

mod attention;
mod contraction;
mod elementwise;
mod indexing;
mod interpolate;
mod leaf;
mod loss;
mod movement;
mod normalize;
pub(crate) mod optimizer;
mod pool;
mod random;
mod reduce;
mod view;
mod window;

pub use attention::{AttentionOptions, RotaryStyle, rotary_table};
pub use elementwise::TimestepEmbedding;
pub use interpolate::{Extent, Interpolation};
pub use loss::Reduction;
pub use rule::{Fragment, Lowering};
pub(crate) use rule::{Rule, Signature, Vjp};
pub use sample::{Fill, Sample, SampleInput};
pub use view::RuleView;
pub use window::Window2d;

use crate::array::Array;
use crate::graph::{IdLimit, Leaf};
use crate::real::Real;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

macro_rules! ops {
    ($($variant:ident = $name:literal: $ty:ty,)*) => {
        /// The closed list of operations.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub(crate) enum Payload {
            $(#[serde(rename = $name)] $variant($ty),)*
        }

        impl Payload {
            /// The name in the text form.
            pub(crate) fn name(&self) -> &'static str {
                match self { $(Payload::$variant(_) => $name,)* }
            }

            /// Result types, or the reason there are none.
            pub(crate) fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
                match self {
                    $(Payload::$variant(op) => {
                        rule::arity(op.arity(), inputs)?;
                        Rule::infer(op, inputs)
                    })*
                }
            }

            /// How many results it has.
            pub(crate) fn result_count(&self) -> usize {
                match self { $(Payload::$variant(op) => op.results(),)* }
            }

            /// Adds the gradient of each input to `vjp`.
            pub(crate) fn gradient(&self, vjp: &mut Vjp<'_>) -> Result<(), String> {
                match self { $(Payload::$variant(op) => op.gradient(vjp),)* }
            }

            /// The slow obvious meaning.
            pub(crate) fn reference<R: Real>(
                &self,
                inputs: &[&Array<R>],
                outputs: &[TensorType],
            ) -> Vec<Array<R>> {
                match self { $(Payload::$variant(op) => op.reference(inputs, outputs),)* }
            }

            /// The loop or the smaller operations it stands for.
            pub(crate) fn lower(&self, io: &Signature<'_>) -> Lowering {
                match self { $(Payload::$variant(op) => op.lower(io),)* }
            }

            /// Which ids input `i` may hold, if it is an id input.
            pub(crate) fn id_limit(&self, i: usize, inputs: &[TensorType]) -> Option<IdLimit> {
                match self { $(Payload::$variant(op) => op.id_limit(i, inputs),)* }
            }
        }

        /// Samples of all operations.
        #[must_use]
        pub fn samples() -> Vec<Sample> {
            let mut all = Vec::new();
            $(all.extend(<$ty as Rule>::samples().into_iter().map(|(op, inputs)| Sample::new(
                Payload::$variant(op), inputs)));)*
            all
        }
    };
}

ops! {
    Leaf = "leaf": Leaf,
    Unary = "unary": elementwise::Unary,
    Binary = "binary": elementwise::Binary,
    Select = "select": elementwise::Select,
    Cast = "cast": elementwise::Cast,
    Gelu = "gelu": elementwise::Gelu,
    StopGradient = "stop_gradient": elementwise::StopGradient,
    Sum = "sum": reduce::Sum,
    Extremum = "extremum": reduce::Extremum,
    ExtremumGrad = "extremum_grad": reduce::ExtremumGrad,
    Cumsum = "cumsum": reduce::Cumsum,
    Reshape = "reshape": movement::Reshape,
    Permute = "permute": movement::Permute,
    Expand = "expand": movement::Expand,
    Slice = "slice": movement::Slice,
    Pad = "pad": movement::Pad,
    Concat = "concat": movement::Concat,
    Softmax = "softmax": normalize::Softmax,
    SoftmaxGrad = "softmax_grad": normalize::SoftmaxGrad,
    LogSoftmax = "log_softmax": normalize::LogSoftmax,
    LogSoftmaxGrad = "log_softmax_grad": normalize::LogSoftmaxGrad,
    LayerNorm = "layer_norm": normalize::Norm<normalize::Last>,
    LayerNormGrad = "layer_norm_grad": normalize::NormGrad<normalize::Last>,
    GroupNorm = "group_norm": normalize::Norm<normalize::Groups>,
    GroupNormGrad = "group_norm_grad": normalize::NormGrad<normalize::Groups>,
    BatchNorm = "batch_norm": normalize::Norm<normalize::Channels>,
    BatchNormGrad = "batch_norm_grad": normalize::NormGrad<normalize::Channels>,
    RmsNorm = "rms_norm": normalize::RmsNorm,
    RmsNormGrad = "rms_norm_grad": normalize::RmsNormGrad,
    CrossEntropy = "cross_entropy": loss::CrossEntropy,
    CrossEntropyGrad = "cross_entropy_grad": loss::CrossEntropyGrad,
    Embedding = "embedding": indexing::Embedding,
    EmbeddingGrad = "embedding_grad": indexing::EmbeddingGrad,
    Gather = "gather": indexing::Gather,
    ScatterAdd = "scatter_add": indexing::ScatterAdd,
    OneHot = "one_hot": indexing::OneHot,
    TopK = "topk": indexing::TopK,
    Random = "random": random::Random,
    Dropout = "dropout": random::Dropout,
    Sgd = "sgd": optimizer::Sgd,
    Adam = "adam": optimizer::Adam,
    Matmul = "matmul": contraction::Matmul,
    Conv2d = "conv2d": contraction::Conv2d,
    Conv2dInputGrad = "conv2d_input_grad": contraction::Conv2dInputGrad,
    Conv2dWeightGrad = "conv2d_weight_grad": contraction::Conv2dWeightGrad,
    MaxPool2d = "max_pool2d": pool::MaxPool2d,
    MaxPool2dGrad = "max_pool2d_grad": pool::MaxPool2dGrad,
    MaxPool2dPick = "max_pool2d_pick": pool::MaxPool2dPick,
    AvgPool2d = "avg_pool2d": pool::AvgPool2d,
    AvgPool2dGrad = "avg_pool2d_grad": pool::AvgPool2dGrad,
    Interpolate = "interpolate": interpolate::Interpolate,
    InterpolateGrad = "interpolate_grad": interpolate::InterpolateGrad,
    Attention = "attention": attention::Attention,
    AttentionGradQuery = "attention_grad_query": attention::AttentionGradQuery,
    AttentionGradKeyValue = "attention_grad_key_value": attention::AttentionGradKeyValue,
    Rotary = "rotary": attention::Rotary,
}

impl Payload {
    /// Attributes as JSON.
    pub(crate) fn attributes(&self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(map)) => {
                map.into_iter().next().map(|(_, v)| v.to_string()).unwrap_or_default()
            }
            _ => String::new(),
        }
    }

    /// The payload of this name with these attributes.
    pub(crate) fn from_attributes(name: &str, attributes: serde_json::Value) -> Result<Payload, String> {
        let mut map = serde_json::Map::new();
        map.insert(name.to_string(), attributes);
        serde_json::from_value(serde_json::Value::Object(map)).map_err(|e| format!("operation '{name}': {e}"))
    }
}
