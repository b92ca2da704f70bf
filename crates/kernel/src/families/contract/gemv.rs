//! The product kernel for few rows or few columns: the large factor is read once, as fast as memory gives it.
//!
//! A group of `bk` invocations, the *lanes*, shares one register tile: lane l takes the products `l, l + bk, ..` (in
//! quadruples where a factor is read so), straight from the buffers and with several loads in flight. Then the lanes add up
//! in workgroup memory in a fixed order, and the last one standing of each output runs the epilogue. Where the large factor
//! lies product by product, neighbouring invocations are the lanes of one group; where it lies row by row, neighbouring
//! groups.
//!
//! Rows past the end repeat the last one; products past the end are read inside the range and replaced by zero.

use super::direct::{self, Reader};
use super::finish::{Accumulators, Finish};
use super::point::{Buffers, Sight};
use super::problem::{LAST, Position, Problem, Term, Words};
use super::tiling::Tiling;
use crate::KernelError;
use crate::families::Instance;
use crate::families::emit::{Draft, fold_groups};
use crate::kir::{Builder, Expr, Shared, Type, Var};

/// Loads of one factor that an invocation has in flight on hardware.
const IN_FLIGHT: u32 = 16;
/// The same on software drivers, where code size costs compilation.
const IN_FLIGHT_SOFTWARE: u32 = 4;
/// Nodes of the factors' bodies that may be written out.
const MOST_NODES: u32 = 128;
/// Values that one invocation adds per round of the reduction.
const RADIX: u32 = 8;

/// How the lanes of a group add up. First each passes its sums on such that a lane holds one output, summed over as many
/// lanes as there are outputs; then [`RADIX`] of them become one until one is left.
pub(super) struct Exchange {
    invocations: u32,
    /// Outputs of a group.
    outputs: u32,
    /// Lanes per output after the first round.
    parts: u32,
}

impl Exchange {
    pub(super) const fn of(tiling: &Tiling) -> Self {
        let outputs = tiling.tm * tiling.tn;
        Self { invocations: tiling.invocations(), outputs, parts: tiling.bk / outputs }
    }

    /// Words from one output to the next in the first round; the surplus spreads them over the banks.
    const fn stride(&self) -> u32 {
        self.invocations + self.parts
    }

    /// Words of the first round.
    const fn first(&self) -> u32 {
        if self.outputs == 1 { 0 } else { self.outputs * self.stride() }
    }

    /// Words of workgroup memory.
    pub(super) const fn words(&self) -> u32 {
        let (mut words, mut parts) = (self.first(), self.parts);
        while parts > 1 {
            words += (self.invocations / self.parts) * parts;
            parts = if parts > RADIX { parts / RADIX } else { 1 };
        }
        words
    }
}

/// The instance that computes all products (or the partial sums of every part).
pub(super) fn instance(problem: &Problem<'_>, name: String) -> Result<Instance, KernelError> {
    let tiling = problem.choice.tiling;
    let factors = direct::factors(problem);
    let b = Builder::new(name.clone(), [tiling.invocations(), 1, 1]);
    let words = Words::declare(&b, problem);
    let finish = Finish::new(problem, 1);
    let mut buffers = Buffers::new((&b, problem.target), problem.l, &finish.sights(&factors));
    let finish = finish.bind(&b, &mut buffers);
    let id = b.flat_workgroup_id().named("id");
    let mut result = Ok(());
    b.if_uniform(id.lt(words.total), || {
        let kernel = Gemv { b: &b, problem, tiling, words: &words, position: words.position(id) };
        result = kernel.build(&factors, &buffers, &finish);
    });
    result?;
    let draft = Draft {
        name,
        bindings: buffers.slots(),
        parameters: problem.words()?,
        groups: fold_groups(problem.tiles().2, problem.target)?,
    };
    draft.finish(b, problem.target)
}

struct Gemv<'a, 'b> {
    b: &'b Builder,
    problem: &'a Problem<'a>,
    tiling: Tiling,
    words: &'a Words<'b>,
    position: Position<'b>,
}

