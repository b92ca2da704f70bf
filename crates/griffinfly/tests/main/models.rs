//! Builders of architectures: configurations that mean nothing are errors, the others have their parameters and shapes.

use griffinfly::ir::layout::parameters;
use griffinfly::models::{
    ActionExpertConfig, DinoV3Config, LlamaConfig, Model, ReconstructionConfig, ResNetConfig, ResNetNorm,
    ResNetStem, UNetConfig, WhisperConfig, WhisperEncoderConfig,
};
use griffinfly::{Device, Error, Session, Weights};

fn count(model: &Model) -> usize {
    parameters(&model.graph).iter().map(|p| p.ty.elements()).sum()
}

#[test]
fn the_published_models_have_their_parameters_and_shapes() {
    let llama = LlamaConfig::smollm2_135m(1, 8).build().unwrap();
    assert_eq!((count(&llama), llama.graph.dims(llama.output)), (134_515_008, &[1, 8, 49_152][..]));
    let llama = LlamaConfig::smollm2_360m(2, 4).build().unwrap();
    assert_eq!((count(&llama), llama.graph.dims(llama.output)), (361_821_120, &[2, 4, 49_152][..]));
    let llama = LlamaConfig::smollm2_1_7b(1, 4).build().unwrap();
    assert_eq!((count(&llama), llama.graph.dims(llama.output)), (1_711_376_384, &[1, 4, 49_152][..]));
    let expert = ActionExpertConfig::smolvla(3, 50).build().unwrap();
    assert_eq!((count(&expert), expert.graph.dims(expert.output)), (99_848_592, &[3, 50, 32][..]));
    let unet = UNetConfig::small_diffusion(2).build().unwrap();
    assert_eq!((count(&unet), unet.graph.dims(unet.output)), (10_928_768, &[2, 4, 32, 32][..]));
    let resnet = ResNetConfig::resnet50(4).build().unwrap();
    assert_eq!((count(&resnet), resnet.graph.dims(resnet.output)), (25_530_472, &[4, 1000][..]));
    let whisper = WhisperEncoderConfig::tiny(1).build().unwrap();
    assert_eq!((count(&whisper), whisper.graph.dims(whisper.output)), (8_208_384, &[1, 1500, 384][..]));
    let dino = DinoV3Config::vits16(2, 224, 160).build().unwrap();
    assert_eq!((count(&dino), dino.graph.dims(dino.output)), (21_596_544, &[2, 5 + 14 * 10, 384][..]));
    let decoder = ReconstructionConfig::dinov3_vits16(3).build().unwrap();
    assert_eq!((count(&decoder), decoder.graph.dims(decoder.output)), (2_012_547, &[3, 3, 224, 224][..]));
}

/// Names and shapes of the parameters, sorted.
fn table(model: &Model) -> Vec<(String, Vec<usize>)> {
    let mut table: Vec<_> = parameters(&model.graph).into_iter().map(|p| (p.name, p.ty.dims)).collect();
    table.sort();
    table
}

/// Whisper's decoder has two attentions per layer, whose keys have no bias; its head is the embedding's table.
#[test]
fn whisper_has_the_parameters_of_its_checkpoint_whatever_it_is_built_for() {
    let config = WhisperConfig::tiny(1, 7);
    let [full, encoder, decoder] =
        [config.build().unwrap(), config.build_encoder().unwrap(), config.build_decoder().unwrap()];
    assert_eq!(count(&full), 37_760_640);
    assert_eq!(full.graph.dims(full.output), [1, 7, 51_865]);
    assert_eq!(encoder.graph.dims(encoder.output), [1, 1500, 384]);
    assert_eq!(decoder.graph.dims(decoder.output), [1, 7, 51_865]);
    assert_eq!(parameters(&full.graph), parameters(&encoder.graph));
    assert_eq!(parameters(&full.graph), parameters(&decoder.graph));
    let (all, alone) = (table(&full), table(&config.encoder.build().unwrap()));
    let (of_encoder, of_decoder): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(name, _)| name.starts_with("model.encoder."));
    assert_eq!(of_encoder, alone);
    let mut expected: Vec<(String, Vec<usize>)> = vec![
        ("model.decoder.embed_tokens.weight".into(), vec![51_865, 384]),
        ("model.decoder.embed_positions.weight".into(), vec![448, 384]),
    ];
    let mut put = |part: &str, weight: &[usize], bias: bool| {
        expected.push((format!("model.decoder.{part}.weight"), weight.to_vec()));
        expected.extend(bias.then(|| (format!("model.decoder.{part}.bias"), vec![weight[0]])));
    };
    put("layer_norm", &[384], true);
    for i in 0..4 {
        for attention in ["self_attn", "encoder_attn"] {
            for projection in ["q", "k", "v", "out"] {
                let name = format!("layers.{i}.{attention}.{projection}_proj");
                put(&name, &[384, 384], projection != "k");
            }
            put(&format!("layers.{i}.{attention}_layer_norm"), &[384], true);
        }
        put(&format!("layers.{i}.fc1"), &[1536, 384], true);
        put(&format!("layers.{i}.fc2"), &[384, 1536], true);
        put(&format!("layers.{i}.final_layer_norm"), &[384], true);
    }
    expected.sort();
    assert_eq!(of_decoder, expected);
}

