//! Value types of the kernel IR: a scalar kind times one, two or four lanes.
//!
//! Vectors of `Bool` exist as values only (results of vector comparisons); bindings, workgroup arrays and variables
//! hold 32-bit numbers.

/// Kind of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// 32-bit float.
    F32,
    /// Signed 32-bit integer, wrapping.
    I32,
    /// Unsigned 32-bit integer, wrapping.
    U32,
    /// Truth value; has no storage form.
    Bool,
}

/// Number of lanes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lanes {
    /// A scalar.
    One,
    /// A pair.
    Two,
    /// A quadruple: the 128-bit access.
    Four,
}

impl Lanes {
    /// The lanes as a number.
    pub const fn count(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    /// The lanes for a number, if there is such a width.
    pub const fn from_count(count: usize) -> Option<Self> {
        match count {
            1 => Some(Self::One),
            2 => Some(Self::Two),
            4 => Some(Self::Four),
            _ => None,
        }
    }
}

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// Kind of each lane.
    pub scalar: Scalar,
    /// Number of lanes.
    pub lanes: Lanes,
}

impl Type {
    /// Scalar float.
    pub const F32: Self = Self::new(Scalar::F32, Lanes::One);
    /// Two floats.
    pub const F32X2: Self = Self::new(Scalar::F32, Lanes::Two);
    /// Four floats.
    pub const F32X4: Self = Self::new(Scalar::F32, Lanes::Four);
    /// Scalar signed integer.
    pub const I32: Self = Self::new(Scalar::I32, Lanes::One);
    /// Two signed integers.
    pub const I32X2: Self = Self::new(Scalar::I32, Lanes::Two);
    /// Four signed integers.
    pub const I32X4: Self = Self::new(Scalar::I32, Lanes::Four);
    /// Scalar unsigned integer.
    pub const U32: Self = Self::new(Scalar::U32, Lanes::One);
    /// Two unsigned integers.
    pub const U32X2: Self = Self::new(Scalar::U32, Lanes::Two);
    /// Four unsigned integers.
    pub const U32X4: Self = Self::new(Scalar::U32, Lanes::Four);
    /// Truth value.
    pub const BOOL: Self = Self::new(Scalar::Bool, Lanes::One);

    /// A type from its parts.
    pub const fn new(scalar: Scalar, lanes: Lanes) -> Self {
        Self { scalar, lanes }
    }

    /// The same lanes of another kind.
    pub const fn with_scalar(self, scalar: Scalar) -> Self {
        Self::new(scalar, self.lanes)
    }

    /// The same kind with other lanes.
    pub const fn with_lanes(self, lanes: Lanes) -> Self {
        Self::new(self.scalar, lanes)
    }

    /// Whether this is a single lane.
    pub const fn is_scalar(self) -> bool {
        matches!(self.lanes, Lanes::One)
    }

    /// Whether the lanes are truth values.
    pub const fn is_bool(self) -> bool {
        matches!(self.scalar, Scalar::Bool)
    }

    /// Whether the lanes are integers.
    pub const fn is_integer(self) -> bool {
        matches!(self.scalar, Scalar::I32 | Scalar::U32)
    }

    /// Bytes in memory (also the array stride).
    pub const fn bytes(self) -> u32 {
        4 * self.lanes.count()
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scalar = match self.scalar {
            Scalar::F32 => "f32",
            Scalar::I32 => "i32",
            Scalar::U32 => "u32",
            Scalar::Bool => "bool",
        };
        match self.lanes {
            Lanes::One => f.write_str(scalar),
            lanes => write!(f, "vec{}<{scalar}>", lanes.count()),
        }
    }
}
