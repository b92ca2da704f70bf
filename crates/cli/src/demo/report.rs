//! What the demo tells: for people, and as JSON.

use super::evaluate::Tested;
use super::plot;
use super::train::Trained;
use griffinfly::Device;
use std::fmt::Write as _;
use std::path::Path;

pub(super) struct Report<'a> {
    pub(super) device: &'a Device,
    pub(super) trained: Option<&'a Trained>,
    pub(super) tested: &'a Tested,
    pub(super) checkpoint: &'a Path,
}

impl Report<'_> {
    pub(super) fn json(&self, seed: u64) -> Result<String, serde_json::Error> {
        let (info, trained, tested) = (self.device.info(), self.trained, self.tested);
        let loss = |pick: fn(&[f32]) -> Option<&f32>| trained.and_then(|t| pick(&t.losses).copied());
        let memory = trained
            .map_or((tested.physical_bytes, tested.logical_bytes), |t| (t.physical_bytes, t.logical_bytes));
        serde_json::to_string(&serde_json::json!({
            "device": info.name,
            "backend": info.backend,
            "driver": info.driver,
            "seed": trained.map(|_| seed),
            "train_steps": trained.map_or(0, |t| t.losses.len()),
            "loss_first": loss(<[f32]>::first),
            "loss_last": loss(<[f32]>::last),
            "test_images": tested.images(),
            "test_accuracy": tested.accuracy(),
            "confusion": tested.confusion,
            "compile_s": trained.map_or(tested.preparation, |t| t.preparation).as_secs_f64(),
            "step_ms_median": trained.map(|t| 1e3 * t.step.as_secs_f64()),
            "plan_bytes_physical": memory.0,
            "plan_bytes_logical": memory.1,
            "dispatches": trained.map(|t| t.dispatches),
            "pipelines": trained.map(|t| t.pipelines),
            "checkpoint": self.checkpoint.display().to_string(),
        }))
    }

    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        let info = self.device.info();
        // Writing to a string does not fail.
        let _ = writeln!(out, "device        {} ({})", info.name, info.driver);
        if let Some(trained) = self.trained {
            training(&mut out, trained);
        }
        let tested = self.tested;
        let _ = writeln!(out, "checkpoint    {}", self.checkpoint.display());
        let _ = writeln!(
            out,
            "test accuracy {:.4} ({} of {} images, fresh session prepared in {:.0} ms)",
            tested.accuracy(),
            tested.correct(),
            tested.images(),
            1e3 * tested.preparation.as_secs_f64()
        );
        confusion(&mut out, tested);
        out
    }
}

fn training(out: &mut String, trained: &Trained) {
    let (first, last) = (trained.losses.first(), trained.losses.last());
    let _ = writeln!(
        out,
        "training      {} steps, loss {:.4} to {:.4}",
        trained.losses.len(),
        first.unwrap_or(&f32::NAN),
        last.unwrap_or(&f32::NAN)
    );
    out.push_str(&plot::curve(&trained.losses));
    let _ = writeln!(out, "preparation   {:.3} s", trained.preparation.as_secs_f64());
    let _ = writeln!(out, "step          {:.3} ms (median)", 1e3 * trained.step.as_secs_f64());
    let _ = writeln!(
        out,
        "plan          {} bytes, {} without sharing; {} dispatches, {} pipelines",
        trained.physical_bytes, trained.logical_bytes, trained.dispatches, trained.pipelines
    );
}

fn confusion(out: &mut String, tested: &Tested) {
    let columns: String = (0..tested.confusion.len()).map(|class| format!("{class:>4}")).collect();
    let _ = writeln!(out, "confusion     (rows: what it is, columns: what it was taken for)");
    let _ = writeln!(out, "     {columns}");
    for (class, row) in tested.confusion.iter().enumerate() {
        let cells: String =
            row.iter().map(|n| if *n == 0 { "   .".to_owned() } else { format!("{n:>4}") }).collect();
        let _ = writeln!(out, "{class:>4} {cells}");
    }
}