#[test]
fn dinov3_has_the_parameters_of_its_checkpoint() {
    let model = DinoV3Config::vits16(1, 32, 48).build().unwrap();
    let mut expected: Vec<(String, Vec<usize>)> = vec![
        ("embeddings.cls_token".into(), vec![1, 1, 384]),
        ("embeddings.mask_token".into(), vec![1, 1, 384]),
        ("embeddings.register_tokens".into(), vec![1, 4, 384]),
        ("embeddings.patch_embeddings.weight".into(), vec![384, 3, 16, 16]),
        ("embeddings.patch_embeddings.bias".into(), vec![384]),
        ("norm.weight".into(), vec![384]),
        ("norm.bias".into(), vec![384]),
    ];
    for i in 0..12 {
        let mut put =
            |part: &str, dims: &[usize]| expected.push((format!("layer.{i}.{part}"), dims.to_vec()));
        for norm in ["norm1", "norm2"] {
            put(&format!("{norm}.weight"), &[384]);
            put(&format!("{norm}.bias"), &[384]);
        }
        for projection in ["q", "k", "v", "o"] {
            put(&format!("attention.{projection}_proj.weight"), &[384, 384]);
        }
        for projection in ["q", "v", "o"] {
            put(&format!("attention.{projection}_proj.bias"), &[384]);
        }
        for scale in ["layer_scale1.lambda1", "layer_scale2.lambda1"] {
            put(scale, &[384]);
        }
        put("mlp.up_proj.weight", &[1536, 384]);
        put("mlp.up_proj.bias", &[1536]);
        put("mlp.down_proj.weight", &[384, 1536]);
        put("mlp.down_proj.bias", &[384]);
    }
    expected.sort();
    assert_eq!(table(&model), expected);
    let features = DinoV3Config::vits16(1, 32, 48).build_features(3).unwrap();
    assert_eq!(parameters(&features.graph), parameters(&model.graph));
    assert_eq!(features.graph.dims(features.output), [1, 11, 384]);
}

#[test]
fn resnet_with_batch_norms_has_the_tensors_of_torchvision() {
    let config = ResNetConfig { norm: ResNetNorm::Batch, ..ResNetConfig::resnet50(2) };
    let model = config.build().unwrap();
    assert_eq!(count(&model), 25_557_032);
    let all: Vec<(&str, &[usize])> = model
        .graph
        .leaves()
        .filter(|(_, l)| l.is_persistent())
        .map(|(_, l)| (l.name.as_str(), l.ty.dims.as_slice()))
        .collect();
    // 53 convolutions, 53 norms of four tensors each, weight and bias of the classifier.
    assert_eq!(all.len(), 53 + 4 * 53 + 2);
    for expected in [
        ("conv1.weight", &[64, 3, 7, 7][..]),
        ("bn1.running_mean", &[64]),
        ("layer1.0.conv1.weight", &[64, 64, 1, 1]),
        ("layer1.0.bn3.bias", &[256]),
        ("layer1.0.downsample.0.weight", &[256, 64, 1, 1]),
        ("layer1.0.downsample.1.running_var", &[256]),
        ("layer3.5.bn2.weight", &[256]),
        ("layer4.2.bn3.running_var", &[2048]),
        ("fc.bias", &[1000]),
    ] {
        assert!(all.contains(&expected), "{expected:?}");
    }
    assert!(!all.iter().any(|(name, _)| name.contains("fused") || name.contains("layer1.1.downsample")));
    // Training moves every running average, inference none.
    assert_eq!(model.training().unwrap().graph().updates().len(), 2 * 53);
    let inference = model.inference().unwrap();
    assert!(inference.graph().updates().is_empty());
    let names = |g: &griffinfly::Graph| parameters(g).into_iter().map(|p| p.name).collect::<Vec<_>>();
    assert_eq!(names(inference.graph()), names(&model.graph));
}

