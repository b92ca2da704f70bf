//! One graph, two uses; layers have PyTorch's names and shapes.

use crate::fixtures::{NUMBERS, small};
use griffinfly::{
    AttentionOptions, Device, Error, Graph, GraphExt, Init, Input, Optimizer, RotaryStyle, Session, Trainer,
    Weights, nn,
};

#[test]
fn layers_have_the_names_and_shapes_of_pytorch() {
    let mut g = Graph::new();
    let image = g.input("image", [2, 3, 9, 8]);
    let ids = g.input_ids("ids", [2, 6]);
    let c = nn::Conv2d::new("conv", 3, 4, [3, 2]).stride(2).padding([1, 0]).apply(&mut g, image);
    assert_eq!(g.dims(c), [2, 4, 5, 4]);
    let p = nn::MaxPool2d::new(2).apply(&mut g, c);
    let q = nn::AvgPool2d::new(3).stride(1).padding(1).apply(&mut g, p);
    assert_eq!((g.dims(p), g.dims(q)), ([2, 4, 2, 2].as_slice(), [2, 4, 2, 2].as_slice()));
    let e = nn::Embedding::new("embed", 11, 8).apply(&mut g, ids);
    let n = nn::LayerNorm::new("norm", 8).apply(&mut g, e);
    let n = nn::RmsNorm::new("rms", 8).apply(&mut g, n);
    let y = nn::Linear::new("fc", 8, 5).bias(false).apply(&mut g, n);
    assert_eq!(g.dims(y), [2, 6, 5]);
    g.finish().unwrap();
    let weights = Weights::empty(&Device::host(), &g).unwrap();
    let shapes: Vec<(&str, &[usize])> = weights.names().map(|n| (n, weights.dims(n).unwrap())).collect();
    let expected: [(&str, &[usize]); 7] = [
        ("conv.weight", &[4, 3, 3, 2]),
        ("conv.bias", &[4]),
        ("embed.weight", &[11, 8]),
        ("norm.weight", &[8]),
        ("norm.bias", &[8]),
        ("rms.weight", &[8]),
        ("fc.weight", &[5, 8]),
    ];
    assert_eq!(shapes, expected);
}

#[test]
fn layers_over_channels_have_the_names_and_shapes_of_pytorch() {
    let mut g = Graph::new();
    let (image, line) = (g.input("image", [2, 4, 9, 8]), g.input("line", [2, 6, 11]));
    let c = nn::Conv2d::new("depthwise", 4, 8, 3).dilation(2).padding(2).groups(4).apply(&mut g, image);
    let n = nn::GroupNorm::new("gn", 2, 8).apply(&mut g, c);
    let n = nn::BatchNorm2d::new("bn", 8).apply(&mut g, n);
    let t = nn::ConvTranspose2d::new("up", 8, 6, 3).stride(2).padding(1).output_padding([1, 0]).groups(2);
    let t = t.apply(&mut g, n);
    let l =
        nn::Conv1d::new("line_conv", 6, 9, 3).stride(2).padding(1).groups(3).bias(false).apply(&mut g, line);
    let p = nn::MaxPool2d::new(2).ceil_mode(true).apply(&mut g, image);
    assert_eq!(
        [c, n, t, p].map(|v| g.dims(v).to_vec()),
        [[2, 8, 9, 8], [2, 8, 9, 8], [2, 6, 18, 15], [2, 4, 5, 4]]
    );
    assert_eq!(g.dims(l), [2, 9, 6]);
    g.finish().unwrap();
    let shapes: Vec<(String, Vec<usize>)> = g
        .leaves()
        .filter(|(_, l)| !l.name.is_empty() && !l.is_input())
        .map(|(_, l)| (l.name.clone(), l.ty.dims.clone()))
        .collect();
    let expected: [(&str, &[usize]); 11] = [
        ("depthwise.weight", &[8, 1, 3, 3]),
        ("depthwise.bias", &[8]),
        ("gn.weight", &[8]),
        ("gn.bias", &[8]),
        ("bn.running_mean", &[8]),
        ("bn.running_var", &[8]),
        ("bn.weight", &[8]),
        ("bn.bias", &[8]),
        ("up.weight", &[8, 3, 3, 3]),
        ("up.bias", &[6]),
        ("line_conv.weight", &[9, 2, 3]),
    ];
    assert!(shapes.iter().map(|(n, d)| (n.as_str(), d.as_slice())).eq(expected), "{shapes:?}");
}

