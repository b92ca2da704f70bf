//! A program written to a file gives the same bits in a process that knows nothing but the file.
//!
//! Each test starts this test binary again, for itself alone and with the directory of the files in a variable. That second
//! process reads program and inputs, runs on the device under test and writes what it found.

use super::tested;
use crate::fixtures::{Scratch, batch, small, trainer};
use griffinfly::compile::program::{ArenaId, ExternalKind, Program, Role};
use griffinfly::gpu::{Buffer, Executor, Sections};
use griffinfly::ir::optimizer::step_scalars;
use griffinfly::{Device, Input, Optimizer, Session, Weights};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Names the directory of the files to a second process.
const VARIABLE: &str = "GRIFFINFLY_FRESH_PROCESS";

const STEPS: u64 = 5;

/// Words of tensors by name.
type Words = BTreeMap<String, Vec<u32>>;

/// What a program starts with and is fed, step by step.
#[derive(serde::Serialize, serde::Deserialize)]
struct Feed {
    parameters: Words,
    steps: Vec<Words>,
}

/// The outputs of every step, and the parameters after the last.
#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Found {
    outputs: Vec<Words>,
    parameters: Words,
}

#[test]
fn a_training_program_gives_the_same_bits() {
    if second_process() {
        return;
    }
    let (tested, optimizer) = (tested(), Optimizer::adam(0.01));
    let mut trainer = trainer(&tested.device, optimizer);
    let before = parameters(trainer.weights());
    let mut feed = Feed { parameters: before.clone(), steps: Vec::new() };
    let mut found = Found { outputs: Vec::new(), parameters: Words::new() };
    for step in 1..=STEPS {
        let scalars = step_scalars(&optimizer, step, trainer.learning_rate());
        let scalars = scalars.into_iter().map(|(name, x)| (name.to_owned(), vec![x.to_bits()]));
        feed.steps.push(inputs().into_iter().chain(scalars).collect());
        let loss = trainer.step(&batch()).unwrap();
        found.outputs.push([("loss".to_owned(), vec![loss.to_bits()])].into());
    }
    found.parameters = parameters(trainer.weights());
    assert!(before.iter().all(|(name, words)| found.parameters[name] != *words), "nothing was trained");
    let test = "device::fresh_process::a_training_program_gives_the_same_bits";
    assert_eq!(in_a_fresh_process(test, trainer.program(), &feed), found);
}

#[test]
fn an_inference_program_gives_the_same_bits() {
    if second_process() {
        return;
    }
    let tested = tested();
    let weights = Weights::init(&tested.device, small().inference.graph(), 7).unwrap();
    let mut session = Session::with_weights(small().inference, &weights).unwrap();
    let batch = batch();
    let out = session.run(&batch[..1]).unwrap();
    let logits = bits(out.f32("logits").unwrap());
    assert!(logits.iter().any(|x| *x != logits[0]), "all logits are the same");
    let mut step = inputs();
    step.remove("class");
    let feed = Feed { parameters: parameters(&weights), steps: vec![step] };
    let found =
        Found { outputs: vec![[("logits".to_owned(), logits)].into()], parameters: feed.parameters.clone() };
    let test = "device::fresh_process::an_inference_program_gives_the_same_bits";
    assert_eq!(in_a_fresh_process(test, session.program(), &feed), found);
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

fn parameters(weights: &Weights) -> Words {
    weights.names().map(|name| (name.to_owned(), bits(&weights.get(name).unwrap()))).collect()
}

/// The batch of the fixtures as words.
fn inputs() -> Words {
    let words = |input: &Input<'_>| match input {
        Input::F32(values) => bits(values),
        Input::I32(ids) => ids.iter().map(|id| *id as u32).collect(),
        other => panic!("the batch has no {other:?}"),
    };
    batch().iter().map(|(name, input)| ((*name).to_owned(), words(input))).collect()
}

