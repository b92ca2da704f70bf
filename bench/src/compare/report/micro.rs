//! Micro-benchmarks: single operations against a library, read from a file of their own.
//!
//! Input: the records of [`crate::micro::record`], with either side's times or both. Output: a table with the geometric mean of
//! each kind over the rows that have both.

use super::checks::{Seen, fault, is_time};
use crate::compare::ratio::geometric_mean;
use crate::compare::tables::{captioned, hundredths};
use crate::error::BenchError;
use crate::json;
use crate::micro::record::{Kind, Micro, Row};
use crate::record::Precision;
use std::path::Path;

/// What is wrong with a row, if anything.
fn wrong(row: &Row) -> Option<String> {
    let reference = row.reference.as_deref();
    let texts = [("shape", Some(row.shape.as_str())), ("pass", Some(&row.pass)), ("reference", reference)];
    if let Some((field, _)) = texts.into_iter().find(|(_, text)| text.is_some_and(|t| t.trim().is_empty())) {
        return Some(format!("the {field} is empty"));
    }
    if row.contract == Precision::F64 {
        return Some("f64 is no contract of ours".into());
    }
    if row.reference.is_some() != row.reference_us.is_some() {
        return Some("a reference and its time go together".into());
    }
    if row.ours_us.is_none() && row.reference_us.is_none() {
        return Some("nobody has a time".into());
    }
    let times = [("ours_us", row.ours_us), ("reference_us", row.reference_us)];
    let (field, time) =
        times.into_iter().find_map(|(field, time)| Some((field, time.filter(|t| !is_time(*t))?)))?;
    Some(format!("{field} is {time}"))
}

impl Micro {
    /// What the text of a file says.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Micro, BenchError> {
        let micro: Micro = json::parse(path, text)?;
        let mut seen = Seen::default();
        for row in &micro.rows {
            let name = row.name();
            if let Some(reason) = wrong(row) {
                return Err(fault(path, &name, reason));
            }
            seen.once(path, &name, format!("{name} {}", row.reference.as_deref().unwrap_or_default()))?;
        }
        Ok(micro)
    }

    /// Rows by kind, in the order of the file, each kind with the mean of each contract.
    pub(crate) fn table(&self) -> String {
        let mut rows = Vec::new();
        for kind in Kind::ALL {
            let mut own: Vec<&Row> = self.rows.iter().filter(|row| row.kind == kind).collect();
            // Stable: the file's order within a contract.
            own.sort_by_key(|row| row.contract != Precision::Strict);
            rows.extend(own.iter().map(|row| line(row)));
            for contract in super::book::CONTRACTS {
                let ratios: Vec<f64> =
                    own.iter().filter(|row| row.contract == contract).filter_map(|row| row.ratio()).collect();
                let Some(mean) = geometric_mean(&ratios) else { continue };
                let name = format!("geometric mean of {}", ratios.len());
                let mean = format!("{mean:.2}");
                rows.push(
                    [kind.text(), &name, "", contract.text(), "", "", "", "", "", "", &mean]
                        .map(String::from)
                        .to_vec(),
                );
            }
        }
        let header = [
            "kind",
            "shape",
            "pass",
            "contract",
            "ours, us",
            "TFLOP/s",
            "products",
            "reference, us",
            "TFLOP/s",
            "which",
            "ours / reference",
        ];
        let caption = format!("Driver {}, revision {:.12}.", self.driver, self.revision);
        captioned(&format!("Micro-benchmarks on {}", self.device), &caption, &header, &rows)
    }
}

/// A row of the table.
fn line(row: &Row) -> Vec<String> {
    let time = |us: Option<f64>| us.map_or_else(|| "-".into(), |us| format!("{us:.1}"));
    // Operations per microsecond are millions per second.
    let rate = |us: Option<f64>| hundredths(row.operations.zip(us).map(|(n, us)| n as f64 / us / 1e6));
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let names = [row.kind.text(), &row.shape, &row.pass, row.contract.text()].map(String::from);
    let ours = [time(row.ours_us), rate(row.ours_us), or_dash(&row.ours_class)];
    let theirs = [time(row.reference_us), rate(row.reference_us), or_dash(&row.reference)];
    names.into_iter().chain(ours).chain(theirs).chain([hundredths(row.ratio())]).collect()
}
