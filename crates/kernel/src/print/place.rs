//! Where each value is written: as a `let` at its point of creation, inside its only user, or nowhere.
//!
//! Invariants: a value used twice is a `let`, so it is computed once; reads of memory and calls stay where they were
//! created; a read of a variable moves to its only user only when nothing in between assigns the variable; nothing
//! moves into another block (a loop body would repeat it); nested text stays shallow ([`MAX_HEIGHT`]).

use crate::kir::{Block, BlockId, ExprId, ExprKind, Kernel, Stmt, VarId};

/// Operator depth of one printed expression, beyond which a `let` is put in.
const MAX_HEIGHT: u32 = 6;

/// Where a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Never used.
    Dead,
    /// At each use.
    Inline,
    /// As a `let` at its `Bind`.
    Let,
}

/// Places of all expressions of a kernel, by index.
pub(super) struct Places {
    pub(super) places: Vec<Place>,
}

/// A statement: block and position in it.
type Position = (BlockId, usize);

/// Who uses a value.
#[derive(Clone, Copy)]
enum User {
    None,
    One(Site),
    Many,
}

#[derive(Clone, Copy)]
enum Site {
    Expr(ExprId),
    Stmt(Position),
    /// Bound or step of a loop, which the text evaluates in every turn.
    EveryTurn,
}

impl Places {
    pub(super) fn of(kernel: &Kernel) -> Self {
        let users = users(kernel);
        let heights = heights(kernel, &users);
        let mut places = vec![Place::Dead; kernel.exprs.len()];
        let bound = bind_positions(kernel);
        // Where the text of each value stands; users have higher ids, so theirs are known.
        let mut stands: Vec<Option<Position>> = bound.clone();
        for index in (0..kernel.exprs.len()).rev() {
            let node = &kernel.exprs[index];
            let target = match users[index] {
                User::None => continue,
                _ if node.kind.is_trivial() => {
                    places[index] = Place::Inline;
                    continue;
                }
                User::One(Site::Expr(user)) => stands[user.index()],
                User::One(Site::Stmt(position)) => Some(position),
                User::One(Site::EveryTurn) | User::Many => None,
            };
            let stays = node.name.is_some() || heights[index] >= MAX_HEIGHT || is_pinned(&node.kind);
            let movable = !stays && can_move(kernel, &node.kind, bound[index], target);
            places[index] = if movable { Place::Inline } else { Place::Let };
            if movable {
                stands[index] = target;
            }
        }
        Self { places }
    }

    pub(super) fn get(&self, id: ExprId) -> Place {
        self.places[id.index()]
    }
}

/// Memory reads and calls are written where they were created.
fn is_pinned(kind: &ExprKind) -> bool {
    matches!(kind, ExprKind::LoadBinding(..) | ExprKind::LoadShared(..) | ExprKind::Call(..))
}

fn can_move(kernel: &Kernel, kind: &ExprKind, from: Option<Position>, to: Option<Position>) -> bool {
    let (Some((block, start)), Some((target, end))) = (from, to) else { return false };
    if block != target {
        return false;
    }
    match kind {
        ExprKind::LoadVar(var) => {
            kernel.block(block).statements[start..end].iter().all(|statement| keeps(statement, *var))
        }
        _ => true,
    }
}

/// Whether a statement certainly leaves a variable alone.
fn keeps(statement: &Stmt, var: VarId) -> bool {
    match statement {
        Stmt::Assign(assigned, _) | Stmt::AtomicAdd(assigned, ..) => *assigned != var,
        Stmt::If { .. } | Stmt::For { .. } | Stmt::Loop(_) => false,
        _ => true,
    }
}

fn statements(kernel: &Kernel) -> impl Iterator<Item = (Position, &Stmt)> {
    let numbered = |(id, block): (BlockId, &'_ Block)| (id, block.statements.len());
    kernel
        .blocks()
        .map(numbered)
        .flat_map(move |(id, length)| (0..length).map(move |at| ((id, at), &kernel.block(id).statements[at])))
}

/// Users of each value among live values and statements.
fn users(kernel: &Kernel) -> Vec<User> {
    let mut users = vec![User::None; kernel.exprs.len()];
    let add = |users: &mut Vec<User>, id: ExprId, site| {
        users[id.index()] = match users[id.index()] {
            User::None => User::One(site),
            _ => User::Many,
        };
    };
    for (position, statement) in statements(kernel) {
        if let Stmt::For { start, end, step, .. } = *statement {
            add(&mut users, start, Site::Stmt(position));
            add(&mut users, end, Site::EveryTurn);
            add(&mut users, step, Site::EveryTurn);
        } else {
            statement.for_operands(|id| add(&mut users, id, Site::Stmt(position)));
        }
    }
    for (index, node) in kernel.exprs.iter().enumerate().rev() {
        if !matches!(users[index], User::None) {
            let site = Site::Expr(ExprId::new(index));
            node.kind.for_operands(|id| add(&mut users, id, site));
        }
    }
    users
}

fn bind_positions(kernel: &Kernel) -> Vec<Option<Position>> {
    let mut bound = vec![None; kernel.exprs.len()];
    for (position, statement) in statements(kernel) {
        if let Stmt::Bind(id) = statement {
            bound[id.index()] = Some(position);
        }
    }
    bound
}

/// Depth of the text of each value if it and its operands were written inside their users where possible.
fn heights(kernel: &Kernel, users: &[User]) -> Vec<u32> {
    let mut heights = vec![0_u32; kernel.exprs.len()];
    for (index, node) in kernel.exprs.iter().enumerate() {
        let mut height = 0;
        node.kind.for_operands(|id| {
            let operand = &kernel.exprs[id.index()];
            let alone = matches!(users[id.index()], User::One(_)) && operand.name.is_none();
            let below = heights[id.index()];
            if alone && !is_pinned(&operand.kind) && below < MAX_HEIGHT {
                height = height.max(below + 1);
            }
        });
        heights[index] = height;
    }
    heights
}
