//! The tables against the counts of the specification and against the graphs.

use super::*;
use griffinfly::ir::graph::LeafKind;
use griffinfly::ir::layout;
use std::collections::BTreeMap;

#[test]
fn the_tables_have_the_specified_counts() {
    for (name, parameters, tensors) in [
        (Name::SmolLm2, 134_515_008, 272),
        (Name::SmolVla, 99_848_592, 152),
        (Name::UNet, 10_928_768, 181),
        (Name::ResNet50, 25_530_472, 108),
        (Name::Whisper, 8_208_384, 67),
    ] {
        let table = name.at(Size::Full).parameters();
        let count: usize = table.iter().map(|p| p.shape.iter().product::<usize>()).sum();
        assert_eq!((count, table.len()), (parameters, tensors), "{name:?}");
    }
}

/// Parameters and inputs of both shapes, against what the graphs declare.
fn agrees(size: Size) {
    for name in Name::ALL {
        let workload = name.at(size);
        let table: BTreeMap<String, Vec<usize>> =
            workload.parameters().into_iter().map(|p| (p.name, p.shape)).collect();
        for shape in [Shape::Full, Shape::Minimal] {
            let model = workload.model(shape).unwrap();
            let declared: BTreeMap<String, Vec<usize>> =
                layout::parameters(&model.graph).into_iter().map(|p| (p.name, p.ty.dims)).collect();
            assert_eq!(declared, table, "{name:?} {shape:?}");
            let inputs = model.graph.leaves().filter(|(_, l)| l.kind == LeafKind::Input);
            let inputs: BTreeMap<String, Vec<usize>> =
                inputs.map(|(_, l)| (l.name.clone(), l.ty.dims.clone())).collect();
            let given = workload.inputs(shape).into_iter().map(|i| (i.name, i.shape)).collect();
            assert_eq!(inputs, given, "{name:?} {shape:?}");
        }
    }
}

#[test]
fn the_graphs_have_the_parameters_and_inputs_of_the_tables() {
    agrees(Size::Full);
    agrees(Size::Small);
}

#[test]
fn the_minimal_inputs_begin_like_the_full_ones() {
    for name in Name::ALL {
        let workload = name.at(Size::Full);
        for (full, minimal) in workload.inputs(Shape::Full).iter().zip(workload.inputs(Shape::Minimal)) {
            match (&full.values, &minimal.values) {
                (Values::F32(a), Values::F32(b)) => assert_eq!(a[..b.len()], b[..]),
                (Values::I32(a), Values::I32(b)) => assert_eq!(a[..b.len()], b[..]),
                _ => panic!("{} changes its type", full.name),
            }
        }
    }
}

#[test]
fn names_are_those_there_are() {
    assert_eq!(names("all").unwrap().len(), 5);
    assert_eq!(names("unet,smollm2").unwrap(), [Name::UNet, Name::SmolLm2]);
    assert!(names("unet,vgg").unwrap_err().contains("'vgg' is no workload"));
}
