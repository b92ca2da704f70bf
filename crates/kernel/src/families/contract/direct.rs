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
use crate::kir::{Builder, Expr, Var};

/// The instance that computes all products (or the partial sums of every part).
pub(super) fn instance(problem: &Problem<'_>, name: String) -> Result<Instance, KernelError> {
    let tiling = problem.choice.tiling;
    let factors = factors(problem);
    let b = Builder::new(name.clone(), [tiling.invocations(), 1, 1]);
    let words = Words::declare(&b, problem);
    let finish = Finish::new(problem, tiling.tn);
    let mut buffers = Buffers::new((&b, problem.target), problem.l, &finish.sights(&factors));
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

/// Products that a factor's reader, or the other one's, takes at once.
pub(super) fn step(factors: &[Sight<'_>; 2]) -> u32 {
    if factors.iter().any(|(_, quads)| *quads == Some(LAST)) { 4 } else { 1 }
}

/// One factor at an invocation: its batch and the axes of what it reads in a row.
pub(super) struct Reader<'a, 'b> {
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
        let sums = Accumulators::new(b, self.problem.sums, (t.tm, t.tn)).with_rows(rows(self.problem, b));
        for (number, ((term, factors), range)) in
            self.problem.terms.iter().zip(factors).zip(&at.ranges).enumerate()
        {
            let left = Reader::new(b, buffers, (factors[0], at.batch), (row, self.words.m), t.tm);
            let right = Reader::new(b, buffers, (factors[1], at.batch), (column, self.words.n), t.tn);
            let step = step(factors);
            let mut result = Ok(());
            b.for_("k", *range, step, |k| {
                result = self.turn((&left, &right), (k, step), (&sums, (number, term.sum)));
            });
            result?;
        }
        let rows: Vec<_> = (0..t.tm).map(|i| row + i).collect();
        let width = if t.tn.is_multiple_of(4) { 4 } else { 1 };
        let columns: Vec<_> = (0..t.tn / width).map(|j| column + j * width).collect();
        finish.emit(buffers, (self.words, at), (&rows, &columns), &sums)
    }

    /// Adds `step` products.
    fn turn(
        &self,
        (left, right): (&Reader<'_, 'b>, &Reader<'_, 'b>),
        (k, step): (Expr<'b>, u32),
        (sums, (number, sum)): (&Accumulators<'b>, (usize, usize)),
    ) -> Result<(), KernelError> {
        let fused = self.problem.target.is_hardware;
        let [a, c] = [left.fetch(k, step)?, right.fetch(k, step)?];
        sums.add_all(sum, (&left.products(&a.values), &right.products(&c.values)), fused);
        if number == 0 {
            left.products(&a.besides).iter().for_each(|values| sums.add_rows(values));
        }
        Ok(())
    }
}

/// Variables for what is summed for each row of a register tile, if anything is.
pub(super) fn rows<'b>(problem: &Problem<'_>, b: &'b Builder) -> Vec<Var<'b>> {
    let count = if problem.has_row_sum { problem.choice.tiling.tm } else { 0 };
    (0..count).map(|_| b.var("rows", 0.0_f32)).collect()
}

/// What is loaded of a factor for some products: by products at once, the values of the rows.
pub(super) struct Fetched<'b> {
    /// The factor.
    pub(super) values: Vec<Vec<Expr<'b>>>,
    /// Its second output; empty if it has none.
    pub(super) besides: Vec<Vec<Expr<'b>>>,
}

impl<'a, 'b> Reader<'a, 'b> {
    /// A reader of `count` rows from `first` on, of `size` in total: past the end it repeats the last ones.
    pub(super) fn new(
        b: &'b Builder,
        buffers: &'a Buffers<'b>,
        (sight, batch): (Sight<'a>, Expr<'b>),
        (first, size): (Expr<'b>, Expr<'b>),
        count: u32,
    ) -> Self {
        let groups = &sight.0.groups;
        let width = if sight.1 == Some(ROWS) { 4 } else { 1 };
        let row = |j: u32| decompose(b, (first + j * width).native_min(size - width), &groups[ROWS]);
        let rows = (0..count / width).map(row).collect();
        Reader { b, buffers, sight, batch: decompose(b, batch, &groups[0]), rows }
    }

    /// Loads for `step` products.
    pub(super) fn loads(&self, step: u32) -> u32 {
        self.rows.len() as u32 * if self.sight.1 == Some(LAST) { 1 } else { step }
    }

    /// What is loaded for `step` products from `k` on.
    pub(super) fn fetch(&self, k: Expr<'b>, step: u32) -> Result<Fetched<'b>, KernelError> {
        let at_once = if self.sight.1 == Some(LAST) { 4 } else { 1 };
        let mut fetched = Fetched { values: Vec::new(), besides: Vec::new() };
        for from in (0..step).step_by(at_once) {
            let axes = decompose(self.b, k + from, &self.sight.0.groups[LAST]);
            let outputs = |rows: &Vec<Expr<'b>>| {
                let axes = [self.batch.as_slice(), rows, &axes].concat();
                point::outputs(self.b, self.buffers, self.sight, &axes, &[])
            };
            let outputs = self.rows.iter().map(outputs).collect::<Result<Vec<_>, _>>()?;
            fetched.values.push(outputs.iter().map(|outputs| outputs[0]).collect());
            if self.sight.0.body.expr.outputs().len() > 1 {
                fetched.besides.push(outputs.iter().map(|outputs| outputs[1]).collect());
            }
        }
        Ok(fetched)
    }

    /// For each product of those fetched, the element of every row.
    pub(super) fn products(&self, fetched: &[Vec<Expr<'b>>]) -> Vec<Vec<Expr<'b>>> {
        fetched.iter().flat_map(|values| self.spread(values)).collect()
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
