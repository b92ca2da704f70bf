//! The builder: declarations, expression nodes with their type rules, and the sticky first fault.
//!
//! It works through shared references, so handles are `Copy`, calls nest (`b.fma(x.load(i), w, acc.get())`) and blocks
//! are plain closures. Statements and control flow are in `control.rs`, sugar on handles in `methods.rs`.

use std::cell::RefCell;
use std::panic::Location;

use super::expr::{Axis, BinaryOp, Builtin, ExprId, ExprKind, ExprNode, Literal, UnaryOp, Uniformity};
use super::fold::{self, Folded};
use super::handle::{Buffer, Expr, Shared};
use super::kernel::{Access, Binding, BindingId, Block, BlockId, Kernel, SharedArray, SharedId, Stmt};
use super::operand::Operand;
use super::types::{Lanes, Scalar, Type};
use crate::KernelError;
use crate::functions::Function;
use griffinfly_ir::target::HalfFormat;

/// Builds one [`Kernel`]; see the module for the style it allows.
#[derive(Debug)]
pub struct Builder {
    pub(super) state: RefCell<State>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) kernel: Kernel,
    /// Blocks that are being filled, outermost first; never empty.
    pub(super) open: Vec<BlockId>,
    error: Option<KernelError>,
}

impl State {
    pub(super) fn current(&self) -> BlockId {
        self.open.last().copied().unwrap_or(Kernel::BODY)
    }
}

impl Builder {
    /// Starts a kernel.
    pub fn new(name: impl Into<String>, workgroup_size: [u32; 3]) -> Self {
        let kernel = Kernel {
            name: name.into(),
            workgroup_size,
            params: Vec::new(),
            bindings: Vec::new(),
            shared: Vec::new(),
            vars: Vec::new(),
            counters: Vec::new(),
            matrices: Vec::new(),
            exprs: Vec::new(),
            blocks: vec![Block::default()],
        };
        Self { state: RefCell::new(State { kernel, open: vec![Kernel::BODY], error: None }) }
    }

    /// The kernel, or the first fault of the generator.
    ///
    /// # Errors
    /// [`KernelError::Build`] when any call was ill-typed or used a value outside its scope.
    pub fn finish(self) -> Result<Kernel, KernelError> {
        let state = self.state.into_inner();
        match state.error {
            Some(error) => Err(error),
            None => Ok(state.kernel),
        }
    }

