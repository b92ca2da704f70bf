//! Whatever is written reads back; whatever is read cannot panic and, if accepted, is consistent.

use proptest::prelude::*;

use super::*;

/// A tensor that owns its parts.
#[derive(Debug, Clone)]
struct Owned {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

fn any_tensor() -> impl Strategy<Value = Owned> {
    let dtypes: Vec<Dtype> = Dtype::all().collect();
    (prop::sample::select(dtypes), prop::collection::vec(0_usize..4, 0..4)).prop_flat_map(|(dtype, shape)| {
        let count = dtype.byte_count(&shape).unwrap();
        prop::collection::vec(any::<u8>(), count).prop_map(move |bytes| Owned {
            dtype,
            shape: shape.clone(),
            bytes,
        })
    })
}

fn any_tensors() -> impl Strategy<Value = BTreeMap<String, Owned>> {
    prop::collection::btree_map(".{0,6}", any_tensor(), 0..5)
}

fn encode(tensors: &BTreeMap<String, Owned>, metadata: &BTreeMap<String, String>) -> Vec<u8> {
    let sources: Vec<_> =
        tensors.iter().map(|(name, owned)| tensor(name, owned.dtype, &owned.shape, &owned.bytes)).collect();
    to_bytes(&sources, metadata).unwrap()
}

/// All that an accepted file promises.
fn assert_consistent(file: &File) {
    for name in file.names() {
        let view = file.tensor(name).expect("every name has its tensor");
        assert_eq!(view.dtype.byte_count(view.shape), Some(view.bytes.len()));
    }
}

proptest! {
    #[test]
    fn round_trip(
        tensors in any_tensors(),
        metadata in prop::collection::btree_map(".{0,6}", ".{0,9}", 0..3),
    ) {
        let bytes = encode(&tensors, &metadata);
        let file = parse(bytes.clone()).unwrap();
        prop_assert_eq!(file.metadata(), &metadata);
        prop_assert_eq!(file.names().len(), tensors.len());
        for (name, owned) in &tensors {
            let view = file.tensor(name).unwrap();
            prop_assert_eq!(
                (view.dtype, view.shape, view.bytes),
                (owned.dtype, owned.shape.as_slice(), owned.bytes.as_slice())
            );
            let offset = view.bytes.as_ptr() as usize - file.bytes.as_ptr() as usize;
            prop_assert!(view.bytes.is_empty() || offset.is_multiple_of(owned.dtype.size()));
        }
    }

    #[test]
    fn truncated_or_lengthened(tensors in any_tensors(), cut in any::<prop::sample::Index>(), extra in 1_usize..9) {
        let mut bytes = encode(&tensors, &BTreeMap::new());
        let length = cut.index(bytes.len());
        prop_assert!(parse(bytes[..length].to_vec()).is_err());
        bytes.resize(bytes.len() + extra, 0);
        prop_assert!(parse(bytes).is_err());
    }

    #[test]
    fn mutated(
        tensors in any_tensors(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let mut bytes = encode(&tensors, &BTreeMap::new());
        for (position, value) in changes {
            let position = position.index(bytes.len());
            bytes[position] = value;
        }
        if let Ok(file) = parse(bytes) {
            assert_consistent(&file);
        }
    }

    /// Digits changed within the header stay valid JSON and reach the checks behind it.
    #[test]
    fn other_numbers(
        tensors in any_tensors(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), b'0'..=b'9'), 1..5),
    ) {
        let mut bytes = encode(&tensors, &BTreeMap::new());
        let digits: Vec<usize> = (8..bytes.len()).filter(|&at| bytes[at].is_ascii_digit()).collect();
        for (position, value) in changes {
            if let Some(&at) = digits.get(position.index(digits.len().max(1))) {
                bytes[at] = value;
            }
        }
        if let Ok(file) = parse(bytes) {
            assert_consistent(&file);
        }
    }

    #[test]
    fn arbitrary_bytes(header in ".{0,60}", data in prop::collection::vec(any::<u8>(), 0..20)) {
        let bytes = file_of(&header, &data);
        if let Ok(file) = parse(bytes) {
            assert_consistent(&file);
        }
        let _ = parse(data);
    }
}