#[test]
fn attention_layers_take_the_names_of_their_projections() {
    let mut g = Graph::new();
    let (x, memory) = (g.input("x", [2, 5, 12]), g.input("memory", [2, 7, 12]));
    let tables = g.rotary_constants(5, 6, 10_000.0);
    let attention = |name: &str| {
        let project =
            |part: &str, inputs, outputs| nn::Linear::new(format!("{name}.{part}"), inputs, outputs);
        let [q, k, v] = [("q_proj", 24), ("k_proj", 12), ("v_proj", 12)]
            .map(|(part, outputs)| project(part, 12, outputs));
        let parts = [q, k.bias(false), v.bias(false), project("o_proj", 24, 12)];
        nn::MultiHeadAttention::new(parts, 4).kv_heads(2)
    };
    let own = attention("own").options(AttentionOptions::causal()).rotary(tables, RotaryStyle::HalfSplit);
    let y = own.apply(&mut g, x);
    let y = attention("across").apply_across(&mut g, y, memory);
    assert_eq!(g.dims(y), [2, 5, 12]);
    g.finish().unwrap();
    let weights = Weights::empty(&Device::host(), &g).unwrap();
    let shapes: Vec<(&str, &[usize])> = weights.names().map(|n| (n, weights.dims(n).unwrap())).collect();
    let expected: [(&str, &[usize]); 6] = [
        ("own.q_proj.weight", &[24, 12]),
        ("own.q_proj.bias", &[24]),
        ("own.k_proj.weight", &[12, 12]),
        ("own.v_proj.weight", &[12, 12]),
        ("own.o_proj.weight", &[12, 24]),
        ("own.o_proj.bias", &[12]),
    ];
    assert_eq!(shapes[..6], expected);
    assert_eq!(shapes.len(), 12);
}

#[test]
fn attention_layers_refuse_heads_that_do_not_divide() {
    let refused = |heads, kv_heads| {
        let mut g = Graph::new();
        let x = g.input("x", [1, 3, 12]);
        let projections = ["q", "k", "v", "o"].map(|part| nn::Linear::new(part, 12, 12));
        nn::MultiHeadAttention::new(projections, heads).kv_heads(kv_heads).apply(&mut g, x);
        g.finish().unwrap_err().to_string()
    };
    assert!(refused(5, 5).contains("12"), "{}", refused(5, 5));
    assert!(refused(4, 3).contains("same batch and width"), "{}", refused(4, 3));
    assert!(refused(0, 0).contains("12"), "{}", refused(0, 0));
}

#[test]
fn errors_name_the_layer() {
    let mut g = Graph::new();
    let x = g.input("x", [4, 3]);
    let y = nn::Linear::new("fc", 5, 2).apply(&mut g, x);
    let error = g.inference([("y", y)]).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Build(_)) && text.contains("fc") && text.contains("5"), "{text}");
}

/// A wrong use of a layer, and its line.
type Misuse = fn(&mut Graph, griffinfly::Value) -> u32;

#[test]
fn errors_in_layers_name_the_line_that_applies_them() {
    let misuses: [(Misuse, usize); 14] = [
        (|g, x| (nn::Linear::new("l", 5, 2).apply(g, x), line!()).1, 1),
        (|g, x| (nn::Linear::new("a b", 3, 2).apply(g, x), line!()).1, 2),
        (|g, x| (nn::Linear::new("l", 3, 0).apply(g, x), line!()).1, 2),
        (|g, x| (nn::Conv2d::new("c", 1, 2, 3).apply(g, x), line!()).1, 1),
        (|g, x| (nn::Embedding::new("e", 5, 2).apply(g, x), line!()).1, 1),
        (|g, x| (nn::LayerNorm::new("n", 5).apply(g, x), line!()).1, 1),
        (|g, x| (nn::RmsNorm::new("r", 5).apply(g, x), line!()).1, 1),
        (|g, x| (nn::MaxPool2d::new(2).apply(g, x), line!()).1, 1),
        (|g, x| (nn::AvgPool2d::new(2).apply(g, x), line!()).1, 1),
        (|g, x| (nn::GroupNorm::new("g", 2, 3).apply(g, x), line!()).1, 1),
        (|g, x| (nn::BatchNorm2d::new("b", 5).apply(g, x), line!()).1, 1),
        (|g, x| (nn::BatchNorm2d::new("b", 5).training(false).apply(g, x), line!()).1, 1),
        (|g, x| (nn::Conv1d::new("c", 4, 2, 3).groups(3).apply(g, x), line!()).1, 1),
        (|g, x| (nn::ConvTranspose2d::new("t", 4, 3, 3).groups(2).bias(false).apply(g, x), line!()).1, 1),
    ];
    for (i, (misuse, count)) in misuses.iter().enumerate() {
        let mut g = Graph::new();
        let x = g.input("x", [4, 3]);
        let line = misuse(&mut g, x);
        let errors = g.finish().unwrap_err().0;
        assert_eq!(errors.len(), *count, "{i}: {errors:?}");
        for error in errors {
            assert_eq!((error.file.as_str(), error.line), (file!(), line), "{i}: {error}");
        }
    }
}

