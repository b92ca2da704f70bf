//! The product kernel of the tilings for matrix units.
//!
//! Operands become sums of rounded terms on their way to workgroup memory; subgroups multiply matrices of them, small
//! products first, and sum in f32. Units for half precision (16x16) add with truncation, which grows with the number of products: sums that would
//! get long are moved to second ones, which are added properly, every [`period`] products. At the end the sums go through
//! workgroup memory to ordinary registers, each subgroup's through its own part, and end as those of any other tiling.
//!
//! Units for f32 (8x8) multiply unrounded operands and add as any f32 arithmetic does: no terms, no second sums. Four of their matrices
//! take the place of one of 16x16.
//!
//! On targets without such units the same tiles of the same terms are multiplied by ordinary arithmetic, in the same order of
//! terms and with the same moves.
//!
//! Source of splitting and of the second sums: Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while
//! surpassing the FP32 theoretical peak performance" (2022), with bf16, whose range needs no scaling.

use super::finish::{Accumulators, Finish};
use super::matrix_stage::{self as stage, Plan, Stage};
use super::point::{Buffers, Sight};
use super::problem::{Position, Problem, Words};
use super::tiling::{Tiling, Units};
use crate::KernelError;
use crate::families::Instance;
use crate::families::emit::{Draft, fold_groups};
use crate::kir::{
    Builder, Expr, Factors, MATRIX, MatrixBlock, MatrixVar, Order, SUBGROUP, Shared, Type, Var,
};
use griffinfly_ir::target::NumericClass;

/// Products after which sums are moved: an error of truncation below that of the terms.
const fn period(class: NumericClass) -> u32 {
    match class {
        NumericClass::F32 => u32::MAX,
        NumericClass::Bf16x3 => 128,
        NumericClass::Bf16x2 | NumericClass::F16 | NumericClass::Bf16 => 4096,
    }
}

/// The instance that computes all products (or the partial sums of every part).
pub(super) fn instance(
    problem: &Problem<'_>,
    name: String,
    class: NumericClass,
) -> Result<Instance, KernelError> {
    let tiling = problem.choice.tiling;
    let factors = factors(problem);
    let b = Builder::new(name.clone(), [tiling.invocations(), 1, 1]);
    let words = Words::declare(&b, problem);
    let finish = Finish::new(problem, tiling.tn);
    let mut buffers = Buffers::new((&b, problem.target), problem.l, &finish.sights(&factors));
    let finish = finish.bind(&b, &mut buffers);
    let id = b.flat_workgroup_id().named("id");
    let units = tiling.units(problem.target);
    let mut result = Ok(());
    b.if_uniform(id.lt(words.total), || {
        let at = Lane::new(&b, &tiling);
        let kernel =
            Product { b: &b, problem, tiling, class, units, words: &words, position: words.position(id), at };
        result = kernel.build(&factors, &buffers, &finish);
    });
    result?;
    let draft = Draft {
        name,
        bindings: buffers.slots(),
        parameters: problem.words()?,
        groups: fold_groups(problem.tiles().2, problem.target)?,
    };
    Ok(Instance { numeric: class, ..draft.finish(b, problem.target)? })
}

/// The factors of all terms as this kernel reads them.
pub(super) fn factors<'a>(problem: &'a Problem<'_>) -> Vec<[Sight<'a>; 2]> {
    problem.terms.iter().map(|term| [stage::sight(&term.a), stage::sight(&term.b)]).collect()
}

/// Where an invocation stands.
#[derive(Clone, Copy)]
struct Lane<'b> {
    /// Number of its subgroup.
    subgroup: Expr<'b>,
    /// Its number there.
    lane: Expr<'b>,
    /// First row and column of the subgroup in the tile.
    row: Expr<'b>,
    column: Expr<'b>,
}

impl<'b> Lane<'b> {
    fn new(b: &'b Builder, tiling: &Tiling) -> Self {
        let [rows, columns] = tiling.subgroup();
        let wide = tiling.bn / columns;
        let subgroup = (b.local_index() / SUBGROUP).named("subgroup");
        let lane = (b.local_index() % SUBGROUP).named("lane");
        let row = ((subgroup / wide) * rows).named("subgroup_row");
        let column = ((subgroup % wide) * columns).named("subgroup_column");
        Lane { subgroup, lane, row, column }
    }

    /// Row i of those that the invocation finishes, in the tile: two of each matrix.
    fn finished_row(&self, i: u32) -> Expr<'b> {
        self.row + ((i / 2) * MATRIX + (i % 2) * 8) + self.lane / 4
    }

    /// First column of quadruple j of those that the invocation finishes: one of each matrix.
    fn finished_column(&self, j: u32) -> Expr<'b> {
        self.column + j * MATRIX + (self.lane % 4) * 4
    }
}

