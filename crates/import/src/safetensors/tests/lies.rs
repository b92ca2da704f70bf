//! One file per way to lie.

use super::*;
use SafetensorsFault as Fault;

/// The fault of a header over eight bytes of data.
fn header_fault(header: &str) -> Fault {
    fault_of(file_of(header, &[0; 8]))
}

fn text(value: &str) -> String {
    value.to_owned()
}

#[test]
fn lengths() {
    assert_eq!(fault_of(vec![0; 7]), Fault::TooShort { length: 7 });
    let beyond = |header, available| Fault::HeaderBeyondFile { header, available };
    assert_eq!(fault_of(vec![255; 20]), beyond(u64::MAX, 12));
    assert_eq!(fault_of(b"\x03\0\0\0\0\0\0\0{}".to_vec()), beyond(3, 2));
    let header = 100_000_001;
    let mut long = (header as u64).to_le_bytes().to_vec();
    long.resize(8 + header, b' ');
    assert_eq!(fault_of(long), Fault::HeaderTooLong { header: 100_000_001 });
}

#[test]
fn text_that_is_not_a_header() {
    assert_eq!(fault_of(b"\x04\0\0\0\0\0\0\0{\"\xff\"".to_vec()), Fault::HeaderNotUtf8 { position: 2 });
    assert!(matches!(header_fault("{\"a\":"), Fault::HeaderNotJson { .. }));
    assert!(matches!(header_fault("{} {}"), Fault::HeaderNotJson { .. }));
    assert!(matches!(header_fault(&"{\"a\":[".repeat(100_000)), Fault::HeaderNotJson { .. }));
    assert_eq!(header_fault(""), Fault::HeaderNotObject { found: text("nothing") });
    assert_eq!(header_fault("[1]"), Fault::HeaderNotObject { found: text("'['") });
    assert_eq!(header_fault(" {}"), Fault::HeaderNotObject { found: text("' '") });
}

