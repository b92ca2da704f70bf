//! Checkpoints: what they hold, and every way in which one can be wrong.

use crate::fixtures::{NUMBERS, Scratch, batch, bits, small, trainer};
use griffinfly::{CheckpointFault, Device, Error, Input, Optimizer, Session, Trainer};
use std::path::Path;

/// The header and data of a file.
pub(crate) fn parts(path: &Path) -> (serde_json::Value, Vec<u8>) {
    let bytes = std::fs::read(path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    (serde_json::from_slice(&bytes[8..8 + length]).unwrap(), bytes[8 + length..].to_vec())
}

pub(crate) fn put(path: &Path, header: &serde_json::Value, data: &[u8]) {
    let header = header.to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    std::fs::write(path, bytes).unwrap();
}

/// A trainer with two steps behind it, and its checkpoint.
fn saved(scratch: &Scratch) -> (Trainer, std::path::PathBuf) {
    let mut trainer = trainer(&Device::host(), Optimizer::adam(0.01));
    for _ in 0..2 {
        trainer.step(&batch()).unwrap();
    }
    let path = scratch.file("c.safetensors");
    trainer.save(&path).unwrap();
    (trainer, path)
}

/// What loading a changed checkpoint says, to a trainer and to a session; both must be as before.
fn refused(name: &str, change: impl FnOnce(&mut serde_json::Value, &mut Vec<u8>)) -> Vec<CheckpointFault> {
    let scratch = Scratch::new(name);
    let (_, path) = saved(&scratch);
    let (mut header, mut data) = parts(&path);
    change(&mut header, &mut data);
    put(&path, &header, &data);
    faults(unchanged_by(&path))
}

fn faults(error: Error) -> Vec<CheckpointFault> {
    match error {
        Error::Checkpoint { faults, .. } => faults,
        other => panic!("expected faults of a checkpoint: {other}"),
    }
}

/// Loads a file that cannot be loaded, and sees that nothing changed.
fn unchanged_by(path: &Path) -> Error {
    let mut trainer = trainer(&Device::host(), Optimizer::adam(0.01));
    let mut untouched = crate::fixtures::trainer(&Device::host(), Optimizer::adam(0.01));
    trainer.step(&batch()).unwrap();
    untouched.step(&batch()).unwrap();
    let error = trainer.load(path).unwrap_err();
    assert_eq!((bits(trainer.weights()), trainer.steps()), (bits(untouched.weights()), 1));
    // The moments are as they were too.
    assert_eq!(trainer.step(&batch()).unwrap(), untouched.step(&batch()).unwrap());
    assert_eq!(bits(trainer.weights()), bits(untouched.weights()));
    error
}

#[test]
fn it_holds_parameters_state_and_position() {
    let scratch = Scratch::new("content");
    let (_, path) = saved(&scratch);
    let (header, _) = parts(&path);
    let shape = |name: &str| header[name]["shape"].clone();
    assert_eq!(shape("hidden.weight"), serde_json::json!([7, 3]));
    assert_eq!(shape("hidden.weight.adam_m"), serde_json::json!([7, 3]));
    assert_eq!(shape("head.bias.adam_v"), serde_json::json!([5]));
    let metadata = &header["__metadata__"];
    assert_eq!(
        (&metadata["griffinfly.step"], &metadata["griffinfly.learning_rate"]),
        (&"2".into(), &"0.01".into())
    );
    assert!(metadata["griffinfly.optimizer"].as_str().unwrap().contains("beta1"));
    assert_eq!(header.as_object().unwrap().len(), 4 * 3 + 1);
}

#[test]
fn a_session_takes_the_parameters_of_a_trainers_checkpoint() {
    let scratch = Scratch::new("session");
    let (trainer, path) = saved(&scratch);
    let mut session = Session::new(&Device::host(), small().inference).unwrap();
    session.load(&path).unwrap();
    assert_eq!(bits(session.weights()), bits(trainer.weights()));
    let mut shared = Session::with_weights(small().inference, trainer.weights()).unwrap();
    let run = |session: &mut Session| session.run(&[("x", Input::f32(&NUMBERS))]).unwrap();
    assert_eq!(run(&mut session), run(&mut shared));
}

#[test]
fn missing_and_extra_tensors_are_listed_together() {
    let faults = refused("missing", |header, _| {
        let tensors = header.as_object_mut().unwrap();
        let moved = tensors.remove("hidden.weight").unwrap();
        tensors.insert("hidden.w".into(), moved);
        let moved = tensors.remove("head.bias.adam_m").unwrap();
        tensors.insert("head.bias.m".into(), moved);
    });
    let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(text.len(), 4, "{text:?}");
    for part in ["'hidden.weight' f32[7,3] is missing", "'head.bias.adam_m' f32[5] is missing"] {
        assert!(text.iter().any(|t| t == part), "{text:?}");
    }
    for part in ["'hidden.w' F32 [7, 3] is not part of the model", "'head.bias.m' F32 [5] is not part"] {
        assert!(text.iter().any(|t| t.starts_with(part)), "{text:?}");
    }
}

#[test]
fn another_shape_of_as_many_bytes() {
    let faults = refused("shape", |header, _| {
        header["hidden.weight"]["shape"] = serde_json::json!([3, 7]);
        header["head.bias.adam_v"]["shape"] = serde_json::json!([5, 1]);
    });
    assert_eq!(faults.len(), 2);
    let name = "hidden.weight".to_owned();
    assert!(faults.contains(&CheckpointFault::Shape { name, found: vec![3, 7], expected: vec![7, 3] }));
}

#[test]
fn another_dtype_of_as_many_bytes() {
    let faults = refused("dtype", |header, _| header["head.bias"]["dtype"] = "I32".into());
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].to_string(), "'head.bias' is I32, the model has F32");
}

