//! Builders of architectures: configurations that mean nothing are errors, the others have their parameters and shapes.

use griffinfly::ir::layout::parameters;
use griffinfly::models::{
    ActionExpertConfig, LlamaConfig, Model, ResNetConfig, UNetConfig, WhisperEncoderConfig,
};
use griffinfly::{Device, Error, Session, Weights};

fn count(model: &Model) -> usize {
    parameters(&model.graph).iter().map(|p| p.ty.elements()).sum()
}

#[test]
fn the_published_models_have_their_parameters_and_shapes() {
    let llama = LlamaConfig::smollm2_135m(1, 8).build().unwrap();
    assert_eq!((count(&llama), llama.graph.dims(llama.output)), (134_515_008, &[1, 8, 49_152][..]));
    let expert = ActionExpertConfig::smolvla(3, 50).build().unwrap();
    assert_eq!((count(&expert), expert.graph.dims(expert.output)), (99_848_592, &[3, 50, 32][..]));
    let unet = UNetConfig::small_diffusion(2).build().unwrap();
    assert_eq!((count(&unet), unet.graph.dims(unet.output)), (10_928_768, &[2, 4, 32, 32][..]));
    let resnet = ResNetConfig::resnet50(4).build().unwrap();
    assert_eq!((count(&resnet), resnet.graph.dims(resnet.output)), (25_530_472, &[4, 1000][..]));
    let whisper = WhisperEncoderConfig::tiny(1).build().unwrap();
    assert_eq!((count(&whisper), whisper.graph.dims(whisper.output)), (8_208_384, &[1, 1500, 384][..]));
}

fn refused(model: Result<Model, Error>, words: &[&str]) {
    let text = model.map(|_| ()).expect_err("refused").to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn configurations_that_mean_nothing_are_refused() {
    let llama = || LlamaConfig::smollm2_135m(1, 8);
    refused(LlamaConfig { kv_heads: 0, ..llama() }.build(), &["kv_heads is 0", "1 to 1048576"]);
    refused(
        LlamaConfig { kv_heads: 2, ..llama() }.build(),
        &["heads is 9", "multiple of kv_heads, which is 2"],
    );
    refused(LlamaConfig { head_dim: 63, ..llama() }.build(), &["head_dim is 63"]);
    refused(LlamaConfig { hidden: usize::MAX, ..llama() }.build(), &["hidden is"]);
    refused(LlamaConfig { eps: f32::NAN, ..llama() }.build(), &["eps"]);
    refused(ActionExpertConfig { tokens: 0, ..ActionExpertConfig::smolvla(1, 1) }.build(), &["tokens is 0"]);
    refused(
        UNetConfig { side: 30, ..UNetConfig::small_diffusion(1) }.build(),
        &["side is 30", "multiple of"],
    );
    refused(
        UNetConfig { groups: 7, ..UNetConfig::small_diffusion(1) }.build(),
        &["base is 64", "groups, which is 7"],
    );
    refused(ResNetConfig { blocks: vec![], ..ResNetConfig::resnet50(1) }.build(), &["stages is 0"]);
    refused(ResNetConfig { blocks: vec![1; 70], ..ResNetConfig::resnet50(1) }.build(), &["stages is 70"]);
    refused(ResNetConfig { blocks: vec![1, 0], ..ResNetConfig::resnet50(1) }.build(), &["blocks is 0"]);
    refused(WhisperEncoderConfig { frames: 7, ..WhisperEncoderConfig::tiny(1) }.build(), &["frames is 7"]);
    refused(WhisperEncoderConfig { heads: 5, ..WhisperEncoderConfig::tiny(1) }.build(), &["width is 384"]);
}

#[test]
fn positions_that_are_frozen_have_no_gradient() {
    let config = WhisperEncoderConfig { batch: 1, mels: 3, frames: 8, width: 8, heads: 2, layers: 1, ffn: 5 };
    let training = config.build().unwrap().training().unwrap();
    let weights = Weights::init(&Device::host(), training.graph(), 1).unwrap();
    let mut session = Session::with_weights(training.gradients().unwrap(), &weights).unwrap();
    let mel: Vec<f32> = (0..24).map(|i| (i as f32).sin()).collect();
    let outputs = session.run(&[("mel", griffinfly::Input::f32(&mel))]).unwrap();
    assert!(outputs.f32("grad.model.encoder.conv1.weight").unwrap().iter().any(|x| *x != 0.0));
    assert!(outputs.get("grad.model.encoder.embed_positions.weight").is_err());
    // The loss, and a gradient of every parameter but the positions.
    assert_eq!(outputs.all().len(), weights.names().len());
}
