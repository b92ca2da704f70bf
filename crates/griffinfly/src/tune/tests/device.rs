//! Searches on the device of the tests: accepted choices, candidates that are wrong, hang or take the device along, the budget.

use super::super::{Hook, Limits, Report, Subject, Table, Tuner};
use super::{Folder, choices};
use crate::definition::{GraphExt, InferenceGraph};
use crate::device::Device;
use crate::error::Error;
use crate::inputs::Input;
use crate::session::Session;
use crate::weights::Weights;
use griffinfly_compile::kernel::families::tuned::Choices;
use griffinfly_compile::program::{Program, Work};
use griffinfly_gpu::vulkan::{self, FaultPlan, OpenOptions, Selector, SubmitFault};
use griffinfly_ir::graph::Graph;
use griffinfly_ir::target::Contract;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Rows, columns and products.
const SIZE: usize = 256;
/// The key of a product of two such matrices.
const KEY: &str = "contract b1 m256 n256 k*r k256 e0 f32";
/// A choice that is slow on every device.
const SLOW: &str = "direct/1x1";

fn is_vulkan() -> bool {
    std::env::var_os("GRIFFINFLY_TEST_DEVICE").is_some_and(|value| value == "vulkan")
}

fn opened(faults: FaultPlan) -> Result<Device, Error> {
    let options = OpenOptions { cache_dir: None, faults, ..OpenOptions::from_env() };
    Ok(Device::from_backend(vulkan::open_with(&Selector::Best, &options)?))
}

/// A product, and what gives it values.
struct Model {
    graph: InferenceGraph,
    x: Vec<f32>,
    w: Vec<f32>,
}

impl Model {
    fn new() -> Model {
        let mut g = Graph::new();
        let (x, w) = (g.input("x", [SIZE, SIZE]), g.input("w", [SIZE, SIZE]));
        let y = g.matmul(x, w);
        let value = |i: usize| (i * 37 % 101) as f32 / 50.0 - 1.0;
        let x: Vec<f32> = (0..SIZE * SIZE).map(value).collect();
        let w = x.iter().rev().copied().collect();
        Model { graph: g.inference([("y", y)]).expect("builds"), x, w }
    }

    fn inputs(&self) -> [(&'static str, Input<'_>); 2] {
        [("x", Input::f32(&self.x)), ("w", Input::f32(&self.w))]
    }

    /// Searches, with something done to candidates.
    fn tuned(
        &self,
        open: &dyn Fn() -> Result<Device, Error>,
        (limits, hook): (Limits, Hook),
        folder: &Folder,
    ) -> Result<Report, Error> {
        let mut progress = |_: &super::super::Event| {};
        let mut tuner = Tuner::new(open, limits, &mut progress).with_file(folder.file(), "a test");
        tuner.hook = hook;
        let weights = |device: &Device| Weights::init(device, self.graph.graph(), 0);
        let (graph, contract) = (&self.graph, Contract::Strict);
        tuner.run(&Subject { graph, contract, inputs: &self.inputs(), weights: &weights })
    }

    fn run(&self, device: &Device) -> (Vec<f32>, String) {
        let weights = Weights::init(device, self.graph.graph(), 0).expect("makes weights");
        let mut session = Session::with_weights(self.graph.clone(), &weights).expect("compiles");
        let y = session.run(&self.inputs()).expect("runs").f32("y").expect("is there").to_vec();
        (y, session.program().dispatches[0].instance.clone())
    }
}

fn slow() -> Choices {
    let mut choices = Choices::new();
    choices.insert(KEY, SLOW);
    choices
}

fn limits() -> Limits {
    Limits { budget: Duration::from_secs(120), candidates: 4, pairs: 15, ..Limits::default() }
}

const NOTHING: Hook = |_, _, _| {};

#[test]
fn the_host_has_nothing_to_choose() {
    let folder = Folder::new("host");
    let fault =
        Model::new().tuned(&|| Ok(Device::host()), (limits(), NOTHING), &folder).expect_err("refused");
    assert!(fault.to_string().contains("kernels"), "{fault}");
    assert!(!folder.file().exists());
}

#[test]
fn a_table_changes_instances_and_not_results() {
    if !is_vulkan() {
        return;
    }
    let (model, device) = (Model::new(), opened(FaultPlan::default()).expect("opens"));
    let (y, before) = model.run(&device);
    let (z, after) = model.run(&device.with_choices(slow()));
    assert_ne!(before, after);
    assert!(after.contains(SLOW), "{after}");
    let d = super::super::compare::difference(&z, &y).expect("finite");
    assert!(d.error <= 4e-6 * d.norm && d.norm > 1.0, "{d:?}");
}

