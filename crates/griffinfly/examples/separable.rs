//! From training to deployment: a linear model learns eight points, and a fresh session judges them.

use griffinfly::{Device, Error, Graph, GraphExt, Init, Input, Optimizer, Session, Trainer, nn};

/// The first and the last loss of 40 steps.
pub fn run(device: &Device) -> Result<[f32; 2], Error> {
    let points = [2., 1., 1., 2., 3., 1., 1., 3., -2., -1., -1., -2., -3., -1., -1., -3.];
    let classes = [0, 0, 0, 0, 1, 1, 1, 1];
    let mut g = Graph::new();
    let (point, class) = (g.input("point", [8, 2]), g.input_ids("class", [8]));
    let logits = nn::Linear::new("layer", 2, 2).init(Init::ZEROS).apply(&mut g, point);
    let (loss, best) = (g.cross_entropy(logits, class), g.argmax(logits, 1));

    let mut trainer = Trainer::new(device, g.training(loss)?, Optimizer::sgd(0.5))?;
    let inputs = [("point", Input::f32(&points)), ("class", Input::ids(&classes))];
    let losses = (0..40).map(|_| trainer.step(&inputs)).collect::<Result<Vec<f32>, Error>>()?;
    let file = std::env::temp_dir().join(format!("separable-{}.safetensors", std::process::id()));
    trainer.save(&file)?;

    let mut session = Session::new(device, g.inference([("best", best)])?)?;
    session.load(&file)?;
    assert_eq!(session.run(&[("point", Input::f32(&points))])?.i32("best")?, classes);
    std::fs::remove_file(&file).ok();
    Ok([losses[0], losses[39]])
}

/// Runs it on a hardware GPU if there is one, else on the CPU.
pub fn main() -> Result<(), Error> {
    run(&Device::best()?).map(|losses| assert!(losses[1] < 0.03, "{losses:?}"))
}