    /// Declares the next parameter word, a `u32`.
    pub fn param(&self, name: impl Into<String>) -> Expr<'_> {
        let word = {
            let params = &mut self.state.borrow_mut().kernel.params;
            params.push(name.into());
            params.len() as u32 - 1
        };
        self.ambient(ExprKind::Param(word), Uniformity::Uniform, Type::U32)
    }

    /// Declares the next parameter word and reads it as another 32-bit kind.
    #[track_caller]
    pub fn param_as(&self, name: impl Into<String>, scalar: Scalar) -> Expr<'_> {
        self.param(name).bitcast(scalar)
    }

    /// Declares the next binding, for loads only.
    pub fn read(&self, name: impl Into<String>, element: Type) -> Buffer<'_> {
        self.buffer(name, element, Access::Read)
    }

    /// Declares the next binding, for loads and stores.
    pub fn read_write(&self, name: impl Into<String>, element: Type) -> Buffer<'_> {
        self.buffer(name, element, Access::ReadWrite)
    }

    /// Declares the next binding.
    #[track_caller]
    pub fn buffer(&self, name: impl Into<String>, element: Type, access: Access) -> Buffer<'_> {
        self.check(!element.is_bool(), || "a buffer cannot hold truth values".to_owned());
        let bindings = &mut self.state.borrow_mut().kernel.bindings;
        bindings.push(Binding { name: name.into(), element, access });
        Buffer { builder: self, id: BindingId(bindings.len() as u32 - 1), element }
    }

    /// Declares an array in workgroup memory.
    #[track_caller]
    pub fn shared(&self, name: impl Into<String>, element: Type, length: u32) -> Shared<'_> {
        self.check(!element.is_bool(), || "workgroup memory cannot hold truth values".to_owned());
        self.check(length > 0, || "an array needs at least one element".to_owned());
        self.array(SharedArray { name: name.into(), element, half: None, length })
    }

    /// Declares an array in workgroup memory of quadruples in half precision.
    #[track_caller]
    pub fn shared_half(&self, name: impl Into<String>, format: HalfFormat, length: u32) -> Shared<'_> {
        let other = self.state.borrow().kernel.half().is_some_and(|known| known != format);
        self.check(!other, || "arrays of two half precisions in one kernel".to_owned());
        self.array(SharedArray { name: name.into(), element: Type::F32X4, half: Some(format), length })
    }

    fn array(&self, array: SharedArray) -> Shared<'_> {
        let arrays = &mut self.state.borrow_mut().kernel.shared;
        let element = array.element;
        arrays.push(array);
        Shared { builder: self, id: SharedId(arrays.len() as u32 - 1), element }
    }

    /// A dispatch id.
    pub fn builtin(&self, builtin: Builtin) -> Expr<'_> {
        self.ambient(ExprKind::Builtin(builtin), builtin_uniformity(builtin), Type::U32)
    }

    /// Invocation in the dispatch.
    pub fn global_id(&self, axis: Axis) -> Expr<'_> {
        self.builtin(Builtin::GlobalId(axis))
    }

    /// Invocation in its workgroup.
    pub fn local_id(&self, axis: Axis) -> Expr<'_> {
        self.builtin(Builtin::LocalId(axis))
    }

    /// Flattened invocation in its workgroup.
    pub fn local_index(&self) -> Expr<'_> {
        self.builtin(Builtin::LocalIndex)
    }

    /// Workgroup in the dispatch.
    pub fn workgroup_id(&self, axis: Axis) -> Expr<'_> {
        self.builtin(Builtin::WorkgroupId(axis))
    }

    /// Number of workgroups in the dispatch.
    pub fn workgroup_count(&self, axis: Axis) -> Expr<'_> {
        self.builtin(Builtin::WorkgroupCount(axis))
    }

    /// Workgroup number of a dispatch folded over X and Y (counts above 65,535 are): `y * count.x + x`.
    pub fn flat_workgroup_id(&self) -> Expr<'_> {
        self.workgroup_id(Axis::Y) * self.workgroup_count(Axis::X) + self.workgroup_id(Axis::X)
    }

    /// Invocations per workgroup.
    pub fn invocations(&self) -> u32 {
        self.state.borrow().kernel.workgroup_size.iter().product()
    }

    /// Invocation number of a dispatch folded over X and Y, for any workgroup shape.
    pub fn flat_global_id(&self) -> Expr<'_> {
        self.flat_workgroup_id() * self.invocations() + self.local_index()
    }

    /// A constant.
    pub fn literal(&self, literal: Literal) -> Expr<'_> {
        let ty = Type::new(literal.scalar(), Lanes::One);
        self.ambient(ExprKind::Literal(literal), Uniformity::Uniform, ty)
    }

    /// A host constant of its own kind.
    pub fn constant<'b>(&'b self, value: impl Operand<'b>) -> Expr<'b> {
        value.expr(self, None)
    }

    /// Zero (or `false`) in every lane.
    pub fn zero(&self, ty: Type) -> Expr<'_> {
        self.literal(Literal::zero(ty.scalar)).splat(ty.lanes)
    }

    /// A vector of two or four scalars of one kind.
    #[track_caller]
    pub fn vector<'b>(&'b self, lanes: &[Expr<'b>]) -> Expr<'b> {
        let first = lanes.first().map_or(Type::F32, |lane| lane.ty());
        let width = Lanes::from_count(lanes.len()).unwrap_or(Lanes::One);
        let same = first.is_scalar() && lanes.iter().all(|lane| lane.ty() == first);
        self.check(width != Lanes::One && same, || {
            format!("a vector needs 2 or 4 scalars of one kind, got ({})", types(lanes))
        });
        self.node(ExprKind::Construct(lanes.iter().map(|lane| lane.id).collect()), first.with_lanes(width))
    }

    /// `condition ? yes : no`; both are evaluated. A scalar condition selects whole vectors.
    #[track_caller]
    pub fn select<'b>(
        &'b self,
        condition: Expr<'b>,
        yes: impl Operand<'b>,
        no: impl Operand<'b>,
    ) -> Expr<'b> {
        let (yes, no) = self.pair(yes, no);
        let fits = condition.ty() == Type::BOOL || condition.ty() == yes.ty().with_scalar(Scalar::Bool);
        self.check(fits && yes.ty() == no.ty(), || {
            format!("select({}, {}, {})", condition.ty(), yes.ty(), no.ty())
        });
        match condition.literal() {
            Some(Literal::Bool(true)) => yes,
            Some(Literal::Bool(false)) => no,
            _ => self.node(ExprKind::Select { condition: condition.id, yes: yes.id, no: no.id }, yes.ty()),
        }
    }

    /// `a * b + c`, fused where the driver has it; scalars spread over the lanes of the widest operand.
    #[track_caller]
    pub fn fma<'b>(&'b self, a: impl Operand<'b>, b: impl Operand<'b>, c: impl Operand<'b>) -> Expr<'b> {
        let (a, b) = self.pair(a, b);
        let (a, c) = self.pair(a, c);
        let b = b.splat(a.ty().lanes);
        let fits = a.ty().scalar == Scalar::F32 && a.ty() == b.ty() && a.ty() == c.ty();
        self.check(fits, || format!("fma({}, {}, {})", a.ty(), b.ty(), c.ty()));
        self.node(ExprKind::Fma(a.id, b.id, c.id), a.ty())
    }

    /// One of our scalar functions, lane by lane.
    #[track_caller]
    pub fn call<'b>(&'b self, function: Function, arguments: &[Expr<'b>]) -> Expr<'b> {
        let ty = arguments.first().map_or(Type::F32, |first| first.ty());
        let fits = ty.scalar == Scalar::F32 && arguments.iter().all(|argument| argument.ty() == ty);
        self.check(fits && arguments.len() == function.arity(), || {
            format!("{}({})", function.name(), types(arguments))
        });
        if ty.is_scalar() {
            return self.node(ExprKind::Call(function, arguments.iter().map(|a| a.id).collect()), ty);
        }
        let lanes: Vec<_> = (0..ty.lanes.count() as u8)
            .map(|lane| self.call(function, &arguments.iter().map(|a| a.lane(lane)).collect::<Vec<_>>()))
            .collect();
        self.vector(&lanes)
    }

    #[track_caller]
    pub(super) fn unary<'b>(&'b self, op: UnaryOp, value: Expr<'b>) -> Expr<'b> {
        let ty = value.ty();
        let fits = match op {
            UnaryOp::Neg | UnaryOp::Abs => matches!(ty.scalar, Scalar::F32 | Scalar::I32),
            UnaryOp::Not => ty.is_bool(),
            UnaryOp::BitNot => ty.is_integer(),
            UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc | UnaryOp::Exp2 => {
                ty.scalar == Scalar::F32
            }
        };
        self.check(fits, || format!("{op:?}({ty})"));
        match (op, value.literal()) {
            (UnaryOp::Not, Some(Literal::Bool(truth))) => self.literal(Literal::Bool(!truth)),
            _ => self.node(ExprKind::Unary(op, value.id), ty),
        }
    }

    #[track_caller]
    pub(super) fn binary<'b>(
        &'b self,
        op: BinaryOp,
        left: impl Operand<'b>,
        right: impl Operand<'b>,
    ) -> Expr<'b> {
        let (left, right) = self.pair(left, right);
        let lanes = left.ty().lanes;
        self.check(binary_fits(op, left.ty(), right.ty()), || {
            format!("{op:?}({}, {})", left.ty(), right.ty())
        });
        let number = right.literal();
        self.check(!(matches!(op, BinaryOp::Div | BinaryOp::Rem) && number == Some(Literal::U32(0))), || {
            format!("{op:?} by constant zero")
        });
        let ty = if op.is_comparison() { Type::new(Scalar::Bool, lanes) } else { left.ty() };
        match fold::binary(op, left.literal(), number) {
            Folded::Literal(literal) => self.literal(literal).splat(lanes),
            Folded::Left if lanes == Lanes::One => left,
            Folded::Right if lanes == Lanes::One => right,
            Folded::Rewrite(op, value) if lanes == Lanes::One => {
                let value = self.literal(Literal::U32(value));
                self.node(ExprKind::Binary(op, left.id, value.id), ty)
            }
            _ => self.node(ExprKind::Binary(op, left.id, right.id), ty),
        }
    }

    /// Both operands as expressions: constants adapt to the other side, scalars spread over its lanes.
    #[track_caller]
    pub(super) fn pair<'b>(&'b self, a: impl Operand<'b>, b: impl Operand<'b>) -> (Expr<'b>, Expr<'b>) {
        let hint = a.expr(self, None).ty();
        let b = b.expr(self, Some(hint));
        let a = a.expr(self, Some(b.ty()));
        match (a.ty().is_scalar(), b.ty().is_scalar()) {
            (true, false) => (a.splat(b.ty().lanes), b),
            (false, true) => (a, b.splat(a.ty().lanes)),
            _ => (a, b),
        }
    }

    /// Adds a node that is in scope everywhere.
    pub(super) fn ambient(&self, kind: ExprKind, uniformity: Uniformity, ty: Type) -> Expr<'_> {
        let exprs = &mut self.state.borrow_mut().kernel.exprs;
        exprs.push(ExprNode { kind, ty, uniformity, block: None, name: None });
        Expr { builder: self, id: ExprId(exprs.len() as u32 - 1), ty }
    }

    /// Adds a node evaluated here, after checking that its operands are in scope.
    #[track_caller]
    pub(super) fn node(&self, kind: ExprKind, ty: Type) -> Expr<'_> {
        for operand in kind.operands() {
            self.check_scope(operand);
        }
        let uniformity = self.uniformity(&kind);
        let mut state = self.state.borrow_mut();
        let block = state.current();
        let kernel = &mut state.kernel;
        let id = ExprId(kernel.exprs.len() as u32);
        kernel.exprs.push(ExprNode { kind, ty, uniformity, block: Some(block), name: None });
        kernel.blocks[block.index()].statements.push(Stmt::Bind(id));
        Expr { builder: self, id, ty }
    }

    /// Records a fault unless `holds`; the first one stays.
    #[track_caller]
    pub(super) fn check(&self, holds: bool, message: impl FnOnce() -> String) {
        let mut state = self.state.borrow_mut();
        if !holds && state.error.is_none() {
            let kernel = state.kernel.name.clone();
            let location = Location::caller().to_string();
            state.error = Some(KernelError::Build { kernel, message: message(), location });
        }
    }

    /// Records a fault when a value is used outside the block that evaluates it (or belongs to another kernel).
    #[track_caller]
    pub(super) fn check_scope(&self, id: ExprId) {
        let in_scope = {
            let state = self.state.borrow();
            let node = state.kernel.exprs.get(id.index());
            node.is_some_and(|node| node.block.is_none_or(|block| state.open.contains(&block)))
        };
        self.check(in_scope, || format!("value {} is used outside its scope", id.0));
    }

    fn uniformity(&self, kind: &ExprKind) -> Uniformity {
        let state = self.state.borrow();
        let kernel = &state.kernel;
        let mut joined = match kind {
            ExprKind::LoadBinding(binding, _) if kernel.bindings[binding.index()].access != Access::Read => {
                Uniformity::Unknown
            }
            ExprKind::LoadVar(_) | ExprKind::LoadShared(..) => Uniformity::Unknown,
            _ => Uniformity::Uniform,
        };
        kind.for_operands(|operand| {
            joined = joined.max(kernel.exprs.get(operand.index()).map_or(joined, |node| node.uniformity));
        });
        joined
    }
}

