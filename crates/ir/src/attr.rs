//! Attribute values: floats that hash and compare by their bits.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An `f32` attribute, equal and hashed by its bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct F32(u32);

impl F32 {
    /// Wraps.
    #[must_use]
    pub const fn from_f32(x: f32) -> Self {
        Self(x.to_bits())
    }

    /// Unwraps.
    #[must_use]
    pub const fn get(self) -> f32 {
        f32::from_bits(self.0)
    }
}

impl From<f32> for F32 {
    fn from(x: f32) -> Self {
        Self::from_f32(x)
    }
}

impl std::fmt::Debug for F32 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

impl Serialize for F32 {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if self.get().is_finite() {
            s.serialize_f32(self.get())
        } else {
            s.serialize_str(&format!("{:08x}", self.0))
        }
    }
}

impl<'de> Deserialize<'de> for F32 {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Number(f32),
            Bits(String),
        }
        match Form::deserialize(d)? {
            Form::Number(x) => Ok(F32::from_f32(x)),
            Form::Bits(s) => u32::from_str_radix(&s, 16).map(F32).map_err(serde::de::Error::custom),
        }
    }
}
