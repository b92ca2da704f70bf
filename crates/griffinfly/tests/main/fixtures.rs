//! Small models and files that the tests share.

use griffinfly::{Device, Graph, GraphExt, InferenceGraph, Input, Optimizer, Trainer, TrainingGraph, nn};
use std::path::{Path, PathBuf};

/// A directory of one test, removed at its end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("griffinfly-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A small classifier of five classes over four rows of three numbers.
pub(crate) struct Small {
    pub(crate) training: TrainingGraph,
    pub(crate) inference: InferenceGraph,
}

pub(crate) const ROWS: usize = 4;
pub(crate) const NUMBERS: [f32; 12] = [0.5, -1.0, 0.25, 1.0, 0.0, -0.5, 2.0, 0.75, 0.1, -0.3, 0.9, -2.0];
pub(crate) const CLASSES: [i32; ROWS] = [0, 4, 2, 1];

pub(crate) fn small() -> Small {
    let mut g = Graph::new();
    let x = g.input("x", [ROWS, 3]);
    let class = g.input_ids("class", [ROWS]);
    let h = nn::Linear::new("hidden", 3, 7).apply(&mut g, x).relu(&mut g);
    let logits = nn::Linear::new("head", 7, 5).apply(&mut g, h);
    let loss = g.cross_entropy(logits, class);
    Small { training: g.training(loss).unwrap(), inference: g.inference([("logits", logits)]).unwrap() }
}

/// Six branches side by side, each wide inside: what they hold at the same time depends on how many run at once.
pub(crate) fn branches() -> TrainingGraph {
    let mut g = Graph::new();
    let (x, class) = (g.input("x", [ROWS, 3]), g.input_ids("class", [ROWS]));
    let mut logits = nn::Linear::new("straight", 3, 5).apply(&mut g, x);
    for i in 0..6 {
        let h = nn::Linear::new(format!("up{i}"), 3, 512).apply(&mut g, x).relu(&mut g);
        let h = nn::Linear::new(format!("down{i}"), 512, 5).apply(&mut g, h);
        logits = g.add(logits, h);
    }
    let loss = g.cross_entropy(logits, class);
    g.training(loss).unwrap()
}

pub(crate) fn batch() -> [(&'static str, Input<'static>); 2] {
    [("x", Input::f32(&NUMBERS)), ("class", Input::ids(&CLASSES))]
}

pub(crate) fn trainer(device: &Device, optimizer: Optimizer) -> Trainer {
    Trainer::new(device, small().training, optimizer).unwrap()
}

/// All parameters as bits.
pub(crate) fn bits(weights: &griffinfly::Weights) -> Vec<Vec<u32>> {
    let one = |name: &str| weights.get(name).unwrap().iter().map(|x| x.to_bits()).collect();
    weights.names().map(one).collect()
}
