//! Attribute values: floats that hash and compare by their bits.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! float_attribute {
    ($(#[$doc:meta])* $name:ident, $float:ty, $bits:ty, $from:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name($bits);

        impl $name {
            /// Wraps.
            #[must_use]
            pub const fn $from(x: $float) -> Self {
                Self(x.to_bits())
            }

            /// Unwraps.
            #[must_use]
            pub const fn get(self) -> $float {
                <$float>::from_bits(self.0)
            }
        }

        impl From<$float> for $name {
            fn from(x: $float) -> Self {
                Self::$from(x)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.get().fmt(f)
            }
        }

        /// A number where it is finite, else its bits in hexadecimal.
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                if self.get().is_finite() {
                    self.get().serialize(s)
                } else {
                    s.serialize_str(&format!("{:x}", self.0))
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                #[derive(Deserialize)]
                #[serde(untagged)]
                enum Form {
                    Number($float),
                    Bits(String),
                }
                match Form::deserialize(d)? {
                    Form::Number(x) => Ok($name::$from(x)),
                    Form::Bits(s) => {
                        <$bits>::from_str_radix(&s, 16).map($name).map_err(serde::de::Error::custom)
                    }
                }
            }
        }
    };
}

float_attribute! {
    /// An `f32` attribute, equal and hashed by its bits.
    F32, f32, u32, from_f32
}

float_attribute! {
    /// An `f64` attribute, equal and hashed by its bits: a hyperparameter as it was written.
    F64, f64, u64, from_f64
}
