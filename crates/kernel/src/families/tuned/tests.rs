//! Keys tell problems apart, texts name choices exactly, tables are only suggestions.

use super::*;
use griffinfly_ir::attr::F32;
use griffinfly_ir::index::{Access, IndexExpr, Store};
use griffinfly_ir::loops::{AttentionMask, AttentionShape, AttentionVariant};
use griffinfly_ir::types::{DType, TensorType};

const F32_ONLY: &[NumericClass] = &[NumericClass::F32];

/// `y[m, n] = sum over k of a[m, k] b[n, k]`, or with `b[k, n]`.
fn product([m, n, k]: [usize; 3], is_transposed: bool) -> Loop {
    let a = TensorType::f32([m, k]);
    let (b, order) =
        if is_transposed { (TensorType::f32([n, k]), [0, 1]) } else { (TensorType::f32([k, n]), [1, 0]) };
    let mut epilogue = Body::new();
    let acc = epilogue.expr.carry(0, DType::F32);
    epilogue.output(acc);
    let contract = Contract {
        batch: vec![],
        m: vec![m],
        n: vec![n],
        k: vec![k],
        a: Body::of_load(0, &a, Access::identity(2)),
        b: Body::of_load(1, &b, Access::at(order.map(IndexExpr::axis).to_vec())),
        more: vec![],
        epilogue,
        stores: vec![Store::identity(0, 2)],
    };
    Loop { operands: vec![a, b], results: vec![TensorType::f32([m, n])], kind: LoopKind::Contract(contract) }
}

fn hardware() -> Target {
    Target {
        is_hardware: true,
        compute_units: 132,
        max_workgroup_bytes: 48 << 10,
        max_invocations: 1024,
        max_workgroup_size: [1024, 1024, 64],
        max_bindings: 64,
        ..Target::minimal_vulkan()
    }
}

#[test]
fn keys_say_what_speed_depends_on() {
    let of = |l: &Loop, classes| key(l, classes).unwrap();
    let l = product([64, 576, 1536], true);
    assert_eq!(of(&l, F32_ONLY), "contract b1 m64 n576 k*k k1536 e0 f32");
    let other = product([64, 576, 1536], false);
    assert_eq!(of(&other, F32_ONLY), "contract b1 m64 n576 k*r k1536 e0 f32");
    let fast = [NumericClass::F32, NumericClass::Bf16x2];
    assert_eq!(of(&l, &fast), "contract b1 m64 n576 k*k k1536 e0 f32 bf16x2/3");
}

#[test]
fn every_candidate_is_its_text_and_runs() {
    for target in [hardware(), Target::minimal_vulkan()] {
        for size in [[64, 576, 1536], [4096, 64, 576], [1, 960, 320], [3, 5, 7], [2048, 2048, 512]] {
            let l = product(size, true);
            let all = candidates(&l, &target, (F32_ONLY, Neighbours::None), 12).unwrap();
            let LoopKind::Contract(c) = &l.kind else { panic!("a contraction") };
            assert_eq!(all[0], contract::choose(c, &target).to_string());
            assert!(all.len() > 2 && all.len() <= 12, "{size:?} on {}: {all:?}", target.is_hardware);
            for (i, text) in all.iter().enumerate() {
                assert!(!all[..i].contains(text), "{text} twice");
                let choice = contract::parse(text, &target, F32_ONLY).unwrap();
                assert_eq!(choice.to_string(), *text);
                let realised = realise_as(&l, &target, F32_ONLY, text).unwrap();
                assert!(realised.dispatches[0].name.contains(&choice.tiling.to_string()), "{text}");
            }
        }
    }
}

#[test]
fn texts_that_name_nothing_do_not_parse() {
    let target = hardware();
    let parse = |text: &str| contract::parse(text, &target, F32_ONLY);
    for text in [
        "",
        "32x32x16",
        "32x32x17/4x4",
        "32x32x16/4x4 split",
        "32x32x16/4x4 split0",
        "32x32x16/4x4 split1",
        "32x32x16/4x4 split+4",
        "32x32x16/4x4 split04",
        "32x32x16/4x4 joined",
        "direct/1x1 split4 joined",
        "32x32x16/4x4 split4  joined",
        " 32x32x16/4x4",
        "bf16x2/3 64x64x32/32x32",
    ] {
        assert_eq!(parse(text), None, "{text:?}");
    }
    assert!(parse("32x32x16/4x4 split4 joined").is_some());
    let small = Target { max_workgroup_bytes: 16 << 10, ..target.clone() };
    assert_eq!(contract::parse("128x128x16/8x8/db", &small, F32_ONLY), None, "it does not fit");
}

