//! The tutor on the CPU: what the page relies on, without a browser.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use griffinfly::data::{PIXELS, digits};
use griffinfly::import::safetensors::{self, TensorSource};
use griffinfly::{Device, Session, models};
use griffinfly_web::{Loaded, STEPS, Tutor, TutorError};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The result of a future that the CPU has at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the CPU does not wait"),
    }
}

fn tutor() -> Tutor {
    Tutor::new(&Device::host()).unwrap()
}

fn image(number: usize) -> [f32; PIXELS] {
    digits().test.images[number * PIXELS..][..PIXELS].try_into().unwrap()
}

/// A file with one entry of its metadata changed, or taken out.
fn with_entry(bytes: &[u8], key: &str, value: Option<&str>) -> Vec<u8> {
    let file = safetensors::parse(bytes.to_vec()).unwrap();
    let mut metadata = file.metadata().clone();
    match value {
        Some(value) => metadata.insert(key.into(), value.into()),
        None => metadata.remove(key),
    };
    let source = |name| {
        let view = file.tensor(name).unwrap();
        TensorSource { name, dtype: view.dtype, shape: view.shape, bytes: view.bytes }
    };
    let tensors: Vec<TensorSource<'_>> = file.names().map(source).collect();
    safetensors::to_bytes(&tensors, &metadata).unwrap()
}

#[test]
fn a_training_in_pieces_is_that_of_the_demo() {
    let mut whole = tutor();
    let losses = now(whole.train(STEPS)).unwrap();
    assert_eq!(losses.len() as u64, STEPS);
    assert!(losses[0] > 2.0 && losses[439] < 0.05, "{} to {}", losses[0], losses[439]);
    assert!(now(whole.accuracy()).unwrap() >= 0.975);
    assert!(matches!(now(whole.train(1)), Err(TutorError::Trained)));

    let mut pieces = tutor();
    let mut found = now(pieces.train(8)).unwrap();
    let file = now(pieces.save()).unwrap();
    // Going on from the file, with more asked for than is left.
    let mut other = tutor();
    assert_eq!(other.load(&file, "a training").unwrap(), Loaded::Training);
    assert_eq!(other.steps(), 8);
    found.extend(now(other.train(STEPS)).unwrap());
    assert_eq!(found, losses);
    assert_eq!(now(other.classify(&image(3))).unwrap(), now(whole.classify(&image(3))).unwrap());
}

#[test]
fn practice_learns_an_example_and_keeps_the_rest() {
    let mut tutor = tutor();
    assert!(matches!(now(tutor.practise(1)), Err(TutorError::NoExamples)));
    now(tutor.train(220)).unwrap();
    let before = now(tutor.accuracy()).unwrap();
    // A digit of the test part under another name.
    let (number, label) = (0, digits().test.labels[0]);
    let other = (label as u8 + 3) % 10;
    assert!(matches!(tutor.add_example(image(number), 10), Err(TutorError::Digit(10))));
    tutor.add_example(image(number), other).unwrap();
    assert_eq!(i32::from(now(tutor.classify(&image(number))).unwrap().digit), label);
    assert_eq!(now(tutor.practise(48)).unwrap().len(), 48);
    assert_eq!(now(tutor.classify(&image(number))).unwrap().digit, other);
    let after = now(tutor.accuracy()).unwrap();
    assert!(after > before - 0.03, "{before} before, {after} after");
    assert_eq!((tutor.steps(), tutor.examples().len()), (268, 1));
}

#[test]
fn answers_are_probabilities_and_strange_images_are_told() {
    let mut tutor = tutor();
    let answer = now(tutor.classify(&image(1))).unwrap();
    let sum: f32 = answer.probabilities.iter().sum();
    assert!((sum - 1.0).abs() < 1e-5 && answer.is_digit, "{answer:?}");
    assert!(!now(tutor.classify(&[1.0; PIXELS])).unwrap().is_digit);
    tutor.add_example([1.0; PIXELS], 8).unwrap();
    assert!(now(tutor.classify(&[1.0; PIXELS])).unwrap().is_digit);
}

#[test]
fn weights_alone_are_taken_and_other_files_are_not() {
    let mut trained = tutor();
    now(trained.train(24)).unwrap();
    let training = now(trained.save()).unwrap();
    let expected = now(trained.classify(&image(5))).unwrap();

    let model = models::digits(1);
    let mut session = Session::new(&Device::host(), model.inference().unwrap()).unwrap();
    session.load_bytes(&training, "a training").unwrap();
    let weights = now(session.weights().to_bytes_async()).unwrap();

    let mut other = tutor();
    let untrained = now(other.classify(&image(5))).unwrap();
    for (bytes, part) in
        [(&weights[..40], "bytes"), (&b""[..], "0 bytes"), (&b"no tensors at all"[..], "header")]
    {
        let error = other.load(bytes, "a file").unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert_eq!(now(other.classify(&image(5))).unwrap(), untrained);
    }
    assert_eq!(other.load(&weights, "weights").unwrap(), Loaded::Weights);
    assert_eq!(other.steps(), 0);
    assert_eq!(now(other.classify(&image(5))).unwrap().probabilities, expected.probabilities);
    now(other.train(1)).unwrap();
    assert!(other.memory_bytes() > 1 << 20);
}

#[test]
fn a_damaged_training_is_refused_with_its_reason() {
    let mut trained = tutor();
    now(trained.train(2)).unwrap();
    let training = now(trained.save()).unwrap();
    let mut other = tutor();
    let untrained = now(other.classify(&image(5))).unwrap();
    let most = u64::MAX.to_string();
    for (key, value, part) in [
        ("griffinfly.step", Some("two"), "'griffinfly.step' is 'two', which is no number"),
        ("griffinfly.step", None, "'griffinfly.step' is missing"),
        ("griffinfly.step", Some(most.as_str()), "'griffinfly.step' is 18446744073709551615, at most"),
        ("griffinfly.seed", None, "'griffinfly.seed' is missing"),
        ("griffinfly.learning_rate", Some("-1"), "'griffinfly.learning_rate' is no rate"),
        ("griffinfly.optimizer", Some("{}"), "'griffinfly.optimizer' is no optimizer"),
    ] {
        let error = other.load(&with_entry(&training, key, value), "a file").unwrap_err().to_string();
        assert!(error.starts_with("a file does not fit: ") && error.contains(part), "{error}");
        assert_eq!((other.steps(), now(other.classify(&image(5))).unwrap()), (0, untrained.clone()));
    }
    assert_eq!(other.load(&training, "a file").unwrap(), Loaded::Training);
}

#[test]
fn a_training_of_very_many_steps_is_taken_and_practised_at_once() {
    let steps: u64 = 1_000_000_000_000;
    let file = with_entry(&now(tutor().save()).unwrap(), "griffinfly.step", Some(&steps.to_string()));
    let mut tutor = tutor();
    assert_eq!(tutor.load(&file, "a training").unwrap(), Loaded::Training);
    assert!(matches!(now(tutor.train(1)), Err(TutorError::Trained)));
    tutor.add_example(image(0), 4).unwrap();
    assert_eq!(now(tutor.practise(2)).unwrap().len(), 2);
    assert_eq!(tutor.steps(), steps + 2);
}
