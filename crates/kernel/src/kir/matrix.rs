//! Matrices of the builder: products of 16x16 blocks that a subgroup computes together (cooperative matrices).
//!
//! Factors are read from workgroup arrays of half precision, sums are f32 and leave through a workgroup array. All of it
//! belongs where every invocation of a subgroup arrives, like a barrier of subgroups; addresses must be the same within a subgroup,
//! which the generator has to know: the verifier knows no subgroups.

use super::build::Builder;
use super::handle::{Expr, Shared};
use super::kernel::{Matrix, MatrixId, MatrixPlace, MatrixRole, Order, Stmt};
use super::operand::Operand;
use super::types::Type;
use griffinfly_ir::target::HalfFormat;

/// A factor or a sum.
#[derive(Clone, Copy, Debug)]
pub struct MatrixVar<'b> {
    builder: &'b Builder,
    id: MatrixId,
}

/// Where a matrix begins in a workgroup array, elements from one line to the next, and what lies side by side.
#[derive(Clone, Copy, Debug)]
pub struct Block<'b> {
    /// The array.
    pub array: Shared<'b>,
    /// First element.
    pub index: Expr<'b>,
    /// Elements from one row (or column) to the next.
    pub stride: u32,
    /// What lies side by side.
    pub order: Order,
}

impl Builder {
    /// Declares a sum, zero.
    pub fn matrix_sum(&self, name: impl Into<String>) -> MatrixVar<'_> {
        let matrix = self.matrix(name.into(), MatrixRole::Sum);
        self.statement(Stmt::DeclareMatrix(matrix.id));
        matrix
    }

    /// Reads a left factor.
    #[track_caller]
    pub fn left_matrix<'b>(&'b self, name: &str, block: Block<'b>) -> MatrixVar<'b> {
        self.factor(name, block, MatrixRole::Left)
    }

    /// Reads a right factor.
    #[track_caller]
    pub fn right_matrix<'b>(&'b self, name: &str, block: Block<'b>) -> MatrixVar<'b> {
        self.factor(name, block, MatrixRole::Right)
    }

    #[track_caller]
    fn factor<'b>(
        &'b self,
        name: &str,
        block: Block<'b>,
        role: fn(HalfFormat) -> MatrixRole,
    ) -> MatrixVar<'b> {
        let format = self.state.borrow().kernel.shared[block.array.id.index()].half;
        self.check(format.is_some(), || "a factor is read from an array of half precision".to_owned());
        let place = self.place(block);
        let matrix = self.matrix(name.to_owned(), role(format.unwrap_or(HalfFormat::Bf16)));
        self.statement(Stmt::LoadMatrix(matrix.id, place));
        matrix
    }

    #[track_caller]
    fn place(&self, block: Block<'_>) -> MatrixPlace {
        self.check(block.index.ty() == Type::U32, || {
            format!("a matrix at index of type {}", block.index.ty())
        });
        MatrixPlace {
            array: block.array.id,
            index: block.index.expr(self, None).id,
            stride: block.stride,
            order: block.order,
        }
    }

    fn matrix(&self, name: String, role: MatrixRole) -> MatrixVar<'_> {
        let matrices = &mut self.state.borrow_mut().kernel.matrices;
        matrices.push(Matrix { name, role });
        MatrixVar { builder: self, id: MatrixId(matrices.len() as u32 - 1) }
    }
}

impl<'b> MatrixVar<'b> {
    fn role(self) -> Option<MatrixRole> {
        self.builder.state.borrow().kernel.matrices.get(self.id.index()).map(|matrix| matrix.role)
    }

    #[track_caller]
    fn check_sum(self) {
        self.builder.check(self.role() == Some(MatrixRole::Sum), || "a factor is not a sum".to_owned());
    }

    /// Adds the product of two factors.
    #[track_caller]
    pub fn add_product(self, left: MatrixVar<'b>, right: MatrixVar<'b>) {
        self.check_sum();
        let fits = matches!(
            (left.role(), right.role()),
            (Some(MatrixRole::Left(a)), Some(MatrixRole::Right(b))) if a == b
        );
        self.builder.check(fits, || format!("product of {:?} and {:?}", left.role(), right.role()));
        self.builder.statement(Stmt::MultiplyAdd { sum: self.id, left: left.id, right: right.id });
    }

    /// Adds another sum and clears that one.
    #[track_caller]
    pub fn take(self, other: MatrixVar<'b>) {
        self.check_sum();
        other.check_sum();
        self.builder.statement(Stmt::AddMatrix(self.id, other.id));
        self.builder.statement(Stmt::ClearMatrix(other.id));
    }

    /// Reads the sum from an array of f32.
    #[track_caller]
    pub fn load(self, block: Block<'b>) {
        self.check_sum();
        self.check_unrounded(block);
        let place = self.builder.place(block);
        self.builder.statement(Stmt::LoadMatrix(self.id, place));
    }

    /// Writes the sum to an array of f32.
    #[track_caller]
    pub fn store(self, block: Block<'b>) {
        self.check_sum();
        self.check_unrounded(block);
        let place = self.builder.place(block);
        self.builder.statement(Stmt::StoreMatrix(self.id, place));
    }

    #[track_caller]
    fn check_unrounded(self, block: Block<'b>) {
        let half = self.builder.state.borrow().kernel.shared[block.array.id.index()].half;
        self.builder.check(half.is_none(), || "a sum lies in an array of f32".to_owned());
    }
}
