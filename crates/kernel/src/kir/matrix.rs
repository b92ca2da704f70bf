//! Matrices of the builder: products of blocks that a subgroup computes together (cooperative matrices).
//!
//! Factors are read from workgroup arrays of half precision (16x16) or of single f32 (8x8), sums are f32 and leave through a workgroup
//! array, those of f32 factors through one of single f32: Metal reads matrices at pointers to their elements. All of it belongs where every invocation of a subgroup arrives, like a barrier of subgroups; addresses must be the same within a subgroup,
//! which the generator has to know: the verifier knows no subgroups.

use super::build::Builder;
use super::handle::{Expr, Shared};
use super::kernel::{Factors, Matrix, MatrixId, MatrixPlace, MatrixRole, Order, Stmt};
use super::operand::Operand;
use super::types::Type;

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
    /// Declares a sum of products of such factors, zero.
    pub fn matrix_sum(&self, name: impl Into<String>, factors: Factors) -> MatrixVar<'_> {
        let matrix = self.matrix(name.into(), MatrixRole::Sum(factors));
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
    fn factor<'b>(&'b self, name: &str, block: Block<'b>, role: fn(Factors) -> MatrixRole) -> MatrixVar<'b> {
        let half = self.state.borrow().kernel.shared[block.array.id.index()].half;
        let is_single = half.is_none() && block.array.element == Type::F32;
        self.check(half.is_some() || is_single, || {
            "a factor is read from an array of half precision or of single f32".to_owned()
        });
        let place = self.place(block);
        let matrix = self.matrix(name.to_owned(), role(half.map_or(Factors::F32, Factors::Half)));
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

    /// Checks that it is a sum, and says of what.
    #[track_caller]
    fn check_sum(self) -> Option<Factors> {
        let factors = if let Some(MatrixRole::Sum(factors)) = self.role() { Some(factors) } else { None };
        self.builder.check(factors.is_some(), || "a factor is not a sum".to_owned());
        factors
    }

    /// Adds the product of two factors.
    #[track_caller]
    pub fn add_product(self, left: MatrixVar<'b>, right: MatrixVar<'b>) {
        let sum = self.check_sum();
        let (a, b) = (left.role(), right.role());
        let fits = matches!(
            (a, b),
            (Some(MatrixRole::Left(a)), Some(MatrixRole::Right(b))) if a == b && Some(a) == sum
        );
        self.builder.check(fits, || format!("product of {a:?} and {b:?} for a sum of {sum:?}"));
        self.builder.statement(Stmt::MultiplyAdd { sum: self.id, left: left.id, right: right.id });
    }

    /// Adds another sum and clears that one.
    #[track_caller]
    pub fn take(self, other: MatrixVar<'b>) {
        let (factors, others) = (self.check_sum(), other.check_sum());
        self.builder.check(factors == others, || {
            format!("a sum of products of {others:?} added to one of {factors:?}")
        });
        self.builder.statement(Stmt::AddMatrix(self.id, other.id));
        self.builder.statement(Stmt::ClearMatrix(other.id));
    }

    /// Reads the sum from an array of f32.
    #[track_caller]
    pub fn load(self, block: Block<'b>) {
        self.check_unrounded(block);
        let place = self.builder.place(block);
        self.builder.statement(Stmt::LoadMatrix(self.id, place));
    }

    /// Writes the sum to an array of f32.
    #[track_caller]
    pub fn store(self, block: Block<'b>) {
        self.check_unrounded(block);
        let place = self.builder.place(block);
        self.builder.statement(Stmt::StoreMatrix(self.id, place));
    }

    #[track_caller]
    fn check_unrounded(self, block: Block<'b>) {
        let factors = self.check_sum();
        let half = self.builder.state.borrow().kernel.shared[block.array.id.index()].half;
        let element = block.array.element;
        let fits = half.is_none() && (factors != Some(Factors::F32) || element == Type::F32);
        self.builder.check(fits, || format!("a sum of {factors:?} in an array of {half:?} {element}"));
    }
}
