//! The table of errors: both engines' results against the oracle, side by side.

use super::Part;
use crate::compare::Judged;
use crate::compare::judge::Compared;
use crate::compare::tables::{status, table};

/// One line per cell of ours.
pub(super) fn agreement(part: &Part<'_>) -> String {
    let row = |ours: &Judged<'_>| {
        let (workload, phase) = (ours.cell.workload, ours.cell.phase);
        let theirs = part.own.theirs.iter().find(|j| j.is_of(workload, phase) && j.verdict.is_some());
        let [(forward, worst, name), (their_forward, their_worst, their_name)] =
            [Some(ours), theirs].map(errors);
        vec![
            workload.text().into(),
            phase.text().into(),
            forward,
            their_forward,
            worst,
            their_worst,
            name,
            their_name,
            status(ours),
            theirs.map_or_else(|| "-".into(), |j| format!("{} ({})", status(j), j.cell.mode)),
        ]
    };
    let rows: Vec<_> = part.own.ours.iter().map(row).collect();
    let header = [
        "workload",
        "phase",
        "output or loss, ours",
        "theirs",
        "worst gradient, ours",
        "theirs",
        "which of ours",
        "which of theirs",
        "gate, ours",
        "theirs",
    ];
    table(&part.title("Relative L2 errors against f64, every tensor in full"), &header, &rows)
}

/// Forward error, that of the worst gradient and its name.
fn errors(judged: Option<&Judged<'_>>) -> (String, String, String) {
    let verdict = judged.and_then(|j| j.verdict);
    let number =
        |c: Option<&Compared>| c.map_or_else(|| "-".into(), |c| format!("{:.1e}", c.difference.relative()));
    let worst = verdict.and_then(|v| v.backward.first());
    let name = worst.map_or_else(|| "-".into(), |c| c.name.clone());
    (number(verdict.and_then(|v| v.forward.first())), number(worst), name)
}
