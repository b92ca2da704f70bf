//! Small versions of the architectures on the device under test: outputs, losses and all gradients as PyTorch computed them in
//! `f64`, from a checkpoint with the published names. `bench/pytorch/models_extra.py` wrote the files.

use super::tested;
use crate::fixtures::bits;
use griffinfly::import::safetensors::{self, File};
use griffinfly::models::{DinoV3Config, Model, ReconstructionConfig, WhisperConfig, WhisperEncoderConfig};
use griffinfly::{Device, Error, GraphExt, Input, Optimizer, Session, Trainer, TrainingGraph, Weights};
use std::path::PathBuf;

/// Relative L2 difference that every tensor may have.
const LIMIT: f64 = 1e-5;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.safetensors"))
}

/// The checkpoint of a model on the device, and what is expected of it.
struct Case {
    weights: Weights,
    expected: File,
}

impl Case {
    fn new(name: &str, device: &Device, model: &Model) -> Case {
        let weights = Weights::empty(device, &model.graph).unwrap();
        weights.load(path(&format!("{name}.weights"))).unwrap();
        Case { weights, expected: safetensors::read(&path(&format!("{name}.expected"))).unwrap() }
    }

    fn words<T>(&self, name: &str, word: fn([u8; 4]) -> T) -> Vec<T> {
        let bytes = self.expected.tensor(name).unwrap_or_else(|| panic!("no {name}")).bytes;
        bytes.chunks_exact(4).map(|b| word(b.try_into().unwrap())).collect()
    }

    fn f32(&self, name: &str) -> Vec<f32> {
        self.words(name, f32::from_le_bytes)
    }

    /// That `found` is the tensor of this name; the difference.
    fn compare(&self, name: &str, found: &[f32]) -> f64 {
        let expected = self.f32(name);
        assert_eq!(found.len(), expected.len(), "{name}");
        let square = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>();
        let difference = square(&mut found.iter().zip(&expected).map(|(a, b)| f64::from(*a) - f64::from(*b)));
        let relative = (difference / square(&mut expected.iter().map(|x| f64::from(*x)))).sqrt();
        assert!(relative <= LIMIT, "{name} differs by {relative:e}");
        relative
    }