/// Which share of which register tile an invocation has.
struct Seat<'b> {
    /// Register tile in the workgroup.
    group: Expr<'b>,
    lane: Expr<'b>,
    /// Invocations from one lane of a group to the next.
    step: u32,
}

/// A finished sum: the output's number in the register tile, and whether this invocation holds it.
struct Total<'b> {
    sum: Var<'b>,
    output: Expr<'b>,
    is_held: Expr<'b>,
    /// The memory in which the lanes added up.
    shared: Option<Shared<'b>>,
}

impl<'b> Gemv<'_, 'b> {
    fn build(
        &self,
        factors: &[[Sight<'_>; 2]],
        buffers: &Buffers<'b>,
        finish: &Finish<'_, 'b>,
    ) -> Result<(), KernelError> {
        let (b, t, at) = (self.b, &self.tiling, &self.position);
        let seat = self.seat(&factors[0]);
        let wide = t.bn / t.tn;
        let row = (at.tile_m * t.bm + (seat.group / wide) * t.tm).named("row");
        let column = (at.tile_n * t.bn + (seat.group % wide) * t.tn).named("column");
        let sums = Accumulators::new(b, self.problem.sums, (t.tm, t.tn));
        let sums = sums.with_rows(direct::rows(self.problem, b));
        for (n, (term, factors)) in self.problem.terms.iter().zip(factors).enumerate() {
            let left = Reader::new(b, buffers, (factors[0], at.batch), (row, self.words.m), t.tm);
            let right = Reader::new(b, buffers, (factors[1], at.batch), (column, self.words.n), t.tn);
            let step = direct::step(factors);
            self.multiply((n, term), (&left, &right), (step, &seat), &sums)?;
        }
        let totals: Vec<_> =
            (0..self.problem.sums).map(|sum| self.total(&seat, &sums.scalars(sum), None)).collect();
        let (vars, total): (Vec<_>, _) = (totals.iter().map(|total| total.sum).collect(), &totals[0]);
        let sums = Accumulators::of(b, &vars).with_rows(self.row_total(&seat, &sums, total.shared));
        let mut result = Ok(());
        b.if_(total.is_held, || {
            let (rows, columns) = ([row + total.output / t.tn], [column + total.output % t.tn]);
            result = finish.emit(buffers, (self.words, at), (&rows, &columns), &sums);
        });
        result
    }

    /// What is summed for the row of the output that the invocation holds, if anything: as one more sum, the same in all
    /// columns, in the memory of another one.
    fn row_total(
        &self,
        seat: &Seat<'b>,
        sums: &Accumulators<'b>,
        shared: Option<Shared<'b>>,
    ) -> Vec<Var<'b>> {
        let rows = sums.row_scalars();
        if rows.is_empty() {
            return Vec::new();
        }
        let each = |row: &Expr<'b>| vec![*row; self.tiling.tn as usize];
        self.b.barrier();
        vec![self.total(seat, &rows.iter().flat_map(each).collect::<Vec<_>>(), shared).sum]
    }

    fn seat(&self, factors: &[Sight<'_>; 2]) -> Seat<'b> {
        let (lanes, groups) = (self.tiling.bk, self.tiling.invocations() / self.tiling.bk);
        let (large, quads) = factors[usize::from(self.tiling.has_few_rows())];
        let by_products = quads == Some(LAST) || (quads.is_none() && large.is_contiguous(LAST));
        let local = self.b.local_index();
        let (group, lane, step) = if groups == 1 {
            (self.b.constant(0_u32), local, 1)
        } else if by_products {
            (local / lanes, local % lanes, 1)
        } else {
            (local % groups, local / groups, groups)
        };
        Seat { group: group.named("group"), lane: lane.named("lane"), step }
    }

    /// Adds the products of a lane for one term: first all loads of a turn of the loop, then the arithmetic.
    fn multiply(
        &self,
        (number, term): (usize, &Term),
        (left, right): (&Reader<'_, 'b>, &Reader<'_, 'b>),
        (step, seat): (u32, &Seat<'b>),
        sums: &Accumulators<'b>,
    ) -> Result<(), KernelError> {
        let (b, (start, end), line) = (self.b, self.position.ranges[number], self.tiling.bk * step);
        let steps = self.steps(term, [left.loads(step), right.loads(step)], line);
        let offset = (seat.lane * step).named("offset");
        let last = (end - step).named("last");
        let fused = self.problem.target.is_hardware;
        let turn = |from: Expr<'b>| {
            let fetch = |i: u32| {
                let k = from + (offset + i * line);
                let at = k.native_min(last);
                Ok((k.lt(end), left.fetch(at, step)?, right.fetch(at, step)?))
            };
            let fetched = (0..steps).map(fetch).collect::<Result<Vec<_>, KernelError>>()?;
            for (inside, mut a, mut c) in fetched {
                let values = a.values.iter_mut().chain(&mut c.values).chain(&mut a.besides).flatten();
                values.for_each(|value| *value = inside.select(*value, b.zero(value.ty())));
                sums.add_all(term.sum, (&left.products(&a.values), &right.products(&c.values)), fused);
                if number == 0 {
                    left.products(&a.besides).iter().for_each(|values| sums.add_rows(values));
                }
            }
            Ok(())
        };
        let mut result = Ok(());
        b.for_("from", (start, end), line * steps, |from| result = turn(from));
        result
    }

    /// Steps of a lane in one turn of the loop: as many as loads and code allow, and no more than the same number of turns
    /// needs.
    fn steps(&self, term: &Term, loads: [u32; 2], line: u32) -> u32 {
        let p = self.problem;
        let most = if p.target.is_hardware { IN_FLIGHT } else { IN_FLIGHT_SOFTWARE };
        let nodes = (term.a.body.expr.nodes().len() + term.b.body.expr.nodes().len()) as u32;
        let most = (most / loads[0].max(loads[1])).min(2 * most / (loads[0] + loads[1]));
        let most = most.min(MOST_NODES / nodes.max(1)).max(1);
        let needed = p.part(term).min(term.k).div_ceil(line);
        needed.div_ceil(needed.div_ceil(most))
    }

    /// Adds what the lanes have of a sum, in memory that is given or new.
    fn total(&self, seat: &Seat<'b>, scalars: &[Expr<'b>], shared: Option<Shared<'b>>) -> Total<'b> {
        let (b, exchange) = (self.b, Exchange::of(&self.tiling));
        let Exchange { outputs, mut parts, .. } = exchange;
        let new = || (exchange.words() > 0).then(|| b.shared("lanes", Type::F32, exchange.words()));
        let memory = shared.or_else(new);
        let (output, part) = (seat.lane / parts, seat.lane % parts);
        let (output, part) = (output.named("output"), part.named("part"));
        let sum = b.var("total", scalars[0]);
        let Some(shared) = memory else {
            return Total { sum, output, is_held: b.constant(true), shared: memory };
        };
        let add = |first: Expr<'b>, (count, step): (u32, u32)| {
            let first = first.named("first");
            let values: Vec<_> = (0..count).map(|i| shared.load(first + i * step)).collect();
            if let Some(value) = values.into_iter().reduce(|x, y| x + y) {
                sum.set(value);
            }
        };
        if outputs > 1 {
            let local = b.local_index();
            for (j, value) in (0_u32..).zip(scalars) {
                shared.store(local + j * exchange.stride(), *value);
            }
            b.barrier();
            let start = local - (seat.lane - part) * seat.step;
            add(output * exchange.stride() + start, (outputs, parts * seat.step));
        }
        let mut base = exchange.first();
        let place = (seat.group * outputs + output).named("place");
        let all = exchange.invocations / parts;
        let mut is_held = b.constant(true);
        while parts > 1 {
            let (radix, line) = (parts.min(RADIX), place * parts + part + base);
            b.if_(is_held, || shared.store(line, sum.get()));
            b.barrier();
            base += all * parts;
            parts /= radix;
            is_held = part.lt(parts);
            b.if_(is_held, || add(line, (radix, parts)));
        }
        Total { sum, output, is_held, shared: memory }
    }
}
