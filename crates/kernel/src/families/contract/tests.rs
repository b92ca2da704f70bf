//! The table, the default choices, and proof by naga that every tiling prints valid kernels.

use super::*;
use crate::kir::Factors;
use crate::{print, spirv};
use griffinfly_ir::index::{Access, Store};
use griffinfly_ir::loops::{Body, Contract};
use griffinfly_ir::target::HalfFormat;
use griffinfly_ir::types::{DType, TensorType};

/// `y[m, n] = sum over k of a[m, k] b[n, k]`.
fn product(m: usize, n: usize, k: usize) -> Loop {
    let (a, b) = (TensorType::f32([m, k]), TensorType::f32([n, k]));
    let mut epilogue = Body::new();
    let acc = epilogue.expr.carry(0, DType::F32);
    epilogue.output(acc);
    let contract = Contract {
        batch: vec![],
        m: vec![m],
        n: vec![n],
        k: vec![k],
        a: Body::of_load(0, &a, Access::identity(2)),
        b: Body::of_load(1, &b, Access::identity(2)),
        more: vec![],
        epilogue,
        stores: vec![Store::identity(0, 2)],
    };
    Loop { operands: vec![a, b], results: vec![TensorType::f32([m, n])], kind: LoopKind::Contract(contract) }
}

/// The same with the sum of the squares of each row of the left factor, which is added to every result of the row.
fn with_row_sum(mut l: Loop) -> Loop {
    let LoopKind::Contract(c) = &mut l.kind else { panic!("not a contraction") };
    let x = c.a.expr.outputs()[0];
    let square = c.a.expr.mul(x, x);
    c.a.expr.set_outputs(vec![x, square]);
    let mut epilogue = Body::new();
    let [sum, row] = [0, 1].map(|carry| epilogue.expr.carry(carry, DType::F32));
    let all = epilogue.expr.add(sum, row);
    epilogue.output(all);
    c.epilogue = epilogue;
    l
}

fn contract(l: &Loop) -> &Contract {
    let LoopKind::Contract(c) = &l.kind else { panic!("not a contraction") };
    c
}

/// A large hardware device.
fn hardware() -> Target {
    Target {
        is_hardware: true,
        compute_units: 132,
        max_workgroup_bytes: 48 << 10,
        max_invocations: 1024,
        max_workgroup_size: [1024, 1024, 64],
        ..Target::minimal_vulkan()
    }
}

#[test]
fn tilings_are_well_formed_and_named_apart() {
    let mut names: Vec<String> = Tiling::all().iter().map(ToString::to_string).collect();
    for t in Tiling::all() {
        assert!(t.bm.is_multiple_of(t.tm) && t.bn.is_multiple_of(t.tn), "{t}");
        let outputs = t.tm * t.tn;
        if t.has_lanes() {
            assert!(t.bk.is_power_of_two() && outputs.is_power_of_two() && outputs <= t.bk, "{t}");
            assert!(t.bm == t.tm || t.bn == t.tn, "{t}");
        } else if !t.is_direct() {
            assert!(t.tm.is_multiple_of(4) && t.tn.is_multiple_of(4) && t.bk.is_multiple_of(8), "{t}");
            let (slices, wide) = (t.slices(), t.tn / 4);
            assert!(slices == 1 || slices.is_multiple_of(wide), "{t}: a column of quadruples for each");
            assert!(outputs.is_multiple_of(4 * slices) && t.bk.is_multiple_of(slices), "{t}: equal shares");
            let quads = slices::together(t);
            assert!(slices == 1 || quads * t.invocations() <= slices::length(t), "{t}");
            assert!(slices == 1 || quads.is_multiple_of(slices) || slices.is_multiple_of(quads), "{t}");
        }
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Tiling::all().len());
}

/// What the kernel for matrix units builds on.
#[test]
fn tilings_for_matrix_units_divide_evenly() {
    let mut names: Vec<String> = Tiling::matrices().map(ToString::to_string).collect();
    for t in Tiling::matrices() {
        let [rows, columns] = t.subgroup();
        assert!(t.bm.is_multiple_of(rows) && t.bn.is_multiple_of(columns) && t.bk.is_multiple_of(16), "{t}");
        // Rows that are summed besides: all chunks of an invocation are of the same rows, and their sums fit.
        assert!(t.invocations().is_multiple_of(t.bm / 4), "{t}");
        let exchange = tiling::Units::Matrix(Factors::Half(HalfFormat::F16)).exchange_quads(t);
        let is_shared = t.class() != NumericClass::F32;
        assert!(!is_shared || exchange >= matrix_stage::row_sum_quads(t), "{t}");
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Tiling::matrices().count());
}

#[test]
fn what_fits_where() {
    let fits =
        |target: &Target| Tiling::all().iter().filter(|t| t.fits(target, &target.numeric_classes)).count();
    assert_eq!(fits(&hardware()), Tiling::all().len());
    let without = [Tiling::SMALL_SLICED, Tiling::MIDDLE_SLICED, Tiling::LARGE_DOUBLE];
    assert_eq!(fits(&Target::minimal_vulkan()), Tiling::all().len() - without.len(), "all but {without:?}");
    assert!(fits(&Target { max_workgroup_bytes: 16 << 10, ..Target::minimal_vulkan() }) >= 8);
}