    /// The output of a model under these inputs is this tensor.
    fn infers(&self, model: &Model, inputs: &[(&str, Input<'_>)], output: &str) {
        let graph = model.inference().unwrap();
        let outputs = Session::with_weights(graph, &self.weights).unwrap().run(inputs).unwrap();
        let difference = self.compare(&format!("output.{output}"), outputs.f32("output").unwrap());
        println!("{output}: {difference:.1e}");
    }

    /// The loss and the gradients of exactly the parameters that have one are those of the file.
    fn differentiates(&self, graph: &TrainingGraph, inputs: &[(&str, Input<'_>)]) {
        let mut session = Session::with_weights(graph.gradients().unwrap(), &self.weights).unwrap();
        let outputs = session.run(inputs).unwrap();
        let mut wanted: Vec<&str> =
            self.expected.names().filter(|n| *n == "loss" || n.starts_with("grad.")).collect();
        let mut found: Vec<&str> = outputs.all().iter().map(|o| o.name.as_str()).collect();
        (wanted.sort_unstable(), found.sort_unstable());
        assert_eq!(found, wanted);
        let worst = found.iter().map(|name| self.compare(name, outputs.f32(name).unwrap()));
        println!("loss and gradients: at most {:.1e}", worst.fold(0.0, f64::max));
    }
}

fn whisper_config() -> WhisperConfig {
    let encoder =
        WhisperEncoderConfig { batch: 2, mels: 6, frames: 18, width: 16, heads: 2, layers: 2, ffn: 24 };
    WhisperConfig { encoder, layers: 2, vocab: 29, positions: 11, tokens: 7 }
}

#[test]
fn whisper_agrees_with_pytorch() {
    let (tested, config) = (tested(), whisper_config());
    let model = config.build().unwrap();
    let case = Case::new("whisper", &tested.device, &model);
    let (mel, states) = (case.f32("input.mel"), case.f32("output.states"));
    let [ids, label] = ["input.ids", "input.label"].map(|name| case.words(name, i32::from_le_bytes));
    let (mel, ids) = (("mel", Input::f32(&mel)), ("ids", Input::ids(&ids)));
    case.infers(&model, &[mel, ids], "output");
    case.differentiates(&model.training().unwrap(), &[mel, ids, ("label", Input::ids(&label))]);
    // One set of weights serves the two halves.
    case.infers(&config.build_encoder().unwrap(), &[mel], "states");
    case.infers(&config.build_decoder().unwrap(), &[("states", Input::f32(&states)), ids], "output");
}

fn dinov3_config() -> DinoV3Config {
    let small = DinoV3Config {
        patch: 4,
        hidden: 24,
        layers: 2,
        heads: 2,
        ffn: 40,
        ..DinoV3Config::vits16(2, 12, 20)
    };
    DinoV3Config { registers: 4, ..small }
}

#[test]
fn dinov3_agrees_with_pytorch() {
    let (tested, config) = (tested(), dinov3_config());
    let model = config.build().unwrap();
    let case = Case::new("dinov3", &tested.device, &model);
    let (image, target) = (case.f32("input.image"), case.f32("input.target"));
    let image = [("image", Input::f32(&image))];
    case.infers(&model, &image, "output");
    case.infers(&config.build_features(1).unwrap(), &image, "features");
    let own = model.graph.inference([("output", model.loss)]).unwrap();
    let own = Session::with_weights(own, &case.weights).unwrap().run(&image).unwrap();
    case.compare("output.square", own.f32("output").unwrap());
    let mut g = model.graph.clone();
    let wanted = g.input("target", g.dims(model.output).to_vec());
    let loss = g.mse(model.output, wanted);
    let graph = g.training(loss).unwrap();
    case.differentiates(&graph, &[image[0], ("target", Input::f32(&target))]);
}

/// The same weights for one image: nothing in the graph depends on how many there are.
#[test]
fn dinov3_is_rebound_to_another_batch() {
    let tested = tested();
    let model = dinov3_config().build().unwrap();
    let case = Case::new("dinov3", &tested.device, &model);
    let (image, expected) = (case.f32("input.image"), case.f32("output.output"));
    let graph = model.inference().unwrap().rebind(&[("image", &[1, 3, 12, 20])]).unwrap();
    let mut session = Session::with_weights(graph, &case.weights).unwrap();
    let second = session.run(&[("image", Input::f32(&image[720..]))]).unwrap();
    let found = second.f32("output").unwrap();
    assert_eq!(found.len(), expected.len() / 2);
    let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-4 * b.abs().max(1.0);
    assert!(found.iter().zip(&expected[found.len()..]).all(close));
}

/// Training reaches everything that something reads, and leaves the mask token as the file has it.
#[test]
fn dinov3_is_trained_but_for_its_mask_token() {
    let tested = tested();
    let model = dinov3_config().build().unwrap();
    let case = Case::new("dinov3", &tested.device, &model);
    let before = bits(&case.weights);
    let mut trainer =
        Trainer::with_weights(model.training().unwrap(), Optimizer::adamw(0.01), &case.weights).unwrap();
    let image = case.f32("input.image");
    let losses = [(); 3].map(|()| trainer.step(&[("image", Input::f32(&image))]).unwrap());
    assert!(losses[2] < losses[0], "{losses:?}");
    for ((name, old), new) in case.weights.names().zip(&before).zip(bits(&case.weights)) {
        assert_eq!(*old == new, name == "embeddings.mask_token", "{name}");
    }
}

fn reconstruction_config() -> ReconstructionConfig {
    let stages = vec![vec![8, 8], vec![4]];
    ReconstructionConfig { batch: 2, rows: 3, columns: 5, prefix: 2, features: 12, stages, groups: 2 }
}

#[test]
fn reconstruction_agrees_with_pytorch() {
    let tested = tested();
    let model = reconstruction_config().build().unwrap();
    let case = Case::new("reconstruction", &tested.device, &model);
    let (tokens, target) = (case.f32("input.tokens"), case.f32("input.target"));
    let tokens = ("tokens", Input::f32(&tokens));
    case.infers(&model, &[tokens], "output");
    case.differentiates(&model.training().unwrap(), &[tokens, ("target", Input::f32(&target))]);
}

/// The application: a frozen encoder and the decoder of its features in one graph, of which only the decoder is trained.
#[test]
fn a_decoder_is_trained_behind_a_frozen_encoder() {
    let tested = tested();
    let Model { mut graph, output, .. } = dinov3_config().build_features(1).unwrap();
    let decoder = ReconstructionConfig { prefix: 5, features: 24, ..reconstruction_config() };
    let features = graph.stop_gradient(output);
    let image = decoder.apply(&mut graph, features).unwrap();
    let target = graph.input("target", [2, 3, 12, 20]);
    let loss = graph.mse(image, target);
    let training = graph.training(loss).unwrap();
    let weights = Weights::init(&tested.device, &graph, 3).unwrap();
    let before = bits(&weights);
    let mut trainer = Trainer::with_weights(training, Optimizer::adam(0.02), &weights).unwrap();
    let pixels: Vec<f32> = (0..2 * 3 * 12 * 20).map(|i| 0.5 + 0.5 * (0.05 * i as f32).sin()).collect();
    let inputs = [("image", Input::f32(&pixels)), ("target", Input::f32(&pixels))];
    let losses: Vec<f32> = (0..20).map(|_| trainer.step(&inputs).unwrap()).collect();
    assert!(losses[19] < 0.5 * losses[0], "{losses:?}");
    for ((name, old), new) in weights.names().zip(&before).zip(bits(&weights)) {
        assert_eq!(*old != new, name.starts_with("decoder."), "{name}");
    }
}

#[test]
fn the_checkpoint_of_another_model_is_refused() {
    let model = reconstruction_config().build().unwrap();
    let weights = Weights::init(&Device::host(), &model.graph, 1).unwrap();
    let before = bits(&weights);
    let error = weights.load(path("dinov3.weights")).unwrap_err();
    let Error::Checkpoint { faults, .. } = &error else { panic!("{error}") };
    let theirs = safetensors::read(&path("dinov3.weights")).unwrap();
    assert_eq!(faults.len(), weights.names().len() + theirs.names().len());
    let deeper = DinoV3Config { layers: 3, ..dinov3_config() }.build().unwrap();
    let deeper = Weights::empty(&Device::host(), &deeper.graph).unwrap();
    let error = deeper.load(path("dinov3.weights")).unwrap_err().to_string();
    assert!(error.contains("'layer.2.norm1.weight'") && error.contains("is missing"), "{error}");
    assert!(bits(&weights) == before);
}
