//! Statements and control flow of the builder. Blocks are closures that run exactly once, while building.

use super::build::Builder;
use super::expr::{ExprKind, Literal, Uniformity};
use super::handle::{Buffer, Expr, Var};
use super::kernel::{Block, BlockId, Claim, Counter, CounterId, Stmt, VarId, Variable};
use super::operand::Operand;
use super::types::Type;

impl Builder {
    /// Declares a variable in the current block.
    #[track_caller]
    pub fn var<'b>(&'b self, name: impl Into<String>, value: impl Operand<'b>) -> Var<'b> {
        let value = value.expr(self, None);
        let ty = value.ty();
        self.check(!ty.is_bool() || ty.is_scalar(), || format!("a variable cannot be {ty}"));
        let id = {
            let mut state = self.state.borrow_mut();
            let block = state.current();
            state.kernel.vars.push(Variable { name: name.into(), ty, block });
            VarId(state.kernel.vars.len() as u32 - 1)
        };
        self.statement(Stmt::Declare(id, value.id));
        Var { builder: self, id, ty }
    }

    /// Runs `body` where `condition` holds; a constant condition leaves no branch.
    #[track_caller]
    pub fn if_(&self, condition: Expr<'_>, body: impl FnOnce()) {
        self.branch(condition, Claim::Nobody, body, None::<fn()>);
    }

    /// Runs one of two bodies.
    #[track_caller]
    pub fn if_else(&self, condition: Expr<'_>, accept: impl FnOnce(), reject: impl FnOnce()) {
        self.branch(condition, Claim::Nobody, accept, Some(reject));
    }

    /// As [`Builder::if_`], with the claim that the condition is the same in all invocations of a workgroup, which
    /// allows barriers inside.
    #[track_caller]
    pub fn if_uniform(&self, condition: Expr<'_>, body: impl FnOnce()) {
        self.branch(condition, Claim::Workgroup, body, None::<fn()>);
    }

    /// As [`Builder::if_else`], with the claim of [`Builder::if_uniform`].
    #[track_caller]
    pub fn if_uniform_else(&self, condition: Expr<'_>, accept: impl FnOnce(), reject: impl FnOnce()) {
        self.branch(condition, Claim::Workgroup, accept, Some(reject));
    }

    /// As [`Builder::if_`], with the claim that the condition is the same in all invocations of a subgroup, which allows matrices and
    /// barriers of subgroups inside. Only for kernels with matrices, where subgroups are known to be whole.
    #[track_caller]
    pub fn if_subgroup_uniform(&self, condition: Expr<'_>, body: impl FnOnce()) {
        self.branch(condition, Claim::Subgroup, body, None::<fn()>);
    }

    #[track_caller]
    fn branch(
        &self,
        condition: Expr<'_>,
        uniform: Claim,
        accept: impl FnOnce(),
        reject: Option<impl FnOnce()>,
    ) {
        self.check(condition.ty() == Type::BOOL, || format!("condition of type {}", condition.ty()));
        match condition.literal() {
            Some(Literal::Bool(true)) => accept(),
            Some(Literal::Bool(false)) => {
                if let Some(reject) = reject {
                    reject();
                }
            }
            _ => {
                let accept = self.block(accept);
                let reject = reject.map(|reject| self.block(reject));
                self.statement(Stmt::If { condition: condition.id, uniform, accept, reject });
            }
        }
    }

    /// Counts from `start` by `step` (positive) while below `end`; all `u32`. `end + step` must not overflow.
    #[track_caller]
    pub fn for_<'b>(
        &'b self,
        name: &str,
        range: (impl Operand<'b>, impl Operand<'b>),
        step: impl Operand<'b>,
        body: impl FnOnce(Expr<'b>),
    ) {
        let [start, end, step] = [
            range.0.expr(self, Some(Type::U32)),
            range.1.expr(self, Some(Type::U32)),
            step.expr(self, Some(Type::U32)),
        ];
        self.check([start, end, step].iter().all(|bound| bound.ty() == Type::U32), || {
            format!("for over {}..{} by {}", start.ty(), end.ty(), step.ty())
        });
        self.check(step.literal() != Some(Literal::U32(0)), || "for with step zero".to_owned());
        let (counter, uniformity) = {
            let mut state = self.state.borrow_mut();
            let of = |e: Expr<'_>| state.kernel.exprs.get(e.id.index()).map(|node| node.uniformity);
            let joined = [start, end, step].into_iter().filter_map(of).max().unwrap_or(Uniformity::Varying);
            state.kernel.counters.push(Counter { name: name.to_owned(), uniformity: joined });
            (CounterId(state.kernel.counters.len() as u32 - 1), joined)
        };
        let body = self.block(|| body(self.counter(counter, uniformity)));
        self.statement(Stmt::For { counter, start: start.id, end: end.id, step: step.id, body });
    }