struct Product<'a, 'b> {
    b: &'b Builder,
    problem: &'a Problem<'a>,
    tiling: Tiling,
    class: NumericClass,
    units: Units,
    words: &'a Words<'b>,
    position: Position<'b>,
    at: Lane<'b>,
}

/// Terms with one left factor, whose tiles are staged together.
struct Group<'a, 'b> {
    left: Stage<'a, 'b>,
    /// Right factors, each with the sum it adds to.
    rights: Vec<(usize, Stage<'a, 'b>)>,
    range: (Expr<'b>, Expr<'b>),
}

impl<'a, 'b> Group<'a, 'b> {
    fn stages(&self) -> impl Iterator<Item = &Stage<'a, 'b>> {
        std::iter::once(&self.left).chain(self.rights.iter().map(|(_, stage)| stage))
    }
}

/// Matrices of as many products as one has columns: by row (or right factor and column) of matrices, and term.
struct Step<'b> {
    left: Vec<Vec<MatrixVar<'b>>>,
    rights: Vec<Vec<Vec<MatrixVar<'b>>>>,
}

/// Sums that are being added to, by sum, row and column of matrices.
enum Sums<'b> {
    Matrices(Vec<Vec<Vec<MatrixVar<'b>>>>),
    Plain(Accumulators<'b>),
}

impl<'b> Sums<'b> {
    /// Adds other sums of the same shape and clears those.
    fn take(&self, other: &Sums<'b>) {
        match (self, other) {
            (Sums::Matrices(all), Sums::Matrices(others)) => {
                let pairs = all.iter().flatten().flatten().zip(others.iter().flatten().flatten());
                pairs.for_each(|(sum, other)| sum.take(*other));
            }
            (Sums::Plain(all), Sums::Plain(others)) => all.take(others),
            (Sums::Matrices(_), Sums::Plain(_)) | (Sums::Plain(_), Sums::Matrices(_)) => {}
        }
    }
}

impl<'b> Product<'_, 'b> {
    fn build(
        &self,
        factors: &[[Sight<'_>; 2]],
        buffers: &Buffers<'b>,
        finish: &Finish<'_, 'b>,
    ) -> Result<(), KernelError> {
        let longest = self.problem.terms.iter().map(|term| self.problem.part(term)).max().unwrap_or(0);
        let now = self.sums("sum");
        let total = (longest > period(self.class)).then(|| self.sums("total"));
        let groups = self.groups(factors, buffers);
        for group in &groups {
            self.group(group, (&now, total.as_ref()))?;
        }
        if let Some(total) = &total {
            total.take(&now);
        }
        let (b, t, p) = (self.b, &self.tiling, &self.position);
        let quads = self.units.exchange_quads(t);
        let exchange = match self.units {
            Units::Matrix(Factors::Half(_)) => Some(b.shared("exchange", Type::F32X4, quads)),
            Units::Matrix(Factors::F32) => Some(b.shared("exchange", Type::F32, 4 * quads)),
            Units::Plain => None,
        };
        let sums = self.registers(total.unwrap_or(now), exchange);
        let own: Vec<_> = (0..t.tm).map(|i| self.at.finished_row(i)).collect();
        let row_sums = exchange.filter(|array| array.element() == Type::F32X4).or_else(|| {
            let quads = stage::row_sum_quads(t);
            self.problem.has_row_sum.then(|| b.shared("row_sums", Type::F32X4, quads))
        });
        let sums = match (groups.first(), row_sums) {
            (Some(group), Some(array)) => sums.with_rows(group.left.row_sums(array, &own)),
            _ => sums,
        };
        let rows: Vec<_> = own.iter().map(|row| p.tile_m * t.bm + *row).collect();
        let columns: Vec<_> = (0..t.tn / 4).map(|j| p.tile_n * t.bn + self.at.finished_column(j)).collect();
        finish.emit(buffers, (self.words, p), (&rows, &columns), &sums)
    }

    fn sums(&self, name: &str) -> Sums<'b> {
        let (b, t, count) = (self.b, &self.tiling, self.problem.sums);
        match self.units {
            Units::Plain => Sums::Plain(Accumulators::new(b, count, (t.tm, t.tn))),
            Units::Matrix(factors) => {
                let [rows, columns] = self.matrices(factors);
                let one = |s: usize, i: u32, j: u32| b.matrix_sum(format!("{name}_{s}_{i}_{j}"), factors);
                let row = |s: usize, i: u32| (0..columns).map(|j| one(s, i, j)).collect();
                Sums::Matrices((0..count).map(|s| (0..rows).map(|i| row(s, i)).collect()).collect())
            }
        }
    }

    /// Rows and columns of matrices of a subgroup.
    fn matrices(&self, factors: Factors) -> [u32; 2] {
        self.tiling.subgroup().map(|length| length / factors.size())
    }

    /// The terms, those with one left factor together; all groups use the same arrays, one after the other.
    fn groups<'a>(&'a self, factors: &[[Sight<'a>; 2]], buffers: &'a Buffers<'b>) -> Vec<Group<'a, 'b>> {
        let (b, t, at) = (self.b, &self.tiling, &self.position);
        let left = stage::arrays(b, "left", t.bm, (*t, self.units));
        let mut rights: Vec<Vec<Shared<'b>>> = Vec::new();
        let mut groups: Vec<Group<'a, 'b>> = Vec::new();
        for (n, term) in self.problem.terms.iter().enumerate() {
            let plan = |side: usize| {
                let (name, rows, tile, size) = if side == 0 {
                    ("left", t.bm, at.tile_m, self.words.m)
                } else {
                    ("right", t.bn, at.tile_n, self.words.n)
                };
                let range = ((tile * rows).named(format!("{name}_first")), size);
                let (tiling, class, units, sight) = (*t, self.class, self.units, factors[n][side]);
                Plan { b, buffers, sight, name, rows, tiling, class, units, range }
            };
            if !term.is_joint {
                let left = Stage::new(plan(0), at.batch, left.clone());
                groups.push(Group { left, rights: Vec::new(), range: at.ranges[n] });
            }
            let Some(group) = groups.last_mut() else { continue };
            let number = group.rights.len();
            if rights.len() == number {
                rights.push(stage::arrays(b, "right", t.bn, (*t, self.units)));
            }
            group.rights.push((term.sum, Stage::new(plan(1), at.batch, rights[number].clone())));
        }
        groups
    }

    fn group(
        &self,
        group: &Group<'_, 'b>,
        (now, total): (&Sums<'b>, Option<&Sums<'b>>),
    ) -> Result<(), KernelError> {
        let (b, (start, end), bk) = (self.b, group.range, self.tiling.bk);
        let registers: Vec<Vec<Var<'b>>> = group.stages().map(Stage::registers).collect();
        let all = || group.stages().zip(&registers);
        // Past the end this reads the last product again, which is cheaper than a branch around the loads.
        let fetch = |from: Expr<'b>| all().try_for_each(|(stage, r)| stage.fetch(r, from, end));
        let put = || all().for_each(|(stage, r)| stage.put(r));
        let mut result = fetch(start);
        put();
        result = result.and(fetch(start + bk));
        b.barrier();
        let mut run = |first: Expr<'b>, last: Expr<'b>| {
            b.for_("from", (first, last), bk, |from| {
                // Once the matrices are in registers, the next tile is put down while they are multiplied.
                let factors = self.load(group, now);
                b.barrier();
                put();
                result = result.clone().and(fetch(from + 2 * bk));
                self.multiply(group, &factors, now);
                b.barrier();
            });
        };
        match total {
            None => run(start, end),
            Some(total) => b.for_("chunk", (start, end), period(self.class), |chunk| {
                run(chunk, (chunk + period(self.class)).native_min(end));
                total.take(now);
            }),
        }
        result
    }

    /// The matrices of a staged tile; where there are none, the products themselves are computed here.
    fn load(&self, group: &Group<'_, 'b>, now: &Sums<'b>) -> Vec<Step<'b>> {
        match (self.units, now) {
            (Units::Matrix(factors), _) => {
                let steps = (0..self.tiling.bk).step_by(factors.size() as usize);
                steps.map(|k| self.step(group, factors, k)).collect()
            }
            (Units::Plain, Sums::Plain(sums)) => {
                let bk = self.b.constant(self.tiling.bk);
                self.b.for_("step", (self.b.constant(0_u32), bk), 1_u32, |k| self.plain(group, sums, k));
                Vec::new()
            }
            (Units::Plain, Sums::Matrices(_)) => Vec::new(),
        }
    }

    /// The matrices of the products from `k` on.
    fn step(&self, group: &Group<'_, 'b>, factors: Factors, k: u32) -> Step<'b> {
        let (b, size, terms) = (self.b, factors.size(), self.class.terms() as usize);
        let [rows, columns] = self.matrices(factors);
        let left = |i: u32, term: usize| {
            b.left_matrix("a", group.left.block(term, (self.at.row + i * size, k), true))
        };
        let right = |stage: &Stage<'_, 'b>, j: u32, term: usize| {
            b.right_matrix("b", stage.block(term, (self.at.column + j * size, k), false))
        };
        let of_stage = |stage: &Stage<'_, 'b>| {
            (0..columns).map(|j| (0..terms).map(|term| right(stage, j, term)).collect()).collect()
        };
        Step {
            left: (0..rows).map(|i| (0..terms).map(|term| left(i, term)).collect()).collect(),
            rights: group.rights.iter().map(|(_, stage)| of_stage(stage)).collect(),
        }
    }

    /// Adds the products of loaded matrices to the sums.
    fn multiply(&self, group: &Group<'_, 'b>, steps: &[Step<'b>], sums: &Sums<'b>) {
        let Sums::Matrices(sums) = sums else { return };
        for step in steps {
            for ((sum, _), right) in group.rights.iter().zip(&step.rights) {
                // Neighbouring products add to different sums.
                for &(x, y) in self.class.products() {
                    for (sums, left) in sums[*sum].iter().zip(&step.left) {
                        for (sum, right) in sums.iter().zip(right) {
                            sum.add_product(left[x], right[y]);
                        }
                    }
                }
            }
        }
    }

    /// Adds product `k` of the tile to what the invocation finishes.
    fn plain(&self, group: &Group<'_, 'b>, sums: &Accumulators<'b>, k: Expr<'b>) {
        let (b, t, terms) = (self.b, &self.tiling, self.class.terms() as usize);
        let left: Vec<Vec<Expr<'b>>> = (0..terms)
            .map(|term| (0..t.tm).map(|i| group.left.element(term, self.at.finished_row(i), k)).collect())
            .collect();
        for (sum, stage) in &group.rights {
            let quad = |term: usize, j: u32| {
                let column = self.at.finished_column(j);
                b.vector(&(0..4_u32).map(|c| stage.element(term, column + c, k)).collect::<Vec<_>>())
            };
            let right: Vec<Vec<_>> =
                (0..terms).map(|term| (0..t.tn / 4).map(|j| quad(term, j)).collect()).collect();
            for &(x, y) in self.class.products() {
                sums.add(*sum, (&left[x], &right[y]), self.problem.target.is_hardware);
            }
        }
    }

    /// The sums in ordinary registers: they go through workgroup memory, 16x16 at a time.
    fn registers(&self, sums: Sums<'b>, exchange: Option<Shared<'b>>) -> Accumulators<'b> {
        let (b, t) = (self.b, &self.tiling);
        let (matrices, array) = match (sums, exchange) {
            (Sums::Plain(sums), _) => return sums,
            (Sums::Matrices(matrices), Some(array)) => (matrices, array),
            (Sums::Matrices(_), None) => return Accumulators::new(b, self.problem.sums, (t.tm, t.tn)),
        };
        let registers = Accumulators::new(b, self.problem.sums, (t.tm, t.tn));
        // Elements of the array in a quadruple; matrices side by side in 16 columns.
        let (elements, factors) = match self.units {
            Units::Matrix(Factors::F32) => (4, Factors::F32),
            Units::Matrix(factors) => (1, factors),
            Units::Plain => return registers,
        };
        let (stride, across) = (elements * MATRIX / 4, (MATRIX / factors.size()) as usize);
        let first = self.at.subgroup * (stride * MATRIX);
        let quad = |number: Expr<'b>| match factors {
            Factors::Half(_) => array.load(number),
            Factors::F32 => b.vector(&[0, 1, 2, 3].map(|lane: u32| array.load(number + lane))),
        };
        for (matrices, registers) in matrices.iter().zip(&registers.sums) {
            for (rows, registers) in matrices.chunks(across).zip(registers.chunks(2)) {
                for j in (0..rows[0].len()).step_by(across) {
                    for (i, row) in (0..).zip(rows) {
                        for (column, matrix) in (0..).zip(&row[j..j + across]) {
                            let [down, right] = [i, column].map(|n: u32| n * factors.size());
                            let index = first + (down * stride + right * elements / 4);
                            matrix.store(MatrixBlock { array, index, stride, order: Order::Rows });
                        }
                    }
                    b.subgroup_barrier();
                    for (half, row) in (0..).zip(registers) {
                        row[j / across].set(quad(first + (self.at.lane + half * SUBGROUP) * elements));
                    }
                    b.subgroup_barrier();
                }
            }
        }
        registers
    }
}
