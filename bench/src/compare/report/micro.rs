//! Micro-benchmarks: single operations against a library, read from a file of their own.
//!
//! Input: JSON with `format`, `device`, `driver`, `revision` and `rows`, whose fields are those of [`Row`]. Output: a table
//! with the geometric mean of each kind. A row says which operation, at which shape, in which pass (`forward`, ...), under
//! which contract, and how long we and the reference took, in microseconds.

use super::checks::{Seen, fault, is_time};
use crate::compare::ratio::geometric_mean;
use crate::compare::tables::{captioned, hundredths};
use crate::error::BenchError;
use crate::json;
use crate::record::Precision;
use serde::Deserialize;
use std::path::Path;

/// Operations on one device.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Micro {
    /// Read before all else.
    #[serde(rename = "format")]
    _format: u32,
    device: String,
    driver: String,
    pub(super) revision: String,
    rows: Vec<Row>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Gemm,
    Conv,
    Attention,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Gemm, Kind::Conv, Kind::Attention];

    fn text(self) -> &'static str {
        match self {
            Kind::Gemm => "gemm",
            Kind::Conv => "conv",
            Kind::Attention => "attention",
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    kind: Kind,
    shape: String,
    pass: String,
    contract: Precision,
    ours_us: f64,
    /// Whom we are compared with.
    reference: String,
    reference_us: f64,
}

impl Row {
    fn name(&self) -> String {
        format!("{} {} {} {}", self.kind.text(), self.shape, self.pass, self.contract.text())
    }

    fn wrong(&self) -> Option<String> {
        let texts = [("shape", &self.shape), ("pass", &self.pass), ("reference", &self.reference)];
        if let Some((field, _)) = texts.into_iter().find(|(_, text)| text.trim().is_empty()) {
            return Some(format!("the {field} is empty"));
        }
        if self.contract == Precision::F64 {
            return Some("f64 is no contract of ours".into());
        }
        let times = [("ours_us", self.ours_us), ("reference_us", self.reference_us)];
        let (field, time) = times.into_iter().find(|(_, time)| !is_time(*time))?;
        Some(format!("{field} is {time}"))
    }

    fn ratio(&self) -> f64 {
        self.ours_us / self.reference_us
    }
}

impl Micro {
    /// What the text of a file says.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Micro, BenchError> {
        let micro: Micro = json::parse(path, text)?;
        let mut seen = Seen::default();
        for row in &micro.rows {
            let name = row.name();
            if let Some(reason) = row.wrong() {
                return Err(fault(path, &name, reason));
            }
            seen.once(path, &name, format!("{name} {}", row.reference))?;
        }
        Ok(micro)
    }

    /// Rows by kind, in the order of the file, each kind with the mean of each contract.
    pub(super) fn table(&self) -> String {
        let mut rows = Vec::new();
        for kind in Kind::ALL {
            let mut own: Vec<&Row> = self.rows.iter().filter(|row| row.kind == kind).collect();
            // Stable: the file's order within a contract.
            own.sort_by_key(|row| row.contract != Precision::Strict);
            rows.extend(own.iter().map(|row| {
                let texts = [kind.text(), &row.shape, &row.pass, row.contract.text()].map(String::from);
                let numbers = [format!("{:.1}", row.ours_us), format!("{:.1}", row.reference_us)];
                let rest = [row.reference.clone(), hundredths(Some(row.ratio()))];
                texts.into_iter().chain(numbers).chain(rest).collect::<Vec<_>>()
            }));
            for contract in super::book::CONTRACTS {
                let ratios: Vec<f64> =
                    own.iter().filter(|row| row.contract == contract).map(|row| row.ratio()).collect();
                let Some(mean) = geometric_mean(&ratios) else { continue };
                let name = format!("geometric mean of {}", ratios.len());
                let mean = format!("{mean:.2}");
                rows.push(
                    [kind.text(), &name, "", contract.text(), "", "", "", &mean].map(String::from).to_vec(),
                );
            }
        }
        let header =
            ["kind", "shape", "pass", "contract", "ours, us", "reference, us", "which", "ours / reference"];
        let caption = format!("Driver {}, revision {:.12}.", self.driver, self.revision);
        captioned(&format!("Micro-benchmarks on {}", self.device), &caption, &header, &rows)
    }
}
