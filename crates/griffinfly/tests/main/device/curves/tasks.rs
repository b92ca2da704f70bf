//! Two small trainings that learn something: a language model of characters, and a ResNet with batch norms of the digits.
//!
//! Everything follows from seeds and committed data. [`Task::start`] and the batches are what PyTorch begins with, too.

use griffinfly::import::safetensors::Dtype;
use griffinfly::models::{LlamaConfig, Model, ResNetConfig, ResNetNorm, ResNetStem};
use griffinfly::philox::Stream;
use griffinfly::{AdamConfig, Device, Feed, GraphExt, Input, Optimizer, Session, Trainer, Weights, data};
use std::collections::BTreeSet;

/// The values of an input.
pub(super) enum Values {
    F32(Vec<f32>),
    Ids(Vec<i32>),
}

impl Values {
    fn input(&self) -> Input<'_> {
        match self {
            Values::F32(x) => Input::f32(x),
            Values::Ids(x) => Input::ids(x),
        }
    }

    pub(super) fn dtype(&self) -> Dtype {
        match self {
            Values::F32(_) => Dtype::F32,
            Values::Ids(_) => Dtype::I32,
        }
    }

    /// As in a file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Values::F32(x) => x.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Values::Ids(x) => x.iter().flat_map(|x| x.to_le_bytes()).collect(),
        }
    }
}

