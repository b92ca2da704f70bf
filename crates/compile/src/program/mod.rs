//! Programs: what compilation produces and a device runs, as plain serialisable data.
//!
//! A [`Program`] fixes kernels, memory, order and synchronisation. A *step* runs its sections in order; a section is a list
//! of levels; dispatches of one level are independent, and everything a level wrote is visible to the next level.
//!
//! Memory is a set of [`Arena`]s. Who owns the bytes follows from the [`Role`]: parameters belong to the weights and are
//! shared by programs; mirrors (gradients, moments) and state belong to the session and persist from step to step; inputs,
//! step scalars and outputs exist once per step in flight; constants are written once; scratch holds nothing between steps.

mod text;
mod verify;

use crate::memory::Mode;
use griffinfly_ir::loops::Loop;
use griffinfly_ir::target::{NumericClass, Target};
use griffinfly_ir::types::TensorType;
use serde::{Deserialize, Serialize};

/// Version of the serialised form.
pub const FORMAT: u32 = 1;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $name(pub u32);

        impl $name {
            /// Position in its table.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(/// An arena of a program.
    ArenaId);
id!(/// A kernel of a program.
    KernelId);
id!(/// A loop of a program.
    LoopId);
id!(/// A dispatch of a program.
    DispatchId);

/// A compiled program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Version of the serialised form.
    pub format: u32,
    /// Version of the compiler that made it.
    pub generator: String,
    /// What it was compiled for.
    pub target: Target,
    /// Memory.
    pub arenas: Vec<Arena>,
    /// Everything with a name: inputs, step scalars, parameters, state, outputs.
    pub externals: Vec<External>,
    /// Data written into constant arenas once.
    pub constants: Vec<ConstantData>,
    /// Distinct kernels (empty for the host).
    pub kernels: Vec<Kernel>,
    /// The fused loops (executed by the host, kept for reports elsewhere).
    pub loops: Vec<Loop>,
    /// All dispatches.
    pub dispatches: Vec<Dispatch>,
    /// The step, in order.
    pub sections: Vec<Section>,
    /// What the memory planner did.
    pub memory: MemoryReport,
    /// The flag that ids made on the device raise, where there are such ids.
    #[serde(default)]
    pub id_guard: Option<IdGuard>,
}

/// How a program tells that an id made on the device was out of range.
///
/// The flag is 0 while all is well and else `checks.len() - i` for the first failed check i. Once raised it stays until the
/// host writes 0 into the state, and no update of the program has an effect while it is raised, that of the step which
/// raised it included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdGuard {
    /// The external, a state of one `f32`, that keeps the flag.
    pub state: usize,
    /// The external, an output of one `f32`, that gives it after each step.
    pub output: usize,
    /// What is checked.
    pub checks: Vec<IdCheck>,
}

impl IdGuard {
    /// The check a raised flag tells of; `None` for a flag that is not raised, or that no program of this guard makes.
    #[must_use]
    pub fn failed(&self, flag: f32) -> Option<&IdCheck> {
        let number = (0..self.checks.len()).find(|i| (self.checks.len() - i) as f32 == flag)?;
        self.checks.get(number)
    }
}

/// A use of ids that are made on the device.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IdCheck {
    /// Labels of the operation that uses them.
    pub operation: String,
    /// Ids must be in `0..limit`.
    pub limit: i32,
    /// An id that is allowed besides.
    pub ignore: Option<i32>,
}

/// A contiguous piece of memory: one buffer, or one buffer per step in flight for the ring roles.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Arena {
    /// What it holds.
    pub role: Role,
    /// Chunk number within the role.
    pub chunk: u32,
    /// Size; a multiple of 256.
    pub bytes: u64,
}

/// What an arena holds, and so who owns it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Parameters, in the canonical layout; owned by the weights.
    Parameters,
    /// A tensor per parameter at the parameter's own offset: gradients, moments. Owned by the session; zeroed at creation.
    Mirror(String),
    /// Other state; owned by the session; initialised from the program.
    State,
    /// Inputs, written by the host before each step; one copy per step in flight.
    Inputs,
    /// Step scalars, written by the host before each step; one copy per step in flight.
    Scalars,
    /// Outputs, read by the host after each step.
    Outputs,
    /// Constants, written once.
    Constants,
    /// Temporaries of a step.
    Scratch,
    /// Counters of kernels: zero before the first step, and zero again whenever none of their dispatches runs.
    Counters,
}

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The arena.
    pub arena: ArenaId,
    /// Byte offset in it: a multiple of 4 for step scalars, which lie side by side, and of 256 for everything else.
    pub offset: u64,
}