#[test]
fn another_shape_of_other_size() {
    let faults = refused("size", |header, data| {
        let at = data.len();
        header["head.bias"]["shape"] = serde_json::json!([1]);
        data.truncate(at);
        *header = shrunk(header, data);
    });
    assert!(matches!(&faults[..], [CheckpointFault::Shape { found, .. }] if *found == [1]), "{faults:?}");
}

/// The header with `head.bias` cut to its first element, and the data with it.
fn shrunk(header: &serde_json::Value, data: &mut Vec<u8>) -> serde_json::Value {
    let mut header = header.clone();
    let offset = |v: &serde_json::Value, i: usize| v["data_offsets"][i].as_u64().unwrap();
    let (begin, end) = (offset(&header["head.bias"], 0), offset(&header["head.bias"], 1));
    let cut = end - begin - 4;
    data.drain((begin + 4) as usize..end as usize);
    for (name, tensor) in header.as_object_mut().unwrap().iter_mut().filter(|(n, _)| *n != "__metadata__") {
        let (b, e) = (offset(tensor, 0), offset(tensor, 1));
        let shift = if b > begin { cut } else { 0 };
        let end_shift = if b > begin || name == "head.bias" { cut } else { 0 };
        tensor["data_offsets"] = serde_json::json!([b - shift, e - end_shift]);
    }
    header
}

#[test]
fn metadata_that_means_nothing() {
    let with = |name: &str, key: &str, value: Option<&str>| {
        let faults = refused(name, |header, _| {
            let metadata = header["__metadata__"].as_object_mut().unwrap();
            match value {
                Some(value) => metadata.insert(key.into(), value.into()),
                None => metadata.remove(key),
            };
        });
        assert_eq!(faults.len(), 1, "{faults:?}");
        let text = faults[0].to_string();
        assert!(text.contains(key), "{text}");
        text
    };
    assert!(with("m1", "griffinfly.step", None).contains("missing"));
    assert!(with("m2", "griffinfly.step", Some("-3")).contains("'-3'"));
    assert!(with("m6", "griffinfly.seed", None).contains("missing"));
    assert!(with("m3", "griffinfly.learning_rate", Some("NaN")).contains("NaN"));
    assert!(with("m4", "griffinfly.optimizer", Some("{}")).contains("no optimizer"));
    assert!(with("m5", "griffinfly.state", Some("12")).contains("no list"));
    assert!(with("m6", "griffinfly.format", Some("99")).contains("\"99\""));
}

