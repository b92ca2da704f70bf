//! Handles: what generators hold. All are `Copy` and know their builder, so they read like values.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

use super::build::Builder;
use super::expr::{BinaryOp, ExprId, ExprKind, Literal, UnaryOp};
use super::kernel::{BindingId, SharedId, Stmt, VarId};
use super::operand::Operand;
use super::types::{Lanes, Type};

/// An immutable value of the kernel under construction.
#[derive(Clone, Copy)]
pub struct Expr<'b> {
    pub(super) builder: &'b Builder,
    pub(super) id: ExprId,
    pub(super) ty: Type,
}

impl std::fmt::Debug for Expr<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Expr({}: {})", self.id.index(), self.ty)
    }
}

impl<'b> Expr<'b> {
    /// Type of the value.
    pub fn ty(self) -> Type {
        self.ty
    }

    /// Arena index.
    pub fn id(self) -> ExprId {
        self.id
    }

    /// The builder, for code that is handed values only.
    pub fn builder(self) -> &'b Builder {
        self.builder
    }

    /// The constant, if this is a scalar one.
    pub fn literal(self) -> Option<Literal> {
        match self.builder.state.borrow().kernel.exprs.get(self.id.index())?.kind {
            ExprKind::Literal(literal) => Some(literal),
            _ => None,
        }
    }

    /// Whether every lane is a constant.
    pub(super) fn is_constant(self) -> bool {
        let exprs = &self.builder.state.borrow().kernel.exprs;
        let is_literal =
            |id: &ExprId| exprs.get(id.index()).is_some_and(|e| matches!(e.kind, ExprKind::Literal(_)));
        match exprs.get(self.id.index()).map(|e| &e.kind) {
            Some(ExprKind::Construct(parts)) => parts.iter().all(is_literal),
            _ => is_literal(&self.id),
        }
    }

    /// Names the value in the text (ignored for constants, parameters, ids and counters). Returns it.
    pub fn named(self, name: impl Into<String>) -> Self {
        if let Some(node) = self.builder.state.borrow_mut().kernel.exprs.get_mut(self.id.index())
            && !node.kind.is_trivial()
        {
            node.name = Some(name.into());
        }
        self
    }
}

macro_rules! binary_operators {
    ($($trait:ident $method:ident $op:ident),* $(,)?) => {$(
        impl<'b, R: Operand<'b>> $trait<R> for Expr<'b> {
            type Output = Self;

            #[track_caller]
            fn $method(self, right: R) -> Self {
                self.builder.binary(BinaryOp::$op, self, right)
            }
        }
    )*};
}

binary_operators! {
    Add add Add, Sub sub Sub, Mul mul Mul, Div div Div, Rem rem Rem,
    BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor,
}

macro_rules! host_left_operators {
    ($($host:ty: $($trait:ident $method:ident $op:ident),*;)*) => {$($(
        impl<'b> $trait<Expr<'b>> for $host {
            type Output = Expr<'b>;

            #[track_caller]
            fn $method(self, right: Expr<'b>) -> Expr<'b> {
                right.builder.binary(BinaryOp::$op, self, right)
            }
        }
    )*)*};
}

host_left_operators! {
    f32: Add add Add, Sub sub Sub, Mul mul Mul, Div div Div;
    u32: Add add Add, Sub sub Sub, Mul mul Mul, Div div Div;
}

macro_rules! shifts {
    ($($trait:ident $method:ident $op:ident),*) => {$(
        /// The amount is a `u32` (or a constant) below 32.
        impl<'b, R: Operand<'b>> $trait<R> for Expr<'b> {
            type Output = Self;

            #[track_caller]
            fn $method(self, right: R) -> Self {
                let amount = right.expr(self.builder, Some(Type::U32)).splat(self.ty.lanes);
                self.builder.binary(BinaryOp::$op, self, amount)
            }
        }
    )*};
}

shifts! { Shl shl Shl, Shr shr Shr }

impl Neg for Expr<'_> {
    type Output = Self;

    #[track_caller]
    fn neg(self) -> Self {
        self.builder.unary(UnaryOp::Neg, self)
    }
}

