//! The five architectures of the benchmark, tiny, learn one batch by heart on the device under test: 200 steps of Adam from
//! seeded weights and inputs end below a stated loss. A gradient that is off by a factor or an update that is lost shows here
//! although every single step looks plausible.
//!
//! The objective of Whisper's encoder is the mean square of a layer norm's result, which its last weight and bias alone can
//! make small: of the other layers it only tests that they do not disturb.

use super::tested;
use griffinfly::models::{
    ActionExpertConfig, LlamaConfig, Model, ResNetConfig, ResNetStem, UNetConfig, WhisperEncoderConfig,
};
use griffinfly::philox::Stream;
use griffinfly::{DType, Error, Input, Optimizer, Trainer};

const STEPS: usize = 200;

/// A tiny model, how it is trained, and the losses expected before the first step and after the last.
struct Case {
    model: Result<Model, Error>,
    learning_rate: f64,
    /// Classes or tokens there are.
    classes: i32,
    from: f32,
    below: f32,
}

/// One batch: normal numbers, and ids that follow another rule for each input.
enum Values {
    F32(Vec<f32>),
    Ids(Vec<i32>),
}

fn batch(model: &Model, classes: i32) -> Vec<(String, Values)> {
    let mut stream = Stream::named(1, "one batch");
    let inputs = model.graph.leaves().filter(|(_, leaf)| leaf.is_input());
    (1..)
        .zip(inputs)
        .map(|(k, (_, leaf))| {
            let count = leaf.ty.elements();
            let values = match leaf.ty.dtype {
                DType::F32 => Values::F32((0..count).map(|_| stream.normals()[0] as f32).collect()),
                _ => Values::Ids((0..count as i32).map(|i| (k * i * i + 3 * i + k) % classes).collect()),
            };
            (leaf.name.clone(), values)
        })
        .collect()
}

fn learns(case: Case) {
    let tested = tested();
    let model = case.model.unwrap();
    let batch = batch(&model, case.classes);
    let given: Vec<(&str, Input<'_>)> = batch
        .iter()
        .map(|(name, values)| match values {
            Values::F32(x) => (name.as_str(), Input::f32(x)),
            Values::Ids(x) => (name.as_str(), Input::ids(x)),
        })
        .collect();
    let optimizer = Optimizer::adam(case.learning_rate);
    let mut trainer = Trainer::new(&tested.device, model.training().unwrap(), optimizer).unwrap();
    let mut losses = Vec::new();
    for _ in 0..=STEPS {
        losses.extend(trainer.submit(&given).unwrap());
    }
    losses.extend(trainer.finish().unwrap());
    let (first, last) = (losses[0], losses[STEPS]);
    assert!((first / case.from - 1.0).abs() < 1e-3, "begins at {first}, expected {}", case.from);
    assert!(last < case.below, "{first} to {last}, expected below {}", case.below);
}

#[test]
fn a_tiny_language_model_learns_a_batch() {
    let model = LlamaConfig {
        batch: 2,
        sequence: 8,
        vocab: 17,
        hidden: 16,
        layers: 2,
        heads: 2,
        kv_heads: 1,
        head_dim: 8,
        ffn: 24,
        eps: 1e-5,
        rope_base: 1e4,
    };
    learns(Case { model: model.build(), learning_rate: 1e-2, classes: 17, from: 3.2469, below: 0.01 });
}

#[test]
fn a_tiny_action_expert_learns_a_batch() {
    let model = ActionExpertConfig {
        batch: 2,
        tokens: 5,
        action: 4,
        hidden: 16,
        layers: 2,
        heads: 2,
        kv_heads: 1,
        head_dim: 8,
        ffn: 24,
        eps: 1e-5,
        vlm_tokens: 3,
    };
    learns(Case { model: model.build(), learning_rate: 1e-2, classes: 1, from: 0.93711, below: 1e-4 });
}

#[test]
fn a_tiny_diffusion_model_learns_a_batch() {
    let model = UNetConfig {
        batch: 1,
        channels: 2,
        side: 8,
        base: 4,
        groups: 2,
        time_inputs: 4,
        time_width: 8,
        context_tokens: 3,
        context_width: 6,
        head_dim: 8,
    };
    learns(Case { model: model.build(), learning_rate: 1e-2, classes: 1, from: 1.1545, below: 0.01 });
}

#[test]
fn a_tiny_image_classifier_learns_a_batch() {
    let model = ResNetConfig {
        image: 8,
        classes: 5,
        width: 4,
        blocks: vec![1, 1],
        stem: ResNetStem::Small,
        ..ResNetConfig::resnet50(4)
    };
    learns(Case { model: model.build(), learning_rate: 1e-2, classes: 5, from: 1.7044, below: 1e-3 });
}

#[test]
fn a_tiny_speech_encoder_learns_a_batch() {
    let model =
        WhisperEncoderConfig { batch: 2, mels: 3, frames: 12, width: 16, heads: 2, layers: 2, ffn: 20 };
    learns(Case { model: model.build(), learning_rate: 1e-2, classes: 1, from: 0.99997, below: 1e-4 });
}
