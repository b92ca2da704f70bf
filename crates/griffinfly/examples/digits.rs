//! Describe a model once, train it, save it, and run it in a fresh session.

use griffinfly::{Device, Error, Graph, GraphExt, Input, Optimizer, Session, Trainer, data, nn};

/// Trains a digit classifier, saves it, and tests the file.
pub fn main() -> Result<(), Error> {
    let mut g = Graph::new();
    let image = g.input("image", [64, 1, 8, 8]);
    let label = g.input_ids("label", [64]);
    let h = nn::Conv2d::new("conv", 1, 16, 3).padding(1).apply(&mut g, image).relu(&mut g);
    let h = nn::MaxPool2d::new(2).apply(&mut g, h).flatten(&mut g, 1);
    let logits = nn::Linear::new("head", 16 * 4 * 4, 10).apply(&mut g, h);
    let loss = g.cross_entropy(logits, label);
    let best = g.argmax(logits, 1);

    let device = Device::best()?; // a hardware GPU, else the CPU
    let digits = data::digits();
    let mut trainer = Trainer::new(&device, g.training(loss)?, Optimizer::adam(3e-3))?;
    trainer.fit(digits.train.batches(64, 0)?.take(300), &mut |_, _| {})?;
    let file = std::env::temp_dir().join(format!("digits-{}.safetensors", std::process::id()));
    trainer.save(&file)?;

    let test = g.inference([("best", best)])?.rebind(&[("image", &[digits.test.len(), 1, 8, 8])])?;
    let mut session = Session::new(&device, test)?;
    session.load(&file)?;
    let outputs = session.run(&[("image", Input::f32(&digits.test.images))])?;
    let right = outputs.i32("best")?.iter().zip(&digits.test.labels).filter(|(a, b)| a == b).count();
    assert!(right * 100 > digits.test.len() * 93, "{right} of {} right", digits.test.len());
    let _ = std::fs::remove_file(&file);
    Ok(())
}
