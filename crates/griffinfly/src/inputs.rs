//! Inputs of a step: what a caller gives, checked against what the program takes before any of it is uploaded.

use griffinfly_compile::program::{External, ExternalKind};
use griffinfly_ir::types::{DType, TensorType};

/// Values for one input, row-major.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Input<'a> {
    /// Numbers.
    F32(&'a [f32]),
    /// Ids (classes, tokens).
    I32(&'a [i32]),
    /// Unsigned words.
    U32(&'a [u32]),
}

impl<'a> Input<'a> {
    /// Numbers.
    #[must_use]
    pub fn f32(values: &'a [f32]) -> Self {
        Input::F32(values)
    }

    /// Ids.
    #[must_use]
    pub fn ids(values: &'a [i32]) -> Self {
        Input::I32(values)
    }

    fn dtype(self) -> DType {
        match self {
            Input::F32(_) => DType::F32,
            Input::I32(_) => DType::I32,
            Input::U32(_) => DType::U32,
        }
    }

    fn len(self) -> usize {
        match self {
            Input::F32(v) => v.len(),
            Input::I32(v) => v.len(),
            Input::U32(v) => v.len(),
        }
    }

    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Input::F32(v) => bytemuck::cast_slice(v),
            Input::I32(v) => bytemuck::cast_slice(v),
            Input::U32(v) => bytemuck::cast_slice(v),
        }
    }
}

impl<'a> From<&'a [f32]> for Input<'a> {
    fn from(values: &'a [f32]) -> Self {
        Input::F32(values)
    }
}

impl<'a> From<&'a [i32]> for Input<'a> {
    fn from(values: &'a [i32]) -> Self {
        Input::I32(values)
    }
}

impl<'a> From<&'a [u32]> for Input<'a> {
    fn from(values: &'a [u32]) -> Self {
        Input::U32(values)
    }
}

/// Something that holds the inputs of one step: a batch.
pub trait Feed {
    /// Inputs by name.
    fn inputs(&self) -> Vec<(&str, Input<'_>)>;
}

/// Inputs that do not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// A name no input has.
    #[error("there is no input named '{name}'; the inputs are: {}", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The inputs there are.
        known: Vec<String>,
    },
    /// Inputs that were not given.
    #[error("inputs not set: {}", .0.join(", "))]
    Unset(Vec<String>),
    /// An input given twice.
    #[error("input '{0}' is given twice")]
    Twice(String),
    /// Another dtype.
    #[error("input '{name}' is {ty}, given {given} values")]
    Dtype {
        /// The input.
        name: String,
        /// Its type.
        ty: TensorType,
        /// What was given.
        given: DType,
    },
    /// Another number of values.
    #[error("input '{name}' is {ty} of {} values, given {given}", ty.elements())]
    Length {
        /// The input.
        name: String,
        /// Its type.
        ty: TensorType,
        /// How many values were given.
        given: usize,
    },
    /// An id outside its range.
    #[error("input '{name}': the id at position {position} is {value}, allowed is 0..{limit}{}", or(*ignore))]
    Id {
        /// The input.
        name: String,
        /// Position in the values.
        position: usize,
        /// The id.
        value: i32,
        /// Ids must be below this.
        limit: i32,
        /// An id that is allowed besides.
        ignore: Option<i32>,
    },
}

pub(crate) fn or(ignore: Option<i32>) -> String {
    ignore.map(|id| format!(" or {id}")).unwrap_or_default()
}

/// One input of a program.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) external: usize,
    /// Whether the program reads it.
    pub(crate) used: bool,
}

/// Checks all inputs: names, dtypes, lengths, ids, and that none is missing. Gives the external of each.
pub(crate) fn check(
    externals: &[External],
    slots: &[Slot],
    given: &[(&str, Input<'_>)],
) -> Result<Vec<usize>, InputError> {
    let external = |slot: &Slot| &externals[slot.external];
    let mut chosen = Vec::with_capacity(given.len());
    for (i, (name, input)) in given.iter().enumerate() {
        let Some(slot) = slots.iter().find(|slot| external(slot).name == *name) else {
            let known = slots.iter().map(|slot| external(slot).name.clone()).collect();
            return Err(InputError::Unknown { name: (*name).into(), known });
        };
        if given[..i].iter().any(|(other, _)| other == name) {
            return Err(InputError::Twice((*name).into()));
        }
        check_one(external(slot), *input)?;
        chosen.push(slot.external);
    }
    let unset: Vec<String> = slots
        .iter()
        .filter(|slot| slot.used && !chosen.contains(&slot.external))
        .map(|slot| external(slot).name.clone())
        .collect();
    if unset.is_empty() { Ok(chosen) } else { Err(InputError::Unset(unset)) }
}

fn check_one(external: &External, input: Input<'_>) -> Result<(), InputError> {
    let (name, ty) = (&external.name, &external.ty);
    let fits = ty.dtype == input.dtype() || (ty.dtype == DType::Bool && input.dtype() == DType::U32);
    if !fits {
        return Err(InputError::Dtype { name: name.clone(), ty: ty.clone(), given: input.dtype() });
    }
    if input.len() != ty.elements() {
        return Err(InputError::Length { name: name.clone(), ty: ty.clone(), given: input.len() });
    }
    if let (ExternalKind::Input { id_limit: Some(limit), ignore }, Input::I32(ids)) = (&external.kind, input)
    {
        let (limit, ignore) = (*limit, *ignore);
        let wrong = |id: i32| !(0..limit).contains(&id) && ignore != Some(id);
        if let Some(position) = ids.iter().position(|id| wrong(*id)) {
            let value = ids[position];
            return Err(InputError::Id { name: name.clone(), position, value, limit, ignore });
        }
    }
    Ok(())
}
