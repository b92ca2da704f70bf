//! An upper bound on the loop iterations one invocation runs, from the code, the parameters and the geometry.
//!
//! Input: a kernel, its parameter words, its workgroup counts. Output: the bound, or `None` where a loop has none. It is for
//! drivers that end an invocation after a fixed number of iterations over all its loops without an error. Method:
//! intervals of the `u32` values in loop bounds; a loop counts its turns and the final test of its condition, times what is
//! inside; both sides of a branch count, because neighbours in lockstep may take different ones.
//!
//! Invariant: never below the true count, since every rule widens; wrapping arithmetic gives the full range.

use crate::kir::{
    Axis, BinaryOp, BlockId, Builtin, CounterId, ExprId, ExprKind, Kernel, Literal, Scalar, Stmt, UnaryOp,
};

/// Bounds of a value, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    low: u64,
    high: u64,
}

impl Range {
    const ALL: Self = Self { low: 0, high: u32::MAX as u64 };

    const fn exactly(value: u64) -> Self {
        Self { low: value, high: value }
    }

    /// Bounds that do not fit 32 bits mean that the value may have wrapped.
    fn checked(low: Option<u64>, high: Option<u64>) -> Self {
        match (low, high) {
            (Some(low), Some(high)) if high <= Self::ALL.high => Self { low, high },
            _ => Self::ALL,
        }
    }
}

/// The most iterations an invocation can run, `None` when nothing bounds them.
#[must_use]
pub fn most_iterations(kernel: &Kernel, parameters: &[u32], groups: [u32; 3]) -> Option<u64> {
    let counters = vec![Range::ALL; kernel.counters.len()];
    let mut bounds = Bounds { kernel, parameters, groups, counters, known: Vec::new() };
    // Operands come before their users, but counters get their range only when their loop is met.
    bounds.block(Kernel::BODY)
}

struct Bounds<'a> {
    kernel: &'a Kernel,
    parameters: &'a [u32],
    groups: [u32; 3],
    counters: Vec<Range>,
    known: Vec<Option<Range>>,
}