/// Negation of truth values, complement of integers.
impl Not for Expr<'_> {
    type Output = Self;

    #[track_caller]
    fn not(self) -> Self {
        let op = if self.ty.is_bool() { UnaryOp::Not } else { UnaryOp::BitNot };
        self.builder.unary(op, self)
    }
}

/// A storage binding.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<'b> {
    pub(super) builder: &'b Builder,
    pub(super) id: BindingId,
    pub(super) element: Type,
}

/// An array in workgroup memory.
#[derive(Clone, Copy, Debug)]
pub struct Shared<'b> {
    pub(super) builder: &'b Builder,
    pub(super) id: SharedId,
    pub(super) element: Type,
}

macro_rules! arrays {
    ($($array:ident $load:ident $store:ident),*) => {$(
        impl<'b> $array<'b> {
            /// Type of the elements.
            pub fn element(self) -> Type {
                self.element
            }

            /// The element at a `u32` index, read here.
            #[track_caller]
            pub fn load(self, index: impl Operand<'b>) -> Expr<'b> {
                let index = index.expr(self.builder, Some(Type::U32));
                self.builder.check(index.ty == Type::U32, || format!("index of type {}", index.ty));
                self.builder.node(ExprKind::$load(self.id, index.id), self.element)
            }

            /// Writes the element at a `u32` index; a scalar fills all lanes.
            #[track_caller]
            pub fn store(self, index: impl Operand<'b>, value: impl Operand<'b>) {
                let index = index.expr(self.builder, Some(Type::U32));
                let value = value.expr(self.builder, Some(self.element)).splat(self.element.lanes);
                self.builder.check(index.ty == Type::U32 && value.ty == self.element, || {
                    format!("store of {} at index of type {} in an array of {}", value.ty, index.ty, self.element)
                });
                self.builder.statement(Stmt::$store(self.id, index.id, value.id));
            }
        }
    )*};
}

arrays! { Buffer LoadBinding StoreBinding, Shared LoadShared StoreShared }

impl<'b> Shared<'b> {
    /// Writes a lane, by `u32` number, of the element at a `u32` index.
    #[track_caller]
    pub fn store_lane(self, index: impl Operand<'b>, lane: impl Operand<'b>, value: impl Operand<'b>) {
        let [index, lane] =
            [index.expr(self.builder, Some(Type::U32)), lane.expr(self.builder, Some(Type::U32))];
        let scalar = Type { lanes: Lanes::One, ..self.element };
        let value = value.expr(self.builder, Some(scalar));
        let half = self.builder.state.borrow().kernel.shared[self.id.index()].half.is_some();
        let fits = self.element.lanes != Lanes::One && value.ty == scalar && !half;
        self.builder.check(index.ty == Type::U32 && lane.ty == Type::U32 && fits, || {
            format!(
                "store of {} to a lane of {}, numbers {} and {}",
                value.ty, self.element, index.ty, lane.ty
            )
        });
        self.builder.statement(Stmt::StoreLane(self.id, index.id, lane.id, value.id));
    }
}

/// A local variable.
#[derive(Clone, Copy, Debug)]
pub struct Var<'b> {
    pub(super) builder: &'b Builder,
    pub(super) id: VarId,
    pub(super) ty: Type,
}

impl<'b> Var<'b> {
    /// Type of its value.
    pub fn ty(self) -> Type {
        self.ty
    }

    /// Its value here.
    #[track_caller]
    pub fn get(self) -> Expr<'b> {
        self.check_scope();
        self.builder.node(ExprKind::LoadVar(self.id), self.ty)
    }

    /// Assigns; a scalar fills all lanes.
    #[track_caller]
    pub fn set(self, value: impl Operand<'b>) {
        self.check_scope();
        let value = value.expr(self.builder, Some(self.ty)).splat(self.ty.lanes);
        self.builder
            .check(value.ty == self.ty, || format!("{} assigned to a variable of {}", value.ty, self.ty));
        self.builder.statement(Stmt::Assign(self.id, value.id));
    }

    #[track_caller]
    fn check_scope(self) {
        let in_scope = {
            let state = self.builder.state.borrow();
            state.kernel.vars.get(self.id.index()).is_some_and(|var| state.open.contains(&var.block))
        };
        self.builder.check(in_scope, || "variable is used outside its scope".to_owned());
    }
}
