//! The table of plans: bytes in both memory modes beside what others take.

use super::book::{CONTRACTS, Platform};
use crate::compare::tables::{mebibytes, table};
use crate::plan;
use crate::record::{Cell, Phase, Run};
use crate::workload::Name;

/// Physical bytes of Meganeura 0.3.0's plans in MiB, inference and training, as measured on an H200 with that release.
const MEGANEURA: [(Name, [u64; 2]); 5] = [
    (Name::SmolLm2, [742, 1561]),
    (Name::SmolVla, [563, 978]),
    (Name::UNet, [82, 108]),
    (Name::ResNet50, [211, 604]),
    (Name::Whisper, [63, 334]),
];

/// Plans for a device, beside the strict peaks of PyTorch there.
pub(super) fn memory(plan: &Run, platforms: &[Platform]) -> String {
    let platform = platforms.iter().find(|p| p.name == plan.device.name);
    let comparison = platform.and_then(|p| p.own(CONTRACTS[0]));
    let theirs = comparison.as_ref().map(|c| c.theirs.as_slice()).unwrap_or_default();
    let find = |workload, phase, mode: &str| -> Option<&Cell> {
        plan.cells.iter().find(|c| (c.workload, c.phase, c.mode.as_str()) == (workload, phase, mode))
    };
    let mut rows = Vec::new();
    for (workload, published) in MEGANEURA {
        for (phase, published) in [Phase::Inference, Phase::Train].into_iter().zip(published) {
            let bytes = |mode| {
                let memory = find(workload, phase, mode).and_then(|c| c.memory.as_ref());
                [memory.and_then(|m| m.physical), memory.and_then(|m| m.lower_bound)].map(mebibytes)
            };
            let ([physical, bound], [fast, _]) = (bytes(plan::MEMORY_FIRST), bytes(plan::SPEED_FIRST));
            let peaks = theirs.iter().filter(|j| j.is_of(workload, phase));
            let peak = peaks.filter_map(|j| j.cell.memory.as_ref()?.peak_allocated).min();
            let names = [workload.text(), phase.text()].map(String::from);
            let numbers = [physical, bound, fast, mebibytes(peak), published.to_string()];
            rows.push(names.into_iter().chain(numbers).collect());
        }
    }
    let header = [
        "workload",
        "phase",
        "plan, memory first",
        "its lower bound",
        "plan, speed first",
        "PyTorch's peak, best mode",
        "Meganeura 0.3.0's plan",
    ];
    let title = format!("Memory in MiB, planned for {} ({})", plan.device.name, plan.device.backend);
    table(&title, &header, &rows)
}