#[test]
fn every_choice_prints_a_valid_kernel() {
    let units = Target { matrix_formats: vec![HalfFormat::F16, HalfFormat::Bf16], ..hardware() };
    let all = [
        (product(132, 68, 96), hardware()),
        (product(37, 5, 70), hardware()),
        (product(132, 68, 4200), units),
        (product(132, 68, 96), apple()),
    ];
    let summed = all.clone().map(|(l, target)| (with_row_sum(l), target));
    for (l, target) in all.into_iter().chain(summed) {
        for choice in choices(&target) {
            // Sums of rows besides are too many for one class, and for the memory of some emulated tilings.
            if !choose::Size::of(contract(&l)).allows(&choice.tiling, &target) {
                assert!(contract(&l).has_row_sum() && realise_with(&l, &target, &choice).is_err());
                continue;
            }
            let dispatches = realise_with(&l, &target, &choice).unwrap().dispatches;
            assert_eq!(dispatches[0].numeric, choice.tiling.class());
            for instance in dispatches {
                let text = print::wgsl(&instance.kernel, &print::PrintOptions::default());
                spirv::compile(&text, print::ENTRY)
                    .unwrap_or_else(|error| panic!("{}: {error}", instance.name));
            }
        }
    }
}

#[test]
fn extents_are_parameters() {
    let (target, choice) = (hardware(), Choice::whole(Tiling::MIDDLE));
    let kernel =
        |m| realise_with(&product(m, 64, 64), &target, &choice).unwrap().dispatches.swap_remove(0).kernel;
    assert_eq!(kernel(64), kernel(1000));
}

#[test]
fn default_choices() {
    let chosen = |m, n, k, target: &Target| {
        let choice = choose(contract(&product(m, n, k)), target);
        format!("{} {}", choice.tiling, choice.split)
    };
    let target = hardware();
    assert_eq!(chosen(2, 3, 4, &target), "direct/1x1 1");
    assert_eq!(chosen(4096, 4096, 4096, &target), "128x128x16/8x8/db 1");
    assert_eq!(chosen(128, 49152, 576, &target), "128x128x16/8x8/db 1");
    assert_eq!(chosen(1536, 1536, 384, &target), "64x64x32/8x8/s4 1");
    assert_eq!(chosen(1024, 1024, 1024, &target), "128x64x16/8x8/s2 1");
    assert_eq!(chosen(1536, 384, 384, &target), "64x32x32/8x4/s4 1");
    assert_eq!(chosen(128, 576, 1536, &target), "64x64x32/8x8/s4 7");
    let beside =
        choose_for(contract(&product(128, 576, 1536)), &target, (&[NumericClass::F32], Neighbours::Many));
    assert_eq!(beside.to_string(), "64x64x16/4x4/db split7 joined");
    assert_eq!(chosen(1, 576, 1536, &target), "gemv 1x1/1x1/128 1");
    assert_eq!(chosen(1, 49152, 576, &target), "gemv 1x2/1x1/64 1");
    assert_eq!(chosen(2, 960, 720, &target), "gemv 2x8/2x4/128 1");
    assert_eq!(chosen(3, 1000, 2048, &target), "gemv 4x8/4x4/128 1");
    assert_eq!(chosen(8, 49152, 576, &target), "gemv 8x16/8x2/16 1");
    assert_eq!(chosen(576, 2, 576, &target), "gemv 2x1/1x1/64 1");
    assert_eq!(chosen(16, 576, 576, &target), "gemv 8x8/8x4/64 1");
    assert_eq!(chosen(16, 49152, 576, &target), "16x64x32/4x4 1");
    assert_eq!(chosen(4, 576, 3, &target), "16x64x32/4x4 1");
    let software = Target::minimal_vulkan();
    assert_eq!(chosen(4096, 32, 144, &software), "direct/16x8 1");
    assert_eq!(chosen(16, 72, 4096, &software), "direct/16x8 7");
    assert_eq!(chosen(16, 9, 4096, &software), "direct/4x4 5");
}