impl Bounds<'_> {
    fn block(&mut self, id: BlockId) -> Option<u64> {
        let kernel = self.kernel;
        kernel.block(id).statements.iter().try_fold(0_u64, |sum, statement| {
            let inside = match *statement {
                Stmt::If { accept, reject, .. } => {
                    let other = reject.map_or(Some(0), |reject| self.block(reject))?;
                    self.block(accept)?.checked_add(other)?
                }
                Stmt::For { counter, start, end, step, body } => {
                    let turns = self.turns(counter, (start, end), step)?;
                    let inside = self.block(body)?;
                    turns.checked_mul(inside.checked_add(1)?)?.checked_add(1)?
                }
                Stmt::Loop(_) => return None,
                _ => 0,
            };
            sum.checked_add(inside)
        })
    }

    /// Most turns of a loop; gives its counter a range.
    fn turns(&mut self, counter: CounterId, (start, end): (ExprId, ExprId), step: ExprId) -> Option<u64> {
        let (first, last) = (self.range(start), self.range(end));
        self.counters[counter.index()] =
            Range { low: first.low, high: last.high.saturating_sub(1).max(first.low) };
        let step = self.range(step).low;
        if step == 0 {
            return None;
        }
        Some(self.distance(start, end).div_ceil(step))
    }

    /// Largest `end - start`: ends are often written as `start + length`, or the least of several.
    fn distance(&mut self, start: ExprId, end: ExprId) -> u64 {
        match self.kernel.expr(end).kind {
            ExprKind::Binary(BinaryOp::Min, x, y) => self.distance(start, x).min(self.distance(start, y)),
            ExprKind::Binary(BinaryOp::Add, x, y) if x == start => self.range(y).high,
            ExprKind::Binary(BinaryOp::Add, x, y) if y == start => self.range(x).high,
            _ => match self.kernel.expr(start).kind {
                // Lanes start one after the other from a common first element.
                ExprKind::Binary(BinaryOp::Add, x, y) if self.fits(start) => {
                    self.distance(x, end).min(self.distance(y, end))
                }
                _ => self.range(end).high.saturating_sub(self.range(start).low),
            },
        }
    }

    /// Whether a sum certainly does not wrap.
    fn fits(&mut self, sum: ExprId) -> bool {
        let ExprKind::Binary(BinaryOp::Add, x, y) = self.kernel.expr(sum).kind else { return false };
        self.range(x).high + self.range(y).high <= Range::ALL.high
    }

    fn range(&mut self, id: ExprId) -> Range {
        if let Some(Some(range)) = self.known.get(id.index()) {
            return *range;
        }
        let range = self.compute(id);
        if self.known.len() <= id.index() {
            self.known.resize(id.index() + 1, None);
        }
        self.known[id.index()] = Some(range);
        range
    }

    fn compute(&mut self, id: ExprId) -> Range {
        let kernel = self.kernel;
        let node = kernel.expr(id);
        if node.ty.scalar != Scalar::U32 {
            return Range::ALL;
        }
        match &node.kind {
            ExprKind::Literal(Literal::U32(value)) => Range::exactly((*value).into()),
            ExprKind::Param(k) => {
                self.parameters.get(*k as usize).map_or(Range::ALL, |p| Range::exactly((*p).into()))
            }
            ExprKind::Builtin(builtin) => self.builtin(*builtin),
            ExprKind::Counter(counter) => self.counters[counter.index()],
            ExprKind::Binary(op, x, y) => {
                let (x, y) = (self.range(*x), self.range(*y));
                binary(*op, x, y)
            }
            ExprKind::Select { yes, no, .. } => {
                let (yes, no) = (self.range(*yes), self.range(*no));
                Range { low: yes.low.min(no.low), high: yes.high.max(no.high) }
            }
            ExprKind::Unary(UnaryOp::Abs, x) => self.range(*x),
            _ => Range::ALL,
        }
    }

    fn builtin(&self, builtin: Builtin) -> Range {
        let size = |axis: Axis| u64::from(self.kernel.workgroup_size[axis as usize]);
        let count = |axis: Axis| u64::from(self.groups[axis as usize]);
        let below = |n: u64| Range { low: 0, high: n.saturating_sub(1) };
        match builtin {
            Builtin::GlobalId(axis) => below(size(axis) * count(axis)),
            Builtin::LocalId(axis) => below(size(axis)),
            Builtin::LocalIndex => below(self.kernel.invocations()),
            Builtin::WorkgroupId(axis) => below(count(axis)),
            Builtin::WorkgroupCount(axis) => Range::exactly(count(axis)),
        }
    }
}

fn binary(op: BinaryOp, x: Range, y: Range) -> Range {
    match op {
        BinaryOp::Add => Range::checked(Some(x.low + y.low), Some(x.high + y.high)),
        BinaryOp::Sub => Range::checked(x.low.checked_sub(y.high), x.high.checked_sub(y.low)),
        BinaryOp::Mul => Range::checked(Some(x.low * y.low), Some(x.high * y.high)),
        BinaryOp::Div => Range::checked(x.low.checked_div(y.high), x.high.checked_div(y.low)),
        BinaryOp::Rem if y.low > 0 => Range { low: 0, high: x.high.min(y.high - 1) },
        BinaryOp::And => Range { low: 0, high: x.high.min(y.high) },
        BinaryOp::Shr if y.high < 32 => Range { low: x.low >> y.high, high: x.high >> y.low },
        BinaryOp::Shl if y.high < 32 => Range::checked(Some(x.low << y.low), Some(x.high << y.high)),
        BinaryOp::Min => Range { low: x.low.min(y.low), high: x.high.min(y.high) },
        BinaryOp::Max => Range { low: x.low.max(y.low), high: x.high.max(y.high) },
        _ => Range::ALL,
    }
}