#[test]
fn duplicates() {
    let one = r#"{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
    let two = r#"{"dtype":"F32","shape":[1],"data_offsets":[4,8]}"#;
    assert_eq!(
        header_fault(&format!(r#"{{"a":{one},"a":{two}}}"#)),
        Fault::DuplicateName { tensor: text("a") }
    );
    // The same name, spelled with an escape.
    let escaped = format!(r#"{{"a":{one},"\u0061":{two}}}"#);
    assert_eq!(header_fault(&escaped), Fault::DuplicateName { tensor: text("a") });
    assert_eq!(
        header_fault(r#"{"__metadata__":{},"__metadata__":{}}"#),
        Fault::DuplicateName { tensor: text("__metadata__") }
    );
    assert_eq!(
        header_fault(r#"{"__metadata__":{"k":"1","k":"2"}}"#),
        Fault::DuplicateMetadata { key: text("k") }
    );
    let field = r#"{"a":{"dtype":"F32","shape":[2],"shape":[1],"data_offsets":[0,8]}}"#;
    assert_eq!(header_fault(field), Fault::DuplicateField { tensor: text("a"), field: text("shape") });
}

#[test]
fn metadata_of_the_wrong_kind() {
    let wrong = |key, expected, found| Fault::MetadataType { key: text(key), expected, found };
    assert_eq!(header_fault(r#"{"__metadata__":[]}"#), wrong("__metadata__", "an object", "an array"));
    assert_eq!(header_fault(r#"{"__metadata__":{"step":3}}"#), wrong("step", "a string", "a number"));
}

#[test]
fn fields_missing_or_of_the_wrong_kind() {
    let of = |body: &str| header_fault(&format!(r#"{{"a":{body}}}"#));
    let missing = |field| Fault::MissingField { tensor: text("a"), field };
    assert_eq!(of(r#"{"shape":[],"data_offsets":[0,8]}"#), missing("dtype"));
    assert_eq!(of(r#"{"dtype":"F64","data_offsets":[0,8]}"#), missing("shape"));
    assert_eq!(of(r#"{"dtype":"F64","shape":[]}"#), missing("data_offsets"));
    let wrong = |field, expected, found| Fault::FieldType { tensor: text("a"), field, expected, found };
    let numbers = "an array of whole numbers";
    assert_eq!(of("7"), wrong("its description", "an object", "a number"));
    assert_eq!(of(r#"{"dtype":null}"#), wrong("dtype", "a string", "null"));
    assert_eq!(of(r#"{"dtype":"U8","shape":"8"}"#), wrong("shape", numbers, "a string"));
    assert_eq!(of(r#"{"dtype":"U8","shape":[-8]}"#), wrong("shape", numbers, "a negative number"));
    let fraction = "a number that is not whole or is too large";
    assert_eq!(of(r#"{"dtype":"U8","shape":[8.0]}"#), wrong("shape", numbers, fraction));
    assert_eq!(of(r#"{"dtype":"U8","shape":[18446744073709551616]}"#), wrong("shape", numbers, fraction));
    assert_eq!(
        of(r#"{"dtype":"U8","shape":[8],"data_offsets":[0,4,8]}"#),
        wrong("data_offsets", "two numbers", "another count of numbers")
    );
    let unknown = Fault::UnknownDtype { tensor: text("a"), dtype: text("F8") };
    assert_eq!(of(r#"{"dtype":"F8","shape":[8],"data_offsets":[0,8]}"#), unknown);
}

#[test]
fn sizes_that_do_not_fit() {
    let of = |shape: &str, offsets: &str| {
        header_fault(&format!(r#"{{"a":{{"dtype":"F32","shape":{shape},"data_offsets":{offsets}}}}}"#))
    };
    let (tensor, dtype) = (text("a"), Dtype::F32);
    for shape in [vec![u64::MAX], vec![1 << 32, 1 << 31], vec![0, u64::MAX, u64::MAX]] {
        let fault = of(&format!("{shape:?}"), "[0,0]");
        assert_eq!(fault, Fault::SizeOverflow { tensor: tensor.clone(), dtype, shape });
    }
    let mismatch = |shape: Vec<usize>, expected, found| Fault::ByteCountMismatch {
        tensor: tensor.clone(),
        dtype,
        shape,
        expected,
        found,
    };
    assert_eq!(of("[3]", "[0,8]"), mismatch(vec![3], 12, 8));
    assert_eq!(of("[0]", "[0,8]"), mismatch(vec![0], 0, 8));
    let (begin, end) = (8, 4);
    assert_eq!(of("[1]", "[8,4]"), Fault::OffsetsReversed { tensor: tensor.clone(), begin, end });
    let fault = of("[4]", "[0,16]");
    assert_eq!(fault, Fault::OffsetsOutOfRange { tensor: tensor.clone(), begin: 0, end: 16, available: 8 });
    let begin = u64::MAX - 4;
    let fault = of("[1]", &format!("[{begin},{}]", u64::MAX));
    assert_eq!(fault, Fault::OffsetsOutOfRange { tensor, begin, end: u64::MAX, available: 8 });
}

#[test]
fn places_that_do_not_cover_the_data() {
    let of = |first: &str, second: &str| {
        let entry = |shape_and_place: &str| format!(r#"{{"dtype":"U8",{shape_and_place}}}"#);
        header_fault(&format!(r#"{{"a":{},"b":{}}}"#, entry(first), entry(second)))
    };
    let overlap = Fault::Overlap { tensor: text("b"), begin: 3, previous: text("a"), previous_end: 4 };
    assert_eq!(of(r#""shape":[4],"data_offsets":[0,4]"#, r#""shape":[5],"data_offsets":[3,8]"#), overlap);
    let gap = Fault::Gap { tensor: text("a"), begin: 5, previous_end: 4 };
    assert_eq!(of(r#""shape":[3],"data_offsets":[5,8]"#, r#""shape":[4],"data_offsets":[0,4]"#), gap);
    let inside = Fault::Overlap { tensor: text("b"), begin: 4, previous: text("a"), previous_end: 8 };
    assert_eq!(of(r#""shape":[8],"data_offsets":[0,8]"#, r#""shape":[0],"data_offsets":[4,4]"#), inside);
    let trailing = Fault::TrailingBytes { used: 6, available: 8 };
    assert_eq!(of(r#""shape":[2],"data_offsets":[0,2]"#, r#""shape":[4],"data_offsets":[2,6]"#), trailing);
    assert_eq!(header_fault("{}"), Fault::TrailingBytes { used: 0, available: 8 });
}

#[test]
fn messages_name_the_thing_and_the_numbers() {
    let header = r#"{"conv1.weight":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#;
    let message = parse(file_of(header, &[0; 8])).unwrap_err().to_string();
    assert_eq!(
        message,
        "safetensors bytes in memory: tensor \"conv1.weight\" of F32 [3] needs 12 bytes but has 8"
    );
}
