//! The axes a body is evaluated over: fewer and longer ones than the loop was written with.
//!
//! Input: extents, an order of the axes, and every index expression used over them. Output: new extents and the same
//! expressions over the new axes. The row-major flat index of a point (in the given order) is the same before and after:
//! axes are only split (`a -> n a' + a''`), dropped (extent 1) or merged with their neighbour. Splitting resolves the
//! divisions and remainders that reshapes leave, so that almost every expression becomes affine; merging makes runs long.

use griffinfly_ir::index::{Atom, Domain, IndexExpr};

/// Rewrites `exprs` over the axes `order` of `extents` and gives the extents of the new axes (at least one).
pub(super) fn normalise(extents: &[usize], order: &[usize], exprs: &mut [IndexExpr]) -> Vec<usize> {
    let mut axes = Vec::new();
    let mut map = vec![IndexExpr::constant(0); extents.len()];
    for &a in order.iter().filter(|&&a| extents[a] > 1) {
        map[a] = IndexExpr::axis(axes.len());
        axes.push(extents[a]);
    }
    substitute(exprs, &map, &axes);
    for _ in 0..16 {
        let Some((axis, factor)) = exprs.iter().find_map(|e| find_split(e, &axes)) else { break };
        split(exprs, &mut axes, axis, factor);
    }
    let mut a = axes.len().saturating_sub(1);
    while a > 0 {
        a -= 1;
        let mergeable = |e: &IndexExpr| match (e.coefficient(a), e.coefficient(a + 1)) {
            (Some(x), Some(y)) => x == y * axes[a + 1] as i64,
            _ => false,
        };
        if exprs.iter().all(mergeable) {
            merge(exprs, &mut axes, a);
        }
    }
    if axes.is_empty() {
        axes.push(1);
    }
    axes
}

fn substitute(exprs: &mut [IndexExpr], map: &[IndexExpr], axes: &[usize]) {
    for e in exprs {
        *e = e.substitute(map, Domain::of(axes));
    }
}

/// An axis and a factor by which splitting it frees a division or remainder of that axis.
fn find_split(e: &IndexExpr, axes: &[usize]) -> Option<(usize, usize)> {
    e.terms().iter().find_map(|(_, atom)| {
        let (Atom::Div(inner, n) | Atom::Mod(inner, n)) = atom else { return None };
        let direct = inner.terms().iter().find_map(|(c, atom)| {
            let Atom::Axis(a) = atom else { return None };
            let factor = usize::try_from(if *c > 0 && n % c == 0 { n / c } else { 0 }).unwrap_or(0);
            (factor > 1 && factor < axes[*a] && axes[*a].is_multiple_of(factor)).then_some((*a, factor))
        });
        direct.or_else(|| find_split(inner, axes))
    })
}

fn split(exprs: &mut [IndexExpr], axes: &mut Vec<usize>, axis: usize, factor: usize) {
    let image = |a: usize| match a.cmp(&axis) {
        std::cmp::Ordering::Less => IndexExpr::axis(a),
        std::cmp::Ordering::Equal => IndexExpr::axis(a).times(factor as i64).plus(&IndexExpr::axis(a + 1)),
        std::cmp::Ordering::Greater => IndexExpr::axis(a + 1),
    };
    let map: Vec<IndexExpr> = (0..axes.len()).map(image).collect();
    axes[axis] /= factor;
    axes.insert(axis + 1, factor);
    substitute(exprs, &map, axes);
}

/// Merges axis `a + 1` into `a`; every expression is affine in both with matching coefficients.
fn merge(exprs: &mut [IndexExpr], axes: &mut Vec<usize>, a: usize) {
    let map: Vec<IndexExpr> =
        (0..axes.len()).map(|i| IndexExpr::axis(if i > a { i - 1 } else { i })).collect();
    let inner = axes.remove(a + 1);
    axes[a] *= inner;
    for e in exprs {
        let (x, y) = (e.coefficient(a).unwrap_or(0), e.coefficient(a + 1).unwrap_or(0));
        let rest = e.plus(&IndexExpr::axis(a).times(-x)).plus(&IndexExpr::axis(a + 1).times(-y));
        *e = rest.substitute(&map, Domain::of(axes)).plus(&IndexExpr::axis(a).times(y));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(a: usize) -> IndexExpr {
        IndexExpr::axis(a)
    }

    #[test]
    fn host_axes_merge_when_every_expression_agrees() {
        let identity = axis(0).times(20).plus(&axis(1).times(5)).plus(&axis(2));
        let mut exprs = vec![identity.clone()];
        assert_eq!(normalise(&[3, 4, 5], &[0, 1, 2], &mut exprs), vec![60]);
        assert_eq!(exprs[0], axis(0));
        let mut exprs = vec![identity, axis(1)];
        assert_eq!(normalise(&[3, 4, 5], &[0, 1, 2], &mut exprs), vec![3, 4, 5]);
    }

    #[test]
    fn host_axes_split_until_reshapes_are_affine() {
        let extents = [6, 4];
        let flat = axis(0).times(4).plus(&axis(1));
        let domain = Domain::of(&extents);
        let mut exprs = vec![flat.div(8, domain), flat.rem(8, domain)];
        let axes = normalise(&extents, &[0, 1], &mut exprs);
        assert!(exprs.iter().all(IndexExpr::is_affine), "{exprs:?} over {axes:?}");
        assert_eq!(axes, vec![3, 8]);
    }

    #[test]
    fn host_axes_keep_the_value_of_every_point_in_the_new_order() {
        let extents = [4, 3, 6];
        let domain = Domain::of(&extents);
        let flat = axis(0).times(18).plus(&axis(1).times(6)).plus(&axis(2));
        let original =
            vec![flat.div(4, domain).rem(6, domain), axis(2).plus(&axis(0)).div(3, domain), axis(1)];
        let order = [2, 0, 1];
        let mut exprs = original.clone();
        let axes = normalise(&extents, &order, &mut exprs);
        let unflatten = |mut i: usize, dims: &[usize]| {
            let mut p = vec![0; dims.len()];
            for (c, d) in p.iter_mut().zip(dims).rev() {
                (*c, i) = (i % d, i / d);
            }
            p
        };
        for i in 0..72 {
            let (old, new) = (unflatten(i, &[6, 4, 3]), unflatten(i, &axes));
            let point = [old[1], old[2], old[0]];
            for (e, o) in exprs.iter().zip(&original) {
                assert_eq!(e.eval(&new), o.eval(&point), "{o} became {e}");
            }
        }
    }
}
