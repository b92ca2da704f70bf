//! The kernels of a program: distinct, checked against the target's limits, translated for its API.
//!
//! Input: instances of dispatches, in any order; output: the table of kernels of a program, and the numbers its dispatches have.

use super::usage;
use crate::error::CompileError;
use crate::parallel;
use crate::program::{BindingAccess, Kernel, KernelId, Program};
use griffinfly_ir::target::{Backend, Target};
use griffinfly_kernel::families::{self, Instance};
use griffinfly_kernel::kir;
use griffinfly_kernel::print::{self, PrintOptions};
use griffinfly_kernel::spirv;
use std::collections::HashMap;

/// Distinct kernels, by their code.
#[derive(Default)]
pub struct Kernels {
    all: Vec<Kernel>,
    /// What each was printed from, for targets whose kernels depend on where operands and results lie.
    sources: Vec<kir::Kernel>,
    by_code: HashMap<String, KernelId>,
}

impl Kernels {
    /// The kernel of an instance, which is new or has the code of an earlier one.
    ///
    /// # Errors
    /// A kernel that breaks a limit of the target.
    pub fn add(&mut self, instance: &Instance, target: &Target) -> Result<KernelId, CompileError> {
        self.add_printed((instance, &print::wgsl(&instance.kernel, &PrintOptions::default())), target)
    }

    /// As [`Kernels::add`], given the text of the kernel.
    pub(super) fn add_printed(
        &mut self,
        (instance, code): (&Instance, &str),
        target: &Target,
    ) -> Result<KernelId, CompileError> {
        let k = &instance.kernel;
        if let Some(id) = self.by_code.get(code) {
            return Ok(*id);
        }
        let id = KernelId(self.all.len() as u32);
        let access = |b: &kir::Binding| match b.access {
            kir::Access::Read => BindingAccess::Read,
            _ => BindingAccess::Write,
        };
        griffinfly_kernel::verify::check(k, &families::limits(target)).map_err(|source| {
            CompileError::Kernel { archetype: instance.name.clone(), label: k.name.clone(), source }
        })?;
        self.all.push(Kernel {
            name: instance.name.clone(),
            numeric: instance.numeric,
            bindings: k.bindings.iter().map(access).collect(),
            parameter_words: k.parameter_bytes() as u32 / 4,
            workgroup_size: k.workgroup_size,
            workgroup_bytes: k.workgroup_bytes() as u32,
            spirv: Vec::new(),
            wgsl: code.to_owned(),
        });
        self.by_code.insert(code.to_owned(), id);
        if target.backend == Backend::WebGpu {
            self.sources.push(k.clone());
        }
        Ok(id)
    }

    /// Gives them to a program whose memory is placed: as SPIR-V, or in the variants its dispatches need.
    ///
    /// # Errors
    /// A kernel that does not translate; for targets that track the use of whole buffers, a dispatch that writes what it binds
    /// elsewhere too.
    pub fn settle(self, program: &mut Program) -> Result<(), CompileError> {
        self.translated(program.target.backend)?.give(program)
    }

    /// Translates them where that does not depend on where memory lies.
    pub(super) fn translated(mut self, backend: Backend) -> Result<Self, CompileError> {
        if backend != Backend::WebGpu {
            self.all = Self { all: self.all, ..Self::default() }.compile()?;
        }
        Ok(self)
    }

    /// As [`Kernels::settle`], of translated ones.
    pub(super) fn give(self, program: &mut Program) -> Result<(), CompileError> {
        if program.target.backend == Backend::WebGpu {
            let kernels: Vec<_> = self.all.into_iter().zip(self.sources).collect();
            return usage::run(program, &kernels);
        }
        program.kernels = self.all;
        Ok(())
    }

    /// How a kernel uses its bindings.
    ///
    /// # Panics
    /// With the number of a kernel that was not added here.
    #[must_use]
    pub fn accesses(&self, kernel: KernelId) -> &[BindingAccess] {
        &self.all[kernel.index()].bindings
    }

    /// Translates all kernels to SPIR-V on several threads.
    pub(super) fn compile(mut self) -> Result<Vec<Kernel>, CompileError> {
        let spirv = parallel::all(&self.all, translate)?;
        self.all.iter_mut().zip(spirv).for_each(|(kernel, spirv)| kernel.spirv = spirv);
        Ok(self.all)
    }
}

fn translate(kernel: &Kernel) -> Result<Vec<u32>, CompileError> {
    spirv::compile(&kernel.wgsl, print::ENTRY).map_err(|source| CompileError::Kernel {
        archetype: "translation".into(),
        label: kernel.name.clone(),
        source,
    })
}
