//! Choices that were measured: which problem a loop is, what can be chosen for it, and a table from the one to the other.
//!
//! The key of a problem says all that the speed of its kernels depends on, and nothing else: family, extents, how factors are
//! read, terms and sums, numeric classes. So a choice measured in one model serves all models with that problem. Keys and
//! choices are text and stay what they are from version to version; what changes when kernels change is [`GENERATOR`].
//!
//! Invariants: a table never decides whether a loop can be realised: an entry that names nothing the target runs is passed over.

use super::contract::Neighbours;
use super::{Realisation, attention, contract, realise_among};
use crate::KernelError;
use griffinfly_ir::loops::{Attention, Body, Contract, Loop, LoopKind};
use griffinfly_ir::target::{NumericClass, Target};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Version of the kernels with alternatives. Raised with every change that may alter which of them is fastest; choices measured
/// with another version do not count.
pub const GENERATOR: u32 = 4;

/// Choices by problem: the key of a problem, the text of a choice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Choices(BTreeMap<String, String>);

impl Choices {
    /// None: every loop gets the default of its family.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The choice for a problem.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Sets the choice for a problem.
    pub fn insert(&mut self, key: impl Into<String>, choice: impl Into<String>) {
        self.0.insert(key.into(), choice.into());
    }

    /// All entries, ordered by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, choice)| (key.as_str(), choice.as_str()))
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The key of a loop whose products may use these numeric classes; `None` where its family has nothing to choose.
#[must_use]
pub fn key(l: &Loop, classes: &[NumericClass]) -> Option<String> {
    match &l.kind {
        LoopKind::Contract(c) => Some(contraction(c, classes)),
        LoopKind::Attention(a) => Some(attention_key(a, classes)),
        _ => None,
    }
}

/// Up to `most` choices for a loop, given what runs at the same time, as text: that of its family first, then the others, those expected to be fast before others.
///
/// # Errors
/// A loop that its family refuses.
pub fn candidates(
    l: &Loop,
    target: &Target,
    (classes, neighbours): (&[NumericClass], Neighbours),
    most: usize,
) -> Result<Vec<String>, KernelError> {
    match &l.kind {
        LoopKind::Contract(c) => Ok(contract::candidates(c, target, (classes, neighbours), most)
            .iter()
            .map(ToString::to_string)
            .collect()),
        LoopKind::Attention(a) => {
            Ok(attention::ranked(a, target, classes, most)?.iter().map(ToString::to_string).collect())
        }
        _ => Ok(Vec::new()),
    }
}

/// Realises a loop by the choice that a text names.
///
/// # Errors
/// A text that names no choice of the target, and what the family refuses.
pub fn realise_as(
    l: &Loop,
    target: &Target,
    classes: &[NumericClass],
    text: &str,
) -> Result<Realisation, KernelError> {
    let unknown =
        |family| super::emit::unsupported(family, format!("{text} does not run on {}", target.name));
    match &l.kind {
        LoopKind::Contract(_) => {
            let choice = contract::parse(text, target, classes).ok_or_else(|| unknown("contract"))?;
            contract::realise_with(l, target, &choice)
        }
        LoopKind::Attention(_) => {
            let named = attention::parse(l, text, classes);
            attention::realise_with(l, target, named.ok_or_else(|| unknown("attention"))?)
        }
        _ => Err(unknown("other")),
    }
}

/// What a table chooses for a loop: its own entry, else that for f32 products alone if its family would take those.
#[must_use]
pub fn entry<'c>(
    l: &Loop,
    target: &Target,
    classes: &[NumericClass],
    choices: &'c Choices,
) -> Option<&'c str> {
    if choices.is_empty() {
        return None;
    }
    let own = choices.get(&key(l, classes)?).filter(|text| !is_emulated(l, target, classes, text));
    own.or_else(|| {
        let unrounded = [NumericClass::F32];
        if classes == unrounded {
            return None;
        }
        let class = match &l.kind {
            LoopKind::Contract(c) => contract::choose_among(c, target, classes).tiling.class(),
            LoopKind::Attention(a) => attention::choose_among(a, target, classes).ok()?.class(a.variant),
            _ => return None,
        };
        if class == NumericClass::F32 { choices.get(&key(l, &unrounded)?) } else { None }
    })
}