#[test]
fn what_is_faster_is_accepted_and_kept_in_place_of_a_damaged_file() {
    if !is_vulkan() {
        return;
    }
    let (model, folder) = (Model::new(), Folder::new("accepted"));
    std::fs::write(folder.file(), "{ half a tab").expect("writes");
    let open = || Ok(opened(FaultPlan::default())?.with_choices(slow()));
    let report = model.tuned(&open, (limits(), NOTHING), &folder).expect("searches");
    let chosen = report.accepted.get(KEY).expect("something is faster");
    assert_ne!(chosen, SLOW);
    assert!(report.is_complete && report.dropped.is_empty(), "{report:?}");
    assert!(report.milliseconds.is_some_and(|[before, after]| after < before), "{report:?}");
    let table = Table::load(&folder.file()).expect("a table").expect("is there");
    assert_eq!(table.choices.get(KEY), Some(chosen));
    table.check(opened(FaultPlan::default()).expect("opens").info(), false).expect("counts");
}

#[test]
fn a_wrong_candidate_is_dropped_and_named() {
    if !is_vulkan() {
        return;
    }
    let (model, folder) = (Model::new(), Folder::new("wrong"));
    // The default is left as it is; one other computes `w x` for `x w`, the others leave most of the result as it was.
    let hook: Hook = |text, program, _| {
        if text.contains("direct/4x4") {
            swap(program);
        } else if text.contains(SLOW) {
            for d in &mut program.dispatches {
                if let Work::Kernel { groups, .. } = &mut d.work {
                    *groups = [1; 3];
                }
            }
        }
    };
    let limits = Limits { candidates: 8, ..limits() };
    let open = || opened(FaultPlan::default());
    let report = model.tuned(&open, (limits, hook), &folder).expect("searches");
    let reason = |text: &str| {
        let dropped = report.dropped.iter().find(|d| d.problem == KEY && d.candidate.starts_with(text));
        dropped.map(|d| d.reason.clone()).unwrap_or_default()
    };
    assert!(reason("direct/4x4").contains("differs by"), "{report:?}");
    assert!(reason(SLOW).contains("not finite"), "{report:?}");
    assert!(report.candidates >= 1);
    let accepted = report.accepted.get(KEY).unwrap_or_default();
    assert!(!accepted.starts_with("direct/4x4") && !accepted.starts_with(SLOW), "{accepted}");
}

fn swap(program: &mut Program) {
    for binding in program.dispatches.iter_mut().flat_map(|d| &mut d.bindings) {
        if binding.arena.0 < 2 {
            binding.arena.0 = 1 - binding.arena.0;
        }
    }
}

#[test]
fn a_candidate_that_hangs_is_dropped_and_the_search_goes_on() {
    if !is_vulkan() {
        return;
    }
    let (model, folder, opens) = (Model::new(), Folder::new("hangs"), AtomicUsize::new(0));
    let hook: Hook = |text, _, limit| {
        if text == SLOW {
            *limit = Duration::ZERO;
        }
    };
    let open = || {
        opens.fetch_add(1, Ordering::Relaxed);
        Ok(opened(FaultPlan::default())?.with_choices(slow()))
    };
    let report = model.tuned(&open, (limits(), hook), &folder).expect("searches");
    let dropped = report.dropped.first().expect("one is dropped");
    assert_eq!((dropped.candidate.as_str(), dropped.problem.as_str()), (SLOW, KEY));
    assert!(dropped.reason.contains("did not finish"), "{dropped:?}");
    assert_eq!(opens.load(Ordering::Relaxed), 2, "the device is made anew");
    assert_eq!(report.problems, [1, 1], "{report:?}");
}

#[test]
fn a_candidate_that_takes_the_device_is_dropped_and_the_search_goes_on() {
    static FAULTS: OnceLock<FaultPlan> = OnceLock::new();
    if !is_vulkan() {
        return;
    }
    let faults = FAULTS.get_or_init(FaultPlan::default);
    let (model, folder, opens) = (Model::new(), Folder::new("lost"), AtomicUsize::new(0));
    let hook: Hook = |text, _, _| {
        if let Some(faults) = FAULTS.get().filter(|_| text.contains("direct/4x4")) {
            faults.fail_submit(1, SubmitFault::DeviceLost);
        }
    };
    let open = || {
        faults.clear();
        opens.fetch_add(1, Ordering::Relaxed);
        opened(faults.clone())
    };
    let report = model.tuned(&open, (limits(), hook), &folder).expect("searches");
    assert!(opens.load(Ordering::Relaxed) >= 2, "the device is made anew");
    assert!(report.dropped.iter().any(|d| d.reason.contains("was lost")), "{report:?}");
}

#[test]
fn the_budget_ends_the_search_and_leaves_the_old_table() {
    if !is_vulkan() {
        return;
    }
    let (model, folder) = (Model::new(), Folder::new("budget"));
    let open = || Ok(opened(FaultPlan::default())?.with_choices(slow()));
    let info = open().expect("opens").info().clone();
    Table::new(&info, "before", choices()).save(&folder.file()).expect("saves");
    let limits = Limits { budget: Duration::from_millis(1), ..limits() };
    let started = Instant::now();
    let report = model.tuned(&open, (limits, NOTHING), &folder).expect("ends");
    assert!(!report.is_complete && report.accepted.is_empty(), "{report:?}");
    assert_eq!(report.problems, [0, 1], "{report:?}");
    assert!(started.elapsed() < Duration::from_secs(30), "one step, and nothing after it");
    let table = Table::load(&folder.file()).expect("a table").expect("is there");
    assert_eq!(table.origin, "before");
}
