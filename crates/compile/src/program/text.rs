//! Text and byte forms of programs.
//!
//! The byte form is JSON and is verified when read, so a file that lies is refused and never run. The text form is for people
//! and goldens; the summary holds counts and bytes only.

use super::{Program, Role, SectionKind, Work};
use crate::error::CompileError;
use std::fmt::{self, Write as _};

impl Program {
    /// The serialised form.
    ///
    /// # Errors
    /// Never for a program that verifies.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CompileError> {
        serde_json::to_vec(self).map_err(|e| CompileError::Malformed(e.to_string()))
    }

    /// Reads and verifies a serialised program.
    ///
    /// # Errors
    /// Not a program, or one that breaks an invariant.
    pub fn from_bytes(bytes: &[u8]) -> Result<Program, CompileError> {
        let p: Program = serde_json::from_slice(bytes).map_err(|e| CompileError::Malformed(e.to_string()))?;
        let faults = p.verify();
        if faults.is_empty() { Ok(p) } else { Err(CompileError::Faults { stage: "program", faults }) }
    }

    /// Number of levels of all sections.
    #[must_use]
    pub fn level_count(&self) -> usize {
        self.sections.iter().map(|s| s.levels.len()).sum()
    }

    /// Counts and bytes, one per line: what goldens hold.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut out = String::new();
        let mut line = |what: &str, n: u64| {
            let _ = writeln!(out, "{what} {n}");
        };
        line("dispatches", self.dispatches.len() as u64);
        line("pipelines", self.kernels.len() as u64);
        line("levels", self.level_count() as u64);
        line("physical_bytes", self.memory.physical_bytes);
        line("logical_bytes", self.memory.logical_bytes);
        line("scratch_bytes", self.memory.scratch_bytes);
        line("scratch_lower_bound", self.memory.scratch_lower_bound);
        out
    }
}

fn section_name(kind: SectionKind) -> &'static str {
    match kind {
        SectionKind::Prepare => "prepare",
        SectionKind::ForwardBackward => "forward_backward",
        SectionKind::Update => "update",
    }
}

fn role_name(role: &Role) -> String {
    match role {
        Role::Mirror(kind) => format!("mirror:{kind}"),
        other => format!("{other:?}").to_lowercase(),
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "program for {:?} {}", self.target.backend, self.target.name)?;
        for (i, a) in self.arenas.iter().enumerate() {
            writeln!(f, "arena a{i} {} {} {}", role_name(&a.role), a.chunk, a.bytes)?;
        }
        for e in &self.externals {
            writeln!(f, "external {} {} a{}+{}", e.name, e.ty, e.place.arena.0, e.place.offset)?;
        }
        for s in &self.sections {
            writeln!(f, "section {}", section_name(s.kind))?;
            for (l, level) in s.levels.iter().enumerate() {
                writeln!(f, "  level {l}")?;
                for id in level {
                    let d = &self.dispatches[id.index()];
                    let ranges: Vec<String> = d
                        .bindings
                        .iter()
                        .map(|b| {
                            let mark = if b.access == super::BindingAccess::Write { "!" } else { "" };
                            format!("{mark}a{}+{}:{}", b.arena.0, b.offset, b.bytes)
                        })
                        .collect();
                    let geometry = match &d.work {
                        Work::Kernel { kernel, groups, .. } => {
                            let class = self.kernels.get(kernel.index()).map_or("", |k| k.numeric.name());
                            format!(" {class} k{} {groups:?}", kernel.0)
                        }
                        Work::Loop => String::new(),
                    };
                    let labels = d.provenance.join(" ");
                    writeln!(f, "    {} {}{geometry} ({}) # {labels}", id.0, d.instance, ranges.join(" "))?;
                }
            }
        }
        Ok(())
    }
}
