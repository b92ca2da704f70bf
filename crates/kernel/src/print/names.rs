//! Unique identifiers for everything a kernel declares.
//!
//! A name is kept when it is a legal, free identifier; otherwise it is cleaned and numbered. Unnamed values are `v0`,
//! `v1`, ... in the order of their `let`s, which is the order of their ids.

use std::collections::BTreeSet;

use super::place::{Place, Places};
use crate::kir::ExprKind;
use crate::kir::{Kernel, Literal};

/// Words the printed text itself uses, besides the reserved words of the language.
const TAKEN: &str = "main params Params global_id local_id local_index workgroup_id workgroup_count \
    f16 f32 i32 u32 coop_mat16x16 coopLoad coopLoadT coopStore coopStoreT coopMultiplyAdd vec2 vec4 array bool min max fma select bitcast abs floor ceil round trunc workgroupBarrier subgroupBarrier";

/// Printed names, by index; `exprs` is filled for `let`s only.
pub(super) struct Names {
    pub(super) params: Vec<String>,
    pub(super) bindings: Vec<String>,
    pub(super) shared: Vec<String>,
    pub(super) vars: Vec<String>,
    pub(super) counters: Vec<String>,
    pub(super) matrices: Vec<String>,
    pub(super) exprs: Vec<Option<String>>,
}

impl Names {
    pub(super) fn of(kernel: &Kernel, places: &Places) -> Self {
        let mut scope = Scope::new();
        let bindings = kernel.bindings.iter().map(|binding| scope.claim(&binding.name)).collect();
        let shared = kernel.shared.iter().map(|array| scope.claim(&array.name)).collect();
        let vars = kernel.vars.iter().map(|var| scope.claim(&var.name)).collect();
        let counters = kernel.counters.iter().map(|counter| scope.claim(&counter.name)).collect();
        let matrices = kernel.matrices.iter().map(|matrix| scope.claim(&matrix.name)).collect();
        let mut unnamed = 0_u32;
        let exprs = kernel.exprs.iter().zip(&places.places).map(|(node, place)| {
            (*place == Place::Let).then(|| match &node.name {
                Some(name) => scope.claim(name),
                None => {
                    unnamed += 1;
                    scope.claim(&format!("v{}", unnamed - 1))
                }
            })
        });
        let exprs = exprs.collect();
        let mut members = Scope::new();
        let params = kernel.params.iter().map(|name| members.claim(name)).collect();
        Self { params, bindings, shared, vars, counters, matrices, exprs }
    }
}

struct Scope {
    used: BTreeSet<String>,
}

impl Scope {
    fn new() -> Self {
        Self { used: TAKEN.split_whitespace().map(str::to_owned).collect() }
    }

    fn claim(&mut self, wanted: &str) -> String {
        let clean = clean(wanted);
        let mut name = clean.clone();
        let mut number = 2_u32;
        while naga::keywords::wgsl::RESERVED.contains(&name.as_str()) || !self.used.insert(name.clone()) {
            name = format!("{clean}_{number}");
            number += 1;
        }
        name
    }
}

/// Lower risk spelling: letters, digits and single underscores, starting with a letter; never the `gf_` of functions.
fn clean(wanted: &str) -> String {
    let mut name = String::new();
    for c in wanted.chars() {
        let c = if c.is_ascii_alphanumeric() { c } else { '_' };
        if !(c == '_' && (name.is_empty() || name.ends_with('_'))) {
            name.push(c);
        }
    }
    let name = name.trim_end_matches('_');
    match name.as_bytes().first() {
        None => "value".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("n{name}"),
        Some(_) if name.starts_with("gf_") => format!("n_{name}"),
        Some(_) => name.to_owned(),
    }
}

/// WGSL text of a constant.
pub(super) fn literal(literal: Literal) -> String {
    match literal {
        Literal::F32(bits) => {
            let value = f32::from_bits(bits);
            let plain = value.is_finite() && bits != 0x8000_0000;
            if value.abs() == f32::MAX {
                // Its shortest decimal form is above it, which browsers refuse.
                format!("{:?}f", f64::from(value))
            } else if plain {
                format!("{value:?}f")
            } else {
                format!("bitcast<f32>({bits:#010x}u)")
            }
        }
        // The positive part of the smallest integer is not a literal.
        Literal::I32(i32::MIN) => "bitcast<i32>(0x80000000u)".to_owned(),
        Literal::I32(value) => format!("{value}i"),
        Literal::U32(value) if value > 0xffff && value & 0xfff != 0 && !value.is_multiple_of(10) => {
            format!("{value:#x}u")
        }
        Literal::U32(value) => format!("{value}u"),
        Literal::Bool(value) => value.to_string(),
    }
}

/// Operators with a sign or operator in front need parentheses as operands.
pub(super) fn is_compound(kind: &ExprKind) -> bool {
    match kind {
        ExprKind::Unary(op, _) => !super::expr::is_call(*op),
        ExprKind::Binary(op, ..) => !super::expr::is_binary_call(*op),
        ExprKind::Literal(Literal::I32(value)) => *value < 0,
        ExprKind::Literal(Literal::F32(bits)) => bits >> 31 == 1 && f32::from_bits(*bits) < 0.0,
        _ => false,
    }
}