#[test]
fn the_small_stem_keeps_small_images() {
    let config = ResNetConfig {
        channels: 1,
        image: 8,
        classes: 10,
        width: 4,
        blocks: vec![1, 1],
        stem: ResNetStem::Small,
        ..ResNetConfig::resnet50(2)
    };
    let model = config.build().unwrap();
    assert_eq!(model.graph.dims(model.graph.leaf("image").unwrap()), [2, 1, 8, 8]);
    assert_eq!(model.graph.dims(model.graph.leaf("conv1.weight").unwrap()), [4, 1, 3, 3]);
    assert_eq!(model.graph.dims(model.output), [2, 10]);
    // One image of one pixel has no variance.
    let one = ResNetConfig { batch: 1, image: 1, norm: ResNetNorm::Batch, ..config };
    refused(one.build(), &["variance of a channel", "more than one value"]);
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
    refused(LlamaConfig { rope_base: 0.0, ..llama() }.build(), &["rope_base is 0", "positive"]);
    refused(LlamaConfig { rope_base: f64::NAN, ..llama() }.build(), &["rope_base is NaN"]);
    let endless = LlamaConfig { sequence: 1 << 20, head_dim: 1 << 20, ..llama() };
    refused(endless.build(), &["number of angles is 549755813888", "at most the limit, which is"]);
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
    refused(ResNetConfig { channels: 0, ..ResNetConfig::resnet50(1) }.build(), &["channels is 0"]);
    refused(WhisperEncoderConfig { frames: 7, ..WhisperEncoderConfig::tiny(1) }.build(), &["frames is 7"]);
    refused(WhisperEncoderConfig { heads: 5, ..WhisperEncoderConfig::tiny(1) }.build(), &["width is 384"]);
    let whisper = || WhisperConfig::tiny(1, 8);
    refused(WhisperConfig::tiny(1, 449).build(), &["tokens is 449", "at most positions, which is 448"]);
    refused(WhisperConfig { vocab: 0, ..whisper() }.build_decoder(), &["vocab is 0"]);
    refused(WhisperConfig { layers: 0, ..whisper() }.build_encoder(), &["layers is 0"]);
    let encoder = WhisperEncoderConfig { heads: 7, ..WhisperEncoderConfig::tiny(1) };
    refused(WhisperConfig { encoder, ..whisper() }.build(), &["width is 384", "heads, which is 7"]);
}

#[test]
fn vision_configurations_that_mean_nothing_are_refused() {
    let dino = || DinoV3Config::vits16(1, 224, 224);
    refused(DinoV3Config::vits16(1, 230, 224).build(), &["height is 230", "multiple of patch, which is 16"]);
    refused(DinoV3Config::vits16(1, 224, 8).build(), &["width is 8", "patch, which is 16"]);
    refused(DinoV3Config { heads: 5, ..dino() }.build(), &["hidden is 384", "heads, which is 5"]);
    refused(DinoV3Config { heads: 64, ..dino() }.build(), &["hidden / heads is 6", "multiple of"]);
    refused(DinoV3Config { registers: 0, ..dino() }.build(), &["registers is 0"]);
    refused(DinoV3Config { eps: f32::NAN, ..dino() }.build(), &["eps"]);
    refused(dino().build_features(0), &["depth is 0"]);
    refused(dino().build_features(13), &["depth is 13", "layers, which is 12"]);
    let large = DinoV3Config { patch: 1, ..DinoV3Config::vits16(1, 1 << 20, 1 << 20) };
    refused(large.build(), &["number of angles is"]);
    refused(DinoV3Config { rope_base: -1.0, ..dino() }.build(), &["rope_base is -1"]);
    let decoder = || ReconstructionConfig::dinov3_vits16(1);
    refused(ReconstructionConfig { rows: 0, ..decoder() }.build(), &["rows is 0"]);
    refused(
        ReconstructionConfig { groups: 48, ..decoder() }.build(),
        &["channels is 256", "groups, which is 48"],
    );
    refused(ReconstructionConfig { stages: vec![], ..decoder() }.build(), &["number of stages is 0"]);
    refused(
        ReconstructionConfig { stages: vec![vec![8], vec![]], ..decoder() }.build(),
        &["of a stage is 0"],
    );
    refused(ReconstructionConfig { prefix: usize::MAX, ..decoder() }.build(), &["prefix is"]);
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
