//! The second dispatch of a split contraction: partial sums added in the order of the parts, then the epilogue.

use super::finish;
use super::point::Buffers;
use super::problem::Problem;
use crate::KernelError;
use crate::families::Instance;
use crate::families::emit::{Draft, fold_groups, unsupported};
use crate::kir::{Access, Builder, Type};

/// Invocations per workgroup.
const INVOCATIONS: u32 = 64;

/// The instance that adds the parts.
pub(super) fn instance(problem: &Problem<'_>, name: String) -> Result<Instance, KernelError> {
    let sight = problem.outputs();
    let (width, element) = if sight.1.is_some() { (4, Type::F32X4) } else { (1, Type::F32) };
    let b = Builder::new(name.clone(), [INVOCATIONS, 1, 1]);
    let [m, columns, points, parts] = ["m", "columns", "points", "parts"].map(|name| b.param(name));
    let mut buffers = Buffers::new((&b, problem.target), problem.l, &[sight]);
    buffers.results(problem.l, sight.1.is_some());
    let partials = buffers.partials(sight.1.is_some(), Access::Read);
    let id = b.flat_global_id().named("id");
    let mut result = Ok(());
    b.if_(id.lt(points), || {
        let sums: Vec<_> = (0..problem.carries()).map(|_| b.var("sum", b.zero(element))).collect();
        let size = (m * columns).named("size");
        // Parts, batches, sums, rows, columns.
        let first = match problem.carries() {
            1 => id,
            count => id / size * (size * count as u32) + id % size,
        };
        b.for_("part", (0_u32, parts), 1_u32, |part| {
            let first = part * (points * sums.len() as u32) + first;
            for (i, sum) in (0_u32..).zip(&sums) {
                sum.set(sum.get() + partials.load(first + size * i));
            }
        });
        let (column, rest) = (id % columns, id / columns);
        let point = [rest / m, rest % m, column * width];
        let sums: Vec<_> = sums.iter().map(|sum| sum.get()).collect();
        result = finish::write(&b, &buffers, sight, point, &sums);
    });
    result?;
    let [_, rows, n] = problem.sizes;
    let points = problem.points() / u64::from(width);
    let whole = u32::try_from(problem.points() * u64::from(problem.parts()))
        .map_err(|_| unsupported("contract", "more than 2^32 partial sums"));
    let parameters = vec![rows, n / width, whole? / problem.parts() / width, problem.parts()];
    let groups = fold_groups(points.div_ceil(INVOCATIONS.into()), problem.target)?;
    let draft = Draft { name, bindings: buffers.slots(), parameters, groups };
    draft.finish(b, problem.target)
}
