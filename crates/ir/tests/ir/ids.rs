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

/// The uses no host can check, as (user, limit, ignored id).
fn unchecked(g: &Graph) -> Vec<(String, i32, Option<i32>)> {
    g.finish().unwrap();
    let found = g.unchecked_ids();
    found.iter().map(|u| (g.provenance(u.user).join(" "), u.limit.limit, u.limit.ignore)).collect()
}

fn word(g: &mut Graph, x: i32) -> griffinfly_ir::graph::Value {
    let ty = griffinfly_ir::types::TensorType::new(griffinfly_ir::types::DType::I32, []);
    g.constant_words(std::sync::Arc::from([x as u32]), ty)
}

#[test]
fn ids_that_only_move_need_no_further_check() {
    let mut g = Graph::new();
    let (ids, map) = (g.input_ids("ids", [2, 6]), g.input_ids("map", [5]));
    let table = g.parameter("table", [3, 2], Init::ZEROS);
    let mapped = g.embedding(map, ids);
    let padded = g.pad(mapped, 0, [1, 1], 2.0);
    let flat = g.flatten(padded, 0);
    let last = word(&mut g, 2);
    let last = g.insert_axes(last, &[0]);
    let all = g.concat(&[flat, last], 0);
    let y = g.embedding(table, all);
    g.output("y", y);
    assert_eq!(unchecked(&g), []);
}

#[test]
fn ids_made_on_the_device_are_found_once_per_use() {
    use griffinfly_ir::optimizer::{Optimizer, attach};
    let mut g = Graph::new();
    let (a, b) = (g.input_ids("a", [4]), g.input_ids("b", [4]));
    let table = g.parameter("table", [7, 3], Init::ZEROS);
    let sum = g.add(a, b);
    let y = g.scoped("lookup", |g| g.embedding(table, sum));
    let padded = g.pad(a, 0, [0, 1], 9.0);
    let first = g.slice(padded, 0, 0, Some(4));
    let again = g.scoped("again", |g| g.embedding(table, first));
    let y = g.add(y, again);
    let (loss, _) = g.scoped("loss", |g| g.cross_entropy_ignoring(y, sum, -1));
    let stored = g.parameter("unused", [2, 2], Init::ZEROS);
    g.embedding(stored, sum);
    attach(&mut g, &Optimizer::sgd(0.1), loss).unwrap();
    let found = |name: &str, limit, ignore| (name.to_string(), limit, ignore);
    let expected = [
        found("lookup.embedding", 7, None),
        found("again.embedding", 7, None),
        found("loss.cross_entropy", 3, Some(-1)),
    ];
    assert_eq!(unchecked(&g), expected);
}

#[test]
fn constants_out_of_range_are_found() {
    for (id, count) in [(0, 0), (6, 0), (7, 1), (-1, 1)] {
        let mut g = Graph::new();
        let (id, table) = (word(&mut g, id), g.parameter("table", [7, 3], Init::ZEROS));
        let y = g.embedding(table, id);
        g.output("y", y);
        assert_eq!(unchecked(&g).len(), count);
    }
}
