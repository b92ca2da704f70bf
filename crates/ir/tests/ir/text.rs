//! The text form: round trips, and malformed text that must not panic.

use griffinfly_ir::graph::{Graph, Init};
use griffinfly_ir::ops::samples;
use griffinfly_ir::optimizer::{Optimizer, attach};
use griffinfly_ir::types::{DType, TensorType};
use proptest::prelude::*;

fn rich() -> Graph {
    let mut g = Graph::new();
    let x = g.input("x", [2, 3]);
    let ids = g.input_ids("ids", [2]);
    let w = g.grouped_parameter("w", TensorType::f32([3, 3]), Init::Normal(0.02.into()), "qkv");
    let b = g.parameter("b", [3], Init::Uniform(f32::MIN_POSITIVE.into()));
    let s = g.state("running", [3], f32::NEG_INFINITY);
    let table = g.constant(&[0.1, -0.0, f32::NAN, f32::INFINITY, 1e-45, 3.4e38], [2, 3]);
    let words = g.constant_words([0xffff_ffff, 3].into(), TensorType::new(DType::I32, [2]));
    let odd = g.splat(f32::from_bits(0x7fc0_1234), [2, 3]);
    let logits = g.scoped("a \"quoted\"\nscope", |g| {
        let y = g.matmul(x, w);
        let y = g.add(y, b);
        let y = g.add(y, table);
        let y = g.pad(y, 0, [1, 2], f32::NAN);
        g.slice(y, 0, 1, Some(3))
    });
    let padded = g.pad(odd, 1, [1, 0], f32::NEG_INFINITY);
    let same = g.equal(ids, words);
    let loss = g.cross_entropy(logits, ids);
    let mean = g.mean(logits, &[0]);
    g.update(s, mean);
    for (name, v) in [("loss", loss), ("same", same), ("padded \"\n", padded)] {
        g.output(name, v);
    }
    attach(&mut g, &Optimizer::adamw(1e-3), loss).unwrap();
    g
}

#[test]
fn everything_round_trips() {
    let g = rich();
    g.finish().unwrap();
    let text = g.to_string();
    let back: Graph = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(back.to_string(), text);
    assert_eq!(back.nodes().len(), g.nodes().len());
    for id in g.ids() {
        assert_eq!(back.node(id).op(), g.node(id).op(), "attributes are kept to the bit");
        assert_eq!(back.node(id).types(), g.node(id).types());
        assert_eq!(back.node(id).region(), g.node(id).region());
        assert_eq!(back.provenance(id), g.provenance(id));
    }
    assert_eq!((back.outputs(), back.updates()), (g.outputs(), g.updates()));
    assert_eq!(back.leaf("w"), g.leaf("w"));
}

#[test]
fn serde_round_trips_to_the_same_text() {
    let g = rich();
    let json = serde_json::to_string(&g).unwrap();
    let back: Graph = serde_json::from_str(&json).unwrap();
    assert_eq!(back, g);
}