#[test]
fn matrix_units_are_for_large_products_where_they_are_allowed() {
    let units = Target { matrix_formats: vec![HalfFormat::F16, HalfFormat::Bf16], ..hardware() };
    let chosen = |m, n, k, target: &Target, classes: &[NumericClass]| {
        choose_among(contract(&product(m, n, k)), target, classes).tiling.to_string()
    };
    let classes = [NumericClass::F32, NumericClass::Bf16x3, NumericClass::Bf16x2];
    assert_eq!(chosen(4096, 4096, 4096, &units, &classes), "bf16x2/3 128x128x32/64x32");
    assert_eq!(chosen(128, 49152, 576, &units, &classes), "bf16x2/3 128x128x32/64x32");
    assert_eq!(chosen(4096, 4096, 4096, &units, &[NumericClass::F32]), "128x128x16/8x8/db");
    assert_eq!(chosen(4096, 4096, 4096, &hardware(), &classes), "128x128x16/8x8/db");
    assert_eq!(chosen(1536, 1536, 384, &units, &classes), "64x64x32/8x8/s4");
    // One term pays earlier, where its range allows it.
    let class = |m, n, k, class: NumericClass| {
        let l = product(m, n, k);
        [l.clone(), with_row_sum(l)]
            .map(|l| choose_among(contract(&l), &units, &[NumericClass::F32, class]).tiling.class())
    };
    let (f32, f16, bf16) = (NumericClass::F32, NumericClass::F16, NumericClass::Bf16);
    assert_eq!(class(1500, 1536, 384, f16), [f16, f32], "rows that are scaled later may be of any size");
    assert_eq!(class(128, 1536, 576, f16), [f32; 2]);
    assert_eq!(class(1500, 1536, 384, bf16), [bf16; 2]);
    assert_eq!(class(1500, 384, 384, bf16), [f32; 2]);
    let allowed = |is_derivative| griffinfly_ir::target::Contract::Fast.classes(is_derivative);
    assert!(allowed(false).contains(&f16) && !allowed(false).contains(&bf16));
    assert!(allowed(true).contains(&bf16) && !allowed(true).contains(&f16), "gradients are too small");
}

/// A device whose matrices are of f32.
fn apple() -> Target {
    Target { has_f32_matrices: true, compute_units: 10, max_workgroup_bytes: 32 << 10, ..hardware() }
}

#[test]
fn strict_products_use_matrices_of_f32_where_those_are() {
    let unrounded = [NumericClass::F32];
    let chosen = |[m, n, k]: [usize; 3], target: &Target| {
        choose_among(contract(&product(m, n, k)), target, &unrounded).to_string()
    };
    assert_eq!(chosen([1024; 3], &apple()), "f32 64x64x16/32x32");
    assert_eq!(chosen([4096; 3], &apple()), "f32 64x64x16/32x32");
    assert_eq!(chosen([1, 576, 1536], &apple()), "gemv 1x1/1x1/128");
    let without = Target { has_f32_matrices: false, ..apple() };
    for size in [[1024; 3], [4096; 3]] {
        assert!(!chosen(size, &without).starts_with("f32"));
        let (l, classes) = (product(size[0], size[1], size[2]), (&unrounded[..], Neighbours::None));
        let is_for_matrices = |choice: &Choice| matches!(choice.tiling.staging, Staging::Matrix(_));
        let count = |target: &Target| {
            candidates(contract(&l), target, classes, 60).iter().filter(|c| is_for_matrices(c)).count()
        };
        assert!(count(&apple()) > 4 && count(&without) == 0, "nobody measures what is emulated");
    }
    // A table that was measured elsewhere is no reason to emulate.
    let (text, l) = ("f32 64x64x16/32x32", product(1024, 1024, 1024));
    let key = crate::families::tuned::key(&l, &unrounded).unwrap();
    let mut choices = crate::families::tuned::Choices::new();
    choices.insert(key, text);
    let entry = |target: &Target| crate::families::tuned::entry(&l, target, &unrounded, &choices);
    assert_eq!((entry(&apple()), entry(&without)), (Some(text), None));
}

#[test]
fn partial_sums_never_exceed_a_binding() {
    let target = Target { max_binding_bytes: 1 << 16, ..hardware() };
    let l = product(64, 64, 1 << 14);
    let choice = choose(contract(&l), &target);
    assert_eq!(choice.split, 4);
    assert_eq!(realise(&l, &target).unwrap().scratch, [1 << 16]);
}

/// Rows and columns of an image lie side by side where images do not: pixels are read and written by quadruples all the same.
#[test]
fn axes_are_merged_as_far_as_addresses_allow() {
    let [x, w, y] = [[3, 8, 14, 14], [16, 8, 1, 1], [3, 16, 14, 14]].map(TensorType::f32);
    let at =
        |axes: &[usize]| Access::at(axes.iter().map(|a| griffinfly_ir::index::IndexExpr::axis(*a)).collect());
    let mut epilogue = Body::new();
    let acc = epilogue.expr.carry(0, DType::F32);
    epilogue.output(acc);
    let contract = Contract {
        batch: vec![],
        m: vec![16],
        n: vec![3, 14, 14],
        k: vec![8, 1, 1],
        a: Body::of_load(0, &w, at(&[0, 1, 2, 3])),
        b: Body::of_load(1, &x, at(&[0, 3, 1, 2])),
        more: vec![],
        epilogue,
        stores: vec![Store { result: 0, coords: at(&[1, 0, 2, 3]).coords }],
    };
    let l = Loop { operands: vec![w, x], results: vec![y], kind: LoopKind::Contract(contract) };
    let made = realise_with(&l, &hardware(), &Choice::whole(Tiling::SMALL)).unwrap();
    assert_eq!(made.dispatches[0].name, "contract 32x32x16/4x4 a1 b4r y4");
}
