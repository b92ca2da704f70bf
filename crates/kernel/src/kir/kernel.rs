//! The kernel value: declarations, expression arena, blocks of statements.
//!
//! Invariants: ids index the vector of their kind; block 0 is the body; every other block belongs to exactly one
//! statement; the binding number of a buffer is its position.

use super::expr::{ExprId, ExprNode, Uniformity};
use super::types::Type;
use griffinfly_ir::target::HalfFormat;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(super) u32);

        impl $name {
            /// Position in the kernel's list of its kind.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// Index of a storage binding.
    BindingId,
    /// Index of a workgroup array.
    SharedId,
    /// Index of a local variable.
    VarId,
    /// Index of a loop counter.
    CounterId,
    /// Index of a block.
    BlockId,
    /// Index of a matrix.
    MatrixId,
}

/// What a kernel may do with a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Loads only.
    Read,
    /// Loads and stores.
    ReadWrite,
    /// Loads and stores that other workgroups of the dispatch may see: what precedes a [`Stmt::Fence`] is seen by who learned
    /// of it through a counter.
    Exchange,
    /// Counters that all workgroups of the dispatch add to, of `u32`.
    Counters,
}

/// A storage buffer: a run-time sized array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binding {
    /// Name in the text.
    pub name: String,
    /// Element type, scalar or vector.
    pub element: Type,
    /// Allowed use.
    pub access: Access,
}

/// An array in workgroup memory; not initialised.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SharedArray {
    /// Name in the text.
    pub name: String,
    /// Element type, as stores see it.
    pub element: Type,
    /// Whether elements lie there in half precision: then they are written by ordinary stores of exactly representable values and
    /// read as matrices only.
    pub half: Option<HalfFormat>,
    /// Number of elements.
    pub length: u32,
}

impl SharedArray {
    /// Bytes of the array.
    pub fn bytes(&self) -> u64 {
        let full = u64::from(self.element.bytes()) * u64::from(self.length);
        if self.half.is_some() { full / 2 } else { full }
    }
}

/// What the factors of a product consist of, which tells the size of its matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Factors {
    /// f32, in matrices of 8 rows and columns.
    F32,
    /// Half precision, in matrices of [`MATRIX`] rows and columns.
    Half(HalfFormat),
}

impl Factors {
    /// Rows and columns of a matrix.
    #[must_use]
    pub const fn size(self) -> u32 {
        match self {
            Factors::F32 => 8,
            Factors::Half(_) => MATRIX,
        }
    }
}

/// Part of a matrix in a product of such factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixRole {
    /// Left factor.
    Left(Factors),
    /// Right factor.
    Right(Factors),
    /// Sum of products, f32.
    Sum(Factors),
}

/// A matrix, held by the invocations of a subgroup together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Matrix {
    /// Name in the text.
    pub name: String,
    /// What it is for.
    pub role: MatrixRole,
}

/// Rows and columns of a matrix of half precision, and of its sums.
pub const MATRIX: u32 = 16;
/// Invocations that hold a matrix together.
pub const SUBGROUP: u32 = 32;

/// Which neighbours of a matrix lie side by side in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Those of a row.
    Rows,
    /// Those of a column.
    Columns,
}

/// Where a matrix lies in a workgroup array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixPlace {
    /// The array.
    pub array: SharedId,
    /// Its first element.
    pub index: ExprId,
    /// Elements from one row (or column) to the next.
    pub stride: u32,
    /// What lies side by side.
    pub order: Order,
}

/// For whom the generator claims that a condition is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Claim {
    /// For nobody.
    Nobody,
    /// For the invocations of each subgroup: barriers of subgroups and matrices may stand in the branches.
    Subgroup,
    /// For the invocations of the workgroup: all barriers may.
    Workgroup,
}

/// A named register.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variable {
    /// Name in the text.
    pub name: String,
    /// Type of its value.
    pub ty: Type,
    /// Block that declares it.
    pub block: BlockId,
}

