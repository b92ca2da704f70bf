//! A profile in the trace-event format (JSON) that Perfetto and the tracing page of Chromium open: one complete event per
//! dispatch, one after the other, in microseconds.

use super::Profile;
use serde_json::{Value, json};

impl Profile {
    /// The trace as JSON text.
    #[must_use]
    pub fn trace(&self) -> String {
        let mut at = 0.0;
        let mut events = vec![json!({
            "ph": "M", "pid": 1, "tid": 1, "name": "process_name", "args": { "name": self.device },
        })];
        for row in &self.rows {
            let (d, microseconds) = (&row.dispatch, row.nanoseconds / 1e3);
            events.push(json!({
                "ph": "X",
                "pid": 1,
                "tid": 1,
                "ts": at,
                "dur": microseconds,
                "name": d.instance,
                "cat": d.section,
                "args": {
                    "dispatch": d.dispatch,
                    "level": d.level,
                    "class": d.numeric.name(),
                    "groups": d.groups,
                    "operations": row.operations,
                    "bytes": row.bytes,
                    "of_roof": row.of_roof,
                    "registers": row.registers,
                    "spills": row.spills,
                    "computes": d.computes,
                },
            }));
            at += microseconds;
        }
        Value::to_string(&json!({ "traceEvents": events, "displayTimeUnit": "ns" }))
    }
}
