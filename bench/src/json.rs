//! Reads the JSON files of this crate: the format first, and a failure with the cell that it lies in.
//!
//! Input: text. Output: what it says, or an error that names the file, the place and, where the text got that far, the cell
//! (or the row of a file of micro-benchmarks).

use crate::error::BenchError;
use crate::record::FORMAT;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// The fields that name a cell or a row, by the first of them.
const NAMES: [[&str; 3]; 2] = [["workload", "phase", "mode"], ["kind", "shape", "pass"]];

#[derive(Deserialize)]
struct Head {
    format: u32,
}

/// Reads a file of the current format.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, BenchError> {
    let text = std::fs::read_to_string(path).map_err(BenchError::io(path))?;
    parse(path, &text)
}

/// What the text of a file of the current format says.
pub(crate) fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, BenchError> {
    let fault = |source| {
        let place = place(text, &source).map(|cell| format!(" (in {cell})")).unwrap_or_default();
        BenchError::Record { path: path.to_owned(), source, place }
    };
    let head: Head = serde_json::from_str(text).map_err(fault)?;
    check_format(path, head.format)?;
    serde_json::from_str(text).map_err(fault)
}

/// Refuses other formats.
pub(crate) fn check_format(path: &Path, format: u32) -> Result<(), BenchError> {
    if format == FORMAT {
        return Ok(());
    }
    let reason = format!("is of format {format}, this program reads {FORMAT}");
    Err(BenchError::File { path: path.to_owned(), reason })
}

/// The cell or row in which reading failed.
fn place(text: &str, error: &serde_json::Error) -> Option<String> {
    let line: usize = text.split_inclusive('\n').take(error.line().checked_sub(1)?).map(str::len).sum();
    let before = text.get(..(line + error.column().saturating_sub(1)).min(text.len()))?;
    let named = NAMES.into_iter().filter_map(|fields| {
        let at = before.rfind(&format!("\"{}\"", fields[0]))?;
        Some((at, before[..at].rfind('{')?, fields))
    });
    let (_, start, fields) = named.max_by_key(|(at, ..)| *at)?;
    let object = &before[start..];
    let words: Vec<&str> = fields.into_iter().filter_map(|name| field(object, name)).collect();
    (is_open(object) && !words.is_empty()).then(|| words.join(" "))
}

/// The text of a field, or what there is of it.
fn field<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = object.split_once(&format!("\"{name}\""))?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    rest.split('"').next()
}

/// Whether the object that begins the text does not end in it.
fn is_open(text: &str) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Run;

    fn fault(cells: &str) -> String {
        let text = format!(
            r#"{{"format": 1, "engine": "pytorch", "version": "2", "revision": null, "precision": "strict",
            "size": "small", "device": {{"backend": "cpu", "name": "x", "driver": ""}}, "host": null, "cells": [{cells}]}}"#
        );
        parse::<Run>(Path::new("a.json"), &text).unwrap_err().to_string()
    }

    #[test]
    fn failures_name_file_and_cell() {
        let good = r#"{"workload": "unet", "phase": "train", "mode": "eager", "error": "{"},"#;
        for (bad, part) in [
            (
                r#"{"workload": "whisper", "phase": "latency", "samples_us": [1, NaN]}"#,
                "(in whisper latency)",
            ),
            (
                r#"{"workload": "whisper", "phase": "train", "mode": "e", "samples_us": [null]}"#,
                "(in whisper train e)",
            ),
            (r#"{"workload": "whisper", "phase": "train"}"#, "missing field `mode`"),
            (r#"{"workload": "whisper", "phase": "train"}"#, "(in whisper train)"),
            (r#"{"workload": "whimper"}"#, "(in whimper)"),
        ] {
            let said = fault(&format!("{good}\n{bad}"));
            assert!(said.starts_with("a.json is no record of results: ") && said.contains(part), "{said}");
        }
        assert!(!fault(&format!("{good}\n1")).contains("(in "), "no cell is open there");
    }

    #[test]
    fn the_format_is_looked_at_first() {
        let said = parse::<Run>(Path::new("a.json"), r#"{"format": 2, "new": []}"#).unwrap_err().to_string();
        assert_eq!(said, "a.json: is of format 2, this program reads 1");
    }
}