#[test]
fn a_layer_of_layers_names_the_line_of_the_outermost_and_no_later_one() {
    #[track_caller]
    fn block(g: &mut Graph, x: griffinfly::Value) -> griffinfly::Value {
        g.layer("block", |g| nn::Linear::new("inner", 5, 2).apply(g, x))
    }
    let mut g = Graph::new();
    let x = g.input("x", [4, 3]);
    let outer = (block(&mut g, x), line!()).1;
    let after = (g.permute(x, &[5]), line!()).1;
    let errors = g.finish().unwrap_err().0;
    let found: Vec<(u32, &str)> = errors.iter().map(|e| (e.line, e.scope.as_str())).collect();
    assert_eq!(found, [(outer, "block.inner"), (after, "")]);
}

#[test]
fn two_layers_of_one_name_are_an_error() {
    let mut g = Graph::new();
    let x = g.input("x", [4, 3]);
    let h = nn::Linear::new("fc", 3, 3).apply(&mut g, x);
    let y = nn::Linear::new("fc", 3, 3).apply(&mut g, h);
    let text = g.inference([("y", y)]).unwrap_err().to_string();
    assert!(text.contains("'fc.weight' is used already"), "{text}");
}

#[test]
fn wrong_losses_and_outputs_are_refused() {
    let mut g = Graph::new();
    let x = g.input("x", [4, 3]);
    let w = g.parameter("w", [3], Init::ONES);
    let y = g.mul(x, w);
    let loss = g.mean_all(y);
    let text = g.training(y).unwrap_err().to_string();
    assert!(text.contains("f32[4,3]"), "{text}");
    assert!(Graph::new().training(loss).is_err());
    assert!(Graph::new().inference([("y", y)]).is_err());
    assert!(g.inference(std::iter::empty()).unwrap_err().to_string().contains("at least one"));
    assert!(g.inference([("y", y), ("y", loss)]).is_err());
    g.output("loss", y);
    assert!(g.training(loss).unwrap_err().to_string().contains("'loss'"));
}

#[test]
fn inference_does_not_ask_for_labels_and_rebinds() {
    let device = Device::host();
    let trainer = Trainer::new(&device, small().training, Optimizer::sgd(0.1)).unwrap();
    let mut session = Session::with_weights(small().inference, trainer.weights()).unwrap();
    let all = session.run(&[("x", Input::f32(&NUMBERS))]).unwrap();
    let mut one = session.rebind(&[("x", &[1, 3])]).unwrap();
    for (row, expected) in NUMBERS.chunks(3).zip(all.f32("logits").unwrap().chunks(5)) {
        let got = one.run(&[("x", Input::f32(row))]).unwrap();
        let got = got.f32("logits").unwrap();
        assert!(got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{got:?} {expected:?}");
    }
    assert!(session.rebind(&[("y", &[1, 3])]).is_err());
    assert!(session.rebind(&[("x", &[1, 4])]).is_err());
    assert!(session.rebind(&[("x", &[0, 3])]).is_err());
}

#[test]
fn parameters_the_loss_does_not_need_are_reported_and_kept() {
    let mut g = Graph::new();
    let x = g.input("x", [4, 3]);
    let used = g.parameter("used", [3], Init::ONES);
    g.parameter("idle", [3], Init::ONES);
    let y = g.mul(x, used);
    let loss = g.mean_all(y);
    let mut trainer = Trainer::new(&Device::host(), g.training(loss).unwrap(), Optimizer::adam(0.1)).unwrap();
    assert_eq!(trainer.unreached_parameters(), ["idle"]);
    trainer.step(&[("x", Input::f32(&NUMBERS))]).unwrap();
    assert_eq!(trainer.weights().get("idle").unwrap(), [1.0; 3]);
    assert_ne!(trainer.weights().get("used").unwrap(), [1.0; 3]);
}

#[test]
fn hyperparameters_out_of_range_are_refused() {
    let adam = griffinfly::AdamConfig { beta1: 1.0, ..Default::default() };
    let optimizers = [Optimizer::Adam(adam), Optimizer::sgd(f64::NAN), Optimizer::momentum(0.1, 1.5)];
    for optimizer in optimizers {
        assert!(Trainer::new(&Device::host(), small().training, optimizer).is_err(), "{optimizer:?}");
    }
}