/// A `for` counter, always `u32` and never assigned by the body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Counter {
    /// Name in the text.
    pub name: String,
    /// Joined uniformity of the loop's bounds.
    pub uniformity: Uniformity,
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stmt {
    /// Evaluates an expression here.
    Bind(ExprId),
    /// Declares a variable.
    Declare(VarId, ExprId),
    /// Sets a variable.
    Assign(VarId, ExprId),
    /// Writes an element of a storage buffer.
    StoreBinding(BindingId, ExprId, ExprId),
    /// Writes an element of a workgroup array.
    StoreShared(SharedId, ExprId, ExprId),
    /// Writes a lane, by number, of an element of a workgroup array.
    StoreLane(SharedId, ExprId, ExprId, ExprId),
    /// Two-way branch.
    If {
        /// Truth value.
        condition: ExprId,
        /// Who is claimed to take the same side.
        uniform: Claim,
        /// Block run when true.
        accept: BlockId,
        /// Block run when false.
        reject: Option<BlockId>,
    },
    /// Counted loop over `start, start + step, ...` below `end`.
    For {
        /// The counter.
        counter: CounterId,
        /// First value.
        start: ExprId,
        /// Exclusive bound.
        end: ExprId,
        /// Positive increment.
        step: ExprId,
        /// Body.
        body: BlockId,
    },
    /// Endless loop, left by `Break`.
    Loop(BlockId),
    /// Leaves the innermost loop.
    Break,
    /// Waits for the workgroup and makes its workgroup memory visible.
    Barrier,
    /// The same for the subgroup.
    SubgroupBarrier,
    /// Waits for the workgroup and orders its accesses to buffers before and after, for all workgroups.
    Fence,
    /// Adds to an element of a binding of counters at once; the variable gets what it was before.
    AtomicAdd(VarId, BindingId, ExprId, ExprId),
    /// Declares a sum of matrices, zero.
    DeclareMatrix(MatrixId),
    /// Sets a sum to zero.
    ClearMatrix(MatrixId),
    /// Declares a factor, read from a workgroup array of half precision; or reads a sum from one of f32.
    LoadMatrix(MatrixId, MatrixPlace),
    /// Adds the product of two factors to a sum.
    MultiplyAdd {
        /// The sum.
        sum: MatrixId,
        /// Left factor.
        left: MatrixId,
        /// Right factor.
        right: MatrixId,
    },
    /// Adds the second sum to the first.
    AddMatrix(MatrixId, MatrixId),
    /// Writes a sum to a workgroup array.
    StoreMatrix(MatrixId, MatrixPlace),
}

impl Stmt {
    /// Calls `visit` with each expression the statement uses (not for `Bind`, which only places one).
    pub fn for_operands(&self, mut visit: impl FnMut(ExprId)) {
        match *self {
            Self::Bind(_) | Self::Loop(_) | Self::Break => {}
            Self::Barrier | Self::SubgroupBarrier | Self::Fence => {}
            Self::DeclareMatrix(_)
            | Self::ClearMatrix(_)
            | Self::MultiplyAdd { .. }
            | Self::AddMatrix(..) => {}
            Self::LoadMatrix(_, place) | Self::StoreMatrix(_, place) => visit(place.index),
            Self::Declare(_, value) | Self::Assign(_, value) => visit(value),
            Self::StoreBinding(_, index, value)
            | Self::StoreShared(_, index, value)
            | Self::AtomicAdd(_, _, index, value) => {
                visit(index);
                visit(value);
            }
            Self::StoreLane(_, index, lane, value) => [index, lane, value].into_iter().for_each(visit),
            Self::If { condition, .. } => visit(condition),
            Self::For { start, end, step, .. } => [start, end, step].into_iter().for_each(visit),
        }
    }

    /// The expressions the statement uses, in order.
    pub fn operands(&self) -> Vec<ExprId> {
        let mut operands = Vec::new();
        self.for_operands(|operand| operands.push(operand));
        operands
    }
}

/// A sequence of statements with its own scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Block {
    /// In execution order.
    pub statements: Vec<Stmt>,
}

/// One compute entry point.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// Name in listings and errors; the entry point itself is [`crate::print::ENTRY`].
    pub name: String,
    /// Invocations per workgroup and dimension.
    pub workgroup_size: [u32; 3],
    /// Names of the parameter words.
    pub params: Vec<String>,
    /// Storage buffers, by binding number.
    pub bindings: Vec<Binding>,
    /// Workgroup arrays.
    pub shared: Vec<SharedArray>,
    /// Local variables.
    pub vars: Vec<Variable>,
    /// Loop counters.
    pub counters: Vec<Counter>,
    /// Matrices.
    pub matrices: Vec<Matrix>,
    /// Expressions.
    pub exprs: Vec<ExprNode>,
    /// Blocks; the first is the body.
    pub blocks: Vec<Block>,
}

impl Kernel {
    /// The block executed by the entry point.
    pub const BODY: BlockId = BlockId(0);

    /// Looks an expression up.
    pub fn expr(&self, id: ExprId) -> &ExprNode {
        &self.exprs[id.index()]
    }

    /// Looks a block up.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// All blocks with their ids.
    pub fn blocks(&self) -> impl Iterator<Item = (BlockId, &Block)> {
        (0_u32..).map(BlockId).zip(&self.blocks)
    }

    /// Invocations per workgroup.
    pub fn invocations(&self) -> u64 {
        self.workgroup_size.iter().map(|&n| u64::from(n)).product()
    }

    /// Bytes of workgroup memory.
    pub fn workgroup_bytes(&self) -> u64 {
        self.shared.iter().map(SharedArray::bytes).sum()
    }

    /// The format of arrays and factors in half precision, if there are any; a kernel has one at most.
    pub fn half(&self) -> Option<HalfFormat> {
        self.shared.iter().find_map(|array| array.half)
    }

    /// Bytes of the parameter block.
    pub fn parameter_bytes(&self) -> u64 {
        4 * self.params.len() as u64
    }
}
