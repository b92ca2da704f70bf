//! Tables that are damaged, foreign or half written; comparisons; the tables that come with the library.

mod device;

use super::compare::{faster, outputs};
use super::report::{Dropped, Event};
use super::table::{all_shipped, of_file, shipped};
use super::{Table, TableFault};
use crate::inspect::with_updates;
use crate::models::{self, DigitsModel};
use crate::outputs::{Data, Output, Outputs};
use griffinfly_compile::Options;
use griffinfly_compile::kernel::families::attention::Geometry;
use griffinfly_compile::kernel::families::contract;
use griffinfly_compile::kernel::families::tuned::{Choices, GENERATOR};
use griffinfly_compile::tuning::problems;
use griffinfly_gpu::DeviceInfo;
use griffinfly_ir::graph::Graph;
use griffinfly_ir::target::{Contract, NumericClass, Target};
use griffinfly_ir::types::TensorType;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A directory of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("griffinfly-tune-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("choices.json")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn info(name: &str, driver: &str) -> DeviceInfo {
    DeviceInfo {
        backend: "vulkan",
        name: name.into(),
        driver: driver.into(),
        is_hardware_gpu: true,
        memory_bytes: 1 << 30,
    }
}

fn choices() -> Choices {
    let mut choices = Choices::new();
    choices.insert("contract b1 m64 n96 k*r k96 e0 f32", "direct/4x4");
    choices
}

fn written(file: &Path, text: &str) -> Option<Choices> {
    std::fs::write(file, text).expect("writes");
    of_file(Some(file), &info("card", "driver 1"))
}

#[test]
fn tables_come_back_whole_or_not_at_all() {
    let folder = Folder::new("whole");
    let here = info("card", "driver 1");
    assert_eq!(of_file(Some(&folder.file()), &here), None, "there is none yet");
    let table = Table::new(&here, "a test", choices());
    table.save(&folder.file()).expect("saves");
    assert_eq!(of_file(Some(&folder.file()), &here), Some(choices()));
    assert_eq!(Table::load(&folder.file()).expect("loads"), Some(table.clone()));
    let text = table.text();
    for at in 0..text.len() {
        let mut damaged = text.clone().into_bytes();
        damaged[at] ^= 1;
        let damaged = String::from_utf8(damaged).expect("still text");
        assert!(Table::parse(&damaged).is_err(), "byte {at}: {damaged}");
        // All but the last newline is needed.
        let cut = Table::parse(&text[..at]);
        assert!(cut.is_err() || at == text.len() - 1, "cut at {at}");
    }
}

#[test]
fn tables_that_do_not_count_are_ignored_and_can_be_written_anew() {
    let folder = Folder::new("foreign");
    let here = info("card", "driver 1");
    let text = |info: &DeviceInfo| Table::new(info, "a test", choices()).text();
    assert!(written(&folder.file(), &text(&here)).is_some());
    for other in [info("another card", "driver 1"), info("card", "driver 2")] {
        assert_eq!(written(&folder.file(), &text(&other)), None);
    }
    for damaged in ["", "{", "null", "[]", &text(&here).replace("4x4", "8x8"), "\u{feff}{}"] {
        assert_eq!(written(&folder.file(), damaged), None, "{damaged}");
    }
    std::fs::write(folder.file(), [0xff, 0xfe, 0]).expect("writes");
    assert_eq!(of_file(Some(&folder.file()), &here), None, "no text");
    Table::new(&here, "a test", choices()).save(&folder.file()).expect("saves");
    assert_eq!(of_file(Some(&folder.file()), &here), Some(choices()));
}

#[test]
fn tables_of_other_kernels_are_stale() {
    let here = info("card", "driver 1");
    let mut table = Table::new(&here, "a test", choices());
    table.generator = GENERATOR + 1;
    let fault = table.check(&here, true).expect_err("stale");
    assert!(matches!(&fault, TableFault::Foreign { what: "kernels of version", .. }), "{fault}");
    let fault = Table::parse(&table.text()).expect_err("the digest covers the version");
    assert!(matches!(fault, TableFault::Damaged));
}

#[test]
fn a_writer_that_was_killed_leaves_the_old_table() {
    let folder = Folder::new("killed");
    let here = info("card", "driver 1");
    let table = Table::new(&here, "a test", choices());
    table.save(&folder.file()).expect("saves");
    let rest = folder.0.join(format!(".choices.json.{}-0.tmp", std::process::id()));
    std::fs::write(&rest, &table.text()[..20]).expect("writes");
    assert_eq!(of_file(Some(&folder.file()), &here), Some(choices()));
    Table::new(&here, "a test", Choices::new()).save(&folder.file()).expect("saves beside the rest");
    assert_eq!(of_file(Some(&folder.file()), &here), Some(Choices::new()));
    assert!(table.save(&folder.0).is_err(), "a folder is no file");
}

