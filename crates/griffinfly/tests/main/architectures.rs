//! Small versions of the architectures: outputs, losses and all gradients as PyTorch computed them in `f64`, from a checkpoint
//! with the published names. `bench/pytorch/models_extra.py` wrote the files. Here on the host; the device under test runs
//! one program per architecture, since its kernels take a software driver long to compile.

use crate::fixtures::bits;
use griffinfly::import::safetensors::{self, File};
use griffinfly::models::{DinoV3Config, Model, ReconstructionConfig, WhisperConfig, WhisperEncoderConfig};
use griffinfly::{Device, Error, Graph, GraphExt, Input, Optimizer, Session, Trainer, Value, Weights};
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
    fn new(name: &str, device: &Device, graph: &Graph) -> Case {
        let weights = Weights::empty(device, graph).unwrap();
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

    /// That `found` is the tensor of this name.
    fn compare(&self, name: &str, found: &[f32]) {
        let expected = self.f32(name);
        assert_eq!(found.len(), expected.len(), "{name}");
        let square = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>();
        let difference = square(&mut found.iter().zip(&expected).map(|(a, b)| f64::from(*a) - f64::from(*b)));
        let relative = (difference / square(&mut expected.iter().map(|x| f64::from(*x)))).sqrt();
        assert!(relative <= LIMIT, "{name} differs by {relative:e}");
    }

    /// The output of a model under these inputs is this tensor.
    fn infers(&self, model: &Model, inputs: &[(&str, Input<'_>)], output: &str) {
        let graph = model.inference().unwrap();
        let outputs = Session::with_weights(graph, &self.weights).unwrap().run(inputs).unwrap();
        self.compare(&format!("output.{output}"), outputs.f32("output").unwrap());
    }

    /// The output, the loss and the gradients of exactly the parameters that have one are those of the file.
    fn differentiates(&self, graph: &Graph, [output, loss]: [Value; 2], inputs: &[(&str, Input<'_>)]) {
        let mut graph = graph.clone();
        graph.output("output.output", output);
        let graph = graph.training(loss).unwrap().gradients().unwrap();
        let outputs = Session::with_weights(graph, &self.weights).unwrap().run(inputs).unwrap();
        let is_wanted =
            |name: &&str| *name == "loss" || *name == "output.output" || name.starts_with("grad.");
        let mut wanted: Vec<&str> = self.expected.names().filter(is_wanted).collect();
        let mut found: Vec<&str> = outputs.all().iter().map(|o| o.name.as_str()).collect();
        wanted.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, wanted);
        found.iter().for_each(|name| self.compare(name, outputs.f32(name).unwrap()));
    }
}

fn whisper_config() -> WhisperConfig {
    let encoder =
        WhisperEncoderConfig { batch: 2, mels: 6, frames: 18, width: 16, heads: 2, layers: 2, ffn: 24 };
    WhisperConfig { encoder, layers: 2, vocab: 29, positions: 11, tokens: 7 }
}

/// Whisper's output, loss and gradients on a device.
pub(crate) fn whisper_agrees(device: &Device) {
    let model = whisper_config().build().unwrap();
    let case = Case::new("whisper", device, &model.graph);
    let mel = case.f32("input.mel");
    let [ids, label] = ["input.ids", "input.label"].map(|name| case.words(name, i32::from_le_bytes));
    let inputs = [("mel", Input::f32(&mel)), ("ids", Input::ids(&ids)), ("label", Input::ids(&label))];
    case.differentiates(&model.graph, [model.output, model.loss], &inputs);
}

#[test]
fn whisper_agrees_with_pytorch() {
    whisper_agrees(&Device::host());
}

/// Its decoder on a device, with the encoder's output from the file.
pub(crate) fn whisper_decodes(device: &Device) {
    let decoder = whisper_config().build_decoder().unwrap();
    let case = Case::new("whisper", device, &decoder.graph);
    let (states, ids) = (case.f32("output.states"), case.words("input.ids", i32::from_le_bytes));
    case.infers(&decoder, &[("states", Input::f32(&states)), ("ids", Input::ids(&ids))], "output");
}

/// One set of weights serves a session that encodes and another one that decodes.
#[test]
fn whisper_is_split_into_its_halves() {
    let encoder = whisper_config().build_encoder().unwrap();
    let case = Case::new("whisper", &Device::host(), &encoder.graph);
    let mel = case.f32("input.mel");
    case.infers(&encoder, &[("mel", Input::f32(&mel))], "states");
    whisper_decodes(&Device::host());
}

fn dinov3_config() -> DinoV3Config {
    let (patch, hidden, layers, heads, ffn) = (4, 24, 2, 2, 40);
    DinoV3Config { patch, hidden, layers, heads, ffn, ..DinoV3Config::vits16(2, 12, 20) }
}

/// DINOv3's output on a device, and the gradients of its distance from a target.
pub(crate) fn dinov3_agrees(device: &Device) {
    let Model { graph: mut g, output, .. } = dinov3_config().build().unwrap();
    let wanted = g.input("target", g.dims(output).to_vec());
    let loss = g.mse(output, wanted);
    let case = Case::new("dinov3", device, &g);
    let (image, target) = (case.f32("input.image"), case.f32("input.target"));
    let inputs = [("image", Input::f32(&image)), ("target", Input::f32(&target))];
    case.differentiates(&g, [output, loss], &inputs);
}

#[test]
fn dinov3_agrees_with_pytorch() {
    dinov3_agrees(&Device::host());
}

#[test]
fn dinov3_gives_features_of_its_first_layers() {
    let config = dinov3_config();
    let model = config.build().unwrap();
    let case = Case::new("dinov3", &Device::host(), &model.graph);
    let image = case.f32("input.image");
    let image = [("image", Input::f32(&image))];
    case.infers(&config.build_features(1).unwrap(), &image, "features");
    let square = Model { output: model.loss, ..model };
    case.infers(&square, &image, "square");
}

/// The same weights for one image: nothing in the graph depends on how many there are.
#[test]
fn dinov3_is_rebound_to_another_batch() {
    let model = dinov3_config().build().unwrap();
    let case = Case::new("dinov3", &Device::host(), &model.graph);
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
    let model = dinov3_config().build().unwrap();
    let case = Case::new("dinov3", &Device::host(), &model.graph);
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

/// The decoder's output, loss and gradients on a device.
pub(crate) fn reconstruction_agrees(device: &Device) {
    let model = reconstruction_config().build().unwrap();
    let case = Case::new("reconstruction", device, &model.graph);
    let (tokens, target) = (case.f32("input.tokens"), case.f32("input.target"));
    let inputs = [("tokens", Input::f32(&tokens)), ("target", Input::f32(&target))];
    case.differentiates(&model.graph, [model.output, model.loss], &inputs);
}

#[test]
fn reconstruction_agrees_with_pytorch() {
    reconstruction_agrees(&Device::host());
}

/// The application: a frozen encoder and the decoder of its features in one graph, of which only the decoder is trained.
#[test]
fn a_decoder_is_trained_behind_a_frozen_encoder() {
    let Model { mut graph, output, .. } = dinov3_config().build_features(1).unwrap();
    let decoder = ReconstructionConfig { prefix: 5, features: 24, ..reconstruction_config() };
    let features = graph.stop_gradient(output);
    let image = decoder.apply(&mut graph, features).unwrap();
    let target = graph.input("target", [2, 3, 12, 20]);
    let loss = graph.mse(image, target);
    let training = graph.training(loss).unwrap();
    let weights = Weights::init(&Device::host(), &graph, 3).unwrap();
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
