//! Kernel IR to WGSL text: deterministic and readable, so that kernels can be compared as golden texts.
//!
//! One module per kernel, with entry point [`ENTRY`]. Bindings are in group 0 at their position. The parameter words
//! become the struct `params`, in immediate data (push constants) or in a uniform buffer. Values are printed as `let`
//! when used more than once (or named, or reading memory), and inside their only user otherwise. Of our scalar functions only the used ones appear.
//!
//! The text declares nothing optional, save kernels with matrices: those enable cooperative matrices, and half precision if they have it. It needs
//! naga's `IMMEDIATES` capability for [`ParameterBlock::Immediate`].

mod expr;
mod names;
mod place;
mod stmt;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::functions::Function;
use crate::kir::{Access, Builtin, ExprKind, Kernel};
use griffinfly_ir::target::HalfFormat;
use names::Names;
use place::{Place, Places};

/// Name of the entry point of every printed module.
pub const ENTRY: &str = "main";

/// First line of a module whose `f16` stands for bf16, for which the language has no name; [`crate::spirv`] puts it in.
pub const BF16: &str = "// f16 is bf16";

/// The line that a module with matrices has.
pub const MATRICES: &str = "enable wgpu_cooperative_matrix;";

/// Element of an array in half precision.
const HALF: &str = "vec4<f16>";

/// Where a kernel finds its parameter words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ParameterBlock {
    /// Immediate data: Vulkan push constants.
    #[default]
    Immediate,
    /// A uniform buffer in group 0, for targets without immediate data.
    Uniform {
        /// Its binding number; must not be one of the kernel's.
        binding: u32,
    },
}

/// What the printed text depends on besides the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PrintOptions {
    /// Home of the parameter words.
    pub parameters: ParameterBlock,
}

/// Prints a kernel as one WGSL module.
pub fn wgsl(kernel: &Kernel, options: &PrintOptions) -> String {
    let places = Places::of(kernel);
    let names = Names::of(kernel, &places);
    let mut printer = Printer { kernel, places: &places, names: &names, out: String::new() };
    printer.declarations(options);
    printer.entry();
    match options.parameters {
        ParameterBlock::Immediate => printer.out,
        ParameterBlock::Uniform { .. } => without_open_constants(printer.out),
    }
}

/// The text with floats that are not finite made by a function: WGSL proper allows no constant expression to be one (section
/// 15.7.2), and a call is none. What goes to naga alone keeps its constants.
fn without_open_constants(text: String) -> String {
    const CAST: &str = "bitcast<f32>(0x";
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let mut has_any = false;
    while let Some(at) = rest.find(CAST) {
        let digits = rest.get(at + CAST.len()..at + CAST.len() + 8).unwrap_or("");
        let is_open = u32::from_str_radix(digits, 16).is_ok_and(|bits| !f32::from_bits(bits).is_finite());
        has_any |= is_open;
        out.push_str(&rest[..at]);
        out.push_str(if is_open { "gf_float(0x" } else { CAST });
        rest = &rest[at + CAST.len()..];
    }
    out.push_str(rest);
    if has_any {
        out.push_str("\nfn gf_float(bits: u32) -> f32 {\n    return bitcast<f32>(bits);\n}\n");
    }
    out
}

struct Printer<'a> {
    kernel: &'a Kernel,
    places: &'a Places,
    names: &'a Names,
    out: String,
}

impl Printer<'_> {
    fn line(&mut self, depth: usize, text: std::fmt::Arguments<'_>) {
        for _ in 0..depth {
            self.out.push_str("    ");
        }
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(text);
        self.out.push('\n');
    }

    fn declarations(&mut self, options: &PrintOptions) {
        self.enables();
        self.parameters(options);
        for (index, binding) in self.kernel.bindings.iter().enumerate() {
            let (access, coherent) = match binding.access {
                Access::Read => ("read", ""),
                Access::ReadWrite | Access::Counters => ("read_write", ""),
                Access::Exchange => ("read_write", "@coherent "),
            };
            let (name, element) = (&self.names.bindings[index], binding.element);
            let place = format_args!("@group(0) @binding({index}) {coherent}var<storage, {access}> {name}");
            if binding.access == Access::Counters {
                self.line(0, format_args!("{place}: array<atomic<{element}>>;"));
            } else {
                self.line(0, format_args!("{place}: array<{element}>;"));
            }
        }
        for (index, array) in self.kernel.shared.iter().enumerate() {
            let (name, length) = (&self.names.shared[index], array.length);
            let element = if array.half.is_some() { HALF.to_owned() } else { array.element.to_string() };
            self.line(0, format_args!("var<workgroup> {name}: array<{element}, {length}>;"));
        }
        for text in Function::declarations(self.called()) {
            self.out.push('\n');
            self.out.push_str(text);
        }
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn enables(&mut self) {
        let half = self.kernel.half();
        if half == Some(HalfFormat::Bf16) {
            self.line(0, format_args!("{BF16}"));
        }
        if half.is_some() {
            self.line(0, format_args!("enable f16;"));
        }
        if !self.kernel.matrices.is_empty() {
            self.line(0, format_args!("{MATRICES}"));
        }
    }

    fn parameters(&mut self, options: &PrintOptions) {
        if self.kernel.params.is_empty() {
            return;
        }
        self.line(0, format_args!("struct Params {{"));
        for name in &self.names.params {
            self.line(1, format_args!("{name}: u32,"));
        }
        self.line(0, format_args!("}}"));
        match options.parameters {
            ParameterBlock::Immediate => self.line(0, format_args!("var<immediate> params: Params;")),
            ParameterBlock::Uniform { binding } => {
                self.line(0, format_args!("@group(0) @binding({binding}) var<uniform> params: Params;"));
            }
        }
    }

    fn live(&self) -> impl Iterator<Item = &ExprKind> {
        let exprs = self.kernel.exprs.iter().zip(&self.places.places);
        exprs.filter(|(_, place)| **place != Place::Dead).map(|(node, _)| &node.kind)
    }

    fn called(&self) -> BTreeSet<Function> {
        self.live().filter_map(|kind| if let ExprKind::Call(f, _) = kind { Some(*f) } else { None }).collect()
    }

    fn entry(&mut self) {
        let builtins: BTreeSet<_> = self
            .live()
            .filter_map(|kind| if let ExprKind::Builtin(id) = kind { Some(argument(*id)) } else { None })
            .collect();
        let [x, y, z] = self.kernel.workgroup_size;
        self.line(0, format_args!("@compute @workgroup_size({x}, {y}, {z})"));
        self.line(0, format_args!("fn {ENTRY}("));
        for (name, builtin, ty) in builtins {
            self.line(1, format_args!("@builtin({builtin}) {name}: {ty},"));
        }
        self.line(0, format_args!(") {{"));
        self.block(Kernel::BODY, 1);
        self.line(0, format_args!("}}"));
    }
}

/// Argument name, WGSL built-in and type that provide a dispatch id.
fn argument(builtin: Builtin) -> (&'static str, &'static str, &'static str) {
    match builtin {
        Builtin::GlobalId(_) => ("global_id", "global_invocation_id", "vec3<u32>"),
        Builtin::LocalId(_) => ("local_id", "local_invocation_id", "vec3<u32>"),
        Builtin::LocalIndex => ("local_index", "local_invocation_index", "u32"),
        Builtin::WorkgroupId(_) => ("workgroup_id", "workgroup_id", "vec3<u32>"),
        Builtin::WorkgroupCount(_) => ("workgroup_count", "num_workgroups", "vec3<u32>"),
    }
}
