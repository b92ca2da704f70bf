//! Results as JSON: one record per run of an engine, which `bench/pytorch/run.py` writes too.

use crate::error::BenchError;
use crate::json;
use crate::workload::{Name, Size};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Version of this format.
pub(crate) const FORMAT: u32 = 1;

/// The arithmetic contract of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Precision {
    /// `f32` everywhere.
    Strict,
    /// Inputs of products may be rounded.
    Fast,
    /// `f64`: the oracle.
    F64,
}

impl Precision {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Precision::Strict => "strict",
            Precision::Fast => "fast",
            Precision::F64 => "f64",
        }
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    /// Forward at the full shape.
    Inference,
    /// Forward at the minimal shape.
    Latency,
    /// Forward, loss and all gradients.
    Train,
}

impl Phase {
    pub(crate) const ALL: [Phase; 3] = [Phase::Inference, Phase::Latency, Phase::Train];

    pub(crate) fn text(self) -> &'static str {
        match self {
            Phase::Inference => "inference",
            Phase::Latency => "latency",
            Phase::Train => "train",
        }
    }
}

/// One run of one engine.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) format: u32,
    pub(crate) engine: String,
    pub(crate) version: String,
    /// Of the repository.
    pub(crate) revision: Option<String>,
    pub(crate) precision: Precision,
    pub(crate) size: Size,
    pub(crate) device: DeviceRecord,
    pub(crate) host: Option<String>,
    pub(crate) cells: Vec<Cell>,
}

/// What ran it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DeviceRecord {
    pub(crate) backend: String,
    pub(crate) name: String,
    pub(crate) driver: String,
    pub(crate) runtime: Option<String>,
}

/// One workload in one phase.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) workload: Name,
    pub(crate) phase: Phase,
    /// How the engine ran it.
    pub(crate) mode: String,
    /// Wall time from before the launch to an idle device, of every timed call.
    #[serde(default)]
    pub(crate) samples_us: Vec<f64>,
    /// How much of each was spent before the launch returned.
    #[serde(default)]
    pub(crate) host_us: Vec<f64>,
    /// From the model to a program that ran once.
    #[serde(default)]
    pub(crate) preparation_s: Option<f64>,
    /// Whether caches of pipelines were off, so that preparation found nothing in them.
    #[serde(default)]
    pub(crate) caches_empty: Option<bool>,
    /// Preparation once more in this process, after the timed calls: with warm caches.
    #[serde(default)]
    pub(crate) preparation_again_s: Option<f64>,
    #[serde(default)]
    pub(crate) memory: Option<Memory>,
    #[serde(default)]
    pub(crate) program: Option<ProgramRecord>,
    #[serde(default)]
    pub(crate) clocks_before: Option<Clocks>,
    #[serde(default)]
    pub(crate) clocks_after: Option<Clocks>,
    #[serde(default)]
    pub(crate) loss: Option<f64>,
    /// Results in full, relative to the record.
    #[serde(default)]
    pub(crate) dump: Option<PathBuf>,
    /// Why there is no result.
    #[serde(default)]
    pub(crate) error: Option<String>,
}

impl Cell {
    /// A cell without results yet.
    pub(crate) fn new(workload: Name, phase: Phase, mode: &str) -> Cell {
        Cell {
            workload,
            phase,
            mode: mode.into(),
            samples_us: Vec::new(),
            host_us: Vec::new(),
            preparation_s: None,
            caches_empty: None,
            preparation_again_s: None,
            memory: None,
            program: None,
            clocks_before: None,
            clocks_after: None,
            loss: None,
            dump: None,
            error: None,
        }
    }
}

/// Bytes; what an engine cannot tell is absent.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Memory {
    /// Of the plan.
    pub(crate) physical: Option<u64>,
    /// Of the plan if no temporaries shared bytes.
    pub(crate) logical: Option<u64>,
    /// No plan with this order of dispatches is smaller.
    pub(crate) lower_bound: Option<u64>,
    /// Largest sum of live tensors of a caching allocator.
    pub(crate) peak_allocated: Option<u64>,
    /// The most that it took from the device.
    pub(crate) peak_reserved: Option<u64>,
    /// Of the whole device, after the series.
    pub(crate) device_used: Option<u64>,
}

/// The size of a program.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct ProgramRecord {
    /// Those that compute something.
    pub(crate) dispatches: usize,
    /// Those that only read ahead.
    #[serde(default)]
    pub(crate) prefetches: usize,
    pub(crate) pipelines: usize,
    pub(crate) levels: usize,
}

/// What the driver said at one moment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Clocks {
    pub(crate) sm_mhz: f64,
    pub(crate) memory_mhz: f64,
    pub(crate) temperature_c: f64,
    pub(crate) power_w: f64,
}

impl Run {
    pub(crate) fn read(path: &Path) -> Result<Run, BenchError> {
        json::read(path)
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), BenchError> {
        let json = serde_json::to_string_pretty(self).map_err(BenchError::record(path))?;
        std::fs::write(path, json + "\n").map_err(BenchError::io(path))
    }
}

/// Order statistics of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quartiles {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

/// Median and quartiles, interpolated linearly at `(n - 1) q`; none of no samples.
pub(crate) fn quartiles(samples: &[f64]) -> Option<Quartiles> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |q: f64| {
        let position = (sorted.len() - 1) as f64 * q;
        let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
        below + (above - below) * position.fract()
    };
    (!sorted.is_empty()).then(|| Quartiles { low: at(0.25), median: at(0.5), high: at(0.75) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_interpolated() {
        assert_eq!(quartiles(&[]), None);
        let q = quartiles(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((q.low, q.median, q.high), (1.75, 2.5, 3.25));
        let q = quartiles(&[7.0]).unwrap();
        assert_eq!((q.low, q.median, q.high), (7.0, 7.0, 7.0));
    }

    #[test]
    fn a_record_of_the_reference_is_read() {
        let text = r#"{"format": 1, "engine": "pytorch", "version": "2.11.0", "revision": null, "precision": "f64",
            "size": "small", "device": {"backend": "cpu", "name": "x86_64", "driver": ""}, "host": "Linux", "cells": [
            {"workload": "resnet50", "phase": "train", "mode": "eager", "samples_us": [], "host_us": [],
             "preparation_s": 0.25, "memory": null, "loss": 2.5, "dump": "d.safetensors"},
            {"workload": "unet", "phase": "latency", "mode": "eager", "error": "RuntimeError: no"}]}"#;
        let run: Run = serde_json::from_str(text).unwrap();
        assert_eq!((run.precision, run.cells[0].loss), (Precision::F64, Some(2.5)));
        assert_eq!(run.cells[1].error.as_deref(), Some("RuntimeError: no"));
    }
}
