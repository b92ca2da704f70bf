//! Expression nodes: immutable values in the kernel's arena.
//!
//! Invariants: operands have lower ids than their users; `block` is the block whose `Bind` evaluates the node, `None`
//! for values that cost nothing and are in scope everywhere (literals, parameters, built-in ids).

use super::kernel::{BindingId, BlockId, CounterId, SharedId, VarId};
use super::types::{Scalar, Type};
use crate::functions::Function;

/// Index of an expression in its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExprId(pub(super) u32);

impl ExprId {
    /// The id at a position.
    pub(crate) const fn new(index: usize) -> Self {
        Self(index as u32)
    }

    /// Position in [`super::Kernel::exprs`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A scalar constant; floats by their bits, so that NaN, infinities and -0.0 compare and survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Literal {
    /// Float bits.
    F32(u32),
    /// Signed integer.
    I32(i32),
    /// Unsigned integer.
    U32(u32),
    /// Truth value.
    Bool(bool),
}

impl Literal {
    /// The constant's kind.
    pub const fn scalar(self) -> Scalar {
        match self {
            Self::F32(_) => Scalar::F32,
            Self::I32(_) => Scalar::I32,
            Self::U32(_) => Scalar::U32,
            Self::Bool(_) => Scalar::Bool,
        }
    }

    /// The zero (or `false`) of a kind.
    pub const fn zero(scalar: Scalar) -> Self {
        match scalar {
            Scalar::F32 => Self::F32(0),
            Scalar::I32 => Self::I32(0),
            Scalar::U32 => Self::U32(0),
            Scalar::Bool => Self::Bool(false),
        }
    }
}

/// One of the three dimensions of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axis {
    /// First, fastest.
    X,
    /// Second.
    Y,
    /// Third.
    Z,
}

/// Ids given by the dispatch; all `u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Builtin {
    /// Invocation in the dispatch.
    GlobalId(Axis),
    /// Invocation in its workgroup.
    LocalId(Axis),
    /// Flattened invocation in its workgroup.
    LocalIndex,
    /// Workgroup in the dispatch.
    WorkgroupId(Axis),
    /// Workgroups of the dispatch.
    WorkgroupCount(Axis),
}

/// Operations on one value, lane by lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-x`, floats and signed integers.
    Neg,
    /// `!x`, truth values.
    Not,
    /// `~x`, integers.
    BitNot,
    /// Magnitude, floats and signed integers.
    Abs,
    /// Towards minus infinity.
    Floor,
    /// Towards plus infinity.
    Ceil,
    /// To nearest, ties to even.
    Round,
    /// Towards zero.
    Trunc,
    /// The driver's `2^x`.
    Exp2,
}

/// Operations on two values, lane by lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient; integers truncate, the divisor must not be zero.
    Div,
    /// Remainder with the sign of the dividend.
    Rem,
    /// The driver's minimum: what it does with NaN is open.
    Min,
    /// The driver's maximum: what it does with NaN is open.
    Max,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// And, of bits or truth values (both sides are evaluated).
    And,
    /// Or, of bits or truth values (both sides are evaluated).
    Or,
    /// Exclusive or of bits.
    Xor,
    /// Shift left by less than 32.
    Shl,
    /// Shift right by less than 32, arithmetic for signed.
    Shr,
}

impl BinaryOp {
    /// Whether the result is a truth value.
    pub const fn is_comparison(self) -> bool {
        matches!(self, Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge)
    }
}

/// What a node computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ExprKind {
    /// Constant.
    Literal(Literal),
    /// Word of the parameter block, as `u32`.
    Param(u32),
    /// Dispatch id.
    Builtin(Builtin),
    /// Counter of an enclosing `for`.
    Counter(CounterId),
    /// Element of a storage buffer.
    LoadBinding(BindingId, ExprId),
    /// Element of a workgroup array.
    LoadShared(SharedId, ExprId),
    /// Current value of a variable.
    LoadVar(VarId),
    /// Unary operation.
    Unary(UnaryOp, ExprId),
    /// Binary operation.
    Binary(BinaryOp, ExprId, ExprId),
    /// `a * b + c`, fused where the driver has it.
    Fma(ExprId, ExprId, ExprId),
    /// `condition ? yes : no`, both evaluated.
    Select {
        /// Truth value, or one per lane.
        condition: ExprId,
        /// Value where true.
        yes: ExprId,
        /// Value where false.
        no: ExprId,
    },
    /// Conversion of the value to the node's type.
    Cast(ExprId),
    /// Reinterpretation of the bits as the node's type.
    Bitcast(ExprId),
    /// Vector of scalars; one operand means all lanes are it.
    Construct(Vec<ExprId>),
    /// One lane.
    Component(ExprId, u8),
    /// Several lanes.
    Swizzle(ExprId, Vec<u8>),
    /// One of our own scalar functions.
    Call(Function, Vec<ExprId>),
}

impl ExprKind {
    /// Calls `visit` with each operand in order.
    pub fn for_operands(&self, mut visit: impl FnMut(ExprId)) {
        match self {
            Self::Literal(_) | Self::Param(_) | Self::Builtin(_) | Self::Counter(_) | Self::LoadVar(_) => {}
            Self::LoadBinding(_, a)
            | Self::LoadShared(_, a)
            | Self::Unary(_, a)
            | Self::Cast(a)
            | Self::Bitcast(a)
            | Self::Component(a, _)
            | Self::Swizzle(a, _) => visit(*a),
            Self::Binary(_, a, b) => [*a, *b].into_iter().for_each(visit),
            Self::Fma(a, b, c) => [*a, *b, *c].into_iter().for_each(visit),
            Self::Select { condition, yes, no } => [*condition, *yes, *no].into_iter().for_each(visit),
            Self::Construct(list) | Self::Call(_, list) => list.iter().copied().for_each(visit),
        }
    }

    /// The operands in order.
    pub fn operands(&self) -> Vec<ExprId> {
        let mut operands = Vec::new();
        self.for_operands(|operand| operands.push(operand));
        operands
    }

    /// Whether the value costs nothing to write again at each use.
    pub const fn is_trivial(&self) -> bool {
        matches!(self, Self::Literal(_) | Self::Param(_) | Self::Builtin(_) | Self::Counter(_))
    }
}

/// How a value varies over the invocations of one workgroup; later variants absorb earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Uniformity {
    /// Certainly the same in all invocations.
    Uniform,
    /// Read from a variable or from memory that the kernel writes: the generator must know.
    Unknown,
    /// Depends on the invocation.
    Varying,
}

/// One expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExprNode {
    /// What it computes.
    pub kind: ExprKind,
    /// Type of its value.
    pub ty: Type,
    /// How it varies.
    pub uniformity: Uniformity,
    /// Block that evaluates it, or `None` when it is in scope everywhere.
    pub block: Option<BlockId>,
    /// Name asked for by the generator; a named value is always printed as a `let`.
    pub name: Option<String>,
}
