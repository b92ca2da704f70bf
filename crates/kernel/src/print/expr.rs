//! Text of one expression.
//!
//! Parentheses: none around `let` names, calls and literals; products inside sums and left-nested sums or products
//! need none; everything else that is nested gets them (WGSL refuses many mixtures without).

use super::names::{is_compound, literal};
use super::place::Place;
use super::{Printer, argument};
use crate::kir::{Axis, BinaryOp, Builtin, ExprId, ExprKind, Lanes, UnaryOp};

impl Printer<'_> {
    /// The value as an operand or statement part: its `let` name or its own text.
    pub(super) fn value(&self, id: ExprId) -> String {
        match (&self.names.exprs[id.index()], self.places.get(id)) {
            (Some(name), Place::Let) => name.clone(),
            _ => self.text(id),
        }
    }

    /// The computation itself.
    pub(super) fn text(&self, id: ExprId) -> String {
        let node = self.kernel.expr(id);
        let ty = node.ty;
        match &node.kind {
            ExprKind::Literal(value) => literal(*value),
            ExprKind::Param(word) => format!("params.{}", self.names.params[*word as usize]),
            ExprKind::Builtin(id) => builtin(*id),
            ExprKind::Counter(counter) => self.names.counters[counter.index()].clone(),
            ExprKind::LoadBinding(binding, index) => {
                format!("{}[{}]", self.names.bindings[binding.index()], self.value(*index))
            }
            ExprKind::LoadShared(array, index) => {
                format!("{}[{}]", self.names.shared[array.index()], self.value(*index))
            }
            ExprKind::LoadVar(var) => self.names.vars[var.index()].clone(),
            ExprKind::Unary(op, a) if is_call(*op) => format!("{}({})", unary(*op), self.value(*a)),
            ExprKind::Unary(op, a) => format!("{}{}", unary(*op), self.wrapped(*a)),
            ExprKind::Binary(op, a, b) => self.binary(*op, *a, *b),
            ExprKind::Fma(a, b, c) => format!("fma({})", self.list(&[*a, *b, *c])),
            ExprKind::Select { condition, yes, no } => {
                let splat = !ty.is_scalar() && self.kernel.expr(*condition).ty.is_scalar();
                let condition = self.value(*condition);
                let condition =
                    if splat { format!("vec{}<bool>({condition})", ty.lanes.count()) } else { condition };
                format!("select({}, {condition})", self.list(&[*no, *yes]))
            }
            ExprKind::Cast(a) => format!("{ty}({})", self.value(*a)),
            ExprKind::Bitcast(a) => format!("bitcast<{ty}>({})", self.value(*a)),
            ExprKind::Construct(list) => format!("{ty}({})", self.list(list)),
            ExprKind::Component(a, lane) => format!("{}.{}", self.wrapped(*a), letter(*lane)),
            ExprKind::Swizzle(a, lanes) => {
                format!("{}.{}", self.wrapped(*a), lanes.iter().map(|lane| letter(*lane)).collect::<String>())
            }
            ExprKind::Call(function, list) => format!("{}({})", function.name(), self.list(list)),
        }
    }

    fn list(&self, ids: &[ExprId]) -> String {
        ids.iter().map(|id| self.value(*id)).collect::<Vec<_>>().join(", ")
    }

    /// The value with parentheses when its text is an operation.
    fn wrapped(&self, id: ExprId) -> String {
        let inline = self.places.get(id) == Place::Inline;
        if inline && is_compound(&self.kernel.expr(id).kind) {
            format!("({})", self.value(id))
        } else {
            self.value(id)
        }
    }

    fn binary(&self, op: BinaryOp, a: ExprId, b: ExprId) -> String {
        if is_binary_call(op) {
            return format!("{}({})", symbol(op), self.list(&[a, b]));
        }
        let outer = precedence(op);
        let (left, right) = (self.inner_precedence(a), self.inner_precedence(b));
        let arithmetic = outer > 0 || op.is_comparison();
        let left = if arithmetic && left > 0 && left >= outer { self.value(a) } else { self.wrapped(a) };
        let right = if arithmetic && right > outer { self.value(b) } else { self.wrapped(b) };
        format!("{left} {} {right}", symbol(op))
    }

    /// Precedence of an operand's text: 0 when it must be wrapped, if it is an operation at all.
    fn inner_precedence(&self, id: ExprId) -> u8 {
        match self.kernel.expr(id).kind {
            ExprKind::Binary(op, ..) if self.places.get(id) == Place::Inline => precedence(op),
            _ => 0,
        }
    }
}

fn precedence(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => 2,
        BinaryOp::Add | BinaryOp::Sub => 1,
        _ => 0,
    }
}

pub(super) fn is_call(op: UnaryOp) -> bool {
    !matches!(op, UnaryOp::Neg | UnaryOp::Not | UnaryOp::BitNot)
}

pub(super) fn is_binary_call(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Min | BinaryOp::Max)
}

fn unary(op: UnaryOp) -> &'static str {
    match op {
        UnaryOp::Neg => "-",
        UnaryOp::Not => "!",
        UnaryOp::BitNot => "~",
        UnaryOp::Abs => "abs",
        UnaryOp::Floor => "floor",
        UnaryOp::Ceil => "ceil",
        UnaryOp::Round => "round",
        UnaryOp::Trunc => "trunc",
        UnaryOp::Exp2 => "exp2",
    }
}

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Rem => "%",
        BinaryOp::Min => "min",
        BinaryOp::Max => "max",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::And => "&",
        BinaryOp::Or => "|",
        BinaryOp::Xor => "^",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
    }
}

fn builtin(id: Builtin) -> String {
    let name = argument(id).0;
    match id {
        Builtin::LocalIndex => name.to_owned(),
        Builtin::GlobalId(axis)
        | Builtin::LocalId(axis)
        | Builtin::WorkgroupId(axis)
        | Builtin::WorkgroupCount(axis) => {
            let axis = match axis {
                Axis::X => 'x',
                Axis::Y => 'y',
                Axis::Z => 'z',
            };
            format!("{name}.{axis}")
        }
    }
}

fn letter(lane: u8) -> char {
    debug_assert!(u32::from(lane) < Lanes::Four.count());
    ['x', 'y', 'z', 'w'][usize::from(lane & 3)]
}