/// What a file says reaches a terminal quoted, without control characters and cut to size.
#[test]
fn names_of_a_file_are_shown_safely() {
    let name = format!("\u{1b}[31m\n{}", "x".repeat(5000));
    let fault = CheckpointFault::Missing { name, expected: griffinfly::TensorType::f32([2]) };
    let text = fault.to_string();
    assert!(
        text.starts_with("'\\u{1b}[31m\\nxxx") && text.ends_with("... (5006 bytes)' f32[2] is missing"),
        "{text}"
    );
    assert!(text.len() < 300);
}

/// What a save would refuse for its path is known before.
#[test]
fn a_path_can_be_tried_before_training() {
    let scratch = Scratch::new("probe");
    let (trainer, path) = saved(&scratch);
    let old = std::fs::read(&path).unwrap();
    trainer.check_path(&path).unwrap();
    trainer.check_path(scratch.file("new")).unwrap();
    let missing = scratch.file("none").join("c.safetensors");
    assert!(trainer.check_path(&missing).unwrap_err().to_string().contains("none"));
    let directory = path.parent().unwrap();
    assert!(trainer.check_path(directory).unwrap_err().to_string().contains("not a regular file"));
    assert_eq!(std::fs::read(&path).unwrap(), old);
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn another_optimizer() {
    let scratch = Scratch::new("optimizer");
    let (_, path) = saved(&scratch);
    let mut sgd = trainer(&Device::host(), Optimizer::sgd(0.01));
    let text = sgd.load(&path).unwrap_err().to_string();
    assert!(text.contains("adam_m' F32 [7, 3] is not part of the model") && text.contains("Sgd"), "{text}");
    let adamw = Optimizer::adamw(0.01);
    let found = faults(trainer(&Device::host(), adamw).load(&path).unwrap_err());
    assert!(matches!(&found[..], [CheckpointFault::Metadata { .. }]), "{found:?}");
    // The learning rate is no part of the rule, and the parameters alone fit any optimizer.
    trainer(&Device::host(), Optimizer::adam(0.5)).load(&path).unwrap();
    sgd.weights().load(&path).unwrap();
}

#[test]
fn files_that_are_no_checkpoints() {
    let scratch = Scratch::new("broken");
    let (_, path) = saved(&scratch);
    let whole = std::fs::read(&path).unwrap();
    let mut header = whole.clone();
    header[3] = 0x7f;
    let mut garbled = whole.clone();
    garbled[9] = b'!';
    let contents = [
        &whole[..0],
        &whole[..7],
        &whole[..100],
        &whole[..whole.len() - 1],
        &header,
        &garbled,
        &[&whole[..], b"x"].concat(),
    ];
    for bytes in contents {
        std::fs::write(&path, bytes).unwrap();
        let error = unchanged_by(&path);
        assert!(matches!(error, Error::Import(_)), "{error}");
        assert!(error.to_string().contains("c.safetensors"), "{error}");
    }
    for path in [scratch.file("absent"), scratch.path().to_owned()] {
        let error = unchanged_by(&path);
        assert!(matches!(error, Error::Import(_)), "{error}");
    }
}

#[test]
fn a_save_that_fails_leaves_the_old_file() {
    let scratch = Scratch::new("unwritable");
    let (mut trainer, path) = saved(&scratch);
    let before = std::fs::read(&path).unwrap();
    trainer.step(&batch()).unwrap();
    let nowhere = scratch.file("no").join("c.safetensors");
    for wrong in [nowhere.as_path(), scratch.path(), Path::new("/dev/full")] {
        let error = trainer.save(wrong).unwrap_err();
        assert!(matches!(error, Error::Import(_)), "{error}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1);
    trainer.save(&path).unwrap();
    assert_ne!(std::fs::read(&path).unwrap(), before);
}
