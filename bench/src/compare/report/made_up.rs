//! Small made-up records, from which the tests of the page are made.
//!
//! Card A has two workloads, all phases, both contracts, and a cell without a valid reference; card B & C has one workload,
//! of which a cell of ours failed. Times are chosen so that ratios are round.

use super::book::{Book, Text};
use crate::compare::judge::{Compared, Verdict};
use crate::compare::results::{JudgedRun, Results};
use crate::error::BenchError;
use crate::gate::Difference;
use crate::record::{Cell, Clocks, DeviceRecord, FORMAT, Memory, Phase, Precision, ProgramRecord, Run};
use crate::workload::{Name, Size};

pub(super) const A: &str = "Card A";
pub(super) const B: &str = "Card <B & C>";

/// A record of one engine on a device.
pub(super) fn run(engine: &str, precision: Precision, device: &str, cells: Vec<Cell>) -> Run {
    let backend = if engine == "griffinfly" { "vulkan" } else { "cuda" };
    Run {
        format: FORMAT,
        engine: engine.into(),
        version: "1.0".into(),
        revision: Some("0123456789abcdef".into()),
        precision,
        size: Size::Full,
        device: DeviceRecord {
            backend: backend.into(),
            name: device.into(),
            driver: "driver 1".into(),
            runtime: None,
        },
        host: None,
        cells,
    }
}

/// A cell with this median.
pub(super) fn cell(workload: Name, phase: Phase, mode: &str, median_us: f64) -> Cell {
    let clocks = Clocks { sm_mhz: 1500.0, memory_mhz: 3000.0, temperature_c: 40.0, power_w: 100.0 };
    let ours = mode == "program";
    Cell {
        samples_us: [1.1, 0.9, 1.0].map(|x| x * median_us).to_vec(),
        host_us: vec![2.0; 3],
        preparation_s: Some(if ours { 0.5 } else { 5.0 }),
        caches_empty: ours.then_some(workload != Name::Whisper || phase != Phase::Train),
        preparation_again_s: ours.then_some(0.05),
        memory: Some(Memory {
            physical: ours.then_some(30 << 20),
            logical: ours.then_some(80 << 20),
            lower_bound: ours.then_some(30 << 20),
            peak_allocated: (!ours).then_some(if mode == "eager" { 40 << 20 } else { 60 << 20 }),
            peak_reserved: None,
            device_used: Some(100 << 20),
        }),
        program: ours.then_some(ProgramRecord { dispatches: 9, prefetches: 2, pipelines: 4, levels: 7 }),
        clocks_before: Some(clocks),
        clocks_after: Some(clocks),
        ..Cell::new(workload, phase, mode)
    }
}

/// Verdicts on all cells of a run, with one error for all.
pub(super) fn judged(run: Run, error: f64) -> JudgedRun {
    let compared = |name: &str| Compared {
        name: name.into(),
        difference: Difference { error, found: 1.0, reference: 1.0, max: error, cosine: 1.0, finite: true },
        severity: error / 1e-4,
        passes: error <= 1e-4,
    };
    let verdict = |cell: &Cell| {
        let train = cell.phase == Phase::Train;
        Some(Verdict {
            faults: Vec::new(),
            forward: vec![compared(if train { "loss" } else { "output" })],
            backward: if train { vec![compared("grad.weight")] } else { Vec::new() },
            paper: Vec::new(),
        })
    };
    let verdicts = run.cells.iter().map(verdict).collect();
    JudgedRun { run, verdicts }
}

fn cells(workload: Name, mode: &str, times: [f64; 3]) -> Vec<Cell> {
    Phase::ALL.into_iter().zip(times).map(|(phase, time)| cell(workload, phase, mode, time)).collect()
}

fn strict(engine: &str, device: &str, cells: Vec<Cell>) -> JudgedRun {
    judged(run(engine, Precision::Strict, device, cells), 1e-6)
}

fn oracle(device: &str) -> Option<Run> {
    Some(run("pytorch", Precision::F64, device, Vec::new()))
}

