//! The record of micro-benchmarks, which `bench/pytorch/micro.py` writes too: each side fills in its own columns.
//!
//! Input: JSON with `format`, `device`, `driver`, `revision` and `rows`, whose fields are those of [`Row`]. A row says which
//! operation, at which shape, in which pass (`forward`, ...), under which contract, and how long ours and the reference took.

use crate::error::BenchError;
use crate::json;
use crate::record::Precision;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Operations on one device.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Micro {
    pub(crate) format: u32,
    pub(crate) device: String,
    pub(crate) driver: String,
    pub(crate) revision: String,
    pub(crate) rows: Vec<Row>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Gemm,
    Conv,
    Attention,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Gemm, Kind::Conv, Kind::Attention];

    pub(crate) fn text(self) -> &'static str {
        match self {
            Kind::Gemm => "gemm",
            Kind::Conv => "conv",
            Kind::Attention => "attention",
        }
    }
}

/// One operation in one pass. Times are medians in microseconds; at least one side has one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) kind: Kind,
    pub(crate) shape: String,
    pub(crate) pass: String,
    /// What the reference may do; where ours has no fast program, its strict one stands in.
    pub(crate) contract: Precision,
    /// Multiplications and additions of the products.
    #[serde(default)]
    pub(crate) operations: Option<u64>,
    #[serde(default)]
    pub(crate) ours_us: Option<f64>,
    /// The arithmetic of our products.
    #[serde(default)]
    pub(crate) ours_class: Option<String>,
    /// Relative L2 error of ours on a sample of the result, against `f64`.
    #[serde(default)]
    pub(crate) ours_error: Option<f64>,
    /// Whom we are compared with.
    #[serde(default)]
    pub(crate) reference: Option<String>,
    #[serde(default)]
    pub(crate) reference_us: Option<f64>,
    /// Relative L2 error of the reference, against `f64`.
    #[serde(default)]
    pub(crate) reference_error: Option<f64>,
}

impl Row {
    pub(crate) fn name(&self) -> String {
        format!("{} {} {} {}", self.kind.text(), self.shape, self.pass, self.contract.text())
    }

    /// Our time by the reference's, where both are there.
    pub(crate) fn ratio(&self) -> Option<f64> {
        Some(self.ours_us? / self.reference_us?)
    }
}

impl Micro {
    /// What a file says; its rows are not checked.
    pub(crate) fn read(path: &Path) -> Result<Micro, BenchError> {
        json::read(path)
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), BenchError> {
        let json = serde_json::to_string_pretty(self).map_err(BenchError::record(path))?;
        std::fs::write(path, json + "\n").map_err(BenchError::io(path))
    }
}