/// Runs a program in a second process, which is this test again.
fn in_a_fresh_process(test: &str, program: &Program, feed: &Feed) -> Found {
    let scratch = Scratch::new(&test.replace("::", "-"));
    std::fs::write(scratch.file("program.json"), program.to_bytes().unwrap()).unwrap();
    std::fs::write(scratch.file("feed.json"), serde_json::to_vec(feed).unwrap()).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(VARIABLE, scratch.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the second process failed:\n{text}");
    let found = std::fs::read(scratch.file("found.json"));
    let found = found.unwrap_or_else(|e| panic!("the second process found nothing ({e}):\n{text}"));
    serde_json::from_slice(&found).unwrap()
}

/// Does the work of the second process, if this is one.
fn second_process() -> bool {
    let Some(directory) = std::env::var_os(VARIABLE).map(PathBuf::from) else { return false };
    let read = |name: &str| std::fs::read(directory.join(name)).unwrap();
    let program = Arc::new(Program::from_bytes(&read("program.json")).unwrap());
    let feed: Feed = serde_json::from_slice(&read("feed.json")).unwrap();
    let tested = tested();
    write_found(&directory, &run(&tested.device, &program, &feed));
    true
}

fn write_found(directory: &Path, found: &Found) {
    std::fs::write(directory.join("found.json"), serde_json::to_vec(found).unwrap()).unwrap();
}

type Bound = Vec<(ArenaId, Arc<dyn Buffer>)>;

/// Runs a program with nothing but what it says itself.
fn run(device: &Device, program: &Arc<Program>, feed: &Feed) -> Found {
    let bound = bound(device, program, &feed.parameters);
    let mut executor = device.backend().instantiate(program.clone(), &bound).unwrap();
    let outputs: Vec<Words> = (feed.steps.iter().enumerate())
        .map(|(i, step)| {
            let sections = if i == 0 { Sections::ALL } else { Sections::STEP };
            run_step(executor.as_mut(), step, sections)
        })
        .collect();
    let mut parameters = Words::new();
    for e in program.externals.iter().filter(|e| e.kind == ExternalKind::Parameter) {
        let buffer = bound.iter().find(|(id, _)| *id == e.place.arena).map(|(_, buffer)| buffer).unwrap();
        let mut bytes = vec![0; e.ty.bytes()];
        device.backend().read(buffer, e.place.offset, &mut bytes).unwrap();
        parameters.insert(e.name.clone(), to_words(&bytes));
    }
    Found { outputs, parameters }
}

/// Buffers of the arenas that belong to the caller, with initial state and these parameters in them.
fn bound(device: &Device, program: &Program, parameters: &Words) -> Bound {
    let owned = |role: &Role| matches!(role, Role::Parameters | Role::Mirror(_) | Role::State);
    let arenas = program.arenas.iter().enumerate().filter(|(_, arena)| owned(&arena.role));
    let mut bound = Bound::new();
    for (i, arena) in arenas {
        let (id, buffer) = (ArenaId(i as u32), device.backend().buffer(arena.bytes).unwrap());
        let initial = program.constants.iter().map(|c| (c.place, &c.words));
        let given = program.externals.iter().filter_map(|e| Some((e.place, parameters.get(&e.name)?)));
        for (place, words) in initial.chain(given).filter(|(place, _)| place.arena == id) {
            device.backend().write(&buffer, place.offset, &to_bytes(words)).unwrap();
        }
        bound.push((id, buffer));
    }
    bound
}

fn run_step(executor: &mut dyn Executor, step: &Words, sections: Sections) -> Words {
    let program = executor.program().clone();
    for (name, words) in step {
        let external = program.externals.iter().position(|e| e.name == *name).unwrap();
        executor.write(external, &to_bytes(words)).unwrap();
    }
    let ticket = executor.submit(sections).unwrap();
    executor.wait(ticket, Duration::from_secs(120)).unwrap();
    let mut outputs = Words::new();
    for (i, e) in program.externals.iter().enumerate().filter(|(_, e)| e.kind == ExternalKind::Output) {
        let mut bytes = vec![0; e.ty.bytes()];
        executor.read(ticket, i, &mut bytes).unwrap();
        outputs.insert(e.name.clone(), to_words(&bytes));
    }
    outputs
}

fn to_words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
}

fn to_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
