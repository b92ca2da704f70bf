//! The model of the demo learns on the host.

use griffinfly::data::CLASSES;
use griffinfly::{Device, Input, Optimizer, Session, Trainer, data, models};

#[test]
fn the_digits_are_learned() {
    let device = Device::host();
    let (digits, model) = (data::digits(), models::digits(64));
    let mut trainer = Trainer::new(&device, model.training().unwrap(), Optimizer::adam(2e-3)).unwrap();
    let mut seen = Vec::new();
    let batches = digits.train.batches(64, 1).unwrap().take(220);
    let losses = trainer.fit(batches, &mut |step, loss| seen.push((step, loss))).unwrap();
    assert!((losses[0] - 10_f32.ln()).abs() < 0.3, "{}", losses[0]);
    assert!(losses[200..].iter().all(|loss| *loss < 0.3), "{:?}", &losses[200..]);
    assert!(seen.iter().map(|s| s.0).eq(1..=220) && seen.iter().map(|s| s.1).eq(losses));

    let graph = model.inference().unwrap().rebind(&[("image", &[359, 1, 8, 8])]).unwrap();
    let mut session = Session::with_weights(graph, trainer.weights()).unwrap();
    let out = session.run(&[("image", Input::f32(&digits.test.images))]).unwrap();
    let best = |row: &[f32]| (0..CLASSES).reduce(|a, b| if row[b] > row[a] { b } else { a }).unwrap() as i32;
    let rows = out.f32("logits").unwrap().chunks(CLASSES);
    let right = rows.zip(&digits.test.labels).filter(|(row, label)| best(row) == **label).count();
    assert!(right >= 343, "{right} of 359");
}

#[test]
fn the_training_program_of_the_demo_is_small() {
    let trainer =
        Trainer::new(&Device::host(), models::digits(64).training().unwrap(), Optimizer::adam(1e-3)).unwrap();
    let program = trainer.program();
    assert!(program.dispatches.len() <= 30, "{} dispatches", program.dispatches.len());
    assert!(program.memory.physical_bytes <= program.memory.logical_bytes);
}
