//! SmolLM2-135M: a language model over 128 tokens; latency is one token.

use super::tables::{Parameter, Table};
use super::{InputTensor, Shape, Size, Workload, ids};
use griffinfly::Error;
use griffinfly::models::{LlamaConfig, Model};

pub(super) struct SmolLm2(LlamaConfig);

impl SmolLm2 {
    pub(super) fn new(size: Size) -> Self {
        SmolLm2(match size {
            Size::Full => LlamaConfig::smollm2_135m(1, 128),
            Size::Small => LlamaConfig {
                vocab: 101,
                hidden: 40,
                layers: 2,
                heads: 3,
                kv_heads: 1,
                ffn: 67,
                ..LlamaConfig::smollm2_135m(2, 13)
            },
        })
    }

    fn at(&self, shape: Shape) -> LlamaConfig {
        match shape {
            Shape::Full => self.0.clone(),
            Shape::Minimal => LlamaConfig { batch: 1, sequence: 1, ..self.0.clone() },
        }
    }
}

impl Workload for SmolLm2 {
    fn config(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(&self.0)
    }

    fn parameters(&self) -> Vec<Parameter> {
        let c = &self.0;
        let (queries, keys) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        let mut t = Table::default();
        t.natural("model.embed_tokens.weight", &[c.vocab, c.hidden]);
        for i in 0..c.layers {
            let p = format!("model.layers.{i}");
            t.norm(&format!("{p}.input_layernorm"), c.hidden, false);
            t.linear(&format!("{p}.self_attn.q_proj"), queries, c.hidden);
            t.linear(&format!("{p}.self_attn.k_proj"), keys, c.hidden);
            t.linear(&format!("{p}.self_attn.v_proj"), keys, c.hidden);
            t.linear(&format!("{p}.self_attn.o_proj"), c.hidden, queries);
            t.norm(&format!("{p}.post_attention_layernorm"), c.hidden, false);
            t.linear(&format!("{p}.mlp.gate_proj"), c.ffn, c.hidden);
            t.linear(&format!("{p}.mlp.up_proj"), c.ffn, c.hidden);
            t.linear(&format!("{p}.mlp.down_proj"), c.hidden, c.ffn);
        }
        t.norm("model.norm", c.hidden, false);
        t.0
    }

    fn inputs(&self, shape: Shape) -> Vec<InputTensor> {
        let c = self.at(shape);
        let dims = [c.batch, c.sequence];
        vec![ids("ids", &dims, 0, c.vocab), ids("label", &dims, 1, c.vocab)]
    }

    fn model(&self, shape: Shape) -> Result<Model, Error> {
        self.at(shape).build()
    }
}
