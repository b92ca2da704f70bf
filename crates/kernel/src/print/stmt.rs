//! Text of statements and blocks.

use super::Printer;
use super::place::Place;
use crate::kir::{BlockId, ExprId, Factors, MatrixId, MatrixPlace, MatrixRole, Order, Stmt};

/// The type of a matrix.
fn matrix_type(role: MatrixRole) -> String {
    let element = |factors| if factors == Factors::F32 { "f32" } else { "f16" };
    let (factors, element, letter) = match role {
        MatrixRole::Left(factors) => (factors, element(factors), "A"),
        MatrixRole::Right(factors) => (factors, element(factors), "B"),
        MatrixRole::Sum(factors) => (factors, "f32", "C"),
    };
    let size = factors.size();
    format!("coop_mat{size}x{size}<{element}, {letter}>")
}

impl Printer<'_> {
    pub(super) fn block(&mut self, id: BlockId, depth: usize) {
        // A copy of the reference, so that printing may borrow `self`.
        let kernel = self.kernel;
        for statement in &kernel.block(id).statements {
            self.statement(statement, depth);
        }
    }

    fn statement(&mut self, statement: &Stmt, depth: usize) {
        match *statement {
            Stmt::Bind(id) => self.bind(id, depth),
            Stmt::Declare(var, value) => {
                let (name, value) = (&self.names.vars[var.index()], self.value(value));
                self.line(depth, format_args!("var {name} = {value};"));
            }
            Stmt::Assign(var, value) => {
                let (name, value) = (&self.names.vars[var.index()], self.value(value));
                self.line(depth, format_args!("{name} = {value};"));
            }
            Stmt::StoreBinding(binding, index, value) => {
                let (name, index, value) =
                    (&self.names.bindings[binding.index()], self.value(index), self.value(value));
                self.line(depth, format_args!("{name}[{index}] = {value};"));
            }
            Stmt::StoreShared(array, index, value) => {
                let (name, index, value) =
                    (&self.names.shared[array.index()], self.value(index), self.value(value));
                match self.kernel.shared[array.index()].half {
                    Some(_) => self.line(depth, format_args!("{name}[{index}] = vec4<f16>({value});")),
                    None => self.line(depth, format_args!("{name}[{index}] = {value};")),
                }
            }
            Stmt::StoreLane(array, index, lane, value) => {
                let (name, [index, lane, value]) =
                    (&self.names.shared[array.index()], [index, lane, value].map(|e| self.value(e)));
                self.line(depth, format_args!("{name}[{index}][{lane}] = {value};"));
            }
            Stmt::If { condition, accept, reject, .. } => self.branch(condition, accept, reject, depth),
            Stmt::For { counter, start, end, step, body } => {
                let name = &self.names.counters[counter.index()];
                let (start, end, step) = (self.value(start), self.value(end), self.value(step));
                self.line(
                    depth,
                    format_args!("for (var {name} = {start}; {name} < {end}; {name} += {step}) {{"),
                );
                self.block(body, depth + 1);
                self.line(depth, format_args!("}}"));
            }
            Stmt::Loop(body) => {
                self.line(depth, format_args!("loop {{"));
                self.block(body, depth + 1);
                self.line(depth, format_args!("}}"));
            }
            Stmt::Break => self.line(depth, format_args!("break;")),
            Stmt::Barrier => self.line(depth, format_args!("workgroupBarrier();")),
            Stmt::SubgroupBarrier => self.line(depth, format_args!("subgroupBarrier();")),
            Stmt::Fence => self.line(depth, format_args!("storageBarrier();")),
            Stmt::AtomicAdd(var, binding, index, value) => {
                let (var, name) = (&self.names.vars[var.index()], &self.names.bindings[binding.index()]);
                let (index, value) = (self.value(index), self.value(value));
                self.line(depth, format_args!("{var} = atomicAdd(&{name}[{index}], {value});"));
            }
            Stmt::DeclareMatrix(_)
            | Stmt::ClearMatrix(_)
            | Stmt::LoadMatrix(..)
            | Stmt::MultiplyAdd { .. }
            | Stmt::AddMatrix(..)
            | Stmt::StoreMatrix(..) => self.matrix(statement, depth),
        }
    }

    fn matrix(&mut self, statement: &Stmt, depth: usize) {
        let name = |id: MatrixId| &self.names.matrices[id.index()];
        let role = |id: MatrixId| self.kernel.matrices[id.index()].role;
        let text = match *statement {
            Stmt::DeclareMatrix(id) => format!("var {} = {}();", name(id), matrix_type(role(id))),
            Stmt::ClearMatrix(id) => format!("{} = {}();", name(id), matrix_type(role(id))),
            Stmt::LoadMatrix(id, place) => {
                let declaration = if matches!(role(id), MatrixRole::Sum(_)) { "" } else { "let " };
                let (name, ty, (suffix, place)) = (name(id), matrix_type(role(id)), self.matrix_place(place));
                format!("{declaration}{name} = coopLoad{suffix}<{ty}>({place});")
            }
            Stmt::MultiplyAdd { sum, left, right } => {
                let (sum, left, right) = (name(sum), name(left), name(right));
                format!("{sum} = coopMultiplyAdd({left}, {right}, {sum});")
            }
            Stmt::AddMatrix(sum, other) => {
                let (sum, other) = (name(sum), name(other));
                format!("{sum} = {sum} + {other};")
            }
            Stmt::StoreMatrix(id, place) => {
                let place = self.matrix_place(place);
                format!("coopStore{}({}, {});", place.0, name(id), place.1)
            }
            _ => String::new(),
        };
        self.line(depth, format_args!("{text}"));
    }

    /// The suffix of the call, which says `T` for rows side by side, and its place arguments.
    fn matrix_place(&self, place: MatrixPlace) -> (&'static str, String) {
        let suffix = match place.order {
            Order::Rows => "T",
            Order::Columns => "",
        };
        let (array, index) = (&self.names.shared[place.array.index()], self.value(place.index));
        (suffix, format!("&{array}[{index}], {}u", place.stride))
    }

    fn bind(&mut self, id: ExprId, depth: usize) {
        if self.places.get(id) == Place::Let
            && let Some(name) = &self.names.exprs[id.index()]
        {
            let text = self.text(id);
            self.line(depth, format_args!("let {name} = {text};"));
        }
    }

    fn branch(&mut self, condition: ExprId, accept: BlockId, reject: Option<BlockId>, depth: usize) {
        let condition = self.value(condition);
        self.line(depth, format_args!("if {condition} {{"));
        self.block(accept, depth + 1);
        if let Some(reject) = reject {
            self.line(depth, format_args!("}} else {{"));
            self.block(reject, depth + 1);
        }
        self.line(depth, format_args!("}}"));
    }
}
