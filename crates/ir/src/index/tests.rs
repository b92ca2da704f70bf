//! Index algebra against plain evaluation.

use super::*;
use proptest::prelude::*;

fn points(extents: &[usize]) -> Vec<Vec<usize>> {
    let n: usize = extents.iter().product();
    let strides = crate::types::strides(extents);
    (0..n).map(|i| (0..extents.len()).map(|a| i / strides[a] % extents[a]).collect()).collect()
}

#[test]
fn reshapes_compose_to_identity() {
    let (a, b) = ([6usize, 4], [2usize, 3, 2, 2]);
    let flat = IndexExpr::flatten(&[IndexExpr::axis(0), IndexExpr::axis(1)], &a);
    let there = flat.unflatten(&b, Domain::of(&a));
    let back = IndexExpr::flatten(&there, &b);
    assert_eq!(back, flat, "{back}");
    let coords = back.unflatten(&a, Domain::of(&a));
    assert_eq!(coords, vec![IndexExpr::axis(0), IndexExpr::axis(1)]);
}

#[test]
fn padding_is_proved_and_overreach_is_refused() {
    let e = IndexExpr::axis(0).plus_constant(-1);
    let valid = vec![Bound::new(e.clone(), 0, 4)];
    let padded = Access::at(vec![e.clone()]).when(valid, crate::scalar::Scalar::f32(0.0));
    assert_eq!(padded.verify(&[4], &[6]), Ok(()));
    assert!(Access::at(vec![e]).verify(&[4], &[6]).is_err());
    assert!(Access::identity(1).verify(&[5], &[6]).is_err());
    let beyond = Access::at(vec![IndexExpr::axis(2)]).verify(&[5], &[6]).unwrap_err();
    assert!(beyond.contains("beyond the 1"), "{beyond}");
}

#[test]
fn an_access_that_never_happens_is_in_range() {
    let outside = IndexExpr::constant(-1);
    let never = vec![Bound::new(outside.clone(), 0, 4)];
    assert!(never[0].is_never(Domain::of(&[6])));
    assert!(!Bound::new(IndexExpr::axis(0), 5, 9).is_never(Domain::of(&[6])));
    let access = Access::at(vec![outside.clone(), IndexExpr::constant(0)]);
    assert!(access.verify(&[4, 1], &[6]).is_err());
    assert_eq!(access.when(never.clone(), crate::scalar::Scalar::f32(0.0)).verify(&[4, 1], &[6]), Ok(()));
    // A predicate about a constant says nothing about other constants.
    let assumed = Domain { extents: &[6], bounds: &never };
    assert_eq!(IndexExpr::constant(0).range(assumed), (0, 0));
}

fn expr(depth: u32) -> BoxedStrategy<IndexExpr> {
    let leaf =
        prop_oneof![(0usize..3).prop_map(IndexExpr::axis), (-20i64..20).prop_map(IndexExpr::constant),];
    leaf.prop_recursive(depth, 16, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a.plus(&b)),
            (inner.clone(), -6i64..7).prop_map(|(a, k)| a.times(k)),
            (inner.clone(), 1i64..8).prop_map(|(a, n)| a.div(n, Domain::of(&[3, 4, 5]))),
            (inner, 1i64..8).prop_map(|(a, n)| a.rem(n, Domain::of(&[3, 4, 5]))),
        ]
    })
    .boxed()
}

proptest! {
    #[test]
    fn ranges_enclose_and_operations_are_exact(a in expr(4), b in expr(3), n in 1i64..9) {
        let extents = [3usize, 4, 5];
        let d = Domain::of(&extents);
        let (lo, hi) = a.range(d);
        let (div, rem, sum) = (a.div(n, d), a.rem(n, d), a.plus(&b));
        for p in points(&extents) {
            let v = a.eval(&p);
            prop_assert!(lo <= v && v <= hi);
            prop_assert_eq!(div.eval(&p), v.div_euclid(n));
            prop_assert_eq!(rem.eval(&p), v.rem_euclid(n));
            prop_assert_eq!(sum.eval(&p), v + b.eval(&p));
        }
    }

    #[test]
    fn substitution_is_composition(a in expr(4), x in expr(2), y in expr(2)) {
        // a over axes (0, 1, 2) with axis 0 := x mod 3, axis 1 := y mod 4, axis 2 := axis 2.
        let extents = [3usize, 4, 5];
        let d = Domain::of(&extents);
        let map = [x.rem(3, d), y.rem(4, d), IndexExpr::axis(2)];
        let c = a.substitute(&map, d);
        for p in points(&extents) {
            let q: Vec<usize> = map.iter().map(|e| e.eval(&p) as usize).collect();
            prop_assert_eq!(c.eval(&p), a.eval(&q));
        }
    }
}
