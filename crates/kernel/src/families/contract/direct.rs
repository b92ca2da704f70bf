//! The product kernel of the direct tilings: operands go straight from the buffers to registers.
//!
//! Needs no workgroup memory and no barrier, so it suits tiny problems and drivers on which barriers are dear.

use super::finish::{Accumulators, Finish};
use super::point::{self, Buffers, Sight};
use super::problem::{LAST, Position, Problem, ROWS, Words};
use super::tiling::Tiling;
use super::view::View;
use crate::KernelError;
use crate::families::Instance;
use crate::families::emit::{Draft, decompose, fold_groups};
use crate::kir::{Builder, Expr};

/// The instance that computes all products (or the partial sums of every part).
pub(super) fn instance(problem: &Problem<'_>, name: String) -> Result<Instance, KernelError> {
    let tiling = problem.choice.tiling;
    let factors = factors(problem);
    let b = Builder::new(name.clone(), [tiling.invocations(), 1, 1]);
    let words = Words::declare(&b, problem);
    let finish = Finish::new(problem, tiling.tn);
    let mut buffers = Buffers::new(&b, problem.l, &finish.sights(&factors));
    let finish = finish.bind(&b, &mut buffers);
    let id = b.flat_global_id().named("id");
    let mut result = Ok(());
    b.if_(id.lt(words.total), || {
        let kernel = Direct { b: &b, problem, tiling, words: &words, position: words.position(id) };
        result = kernel.build(&factors, &buffers, &finish);
    });
    result?;
    let groups = problem.tiles().2.div_ceil(u64::from(tiling.invocations()));
    let draft = Draft {
        name,
        bindings: buffers.slots(),
        parameters: problem.words()?,
        groups: fold_groups(groups, problem.target)?,
    };
    draft.finish(b, problem.target)
}

/// The factors as this kernel reads them: four rows at once where the register tile takes rows in fours, else four
/// products at once.
pub(super) fn factors<'a>(problem: &'a Problem<'_>) -> Vec<[Sight<'a>; 2]> {
    let factor = |view: &'a View, rows: u32| {
        let along = |group: usize| view.allows_quads(group).then_some(group);
        let by_rows = if rows.is_multiple_of(4) { along(ROWS) } else { None };
        (view, by_rows.or_else(|| along(LAST)))
    };
    let tiling = problem.choice.tiling;
    problem.terms.iter().map(|term| [factor(&term.a, tiling.tm), factor(&term.b, tiling.tn)]).collect()
}

struct Direct<'a, 'b> {
    b: &'b Builder,
    problem: &'a Problem<'a>,
    tiling: Tiling,
    words: &'a Words<'b>,
    position: Position<'b>,
}

/// One factor at an invocation: its batch and the axes of what it reads in a row.
struct Reader<'a, 'b> {
    b: &'b Builder,
    buffers: &'a Buffers<'b>,
    sight: Sight<'a>,
    batch: Vec<Expr<'b>>,
    rows: Vec<Vec<Expr<'b>>>,
}

impl<'b> Direct<'_, 'b> {
    fn build(
        &self,
        factors: &[[Sight<'_>; 2]],
        buffers: &Buffers<'b>,
        finish: &Finish<'_, 'b>,
    ) -> Result<(), KernelError> {
        let (b, t, at) = (self.b, &self.tiling, &self.position);
        let row = (at.tile_m * t.tm).named("row");
        let column = (at.tile_n * t.tn).named("column");
        let sums = Accumulators::new(b, self.problem.sums, (t.tm, t.tn));
        for ((term, factors), range) in self.problem.terms.iter().zip(factors).zip(&at.ranges) {
            let left = self.reader(buffers, factors[0], (row, self.words.m), t.tm);
            let right = self.reader(buffers, factors[1], (column, self.words.n), t.tn);
            let step = if factors.iter().any(|(_, quads)| *quads == Some(LAST)) { 4 } else { 1 };
            let mut result = Ok(());
            b.for_("k", *range, step, |k| {
                result = self.turn((&left, &right), (k, step), (&sums, term.sum));
            });
            result?;
        }
        let rows: Vec<_> = (0..t.tm).map(|i| row + i).collect();
        let width = if t.tn.is_multiple_of(4) { 4 } else { 1 };
        let columns: Vec<_> = (0..t.tn / width).map(|j| column + j * width).collect();
        finish.emit(buffers, (self.words, at), (&rows, &columns), &sums)
    }

    fn reader<'a>(
        &'a self,
        buffers: &'a Buffers<'b>,
        sight: Sight<'a>,
        (first, size): (Expr<'b>, Expr<'b>),
        count: u32,
    ) -> Reader<'a, 'b> {
        let (b, groups) = (self.b, &sight.0.groups);
        let width = if sight.1 == Some(ROWS) { 4 } else { 1 };
        let row = |j: u32| decompose(b, (first + j * width).native_min(size - width), &groups[ROWS]);
        let rows = (0..count / width).map(row).collect();
        Reader { b, buffers, sight, batch: decompose(b, self.position.batch, &groups[0]), rows }
    }

    /// Adds `step` products.
    fn turn(
        &self,
        (left, right): (&Reader<'_, 'b>, &Reader<'_, 'b>),
        (k, step): (Expr<'b>, u32),
        (sums, sum): (&Accumulators<'b>, usize),
    ) -> Result<(), KernelError> {
        let (rows, columns) = (left.read(k, step)?, right.read(k, step)?);
        let fused = self.problem.target.is_hardware;
        for (a, c) in rows.iter().zip(&columns) {
            if c.len().is_multiple_of(4) {
                let quads: Vec<_> = c.chunks(4).map(|quad| self.b.vector(quad)).collect();
                sums.add(sum, (a, &quads), fused);
            } else {
                sums.add(sum, (a, c), fused);
            }
        }
        Ok(())
    }
}

impl<'b> Reader<'_, 'b> {
    /// For each of `step` products from `k` on, the element of every row.
    fn read(&self, k: Expr<'b>, step: u32) -> Result<Vec<Vec<Expr<'b>>>, KernelError> {
        let at_once = if self.sight.1 == Some(LAST) { 4 } else { 1 };
        let mut products = Vec::new();
        for from in (0..step).step_by(at_once) {
            let axes = decompose(self.b, k + from, &self.sight.0.groups[LAST]);
            let mut values = Vec::new();
            for rows in &self.rows {
                let axes = [self.batch.as_slice(), rows, &axes].concat();
                values.push(point::outputs(self.b, self.buffers, self.sight, &axes, &[])?[0]);
            }
            products.extend(self.spread(&values));
        }
        Ok(products)
    }

    /// Elements per product, and in them per row.
    fn spread(&self, values: &[Expr<'b>]) -> Vec<Vec<Expr<'b>>> {
        match self.sight.1 {
            Some(LAST) => (0..4).map(|lane| values.iter().map(|row| row.lane(lane)).collect()).collect(),
            Some(_) => {
                vec![values.iter().flat_map(|quad| (0..4).map(move |lane| quad.lane(lane))).collect()]
            }
            None => vec![values.to_vec()],
        }
    }
}
