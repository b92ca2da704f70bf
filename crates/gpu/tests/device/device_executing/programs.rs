//! Programs built by hand.

use griffinfly_compile::program::{
    Arena, ArenaId, Binding, BindingAccess, Dispatch, DispatchId, External, ExternalKind, FORMAT, Kernel,
    KernelId, LoopId, MemoryReport, Place, Program, Role, Section, SectionKind, Work,
};
use griffinfly_ir::target::{Backend, NumericClass, Target};
use griffinfly_ir::types::TensorType;

/// `y[i] = a[i] + factor * b[i]` for `i < n`.
pub(crate) const ADD: &str = "
struct P { n: u32, factor: f32 }
var<immediate> p: P;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < p.n) { y[id.x] = a[id.x] + p.factor * b[id.x]; }
}
";

/// `state = state * scalar + sum(x)`, `out = state`; slow on request, so that steps really are in flight.
pub(crate) const ACCUMULATE: &str = "
struct P { n: u32, rounds: u32 }
var<immediate> p: P;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> scalar: array<f32>;
@group(0) @binding(2) var<storage, read_write> state: array<f32>;
@group(0) @binding(3) var<storage, read_write> result: array<f32>;
@compute @workgroup_size(1)
fn main() {
    var sum = 0.0;
    for (var round = 0u; round < p.rounds; round++) {
        sum = 0.0;
        for (var i = 0u; i < p.n; i++) { sum += x[(i + round) % p.n]; }
    }
    state[0] = state[0] * scalar[0] + sum;
    result[0] = state[0];
}
";

/// `a[i] = 2 * a[i] + 1`, without parameters.
pub(crate) const STEP: &str = "
@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&a)) { a[id.x] = 2.0 * a[id.x] + 1.0; }
}
";

pub(crate) const READ: BindingAccess = BindingAccess::Read;
pub(crate) const WRITE: BindingAccess = BindingAccess::Write;

/// WGSL to SPIR-V without injected checks.
pub(crate) fn spirv(wgsl: &str) -> Vec<u32> {
    use naga::valid::{Capabilities, ValidationFlags, Validator};
    let module =
        naga::front::wgsl::parse_str(wgsl).unwrap_or_else(|error| panic!("{}", error.emit_to_string(wgsl)));
    let info = Validator::new(ValidationFlags::all(), Capabilities::IMMEDIATES)
        .validate(&module)
        .unwrap_or_else(|error| panic!("{}", error.emit_to_string(wgsl)));
    let options = naga::back::spv::Options {
        lang_version: (1, 3),
        flags: naga::back::spv::WriterFlags::empty(),
        zero_initialize_workgroup_memory: naga::back::spv::ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        emit_int_div_checks: false,
        ..naga::back::spv::Options::default()
    };
    let pipeline = naga::back::spv::PipelineOptions {
        shader_stage: naga::ShaderStage::Compute,
        entry_point: "main".into(),
    };
    naga::back::spv::write_vec(&module, &info, &options, Some(&pipeline)).unwrap()
}

/// A program under construction.
pub(crate) struct Builder(pub(crate) Program);

impl Builder {
    pub(crate) fn new(target: &Target) -> Self {
        Builder(Program {
            format: FORMAT,
            generator: "tests".into(),
            target: target.clone(),
            arenas: vec![],
            externals: vec![],
            constants: vec![],
            kernels: vec![],
            loops: vec![],
            dispatches: vec![],
            sections: vec![],
            memory: MemoryReport::default(),
            id_guard: None,
        })
    }

    pub(crate) fn arena(&mut self, role: Role, bytes: u64) -> ArenaId {
        self.0.arenas.push(Arena { role, chunk: 0, bytes: bytes.next_multiple_of(256) });
        ArenaId(self.0.arenas.len() as u32 - 1)
    }

    /// A named f32 vector at the start of an arena; returns its index.
    pub(crate) fn external(
        &mut self,
        name: &str,
        kind: ExternalKind,
        (arena, length): (ArenaId, usize),
    ) -> usize {
        let place = Place { arena, offset: 0 };
        self.0.externals.push(External { name: name.into(), kind, ty: TensorType::f32([length]), place });
        self.0.externals.len() - 1
    }

    pub(crate) fn input(&mut self, name: &str, arena: (ArenaId, usize)) -> usize {
        self.external(name, ExternalKind::Input { id_limit: None, ignore: None }, arena)
    }

