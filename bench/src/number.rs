//! Numbers in JSON, also those that JSON has no words for: what is not finite is written as the text of Rust (`NaN`, `inf`).

use serde::{Deserialize, Deserializer, Serializer, de::Error};

#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Finite(f64),
    Text(String),
}

pub(crate) fn serialize<S: Serializer>(x: &f64, to: S) -> Result<S::Ok, S::Error> {
    if x.is_finite() { to.serialize_f64(*x) } else { to.serialize_str(&x.to_string()) }
}

pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<f64, D::Error> {
    match Number::deserialize(from)? {
        Number::Finite(x) => Ok(x),
        Number::Text(text) => text.parse().map_err(|_| D::Error::custom(format!("'{text}' is no number"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::gate::difference;

    #[test]
    fn differences_that_are_not_finite_survive_a_file() {
        let d = difference([f64::NAN, 1.0].into_iter(), [f64::INFINITY, 0.1].into_iter());
        let back: crate::gate::Difference =
            serde_json::from_str(&serde_json::to_string(&d).unwrap()).unwrap();
        assert!(back.error.is_nan() && back.reference.is_infinite() && !back.finite);
        assert!(serde_json::from_str::<crate::gate::Difference>(r#"{"error": "much"}"#).is_err());
    }
}
