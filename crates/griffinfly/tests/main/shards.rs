//! Weights of other writers: several files with an index, and 16-bit floats.

use crate::fixtures::{Scratch, bits, small};
use griffinfly::import::safetensors::{Dtype, TensorSource, write_atomic};
use griffinfly::{CheckpointFault, Device, Error, Weights};
use std::collections::BTreeMap;

fn words(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// The small model's weights in two files; `extra` is one more tensor of the second.
fn shards(scratch: &Scratch, weights: &Weights, skip: &str, extra: Option<&str>) {
    let mut map = BTreeMap::new();
    for (file, part) in [("one.safetensors", "hidden"), ("two.safetensors", "head")] {
        let names = weights.names().filter(|n| n.starts_with(part) && *n != skip);
        let names: Vec<&str> = names.chain(extra.filter(|_| part == "head")).collect();
        let bytes: Vec<Vec<u8>> =
            names.iter().map(|n| words(&weights.get(n).unwrap_or_else(|_| vec![0.0; 2]))).collect();
        let dims: Vec<Vec<usize>> =
            names.iter().map(|n| weights.dims(n).map_or_else(|_| vec![2], <[usize]>::to_vec)).collect();
        let source =
            |i: usize| TensorSource { name: names[i], dtype: Dtype::F32, shape: &dims[i], bytes: &bytes[i] };
        let sources: Vec<_> = (0..names.len()).map(source).collect();
        write_atomic(&scratch.file(file), &sources, &BTreeMap::new()).unwrap();
        map.extend(names.iter().map(|n| ((*n).to_owned(), file)));
    }
    let index = serde_json::json!({ "metadata": { "total_size": 0 }, "weight_map": map });
    std::fs::write(scratch.file("model.safetensors.index.json"), index.to_string()).unwrap();
}

#[test]
fn several_files_load_like_one() {
    let (device, scratch) = (Device::host(), Scratch::new("shards"));
    let graph = small().training;
    let weights = Weights::init(&device, graph.graph(), 9).unwrap();
    shards(&scratch, &weights, "", None);
    for path in [scratch.path().to_owned(), scratch.file("model.safetensors.index.json")] {
        let other = Weights::empty(&device, graph.graph()).unwrap();
        other.load(path).unwrap();
        assert_eq!(bits(&weights), bits(&other));
    }
}

#[test]
fn everything_that_does_not_fit_is_one_error() {
    let (device, scratch) = (Device::host(), Scratch::new("misfit"));
    let weights = Weights::init(&device, small().training.graph(), 9).unwrap();
    let before = bits(&weights);
    shards(&scratch, &weights, "hidden.bias", Some("other"));
    let Error::Checkpoint { faults, .. } = weights.load(scratch.path()).unwrap_err() else {
        panic!("faults")
    };
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(
        faults.iter().any(|f| matches!(f, CheckpointFault::Missing { name, .. } if name == "hidden.bias"))
    );
    assert!(faults.iter().any(|f| matches!(f, CheckpointFault::Unexpected { name, .. } if name == "other")));
    assert_eq!(bits(&weights), before);
}

#[test]
fn halves_widen_to_the_same_numbers() {
    let (device, scratch) = (Device::host(), Scratch::new("halves"));
    let mut g = griffinfly::Graph::new();
    g.parameter("b", [4], griffinfly::Init::ZEROS);
    g.parameter("h", [8], griffinfly::Init::ZEROS);
    let bf16: Vec<u8> = [0x3f80_u16, 0xc049, 0x0001, 0x7f80].iter().flat_map(|x| x.to_le_bytes()).collect();
    let f16: Vec<u8> = [0x3c00_u16, 0xc000, 0x3555, 0x0001, 0x83ff, 0x7bff, 0xfc00, 0x7e00]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let sources = [
        TensorSource { name: "b", dtype: Dtype::BF16, shape: &[4], bytes: &bf16 },
        TensorSource { name: "h", dtype: Dtype::F16, shape: &[8], bytes: &f16 },
    ];
    let file = scratch.file("w.safetensors");
    write_atomic(&file, &sources, &BTreeMap::new()).unwrap();
    let weights = Weights::empty(&device, &g).unwrap();
    weights.load(&file).unwrap();
    assert_eq!(weights.get("b").unwrap(), [1.0, -3.140_625, f32::from_bits(1 << 16), f32::INFINITY]);
    let h = weights.get("h").unwrap();
    let step = 2.0_f32.powi(-24);
    assert_eq!(h[..7], [1.0, -2.0, 0.333_251_95, step, -1023.0 * step, 65504.0, f32::NEG_INFINITY]);
    assert!(h[7].is_nan());
}