/// Whether hardware would have to compute the choice that a text names by ordinary arithmetic, since it lacks the matrix units that
/// the choice was measured on, or the API does not offer them.
fn is_emulated(l: &Loop, target: &Target, classes: &[NumericClass], text: &str) -> bool {
    let is_emulated = match &l.kind {
        LoopKind::Contract(_) => {
            contract::parse(text, target, classes).is_some_and(|choice| choice.tiling.is_emulated(target))
        }
        LoopKind::Attention(a) => {
            let class = attention::parse(l, text, classes).map(|geometry| geometry.class(a.variant));
            let format = class.and_then(NumericClass::format);
            format.is_some_and(|format| !target.matrix_formats.contains(&format))
        }
        _ => false,
    };
    target.is_hardware && is_emulated
}

/// Realises a loop by its entry in a table, or where that names nothing the target runs, as its family suggests.
///
/// # Errors
/// As [`realise_among`].
pub fn realise_by(
    l: &Loop,
    target: &Target,
    classes: &[NumericClass],
    choices: &Choices,
) -> Result<Realisation, KernelError> {
    match entry(l, target, classes, choices).map(|text| realise_as(l, target, classes, text)) {
        Some(Ok(realisation)) => Ok(realisation),
        _ => realise_among(l, target, classes),
    }
}

fn contraction(c: &Contract, classes: &[NumericClass]) -> String {
    let (batch, m, n) = (dims(&c.batch), dims(&c.m), dims(&c.n));
    let mut out = format!("contract b{batch} m{m} n{n}");
    let mut before = None;
    for (k, a, b, sum) in c.terms() {
        let left = if before == Some((a, k)) {
            "&".to_owned()
        } else {
            read(a, c.batch.len() + c.m.len(), c.batch.len() + c.m.len() + k.len())
        };
        let right = read(b, c.batch.len() + c.n.len(), c.batch.len() + c.n.len() + k.len());
        let besides = if before.is_none() && c.has_row_sum() { "+rows" } else { "" };
        before = Some((a, k));
        // Writing to a string does not fail.
        let _ = write!(out, " {left}{besides}*{right} k{}", dims(k));
        if sum > 0 {
            let _ = write!(out, " s{sum}");
        }
    }
    let _ = write!(out, " e{}", c.epilogue.loads.len());
    classes.iter().for_each(|class| {
        let _ = write!(out, " {}", class.name());
    });
    out
}

fn attention_key(a: &Attention, classes: &[NumericClass]) -> String {
    let s = a.shape;
    let mut out = format!(
        "attention {:?} b{} h{}/{} {}x{} w{}",
        a.variant, s.batch, s.heads, s.kv_heads, s.queries, s.keys, s.width
    );
    // Writing to a string does not fail.
    if a.mask.causal {
        out.push_str(" causal");
    }
    if let Some(window) = a.mask.window {
        let _ = write!(out, " window{window}");
    }
    if a.bias.is_some() {
        out.push_str(" bias");
    }
    let rounded = attention::rounded(a.variant);
    if classes.contains(&rounded) {
        let _ = write!(out, " {}", rounded.name());
    }
    out
}

fn dims(extents: &[usize]) -> String {
    let all: Vec<String> = extents.iter().map(ToString::to_string).collect();
    if all.is_empty() { "1".into() } else { all.join(".") }
}

/// How a factor is read: `r` where neighbouring rows lie side by side, `k` where products do, `s` otherwise; `p` for a load that is
/// not always inside its tensor, `d` for one at a place that comes from data; the number of loads.
fn read(body: &Body, rows: usize, axes: usize) -> String {
    let side_by_side = |axis: Option<usize>| {
        let last = body.loads.iter().filter_map(|load| load.access.coords.last());
        axis.is_some_and(|axis| last.into_iter().any(|c| c.coefficient(axis) == Some(1)))
    };
    let mut out = match (side_by_side(axes.checked_sub(1)), side_by_side(rows.checked_sub(1))) {
        (true, _) => "k",
        (_, true) => "r",
        _ => "s",
    }
    .to_owned();
    if body.loads.iter().any(|load| !load.access.valid.is_empty()) {
        out.push('p');
    }
    if body.loads.iter().any(|load| load.access.dynamic.is_some()) {
        out.push('d');
    }
    if body.loads.len() != 1 {
        // Writing to a string does not fail.
        let _ = write!(out, "{}", body.loads.len());
    }
    out
}

#[cfg(test)]
mod tests;
