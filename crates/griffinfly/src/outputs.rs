//! Outputs of a step, by name.

use crate::error::Error;
use griffinfly_ir::types::{DType, TensorType};

/// The values of an output, row-major.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Data {
    /// Numbers.
    F32(Vec<f32>),
    /// Signed integers.
    I32(Vec<i32>),
    /// Unsigned integers, or truth values as 0 and 1.
    U32(Vec<u32>),
}

impl Data {
    /// Zeros of a type.
    pub(crate) fn zeros(ty: &TensorType) -> Data {
        let count = ty.elements();
        match ty.dtype {
            DType::F32 => Data::F32(vec![0.0; count]),
            DType::I32 => Data::I32(vec![0; count]),
            DType::U32 | DType::Bool => Data::U32(vec![0; count]),
        }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Data::F32(v) => bytemuck::cast_slice_mut(v),
            Data::I32(v) => bytemuck::cast_slice_mut(v),
            Data::U32(v) => bytemuck::cast_slice_mut(v),
        }
    }
}

/// One output.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: TensorType,
    /// Its values.
    pub data: Data,
}

/// All outputs of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Outputs(pub(crate) Vec<Output>);

impl Outputs {
    /// All of them, in order of declaration.
    #[must_use]
    pub fn all(&self) -> &[Output] {
        &self.0
    }

    /// An output.
    ///
    /// # Errors
    /// No output of this name.
    pub fn get(&self, name: &str) -> Result<&Output, Error> {
        self.0.iter().find(|o| o.name == name).ok_or_else(|| Error::NoSuchTensor {
            what: "output",
            name: name.into(),
            known: self.0.iter().map(|o| o.name.clone()).collect(),
        })
    }

    /// The numbers of an output.
    ///
    /// # Errors
    /// No output of this name, or one of another dtype.
    pub fn f32(&self, name: &str) -> Result<&[f32], Error> {
        match self.get(name)? {
            Output { data: Data::F32(values), .. } => Ok(values),
            other => Err(other.is_no("f32")),
        }
    }

    /// The integers of an output.
    ///
    /// # Errors
    /// No output of this name, or one of another dtype.
    pub fn i32(&self, name: &str) -> Result<&[i32], Error> {
        match self.get(name)? {
            Output { data: Data::I32(values), .. } => Ok(values),
            other => Err(other.is_no("i32")),
        }
    }
}

impl Output {
    fn is_no(&self, wanted: &str) -> Error {
        Error::TensorType {
            name: self.name.clone(),
            ty: self.ty.clone(),
            given: format!("a request for {wanted}"),
        }
    }
}
