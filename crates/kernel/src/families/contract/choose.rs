//! Which tiling and split a contraction gets when nothing was measured.
//!
//! On hardware a dispatch should have at least [`WAVES`] workgroups per compute unit: the largest tiling that reaches this,
//! else a smaller one, at last with the products split; few rows or columns go to tilings with lanes. On software drivers the
//! fastest tilings are those with the largest register tile per invocation and no workgroup memory (their loads are one lane
//! at a time, wherever from); small problems get small ones, whose code compiles sooner.

use super::gemv_choice as gemv;
use super::tiling::Tiling;
use griffinfly_ir::loops::Contract;
use griffinfly_ir::target::Target;

/// A tiling and the number of parts the products are split into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    /// The tiling.
    pub tiling: Tiling,
    /// Parts, each summed by its own workgroups; above 1 a second dispatch adds them in order.
    pub split: u32,
}

/// Workgroups per compute unit that fill a device.
const WAVES: u64 = 2;
/// Fewest products per part worth a workgroup.
const LEAST_PART: u64 = 64;
/// Multiplications below which a problem is tiny.
const TINY: u64 = 4096;
/// Time of a load on a software driver, in multiply-adds.
const SOFTWARE_LOAD: u64 = 12;
/// Invocations per CPU that keep a software driver busy.
const SOFTWARE_LANES: u64 = 32;
/// Multiplications below which a software driver compiles large register tiles longer than they save.
const SOFTWARE_LARGE: u64 = 1 << 22;
/// Most parts.
const MOST_PARTS: u64 = 64;

/// Every tiling that the target can run, unsplit and split, for tests and tuning.
#[must_use]
pub fn choices(target: &Target) -> Vec<Choice> {
    let fits = |tiling: &&Tiling| tiling.fits(target, &target.numeric_classes);
    let both = |tiling: &Tiling| [1, 4].map(|split| Choice { tiling: *tiling, split });
    Tiling::all().iter().filter(fits).flat_map(both).collect()
}

/// The choice for a contraction on a target.
#[must_use]
pub fn choose(contract: &Contract, target: &Target) -> Choice {
    let [batch, m, n, k] = contract.sizes().map(|size| size as u64);
    let size = Size { batch, m, n, k };
    if size.work() < TINY {
        return Choice { tiling: Tiling::DIRECT, split: 1 };
    }
    let few = if target.is_hardware { gemv::choose(contract, target) } else { None };
    let choice = match few {
        Some(tiling) => Choice { tiling, split: 1 },
        None if target.is_hardware => hardware(&size, target),
        None => software(&size, target),
    };
    let fits = choice.tiling.fits(target, &target.numeric_classes);
    let tiling = if fits { choice.tiling } else { Tiling::DIRECT };
    let bytes = batch.saturating_mul(m).saturating_mul(n).saturating_mul(4).max(1);
    let most = (target.max_binding_bytes.min(target.chunk_bytes()) / bytes).max(1);
    Choice { tiling, split: choice.split.min(u32::try_from(most).unwrap_or(u32::MAX)) }
}

struct Size {
    batch: u64,
    m: u64,
    n: u64,
    k: u64,
}

impl Size {
    /// Multiplications.
    fn work(&self) -> u64 {
        self.batch.saturating_mul(self.m).saturating_mul(self.n).saturating_mul(self.k)
    }

    fn tiles(&self, tiling: &Tiling) -> u64 {
        self.batch * self.m.div_ceil(tiling.bm.into()) * self.n.div_ceil(tiling.bn.into())
    }

    /// Parts that bring the number of workgroups to `wanted`.
    fn split(&self, tiling: &Tiling, wanted: u64) -> u32 {
        let most = (self.k / LEAST_PART.max(tiling.bk.into())).clamp(1, MOST_PARTS);
        u32::try_from((wanted / self.tiles(tiling).max(1)).clamp(1, most)).unwrap_or(1)
    }
}

/// Thresholds from measured tables (an H200 of 132 units, sizes from 128 to 4096).
fn hardware(size: &Size, target: &Target) -> Choice {
    let fits = |tiling: &&Tiling| tiling.fits(target, &target.numeric_classes);
    let first = |list: &[Tiling]| list.iter().find(fits).copied();
    let units = u64::from(target.compute_units.max(1));
    let split = |tiling: Tiling, waves: u64| Choice { tiling, split: size.split(&tiling, waves * units) };
    let whole = |tiling: Tiling| Choice { tiling, split: 1 };
    if size.m <= 16 || size.n <= 16 {
        return split(if size.m <= 16 { Tiling::FLAT } else { Tiling::TALL }, 2 * WAVES);
    }
    if size.m.min(size.n) <= 32 {
        return split(Tiling::SMALL, WAVES);
    }
    let large = first(&[Tiling::LARGE_DOUBLE, Tiling::LARGE_SHALLOW_DOUBLE, Tiling::LARGE]);
    let middle = first(&[Tiling::MIDDLE_DOUBLE, Tiling::MIDDLE]).unwrap_or(Tiling::SMALL);
    let tiles = size.tiles(&middle);
    match large {
        Some(large) if size.tiles(&large) >= WAVES * units => whole(large),
        _ if tiles >= 2 * WAVES * units => whole(Tiling::MIDDLE_8X8),
        _ if 2 * tiles >= 3 * units => whole(middle),
        _ if size.tiles(&Tiling::SMALL) >= 2 * WAVES * units || size.k < 2 * LEAST_PART => {
            whole(Tiling::SMALL)
        }
        _ => split(middle, WAVES),
    }
}

/// The direct tiling with the least estimated time, split until every CPU has work for all lanes.
fn software(size: &Size, target: &Target) -> Choice {
    let direct = [Tiling::DIRECT, Tiling::DIRECT_4X4, Tiling::DIRECT_8X8, Tiling::DIRECT_16X8];
    let is_large = size.work() >= SOFTWARE_LARGE;
    let direct = if is_large { &direct[..] } else { &direct[..2] };
    let cost = |tiling: &Tiling| {
        let (rows, columns) = (u64::from(tiling.tm), u64::from(tiling.tn));
        size.tiles(tiling) * ((rows + columns) * SOFTWARE_LOAD + rows * columns)
    };
    let tiling = direct.iter().copied().min_by_key(cost).unwrap_or(Tiling::DIRECT);
    let wanted = SOFTWARE_LANES * u64::from(target.compute_units.max(1));
    Choice { tiling, split: size.split(&tiling, wanted) }
}