#[test]
fn faults_name_the_line() {
    let good = "%0 = leaf {\"name\":\"x\",\"kind\":\"input\",\"ty\":{\"dtype\":\"f32\",\"dims\":[2]}} () : f32[2] #forward @[]\n";
    good.parse::<Graph>().unwrap();
    let cases = [
        ("%1 = unary {\"f\":\"relu\"} (%0) : f32[3] #forward @[]", 0, "recorded types"),
        ("%1 = unary {\"f\":\"relo\"} (%0) : f32[2] #forward @[]", 2, "unary"),
        ("%1 = unry {\"f\":\"relu\"} (%0) : f32[2] #forward @[]", 2, "unry"),
        ("%1 = unary {\"f\":\"relu\"} (%1) : f32[2] #forward @[]", 0, "not earlier"),
        ("%1 = unary {\"f\":\"relu\"} (%4294967295) : f32[2] #forward @[]", 0, "does not exist"),
        ("%1 = unary {\"f\":\"relu\"} (%0) : f32[2] #backward @[]", 2, "backward"),
        ("%1 = unary {\"f\":\"relu\"} (%0, %0) : f32[2] #forward @[]", 0, "operands"),
        ("%7 = unary {\"f\":\"relu\"} (%0) : f32[2] #forward @[]", 2, "expected node %1"),
        ("output \"y\" %3", 0, "'y'"),
        ("update %0 %0", 0, "no persistent leaf"),
        ("update %9 %0", 0, "node 9"),
        ("nonsense", 2, "expected '%'"),
    ];
    for (line, at, part) in cases {
        let error = match format!("{good}{line}\n").parse::<Graph>() {
            Err(e) => e,
            Ok(g) => panic!("accepted {line}\n{g}"),
        };
        assert_eq!(error.line, at, "{line}: {error}");
        assert!(error.what.contains(part), "{line}: {error}");
    }
    let twice = format!("{good}{}", good.replace("%0", "%1"));
    let error = twice.parse::<Graph>().unwrap_err();
    assert!(error.line == 2 && error.what.contains("used already"), "{error}");
    for name in ["", "a b"] {
        let error = good.replace("\"x\"", &format!("\"{name}\"")).parse::<Graph>().unwrap_err();
        assert!(error.line == 1 && error.what.contains("name"), "{error}");
    }
}

/// Texts of all samples (with their gradients) and of a training graph.
fn corpus() -> Vec<String> {
    let mut all: Vec<String> = samples().iter().map(|s| s.graph().to_string()).collect();
    all.extend(samples().iter().step_by(5).filter_map(|s| s.gradient_graph().ok()).map(|g| g.to_string()));
    all.retain(|t| t.len() < 8000);
    all.push(rich().to_string());
    all
}

fn mutate(text: &mut String, (kind, at, pick): (u8, usize, usize)) {
    const PIECES: [&str; 16] = [
        "%",
        "{",
        "}",
        "[",
        "]",
        "\"",
        ",",
        "0",
        "-1",
        "99999999999999999999",
        "2147483648",
        "null",
        "é",
        "\n",
        "%4294967295",
        "18446744073709551615",
    ];
    let bounds: Vec<usize> = text.char_indices().map(|(i, _)| i).collect();
    let Some(&start) = bounds.get(at % bounds.len().max(1)) else { return };
    let rest = &text[start..];
    match kind % 4 {
        0 => text.insert_str(start, PIECES[pick % PIECES.len()]),
        1 => {
            let end = rest.char_indices().nth(1 + pick % 4).map_or(text.len(), |(i, _)| start + i);
            text.replace_range(start..end, "");
        }
        2 => {
            // Another number in place of the next one.
            if let Some(digit) = rest.find(|c: char| c.is_ascii_digit()) {
                let from = start + digit;
                let len = text[from..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - from);
                text.replace_range(from..from + len, PIECES[7 + pick % 4]);
            }
        }
        _ => {
            let mut lines: Vec<&str> = text.lines().collect();
            let (a, b) = (at % lines.len(), pick % lines.len());
            lines.swap(a, b);
            *text = lines.join("\n");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn malformed_text_never_panics(
        which in any::<usize>(),
        changes in prop::collection::vec((any::<u8>(), any::<usize>(), any::<usize>()), 1..4),
    ) {
        thread_local!(static CORPUS: Vec<String> = corpus());
        let mut text = CORPUS.with(|c| c[which % c.len()].clone());
        changes.into_iter().for_each(|c| mutate(&mut text, c));
        if let Ok(g) = text.parse::<Graph>() {
            prop_assert_eq!(g.verify(), vec![]);
            let printed = g.to_string();
            let back: Graph = printed.parse().expect("what is accepted prints and parses back");
            prop_assert_eq!(back.to_string(), printed);
            let _ = g.id_limits();
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[%=a-z0-9{}()\\[\\]\":,.#@ \n]{0,200}") {
        let _ = text.parse::<Graph>();
    }
}