    pub(crate) fn kernel(
        &mut self,
        wgsl: &str,
        bindings: &[BindingAccess],
        parameter_words: u32,
    ) -> KernelId {
        let size = if wgsl.contains("workgroup_size(64)") { 64 } else { 1 };
        let place = format!("@group(0) @binding({}) var<uniform>", bindings.len());
        let (wgsl, spirv) = match self.0.target.backend {
            Backend::WebGpu => (wgsl.replace("var<immediate>", &place), Vec::new()),
            Backend::Vulkan | Backend::Host => (wgsl.into(), spirv(wgsl)),
        };
        self.0.kernels.push(Kernel {
            name: format!("test {}", self.0.kernels.len()),
            numeric: NumericClass::F32,
            wgsl,
            spirv,
            bindings: bindings.to_vec(),
            parameter_words,
            workgroup_size: [size, 1, 1],
            workgroup_bytes: 0,
        });
        KernelId(self.0.kernels.len() as u32 - 1)
    }

    /// A dispatch that binds the start of arenas: arena, elements.
    pub(crate) fn dispatch(
        &mut self,
        kernel: KernelId,
        (parameters, groups): (&[u32], u32),
        bindings: &[(ArenaId, usize)],
    ) -> DispatchId {
        let access = &self.0.kernels[kernel.index()].bindings;
        let bindings = bindings.iter().zip(access).map(|((arena, length), access)| Binding {
            arena: *arena,
            offset: 0,
            bytes: *length as u64 * 4,
            access: *access,
        });
        let bindings = bindings.collect();
        let work = Work::Kernel { kernel, parameters: parameters.to_vec(), groups: [groups, 1, 1] };
        self.0.dispatches.push(Dispatch {
            work,
            source: LoopId(0),
            bindings,
            instance: "test".into(),
            provenance: vec![],
        });
        DispatchId(self.0.dispatches.len() as u32 - 1)
    }

    pub(crate) fn section(&mut self, kind: SectionKind, levels: Vec<Vec<DispatchId>>) {
        self.0.sections.push(Section { kind, levels });
    }
}

/// Places of an [`adding`] program.
pub(crate) struct Adding {
    pub(crate) program: Program,
    pub(crate) a: usize,
    pub(crate) b: usize,
    pub(crate) y: usize,
}

/// `y = a + 3 b` over vectors of a length.
pub(crate) fn adding(target: &Target, length: usize) -> Adding {
    let mut builder = Builder::new(target);
    let bytes = length as u64 * 4;
    let (a, b) = (builder.arena(Role::Inputs, bytes), builder.arena(Role::Inputs, bytes));
    let y = builder.arena(Role::Outputs, bytes);
    let kernel = builder.kernel(ADD, &[READ, READ, WRITE], 2);
    let groups = length.div_ceil(64) as u32;
    let words = [length as u32, 3.0_f32.to_bits()];
    let dispatch = builder.dispatch(kernel, (&words, groups), &[(a, length), (b, length), (y, length)]);
    builder.section(SectionKind::ForwardBackward, vec![vec![dispatch]]);
    let (a, b) = (builder.input("a", (a, length)), builder.input("b", (b, length)));
    let y = builder.external("y", ExternalKind::Output, (y, length));
    Adding { program: builder.0, a, b, y }
}

/// Times the sum is made, for slowness. llvmpipe ends an invocation after 65,535 loop iterations in total.
const ROUNDS: u32 = 100;

/// Places of an [`accumulating`] program.
pub(crate) struct Accumulating {
    pub(crate) program: Program,
    pub(crate) state_arena: ArenaId,
    pub(crate) x: usize,
    pub(crate) scalar: usize,
    pub(crate) result: usize,
}

/// `state = state * scalar + sum(x)` in each level of the update section, over `length` elements.
pub(crate) fn accumulating(target: &Target, length: usize, levels: usize) -> Accumulating {
    let mut builder = Builder::new(target);
    let inputs = builder.arena(Role::Inputs, length as u64 * 4);
    let scalars = builder.arena(Role::Scalars, 4);
    let state_arena = builder.arena(Role::State, 4);
    let outputs = builder.arena(Role::Outputs, 4);
    let kernel = builder.kernel(ACCUMULATE, &[READ, READ, WRITE, WRITE], 2);
    let bindings = [(inputs, length), (scalars, 1), (state_arena, 1), (outputs, 1)];
    let dispatch = builder.dispatch(kernel, (&[length as u32, ROUNDS], 1), &bindings);
    builder.section(SectionKind::Update, vec![vec![dispatch]; levels]);
    let x = builder.input("x", (inputs, length));
    let scalar = builder.external("scalar", ExternalKind::StepScalar, (scalars, 1));
    let result = builder.external("result", ExternalKind::Output, (outputs, 1));
    Accumulating { program: builder.0, state_arena, x, scalar, result }
}
