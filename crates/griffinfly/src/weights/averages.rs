//! The running averages of a graph: the state that its inference reads and does not update.
//!
//! Input: a graph of training or of inference. Output: memory for its averages, with the values they start with. Both graphs of a
//! model have the same averages: those that a training graph updates, inference leaves alone.

use super::placed;
use crate::device::Device;
use crate::error::Error;
use crate::tensors::Tensors;
use griffinfly_ir::graph::{Graph, LeafKind};
use griffinfly_ir::layout::ParameterSpec;
use griffinfly_ir::types::DType;

/// Averages that have not been trained.
pub(super) fn initial(device: &Device, graph: &Graph) -> Result<Tensors, Error> {
    let still = graph.with_running_averages();
    let still = if still.finish().is_ok() { &still } else { graph };
    let used = still.use_counts();
    let (mut specs, mut starts) = (Vec::new(), Vec::new());
    for (id, leaf) in still.leaves() {
        let LeafKind::State { init, mirrors: None } = &leaf.kind else { continue };
        let is_updated = still.updates().iter().any(|update| update.leaf == id);
        if is_updated || used[id.index()] == 0 || leaf.ty.dtype != DType::F32 {
            continue;
        }
        specs.push(ParameterSpec { name: leaf.name.clone(), ty: leaf.ty.clone(), group: None });
        starts.push(init.get());
    }
    let tensors = placed(device, &specs)?;
    let mut images = tensors.blank();
    for (entry, start) in tensors.entries().iter().zip(starts) {
        let bytes = start.to_ne_bytes();
        tensors
            .slice_mut(&mut images, entry)
            .chunks_exact_mut(4)
            .for_each(|word| word.copy_from_slice(&bytes));
    }
    crate::tensors::replace(&[(&tensors, &images)])?;
    Ok(tensors)
}
