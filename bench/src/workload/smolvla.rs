//! SmolVLA's action expert over 50 actions; latency is one action.

use super::tables::{Parameter, Table};
use super::{InputTensor, Shape, Size, Workload, wave, zeros};
use griffinfly::Error;
use griffinfly::models::{ActionExpertConfig, Model};

pub(super) struct SmolVla(ActionExpertConfig);

impl SmolVla {
    pub(super) fn new(size: Size) -> Self {
        SmolVla(match size {
            Size::Full => ActionExpertConfig::smolvla(1, 50),
            Size::Small => ActionExpertConfig {
                action: 5,
                hidden: 40,
                layers: 3,
                heads: 3,
                kv_heads: 1,
                ffn: 67,
                vlm_tokens: 5,
                ..ActionExpertConfig::smolvla(2, 7)
            },
        })
    }

    fn at(&self, shape: Shape) -> ActionExpertConfig {
        match shape {
            Shape::Full => self.0.clone(),
            Shape::Minimal => ActionExpertConfig { batch: 1, tokens: 1, ..self.0.clone() },
        }
    }
}

impl Workload for SmolVla {
    fn config(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(&self.0)
    }

    fn parameters(&self) -> Vec<Parameter> {
        let c = &self.0;
        let (queries, keys) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        let mut t = Table::default();
        t.linear_bias("model.action_in_proj", c.hidden, c.action);
        t.linear_bias("model.action_time_mlp_in", c.hidden, 2 * c.hidden);
        t.linear_bias("model.action_time_mlp_out", c.hidden, c.hidden);
        for i in 0..c.layers {
            let p = format!("model.vlm_with_expert.lm_expert.layers.{i}");
            let source = if i % 2 == 0 { c.hidden } else { keys };
            t.norm(&format!("{p}.input_layernorm"), c.hidden, false);
            t.linear(&format!("{p}.self_attn.q_proj"), queries, c.hidden);
            t.linear(&format!("{p}.self_attn.k_proj"), keys, source);
            t.linear(&format!("{p}.self_attn.v_proj"), keys, source);
            t.linear(&format!("{p}.self_attn.o_proj"), c.hidden, queries);
            t.norm(&format!("{p}.post_attention_layernorm"), c.hidden, false);
            t.linear(&format!("{p}.mlp.gate_proj"), c.ffn, c.hidden);
            t.linear(&format!("{p}.mlp.up_proj"), c.ffn, c.hidden);
            t.linear(&format!("{p}.mlp.down_proj"), c.hidden, c.ffn);
        }
        t.linear_bias("model.action_out_proj", c.action, c.hidden);
        t.0
    }

    fn inputs(&self, shape: Shape) -> Vec<InputTensor> {
        let c = self.at(shape);
        let actions = [c.batch, c.tokens, c.action];
        let context = c.kv_heads * c.head_dim;
        vec![
            wave("noisy", &actions, (f32::sin, 0.01, 1.0)),
            wave("timestep", &[c.batch, 1, 2 * c.hidden], (f32::sin, 0.005, 1.0)),
            wave("vlm", &[c.batch, c.vlm_tokens, context], (f32::cos, 0.01, 1.0)),
            zeros("target", &actions),
        ]
    }

    fn model(&self, shape: Shape) -> Result<Model, Error> {
        self.at(shape).build()
    }
}
