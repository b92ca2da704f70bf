//! The encoder of Whisper-tiny over 30 seconds; latency is the same.

use super::tables::{Parameter, Table};
use super::{InputTensor, Shape, Size, Workload, wave};
use griffinfly::Error;
use griffinfly::models::{Model, WhisperEncoderConfig};

pub(super) struct Whisper(WhisperEncoderConfig);

impl Whisper {
    pub(super) fn new(size: Size) -> Self {
        Whisper(match size {
            Size::Full => WhisperEncoderConfig::tiny(1),
            Size::Small => WhisperEncoderConfig {
                batch: 2,
                mels: 5,
                frames: 26,
                width: 128,
                heads: 2,
                layers: 2,
                ffn: 131,
            },
        })
    }

    fn at(&self, shape: Shape) -> WhisperEncoderConfig {
        match shape {
            Shape::Full => self.0.clone(),
            Shape::Minimal => WhisperEncoderConfig { batch: 1, ..self.0.clone() },
        }
    }
}

const PREFIX: &str = "model.encoder.";

impl Workload for Whisper {
    fn config(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(&self.0)
    }

    fn parameters(&self) -> Vec<Parameter> {
        let WhisperEncoderConfig { mels, frames, width, layers, ffn, .. } = self.0;
        let mut t = Table::default();
        for (conv, inputs) in [("conv1", mels), ("conv2", width)] {
            t.natural(format!("{PREFIX}{conv}.weight"), &[width, inputs, 3]);
            t.natural(format!("{PREFIX}{conv}.bias"), &[width]);
        }
        t.natural(format!("{PREFIX}embed_positions.weight"), &[frames / 2, width]);
        for l in 0..layers {
            let n = |part: &str| format!("{PREFIX}layers.{l}.{part}");
            t.norm(&n("self_attn_layer_norm"), width, true);
            t.linear_bias(&n("self_attn.q_proj"), width, width);
            t.linear(&n("self_attn.k_proj"), width, width);
            t.linear_bias(&n("self_attn.v_proj"), width, width);
            t.linear_bias(&n("self_attn.out_proj"), width, width);
            t.norm(&n("final_layer_norm"), width, true);
            t.linear_bias(&n("fc1"), ffn, width);
            t.linear_bias(&n("fc2"), width, ffn);
        }
        t.norm(&format!("{PREFIX}layer_norm"), width, true);
        t.0
    }

    fn unseeded_prefix(&self) -> &'static str {
        PREFIX
    }

    fn inputs(&self, shape: Shape) -> Vec<InputTensor> {
        let c = self.at(shape);
        vec![wave("mel", &[c.batch, c.mels, c.frames], (f32::sin, 0.001, 1.0))]
    }

    fn model(&self, shape: Shape) -> Result<Model, Error> {
        self.at(shape).build()
    }
}