#[test]
fn tables_of_the_library_name_what_exists() {
    for table in all_shipped() {
        let table = table.expect("a table");
        assert!(table.generator <= GENERATOR, "{}", table.generator);
        let its = info(&table.device, "any driver");
        let is_current = table.generator == GENERATOR;
        assert_eq!(shipped(&its), is_current.then(|| table.choices.clone()));
        let target = Target {
            is_hardware: true,
            max_workgroup_bytes: 48 << 10,
            max_invocations: 1024,
            max_workgroup_size: [1024, 1024, 64],
            ..Target::minimal_vulkan()
        };
        for (key, text) in table.choices.iter().filter(|_| is_current) {
            let is_known = if key.starts_with("contract ") {
                contract::parse(text, &target, &NumericClass::ALL).is_some()
            } else {
                let name = text.split_once(" split").map_or(text, |(name, _)| name);
                key.starts_with("attention ") && Geometry::all().iter().any(|g| g.to_string() == name)
            };
            assert!(is_known, "{key}: {text}");
        }
    }
    assert_eq!(shipped(&info("another card", "driver 1")), None);
}

#[test]
fn gradients_have_the_problems_of_a_trainer() {
    let training = models::digits(16).training().expect("builds");
    let (updated, gradients) =
        (with_updates(&training, &DigitsModel::optimizer()), training.gradients().expect("differentiates"));
    let target = Target::minimal_vulkan();
    let keys = |graph: &Graph| -> BTreeSet<String> {
        let all = problems(graph, &target, &Options::default()).expect("compiles");
        all.into_iter().map(|problem| problem.key).collect()
    };
    let of_trainer = keys(&updated.expect("differentiates"));
    assert!(of_trainer.len() > 5, "{of_trainer:?}");
    assert_eq!(of_trainer, keys(gradients.graph()));
}

#[test]
fn a_step_is_faster_only_beyond_noise() {
    let ms = Duration::from_millis;
    let pairs = |wins: usize, count: usize| -> Vec<[Duration; 2]> {
        (0..count).map(|i| if i < wins { [ms(100), ms(90)] } else { [ms(90), ms(100)] }).collect()
    };
    assert!(faster(&pairs(41, 41)).2 && faster(&pairs(31, 41)).2);
    assert!(!faster(&pairs(30, 41)).2, "chance");
    assert!(!faster(&pairs(8, 8)).2, "too few");
    assert!(!faster(&[]).2 && !faster(&pairs(0, 41)).2);
    let hardly = vec![[Duration::from_micros(10_000), Duration::from_micros(9_990)]; 41];
    assert!(!faster(&hardly).2, "no gain to speak of");
}

#[test]
fn outputs_must_be_those_of_the_untuned_program() {
    let of = |all: &[(&str, Vec<f32>)]| {
        let output = |(name, values): &(&str, Vec<f32>)| Output {
            name: (*name).into(),
            ty: TensorType::f32([values.len()]),
            data: Data::F32(values.clone()),
        };
        Outputs(all.iter().map(output).collect())
    };
    let strict = |found: &Outputs, expected: &Outputs| outputs(found, expected, Contract::Strict);
    let expected = of(&[("y", vec![1.0, 2.0]), ("zero", vec![1e-9])]);
    assert_eq!(strict(&expected, &expected), Ok(()));
    assert_eq!(strict(&of(&[("y", vec![1.0, 2.0001]), ("zero", vec![-2e-9])]), &expected), Ok(()));
    let rounded = of(&[("y", vec![1.0, 2.001]), ("zero", vec![1e-9])]);
    assert_eq!(outputs(&rounded, &expected, Contract::Fast), Ok(()));
    for wrong in [
        of(&[("y", vec![1.0, 2.001]), ("zero", vec![1e-9])]),
        of(&[("y", vec![1.0, f32::NAN]), ("zero", vec![1e-9])]),
        of(&[("y", vec![1.0, 2.0]), ("zero", vec![1e-6])]),
        of(&[("y", vec![1.0, 2.0])]),
        of(&[("y", vec![1.0]), ("zero", vec![1e-9])]),
    ] {
        assert!(strict(&wrong, &expected).is_err(), "{wrong:?}");
    }
    let nan = of(&[("y", vec![f32::NAN, f32::INFINITY])]);
    assert_eq!(strict(&nan, &nan), Ok(()));
}

#[test]
fn events_name_what_happened() {
    let dropped = Dropped { problem: "p".into(), candidate: "c".into(), reason: "r".into() };
    assert_eq!(Event::Dropped(dropped).to_string(), "p: c is dropped: r");
    let times = Some([Duration::from_millis(2), Duration::from_millis(1)]);
    let step = Event::Step { choices: 3, times, refused: None };
    assert_eq!(
        step.to_string(),
        "3 new choices in the whole step: 2.000 ms before, 1.000 ms after, accepted"
    );
}