#[test]
fn entries_are_used_where_they_run_and_passed_over_elsewhere() {
    let (l, target) = (product([64, 576, 1536], true), hardware());
    let default = realise_among(&l, &target, F32_ONLY).unwrap();
    let by = |text: &str| {
        let mut choices = Choices::new();
        choices.insert(key(&l, F32_ONLY).unwrap(), text);
        realise_by(&l, &target, F32_ONLY, &choices).unwrap()
    };
    assert_eq!(by("no such tiling"), default);
    let changed = by("16x64x32/4x4 split2");
    assert!(
        changed.dispatches[0].name.starts_with("contract 16x64x32/4x4"),
        "{}",
        changed.dispatches[0].name
    );
    assert_ne!(changed, default);
    let mut elsewhere = Choices::new();
    elsewhere.insert("contract of another size", "16x64x32/4x4");
    assert_eq!(realise_by(&l, &target, F32_ONLY, &elsewhere).unwrap(), default);
}

#[test]
fn attention_has_keys_and_ranked_geometries() {
    let a = Attention {
        variant: AttentionVariant::GradQuery,
        shape: AttentionShape { batch: 2, heads: 9, kv_heads: 3, queries: 128, keys: 96, width: 64 },
        scale: F32::from_f32(0.125),
        mask: AttentionMask::sliding_window(32),
        q: Body::new(),
        k: Body::new(),
        v: Body::new(),
        bias: Some(Body::new()),
        saved: None,
        stores: vec![],
    };
    assert_eq!(
        attention_key(&a, &[NumericClass::F32]),
        "attention GradQuery b2 h9/3 128x96 w64 causal window32 bias"
    );
    let fast = attention_key(&a, griffinfly_ir::target::Contract::Fast.classes(true));
    assert_eq!(fast, "attention GradQuery b2 h9/3 128x96 w64 causal window32 bias bf16x1");
    let target = hardware();
    let ranked = attention::ranked(&a, &target, &[NumericClass::F32], 8).unwrap();
    assert_eq!(ranked.len(), 8);
    assert_eq!(ranked[0], attention::choose(&a, &target).unwrap());
}

/// What a table says of f32 products counts for a contract that may round, where it would not.
#[test]
fn a_problem_that_stays_unrounded_has_the_choice_of_f32() {
    let target = Target {
        numeric_classes: vec![NumericClass::F32, NumericClass::F16],
        matrix_formats: vec![griffinfly_ir::target::HalfFormat::F16],
        ..hardware()
    };
    let fast = [NumericClass::F32, NumericClass::F16];
    let (small, large) = (product([64, 576, 1536], true), product([2048, 2048, 512], true));
    let mut choices = Choices::new();
    for l in [&small, &large] {
        choices.insert(key(l, F32_ONLY).unwrap(), "32x32x16/4x4");
    }
    assert_eq!(entry(&small, &target, &fast, &choices), Some("32x32x16/4x4"));
    assert_eq!(entry(&large, &target, &fast, &choices), None);
    assert_eq!(entry(&large, &target, F32_ONLY, &choices), Some("32x32x16/4x4"));
    choices.insert(key(&small, &fast).unwrap(), "64x64x16/4x4");
    assert_eq!(entry(&small, &target, &fast, &choices), Some("64x64x16/4x4"), "its own comes first");
}

/// The same card without its matrix units, as another API may show it, does not emulate what was measured on them.
#[test]
fn what_was_measured_on_matrix_units_counts_only_with_them() {
    let units = Target { matrix_formats: vec![griffinfly_ir::target::HalfFormat::F16], ..hardware() };
    let without = hardware();
    let fast = [NumericClass::F32, NumericClass::F16];
    let l = product([2048, 2048, 512], true);
    let rounded = contract::choices(&units).into_iter().find(|c| c.tiling.class() == NumericClass::F16);
    let rounded = rounded.unwrap().to_string();
    let mut choices = Choices::new();
    choices.insert(key(&l, &fast).unwrap(), rounded.as_str());
    assert_eq!(entry(&l, &units, &fast, &choices), Some(rounded.as_str()));
    assert_eq!(entry(&l, &without, &fast, &choices), None);
    choices.insert(key(&l, F32_ONLY).unwrap(), "32x32x16/4x4");
    assert_eq!(entry(&l, &without, &fast, &choices), Some("32x32x16/4x4"));
    // Software drivers emulate, for tests.
    let software = Target { is_hardware: false, ..without };
    assert_eq!(entry(&l, &software, &fast, &choices), Some(rounded.as_str()));
}
