//! What is awaited gives the bits of what is waited for.

use super::tested;
use crate::fixtures::{NUMBERS, Scratch, batch, bits, small, trainer};
use griffinfly::{Error, Input, Optimizer, Session, Weights};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

fn awaited<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let start = Instant::now();
    loop {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => return value,
            Poll::Pending => assert!(start.elapsed() < Duration::from_secs(120), "it is never done"),
        }
    }
}

#[test]
fn awaited_training_is_the_same_training() {
    let (tested, scratch) = (tested(), Scratch::new("device-awaiting"));
    let mut waiting = trainer(&tested.device, Optimizer::adam(0.01));
    let expected: Vec<f32> = (0..8).map(|_| waiting.step(&batch()).unwrap()).collect();

    let mut awaiting = trainer(&tested.device, Optimizer::adam(0.01));
    let mut losses = vec![awaited(awaiting.step_async(&batch())).unwrap()];
    let outputs = awaited(awaiting.step_outputs_async(&batch())).unwrap();
    losses.push(outputs.f32("loss").unwrap()[0]);
    for _ in 0..5 {
        losses.extend(awaited(awaiting.submit_async(&batch())).unwrap());
    }
    losses.extend(awaited(awaiting.finish_async()).unwrap());
    // A step that was submitted counts, whether or not somebody waits for it.
    let mut context = Context::from_waker(Waker::noop());
    let _ = pin!(awaiting.step_async(&batch())).poll(&mut context);
    losses.extend(awaited(awaiting.finish_async()).unwrap());
    assert_eq!(awaiting.steps(), 8);
    assert_eq!(losses[..7], expected[..7]);
    assert_eq!(bits(awaiting.weights()), bits(waiting.weights()));

    // The bytes are those of the file.
    let file = scratch.file("c.safetensors");
    waiting.save(&file).unwrap();
    let bytes = awaited(awaiting.to_bytes_async()).unwrap();
    assert_eq!(bytes, std::fs::read(&file).unwrap());
    let mut again = trainer(&tested.device, Optimizer::adam(0.01));
    again.load_bytes(&bytes, "a file").unwrap();
    assert_eq!(again.steps(), 8);
    assert_eq!(again.step(&batch()).unwrap(), waiting.step(&batch()).unwrap());
}

#[test]
fn awaited_runs_give_the_same_outputs_and_weights_come_from_bytes() {
    let tested = tested();
    let weights = Weights::init(&tested.device, small().inference.graph(), 7).unwrap();
    let mut session = Session::with_weights(small().inference, &weights).unwrap();
    let inputs = [("x", Input::f32(&NUMBERS))];
    let expected = session.run(&inputs).unwrap();
    assert_eq!(awaited(session.run_async(&inputs)).unwrap(), expected);

    let bytes = awaited(weights.to_bytes_async()).unwrap();
    let mut other = Session::new(&tested.device, small().inference).unwrap();
    assert!(matches!(awaited(other.weights().to_bytes_async()), Err(Error::Unset(_))));
    other.load_bytes(&bytes, "a file").unwrap();
    assert_eq!(awaited(other.run_async(&inputs)).unwrap(), expected);

    // Bytes that do not fit change nothing, and are called what the caller calls them.
    let error = other.weights().load_bytes(&bytes[..bytes.len() - 4], "half a file").unwrap_err();
    assert!(matches!(error, Error::Import(_)), "{error}");
    let mut training = trainer(&tested.device, Optimizer::sgd(0.1));
    let error = training.load_bytes(&bytes, "weights alone").unwrap_err();
    assert!(error.to_string().starts_with("weights alone does not fit: "), "{error}");
    assert_eq!(other.run(&inputs).unwrap(), expected);
}