    /// Repeats `body` until a break inside it.
    #[track_caller]
    pub fn loop_(&self, body: impl FnOnce()) {
        let body = self.block(body);
        self.statement(Stmt::Loop(body));
    }

    /// Repeats `body` while the condition, evaluated before each turn, holds.
    #[track_caller]
    pub fn while_<'b>(&'b self, condition: impl FnOnce() -> Expr<'b>, body: impl FnOnce()) {
        self.loop_(|| {
            self.break_if(!condition());
            body();
        });
    }

    /// Leaves the innermost loop.
    #[track_caller]
    pub fn break_(&self) {
        self.statement(Stmt::Break);
    }

    /// Leaves the innermost loop where `condition` holds.
    #[track_caller]
    pub fn break_if(&self, condition: Expr<'_>) {
        let is_uniform = self.state.borrow().kernel.expr(condition.id).uniformity == Uniformity::Uniform;
        let uniform = if is_uniform { Claim::Workgroup } else { Claim::Nobody };
        self.branch(condition, uniform, || self.break_(), None::<fn()>);
    }

    /// Leaves the innermost loop where `condition` holds, with the claim of [`Builder::if_uniform`].
    #[track_caller]
    pub fn break_if_uniform(&self, condition: Expr<'_>) {
        self.branch(condition, Claim::Workgroup, || self.break_(), None::<fn()>);
    }

    /// Waits for all invocations of the workgroup and makes their workgroup memory visible to each other.
    #[track_caller]
    pub fn barrier(&self) {
        self.statement(Stmt::Barrier);
    }

    /// Waits for all invocations of the subgroup and makes their workgroup memory visible to each other. Only for kernels with
    /// matrices, where subgroups are known to be whole.
    #[track_caller]
    pub fn subgroup_barrier(&self) {
        self.statement(Stmt::SubgroupBarrier);
    }

    /// Waits for all invocations of the workgroup and orders their accesses to buffers: what was stored to a binding of
    /// [`Access::Exchange`](super::kernel::Access::Exchange) before is there for every workgroup that learns of it later.
    #[track_caller]
    pub fn fence(&self) {
        self.statement(Stmt::Fence);
    }

    /// Adds to a counter at once; gives what it was before.
    #[track_caller]
    pub fn atomic_add<'b>(
        &'b self,
        counters: Buffer<'b>,
        index: impl Operand<'b>,
        value: impl Operand<'b>,
    ) -> Expr<'b> {
        let [index, value] = [index.expr(self, Some(Type::U32)), value.expr(self, Some(Type::U32))];
        self.check([index, value].iter().all(|e| e.ty == Type::U32), || {
            format!("{} added at index of type {}", value.ty, index.ty)
        });
        let before = self.var("before", 0_u32);
        self.statement(Stmt::AtomicAdd(before.id, counters.id, index.id, value.id));
        before.get()
    }

    fn counter(&self, counter: CounterId, uniformity: Uniformity) -> Expr<'_> {
        let expr = self.ambient(ExprKind::Counter(counter), uniformity, Type::U32);
        let mut state = self.state.borrow_mut();
        let block = state.current();
        state.kernel.exprs[expr.id.index()].block = Some(block);
        drop(state);
        expr
    }

    fn block(&self, body: impl FnOnce()) -> BlockId {
        let id = {
            let mut state = self.state.borrow_mut();
            let id = BlockId(state.kernel.blocks.len() as u32);
            state.kernel.blocks.push(Block::default());
            state.open.push(id);
            id
        };
        body();
        self.state.borrow_mut().open.pop();
        id
    }

    /// Appends a statement, after checking that its operands are in scope.
    #[track_caller]
    pub(super) fn statement(&self, statement: Stmt) {
        for operand in statement.operands() {
            self.check_scope(operand);
        }
        let mut state = self.state.borrow_mut();
        let block = state.current();
        state.kernel.blocks[block.index()].statements.push(statement);
    }
}