/// Types of a list of arguments, for messages.
fn types(arguments: &[Expr<'_>]) -> String {
    arguments.iter().map(|argument| argument.ty().to_string()).collect::<Vec<_>>().join(", ")
}

fn builtin_uniformity(builtin: Builtin) -> Uniformity {
    match builtin {
        Builtin::WorkgroupId(_) | Builtin::WorkgroupCount(_) => Uniformity::Uniform,
        Builtin::GlobalId(_) | Builtin::LocalId(_) | Builtin::LocalIndex => Uniformity::Varying,
    }
}

/// Type rule of binary operations; both sides have the same type already when they are legal.
fn binary_fits(op: BinaryOp, left: Type, right: Type) -> bool {
    use BinaryOp::{Add, And, Div, Eq, Ge, Gt, Le, Lt, Max, Min, Mul, Ne, Or, Rem, Shl, Shr, Sub, Xor};
    match op {
        Add | Sub | Mul | Div | Rem | Min | Max | Lt | Le | Gt | Ge => left == right && !left.is_bool(),
        Eq | Ne => left == right,
        And | Or => left == right && (left.is_integer() || left.is_bool()),
        Xor => left == right && left.is_integer(),
        Shl | Shr => left.is_integer() && right == left.with_scalar(Scalar::U32),
    }
}
