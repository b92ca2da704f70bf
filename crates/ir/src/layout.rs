//! The parameter layout: where each parameter lies in the weights' arena.
//!
//! Input: the ordered parameter set (name, type, adjacency group) and the chunk size. Output: chunk and byte offset of each.
//! Invariants: offsets are multiples of 256; no tensor crosses a chunk; the members of an adjacency group lie next to each
//! other in declaration order, at the place of the first; the layout depends on nothing else, so every program over the same
//! parameters agrees on it, and moments and gradients mirror it.

use crate::graph::{Graph, LeafKind};
use crate::target::TENSOR_ALIGNMENT;
use crate::types::TensorType;
use serde::{Deserialize, Serialize};

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ParameterSpec {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: TensorType,
    /// Its adjacency group.
    pub group: Option<String>,
}

/// Where a parameter lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Slot {
    /// Chunk number.
    pub chunk: u32,
    /// Byte offset in the chunk.
    pub offset: u64,
}

/// The layout of a parameter set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterLayout {
    /// Slot of each parameter, in the order of the set.
    pub slots: Vec<Slot>,
    /// Bytes of each chunk.
    pub chunks: Vec<u64>,
}

/// A parameter larger than a chunk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parameter '{name}' {ty} takes {bytes} bytes, a chunk of this device holds {limit}")]
pub struct TooLarge {
    /// The parameter.
    pub name: String,
    /// Its type.
    pub ty: TensorType,
    /// Its size.
    pub bytes: u64,
    /// The chunk size.
    pub limit: u64,
}

/// A byte count rounded up to the alignment of tensors.
#[must_use]
pub fn aligned(bytes: u64) -> u64 {
    bytes.div_ceil(TENSOR_ALIGNMENT) * TENSOR_ALIGNMENT
}

/// The parameters of a graph, in order of declaration.
#[must_use]
pub fn parameters(g: &Graph) -> Vec<ParameterSpec> {
    g.leaves()
        .filter_map(|(_, l)| match &l.kind {
            LeafKind::Parameter { group, .. } => {
                Some(ParameterSpec { name: l.name.clone(), ty: l.ty.clone(), group: group.clone() })
            }
            _ => None,
        })
        .collect()
}

impl ParameterLayout {
    /// Lays out a parameter set in chunks of at most `chunk_bytes`.
    ///
    /// # Errors
    /// A parameter larger than a chunk.
    pub fn of(parameters: &[ParameterSpec], chunk_bytes: u64) -> Result<Self, TooLarge> {
        let mut layout = ParameterLayout {
            slots: vec![Slot { chunk: 0, offset: 0 }; parameters.len()],
            chunks: Vec::new(),
        };
        let mut placed = vec![false; parameters.len()];
        for i in 0..parameters.len() {
            if placed[i] {
                continue;
            }
            let group = &parameters[i].group;
            let members: Vec<usize> = (i..parameters.len())
                .filter(|&j| j == i || (group.is_some() && parameters[j].group == *group))
                .collect();
            let size = |j: usize| aligned(parameters[j].ty.bytes() as u64);
            let total: u64 = members.iter().map(|&j| size(j)).sum();
            let together = total <= chunk_bytes;
            if together {
                layout.reserve(total, chunk_bytes);
            }
            for j in members {
                if size(j) > chunk_bytes {
                    let p = &parameters[j];
                    let (name, ty, bytes) = (p.name.clone(), p.ty.clone(), size(j));
                    return Err(TooLarge { name, ty, bytes, limit: chunk_bytes });
                }
                layout.slots[j] = layout.place(size(j), chunk_bytes);
                placed[j] = true;
            }
        }
        Ok(layout)
    }

    /// Starts a new chunk if `bytes` do not fit in the current one.
    fn reserve(&mut self, bytes: u64, chunk_bytes: u64) {
        if self.chunks.last().is_none_or(|c| c + bytes > chunk_bytes) {
            self.chunks.push(0);
        }
    }

    fn place(&mut self, bytes: u64, chunk_bytes: u64) -> Slot {
        self.reserve(bytes, chunk_bytes);
        let chunk = self.chunks.len() - 1;
        let offset = self.chunks[chunk];
        self.chunks[chunk] += bytes;
        Slot { chunk: chunk as u32, offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, elements: usize, group: Option<&str>) -> ParameterSpec {
        ParameterSpec { name: name.into(), ty: TensorType::f32([elements]), group: group.map(Into::into) }
    }

    #[test]
    fn groups_are_adjacent_and_chunks_are_respected() {
        let set =
            [spec("a", 64, None), spec("q", 64, Some("qkv")), spec("b", 1, None), spec("k", 65, Some("qkv"))];
        let l = ParameterLayout::of(&set, 1024).expect("fits");
        let at = |i: usize| (l.slots[i].chunk, l.slots[i].offset);
        assert_eq!([at(0), at(1), at(3), at(2)], [(0, 0), (0, 256), (0, 512), (1, 0)]);
        assert_eq!(l.chunks, [1024, 256]);
        let e = ParameterLayout::of(&[spec("big", 300, None)], 1024).expect_err("too large");
        assert_eq!((e.bytes, e.limit), (1280, 1024));
    }
}
