//! Which ids an input may hold.

use griffinfly_ir::graph::{Graph, IdLimit, Init};

fn limit_of(g: &Graph, name: &str) -> Option<IdLimit> {
    g.finish().unwrap();
    g.id_limits().get(&g.leaf(name).unwrap().node()).copied()
}

#[test]
fn the_tightest_use_counts() {
    let mut g = Graph::new();
    let ids = g.input_ids("ids", [4]);
    let free = g.input_ids("free", [4]);
    for (name, rows) in [("a", 11), ("b", 7), ("c", 9)] {
        let table = g.parameter(name, [rows, 2], Init::ZEROS);
        g.embedding(table, ids);
    }
    g.equal(ids, free);
    assert_eq!(limit_of(&g, "ids"), Some(IdLimit { limit: 7, ignore: None }));
    assert_eq!(limit_of(&g, "free"), None);
}

#[test]
fn uses_behind_movement_count() {
    let mut g = Graph::new();
    let ids = g.input_ids("ids", [2, 6]);
    let more = g.input_ids("more", [2, 3]);
    let table = g.parameter("table", [13, 2], Init::ZEROS);
    let part = g.slice(ids, 1, 0, Some(3));
    let all = g.concat(&[part, more], 1);
    let turned = g.permute(all, &[1, 0]);
    let flat = g.flatten(turned, 0);
    g.embedding(table, flat);
    assert_eq!(limit_of(&g, "ids"), Some(IdLimit { limit: 13, ignore: None }));
    assert_eq!(limit_of(&g, "more"), Some(IdLimit { limit: 13, ignore: None }));
}

#[test]
fn an_ignored_id_needs_all_uses_to_agree() {
    for (second, expected) in [(Some(-1), Some(-1)), (Some(-2), None), (None, None)] {
        let mut g = Graph::new();
        let labels = g.input_ids("labels", [4]);
        let logits = g.input("logits", [4, 3]);
        g.cross_entropy_ignoring(logits, labels, -1);
        g.cross_entropy_rows(logits, labels, second);
        assert_eq!(limit_of(&g, "labels"), Some(IdLimit { limit: 3, ignore: expected }));
    }
}

#[test]
fn training_keeps_the_limit() {
    use griffinfly_ir::optimizer::{Optimizer, attach};
    let mut g = Graph::new();
    let labels = g.input_ids("labels", [4]);
    let logits = g.parameter("logits", [4, 3], Init::ZEROS);
    let (loss, _) = g.cross_entropy_ignoring(logits, labels, -100);
    attach(&mut g, &Optimizer::sgd(0.1), loss).unwrap();
    assert_eq!(limit_of(&g, "labels"), Some(IdLimit { limit: 3, ignore: Some(-100) }));
}

/// A table of ids: the ids it holds are limited by the table they are looked up in, those that choose from it by its rows.
#[test]
fn ids_of_ids_are_limited_separately() {
    let mut g = Graph::new();
    let ids = g.input_ids("ids", [4]);
    let map = g.input_ids("map", [5]);
    let table = g.parameter("table", [3, 2], Init::ZEROS);
    let mapped = g.embedding(map, ids);
    g.embedding(table, mapped);
    assert_eq!(limit_of(&g, "ids"), Some(IdLimit { limit: 5, ignore: None }));
    assert_eq!(limit_of(&g, "map"), Some(IdLimit { limit: 3, ignore: None }));
}