/// Data of a constant or the initial value of a state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstantData {
    /// Where it goes.
    pub place: Place,
    /// The words.
    pub words: Vec<u32>,
}

/// What a named tensor is to the user.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExternalKind {
    /// Set by the host before each step. With a limit, values are ids checked to be in `0..limit` (or equal to `ignore`).
    Input {
        /// Ids must be below this.
        id_limit: Option<i32>,
        /// An id that is allowed besides.
        ignore: Option<i32>,
    },
    /// A scalar set by the host before each step.
    StepScalar,
    /// A trained tensor.
    Parameter,
    /// A persistent tensor.
    State,
    /// Read by the host after a step.
    Output,
}

/// A named tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct External {
    /// The user's name.
    pub name: String,
    /// What it is.
    pub kind: ExternalKind,
    /// Its type.
    pub ty: TensorType,
    /// Where it lies.
    pub place: Place,
}

/// A kernel: code with a fixed geometry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Kernel {
    /// A readable name: family, tiling, digest of the code.
    pub name: String,
    /// Arithmetic of its products.
    pub numeric: NumericClass,
    /// The code as WGSL, for reports and other back ends.
    pub wgsl: String,
    /// The code as SPIR-V words.
    pub spirv: Vec<u32>,
    /// Storage bindings: group 0, binding i; whether each is written.
    pub bindings: Vec<BindingAccess>,
    /// Words of parameters each dispatch passes.
    pub parameter_words: u32,
    /// Invocations per workgroup.
    pub workgroup_size: [u32; 3],
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
}

/// How a binding is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BindingAccess {
    /// Only read.
    Read,
    /// Written, and perhaps read.
    Write,
}

/// A byte range of an arena bound to a kernel or used by a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Binding {
    /// The arena.
    pub arena: ArenaId,
    /// Byte offset, a multiple of 256.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// Use.
    pub access: BindingAccess,
}

/// What a dispatch executes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// A kernel with its parameters and workgroup counts.
    Kernel {
        /// Which kernel.
        kernel: KernelId,
        /// Parameter words.
        parameters: Vec<u32>,
        /// Workgroups per dimension.
        groups: [u32; 3],
    },
    /// A loop, on the host: bindings are its operands in order, then its results in order.
    Loop,
}

/// One unit of execution.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Dispatch {
    /// What it executes.
    pub work: Work,
    /// The loop it realises (or helps to realise).
    pub source: LoopId,
    /// Memory it touches.
    pub bindings: Vec<Binding>,
    /// The kernel instance in words: family, tiling, split.
    pub instance: String,
    /// Labels of the graph nodes it computes.
    pub provenance: Vec<String>,
}

impl Dispatch {
    /// Whether it only brings bytes into the device's cache for its loop.
    #[must_use]
    pub fn is_prefetch(&self) -> bool {
        self.instance == griffinfly_kernel::families::PREFETCH
    }
}

/// A part of a step that can run alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Which part.
    pub kind: SectionKind,
    /// Levels in order.
    pub levels: Vec<Vec<DispatchId>>,
}

/// The parts of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SectionKind {
    /// What depends on parameters alone: packing, layouts. Runs after weights change.
    Prepare,
    /// The forward pass and the gradients.
    ForwardBackward,
    /// Optimizer and state updates.
    Update,
}

/// What the memory planner did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryReport {
    /// Bytes of all arenas together, one copy of the ring roles.
    pub physical_bytes: u64,
    /// The same without aliasing of temporaries.
    pub logical_bytes: u64,
    /// Bytes of the scratch arenas.
    pub scratch_bytes: u64,
    /// Largest sum of temporaries alive at one moment: no plan with this order of dispatches can be smaller.
    pub scratch_lower_bound: u64,
    /// The temporaries alive at that moment, largest first: label and bytes. At most 8.
    pub peak_holders: Vec<(String, u64)>,
    /// How memory was to be shared.
    #[serde(default)]
    pub mode: Mode,
    /// The plan counts on at most this many dispatches running at the same time; `None` if on as many as data allows.
    #[serde(default)]
    pub width: Option<u32>,
}