/// The inputs of a step or of the held-out data, with their dimensions.
pub(super) struct Given(pub(super) [(&'static str, Vec<usize>, Values); 2]);

impl Feed for &Given {
    fn inputs(&self) -> Vec<(&str, Input<'_>)> {
        self.0.iter().map(|(name, _, values)| (*name, values.input())).collect()
    }
}

/// A training.
pub(super) struct Task {
    pub(super) name: &'static str,
    pub(super) config: serde_json::Value,
    pub(super) optimizer: AdamConfig,
    /// Steps after which the held-out data is asked: those of a software driver, and all.
    pub(super) asked: [usize; 2],
    pub(super) batches: Vec<Given>,
    pub(super) held_out: Given,
    model: Model,
}

/// What the model makes of the held-out data.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
pub(super) struct HeldOut {
    /// Mean loss.
    pub(super) loss: f64,
    /// How much of it is guessed right.
    pub(super) accuracy: f64,
}

impl Task {
    /// What the learning rate of a step is multiplied with: 1 in the first half, then falling in a straight line to 0.
    pub(super) fn schedule(&self, step: usize) -> f64 {
        (2.0 - 2.0 * step as f64 / self.asked[1] as f64).min(1.0)
    }

    /// How many labels the held-out data has.
    pub(super) fn questions(&self) -> usize {
        self.held_out.0[1].1.iter().product()
    }

    /// The weights before the first step.
    pub(super) fn start(&self, device: &Device) -> Weights {
        Weights::init(device, &self.model.graph, 5).unwrap()
    }

    /// A trainer before the first step, with this optimizer.
    pub(super) fn trainer(&self, device: &Device, optimizer: AdamConfig) -> Trainer {
        let graph = self.model.training().unwrap();
        Trainer::with_weights(graph, Optimizer::Adam(optimizer), &self.start(device)).unwrap()
    }

    /// The losses of the batches up to a step, from where the trainer is.
    pub(super) fn train(&self, trainer: &mut Trainer, until: usize) -> Vec<f32> {
        let rate = trainer.optimizer().learning_rate();
        let mut losses = Vec::new();
        for step in trainer.steps() as usize..until {
            trainer.set_learning_rate(rate * self.schedule(step)).unwrap();
            losses.extend(trainer.submit(&(&self.batches[step]).inputs()).unwrap());
        }
        losses.extend(trainer.finish().unwrap());
        losses
    }

    /// What the weights make of the held-out data.
    pub(super) fn ask(&self, weights: &Weights) -> HeldOut {
        let mut g = self.model.graph.clone();
        let best = g.argmax(self.model.output, -1);
        let graph = g.inference([("loss", self.model.loss), ("best", best)]).unwrap();
        let Given(given) = &self.held_out;
        let shapes: Vec<(&str, &[usize])> = given.iter().map(|(name, dims, _)| (*name, &dims[..])).collect();
        let mut session = Session::with_weights(graph.rebind(&shapes).unwrap(), weights).unwrap();
        let out = session.run(&(&self.held_out).inputs()).unwrap();
        let Values::Ids(labels) = &given[1].2 else { panic!("labels are ids") };
        let right = out.i32("best").unwrap().iter().zip(labels).filter(|(a, b)| a == b).count();
        let loss = f64::from(out.f32("loss").unwrap()[0]);
        HeldOut { loss, accuracy: right as f64 / labels.len() as f64 }
    }
}

/// Windows of characters from these places, and behind each character the next one.
fn windows(text: &[i32], places: impl Iterator<Item = usize>, length: usize) -> Given {
    let (mut ids, mut labels, mut count) = (Vec::new(), Vec::new(), 0);
    for place in places {
        ids.extend(&text[place..place + length]);
        labels.extend(&text[place + 1..place + 1 + length]);
        count += 1;
    }
    let dims = vec![count, length];
    Given([("ids", dims.clone(), Values::Ids(ids)), ("label", dims, Values::Ids(labels))])
}

/// A language model of 65 characters: the first nine tenths of the text train, the rest is held out.
pub(super) fn characters() -> Task {
    let text = include_bytes!("../../../data/alice.txt");
    let known: Vec<u8> = BTreeSet::from(*text).into_iter().collect();
    let text: Vec<i32> = text.iter().map(|c| known.binary_search(c).unwrap() as i32).collect();
    let (train, held_out) = text.split_at(text.len() * 9 / 10);
    let (batch, sequence) = (4, 64);
    let config = LlamaConfig {
        batch,
        sequence,
        vocab: known.len(),
        hidden: 64,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        head_dim: 16,
        ffn: 128,
        eps: 1e-5,
        rope_base: 1e4,
    };
    let asked = [16, 300];
    let mut stream = Stream::named(1, "places");
    let step = |_| windows(train, (0..batch).map(|_| stream.below(train.len() - sequence)), sequence);
    let batches = (0..asked[1]).map(step).collect();
    let whole = (held_out.len() - 1) / sequence;
    Task {
        name: "characters",
        config: serde_json::to_value(&config).unwrap(),
        optimizer: AdamConfig { learning_rate: 5e-3, beta2: 0.99, ..AdamConfig::adamw() },
        asked,
        batches,
        held_out: windows(held_out, (0..whole).map(|i| i * sequence), sequence),
        model: config.build().unwrap(),
    }
}

/// A ResNet of two stages on the digits, with batch norms.
pub(super) fn digits() -> Task {
    let digits = data::digits();
    let batch = 16;
    let config = ResNetConfig {
        channels: 1,
        image: data::SIDE,
        classes: data::CLASSES,
        width: 8,
        blocks: vec![1, 1],
        stem: ResNetStem::Small,
        norm: ResNetNorm::Batch,
        ..ResNetConfig::resnet50(batch)
    };
    let given = |images: Vec<f32>, labels: Vec<i32>| {
        let (image, label) = (vec![labels.len(), 1, data::SIDE, data::SIDE], vec![labels.len()]);
        Given([("image", image, Values::F32(images)), ("label", label, Values::Ids(labels))])
    };
    let asked = [36, 320];
    let batches = digits.train.batches(batch, 1).unwrap().take(asked[1]);
    Task {
        name: "digits",
        config: serde_json::to_value(&config).unwrap(),
        optimizer: AdamConfig { learning_rate: 5e-3, ..AdamConfig::default() },
        asked,
        batches: batches.map(|b| given(b.images, b.labels)).collect(),
        held_out: given(digits.test.images, digits.test.labels),
        model: config.build().unwrap(),
    }
}