/// The U-Net on card A; eager is the fastest in training.
pub(super) fn unet() -> Results {
    let mut theirs = cells(Name::UNet, "eager", [400.0; 3]);
    theirs.extend(cells(Name::UNet, "graph", [80.0, 100.0, 600.0]));
    let ours = strict("griffinfly", A, cells(Name::UNet, "program", [100.0, 50.0, 300.0]));
    Results::new(ours, vec![strict("pytorch", A, theirs)], oracle(A))
}

/// Whisper on card A; the reference's gradients are wrong.
pub(super) fn whisper() -> Results {
    let mut theirs = cells(Name::Whisper, "graph", [100.0, 80.0, 70.0]);
    let wrong = theirs.split_off(2);
    let ours = strict("griffinfly", A, cells(Name::Whisper, "program", [200.0, 80.0, 900.0]));
    let wrong = judged(run("pytorch", Precision::Strict, A, wrong), 2e-4);
    Results::new(ours, vec![strict("pytorch", A, theirs), wrong], oracle(A))
}

/// The U-Net on the other card; our minimal shape failed there.
pub(super) fn other_card() -> Results {
    let mut ours = cells(Name::UNet, "program", [120.0, 1.0, 500.0]);
    ours[1] =
        Cell { error: Some("out | of memory".into()), ..Cell::new(Name::UNet, Phase::Latency, "program") };
    let theirs = cells(Name::UNet, "graph", [240.0, 200.0, 250.0]);
    Results::new(strict("griffinfly", B, ours), vec![strict("pytorch", B, theirs)], oracle(B))
}

/// The reference's fast record on card A, as it is written without verdicts.
pub(super) fn fast() -> Run {
    run("pytorch", Precision::Fast, A, cells(Name::UNet, "graph", [50.0, 200.0, 150.0]))
}

pub(super) fn plan() -> Run {
    use crate::plan::{MEMORY_FIRST, SPEED_FIRST};
    let cells = [MEMORY_FIRST, SPEED_FIRST].map(|mode| Cell {
        memory: cell(Name::UNet, Phase::Train, "program", 1.0).memory,
        ..Cell::new(Name::UNet, Phase::Train, mode)
    });
    run("griffinfly", Precision::Strict, A, cells.into())
}

pub(super) const MICRO: &str = r#"{"format": 1, "device": "Card A", "driver": "driver 1", "revision": "0123456789abcdef", "rows": [
{"kind": "gemm", "shape": "1024x1024x1024", "pass": "forward", "contract": "strict", "operations": 2147483648, "ours_us": 50, "ours_class": "f32", "ours_error": 1e-7, "reference": "cuBLAS", "reference_us": 100, "reference_error": 2e-7},
{"kind": "gemm", "shape": "64x576x1536", "pass": "forward", "contract": "strict", "ours_us": 8, "reference": "cuBLAS", "reference_us": 4},
{"kind": "attention", "shape": "1x12x128x64", "pass": "backward", "contract": "fast", "ours_us": 30, "reference": "FlashAttention-2", "reference_us": 20},
{"kind": "conv", "shape": "4x4x4x4 * 4x4x3x3", "pass": "forward", "contract": "strict", "ours_us": 7},
{"kind": "conv", "shape": "5x5x5x5 * 5x5x3x3", "pass": "forward", "contract": "strict", "reference": "cuDNN", "reference_us": 9}
]}"#;

/// A file of anything.
pub(super) fn text(path: &str, value: &impl serde::Serialize) -> Text {
    Text { path: path.into(), text: serde_json::to_string(value).unwrap() }
}

pub(super) fn micro(text: &str) -> Text {
    Text { path: "micro.json".into(), text: text.into() }
}

/// A book of some results alone.
pub(super) fn of(results: &[Text]) -> Result<Book, BenchError> {
    Book::read(results, &[], &[])
}

/// All of it.
pub(super) fn book() -> Book {
    let results = [
        text("fast.json", &fast()),
        text("whisper.json", &whisper()),
        text("unet.json", &unet()),
        text("other.json", &other_card()),
    ];
    Book::read(&results, &[text("plan.json", &plan())], &[micro(MICRO)]).unwrap()
}
