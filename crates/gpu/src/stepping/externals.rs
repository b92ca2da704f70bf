//! What the host writes before a step and reads after it.
//!
//! The latest value of each input is kept in ordinary memory, with the number of times it was written: who copies it to a device
//! remembers what it copied. Outputs are packed one behind the other for reading back.

use crate::error::GpuError;
use crate::ids::Ids;
use griffinfly_compile::program::{External, ExternalKind, Place, Program};

/// Offset alignment of outputs where they are read back.
const OUTPUT_ALIGNMENT: u64 = 16;

/// The values of inputs and step scalars.
pub(crate) struct Inputs {
    /// By external; `None` for what the host does not write.
    all: Vec<Option<Input>>,
}

/// The value of an input or step scalar.
pub(crate) struct Input {
    name: String,
    pub(crate) place: Place,
    /// Allowed values, where they are ids.
    ids: Option<Ids>,
    pub(crate) bytes: Vec<u8>,
    /// How often it was written.
    version: u64,
}

impl Inputs {
    /// Zeros.
    pub(crate) fn new(program: &Program) -> Self {
        Inputs { all: program.externals.iter().map(input).collect() }
    }

    /// Sets the value of an input for the steps submitted from now on.
    pub(crate) fn write(&mut self, external: usize, bytes: &[u8]) -> Result<(), GpuError> {
        let Some(Some(input)) = self.all.get_mut(external) else {
            let detail = "it is not an input or step scalar".into();
            return Err(GpuError::Usage { what: format!("writing external {external}"), detail });
        };
        let what = || format!("writing `{}`", input.name);
        if bytes.len() != input.bytes.len() {
            let detail = format!("{} bytes, not {}", bytes.len(), input.bytes.len());
            return Err(GpuError::Usage { what: what(), detail });
        }
        if let Some(detail) = input.ids.and_then(|ids| ids.fault(bytes)) {
            return Err(GpuError::Usage { what: what(), detail });
        }
        input.bytes.copy_from_slice(bytes);
        input.version += 1;
        Ok(())
    }

    /// What nobody has seen yet.
    pub(crate) fn unseen(&self) -> Seen {
        Seen(vec![0; self.all.len()])
    }

    /// Copies what is newer than what was seen, and notes that it was seen.
    pub(crate) fn bring(
        &self,
        seen: &mut Seen,
        mut copy: impl FnMut(&Input) -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        for (input, seen) in self.all.iter().zip(&mut seen.0) {
            let Some(input) = input.as_ref().filter(|input| input.version != *seen) else { continue };
            copy(input)?;
            *seen = input.version;
        }
        Ok(())
    }
}

/// By external: the version of the input that was copied.
pub(crate) struct Seen(Vec<u64>);

/// An output where it is read back.
pub(crate) struct Output {
    external: usize,
    pub(crate) place: Place,
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

/// All outputs, packed.
pub(crate) struct Outputs {
    pub(crate) all: Vec<Output>,
    /// Bytes they take together.
    pub(crate) bytes: u64,
}

impl Outputs {
    /// The outputs of a program.
    pub(crate) fn new(program: &Program) -> Self {
        let mut at = 0_u64;
        let mut all = Vec::new();
        for (external, described) in program.externals.iter().enumerate() {
            let bytes = described.ty.bytes() as u64;
            if described.kind == ExternalKind::Output && bytes > 0 {
                all.push(Output { external, place: described.place, at, bytes });
                at = (at + bytes).next_multiple_of(OUTPUT_ALIGNMENT);
            }
        }
        Outputs { all, bytes: at }
    }

    /// Where an output of the given size lies.
    pub(crate) fn find(&self, external: usize, bytes: usize) -> Result<&Output, GpuError> {
        let what = || format!("reading external {external}");
        let Some(output) = self.all.iter().find(|output| output.external == external) else {
            return Err(GpuError::Usage { what: what(), detail: "it is not an output".into() });
        };
        if output.bytes != bytes as u64 {
            let detail = format!("{bytes} bytes, not {}", output.bytes);
            return Err(GpuError::Usage { what: what(), detail });
        }
        Ok(output)
    }
}

fn input(external: &External) -> Option<Input> {
    if !matches!(external.kind, ExternalKind::Input { .. } | ExternalKind::StepScalar) {
        return None;
    }
    Some(Input {
        name: external.name.clone(),
        place: external.place,
        ids: Ids::of(&external.kind),
        bytes: vec![0; external.ty.bytes()],
        version: 0,
    })
}
