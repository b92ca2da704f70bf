//! Which tiling and split a contraction gets when nothing was measured.
//!
//! On hardware the time of every tiling and split is estimated from a table of measured rates and the number of workgroups
//! that share a compute unit: a unit that has one workgroup more than others makes all wait; few rows or columns go to
//! tilings with lanes. On software drivers the fastest tilings are those with the largest register tile per invocation and no
//! workgroup memory (their loads are one lane at a time, wherever from); small problems get small ones, whose code compiles
//! sooner.

use super::gemv_choice as gemv;
use super::tiling::Tiling;
use griffinfly_ir::loops::Contract;
use griffinfly_ir::target::{NumericClass, Target};

/// A tiling and the number of parts the products are split into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    /// The tiling.
    pub tiling: Tiling,
    /// Parts, each summed by its own workgroups.
    pub split: u32,
    /// Who adds the parts of a split.
    pub merge: Merge,
}

/// Who adds the parts of a split, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Merge {
    /// A second dispatch.
    Dispatch,
    /// Of the workgroups of a tile the one that finishes last; only with workgroup memory.
    Last,
}

impl Choice {
    /// Without parts.
    #[must_use]
    pub const fn whole(tiling: Tiling) -> Choice {
        Choice { tiling, split: 1, merge: Merge::Dispatch }
    }

    /// Parts that a second dispatch adds.
    #[must_use]
    pub const fn parts(tiling: Tiling, split: u32) -> Choice {
        Choice { tiling, split, merge: Merge::Dispatch }
    }

    /// Parts that the last workgroup adds, as far as that pays.
    pub(super) fn split(tiling: Tiling, split: u32) -> Choice {
        let pays = split > 1 && tiling.is_staged() && split * tiling.bm * tiling.bn <= MOST_JOINED;
        Choice { tiling, split, merge: if pays { Merge::Last } else { Merge::Dispatch } }
    }
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
/// Most partial sums that one workgroup adds: it reads them at the speed of one compute unit.
const MOST_JOINED: u32 = 50_000;
/// Outputs of all sums that one invocation may hold where there are several.
const MOST_SUMS: u32 = 64;
/// Fewest multiplications for matrix units: in whole steps, whose operands come from memory, smaller problems are faster in f32
/// than rounding lets them be, whatever they take alone.
const fn least_work(class: NumericClass) -> u64 {
    match class {
        NumericClass::F16 => 3 << 26,
        NumericClass::Bf16 => 1 << 28,
        NumericClass::F32 => 0,
        NumericClass::Bf16x2 | NumericClass::Bf16x3 => 1 << 31,
    }
}
/// Most parts.
const MOST_PARTS: u64 = 64;

/// Every tiling that the target can run, unsplit and split, for tests and tuning.
#[must_use]
pub fn choices(target: &Target) -> Vec<Choice> {
    let fits = |tiling: &&Tiling| tiling.fits(target, &target.numeric_classes);
    let all = |tiling: &Tiling| {
        let last = Choice { tiling: *tiling, split: 4, merge: Merge::Last };
        let both = [Choice::whole(*tiling), Choice::parts(*tiling, 4)];
        both.into_iter().chain(tiling.is_staged().then_some(last)).collect::<Vec<_>>()
    };
    Tiling::all().iter().chain(Tiling::matrices()).filter(fits).flat_map(all).collect()
}

/// Multiplications of a contraction.
#[must_use]
pub fn work(contract: &Contract) -> u64 {
    Size::of(contract).work()
}

/// The choice for a contraction on a target, with f32 products.
#[must_use]
pub fn choose(contract: &Contract, target: &Target) -> Choice {
    choose_among(contract, target, &[NumericClass::F32])
}

/// The choice for a contraction on a target among tilings of these numeric classes.
#[must_use]
pub fn choose_among(contract: &Contract, target: &Target, classes: &[NumericClass]) -> Choice {
    choose_for(contract, target, (classes, Neighbours::None))
}

/// What runs at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// Nothing that counts.
    None,
    /// Enough to fill the device: tilings whose workgroups need a compute unit for themselves, those in slices, only keep others
    /// from running there.
    Many,
}

/// As [`choose_among`], given what runs at the same time.
#[must_use]
pub fn choose_for(
    contract: &Contract,
    target: &Target,
    (classes, neighbours): (&[NumericClass], Neighbours),
) -> Choice {
    let size = Size::of(contract);
    if size.work() < TINY {
        return Choice::whole(Tiling::DIRECT);
    }
    let few = if target.is_hardware { gemv::choose(contract, target) } else { None };
    let choice = match few {
        Some(tiling) => Choice::whole(tiling),
        None if target.is_hardware => hardware(&size, target, (classes, neighbours)),
        None => software(&size, target),
    };
    let tiling = if size.allows(&choice.tiling, target) { choice.tiling } else { Tiling::DIRECT };
    let points = size.batch.saturating_mul(size.m).saturating_mul(size.n);
    let bytes = points.saturating_mul(4 * contract.carries() as u64).max(1);
    let most = (target.max_binding_bytes.min(target.chunk_bytes()) / bytes).max(1);
    let split = choice.split.min(u32::try_from(most).unwrap_or(u32::MAX));
    if target.is_hardware { Choice::split(tiling, split) } else { Choice::parts(tiling, split) }
}

/// What the choice depends on.
pub(super) struct Size {
    batch: u64,
    m: u64,
    n: u64,
    /// Products of all terms that are staged one after the other.
    k: u64,
    /// Right factors that are staged with one left factor, at most.
    rights: u32,
    sums: u32,
    /// Whether something is summed for every row besides.
    has_row_sum: bool,
}

impl Size {
    pub(super) fn of(contract: &Contract) -> Size {
        let [batch, m, n, _] = contract.sizes().map(|size| size as u64);
        let (mut k, mut rights, mut now) = (0, 1, 0);
        let mut before = None;
        for (extents, a, ..) in contract.terms() {
            let is_joint = before == Some((extents, a));
            before = Some((extents, a));
            now = if is_joint { now + 1 } else { 1 };
            rights = rights.max(now);
            if !is_joint {
                k += extents.iter().product::<usize>() as u64;
            }
        }
        let (sums, has_row_sum) = (contract.sums() as u32, contract.has_row_sum());
        Size { batch, m, n, k, rights, sums, has_row_sum }
    }

    /// Multiplications.
    fn work(&self) -> u64 {
        let points = self.batch.saturating_mul(self.m).saturating_mul(self.n);
        points.saturating_mul(self.k).saturating_mul(self.rights.into())
    }

    /// Whether the register tiles of all sums and the tiles of all factors fit.
    pub(super) fn allows(&self, tiling: &Tiling, target: &Target) -> bool {
        let registers = tiling.tm * tiling.tn * self.sums;
        let besides = if self.has_row_sum { tiling.row_sum_bytes(target) } else { 0 };
        tiling.fits(target, &target.numeric_classes)
            && !(self.has_row_sum && tiling.class() == NumericClass::F16)
            && tiling.bytes_with(self.rights.max(self.sums), target) + besides <= target.max_workgroup_bytes
            && (self.sums == 1 || registers <= if target.is_hardware { MOST_SUMS } else { 2 * MOST_SUMS })
    }

    fn tiles(&self, tiling: &Tiling) -> u64 {
        self.batch * self.m.div_ceil(tiling.bm.into()) * self.n.div_ceil(tiling.bn.into())
    }

    /// Parts with products enough for a workgroup.
    pub(super) fn most_parts(&self, tiling: &Tiling) -> u32 {
        let most = (self.k / LEAST_PART.max(tiling.bk.into())).clamp(1, MOST_PARTS);
        u32::try_from(most).unwrap_or(1)
    }

    /// Parts that bring the number of workgroups to `wanted`.
    fn split(&self, tiling: &Tiling, wanted: u64) -> u32 {
        let wanted = u32::try_from(wanted / self.tiles(tiling).max(1)).unwrap_or(u32::MAX);
        wanted.clamp(1, self.most_parts(tiling))
    }
}

/// What a tiling costs: microseconds of a workgroup for one tile of products, when it has its compute unit for itself and when
/// it shares it with others. Measured on an H200; elsewhere their proportions matter.
#[derive(Clone, Copy)]
pub(super) struct Rate {
    pub(super) tiling: Tiling,
    pub(super) alone: f64,
    pub(super) shared: f64,
}

pub(super) const RATES: [Rate; 10] = [
    Rate { tiling: Tiling::LARGE_DOUBLE, alone: 1.51, shared: 1.6 },
    Rate { tiling: Tiling::WIDE_SLICED, alone: 0.82, shared: 0.81 },
    Rate { tiling: Tiling::MIDDLE_SLICED, alone: 0.85, shared: 0.84 },
    Rate { tiling: Tiling::MIDDLE_SLICED_8X4, alone: 0.49, shared: 0.45 },
    Rate { tiling: Tiling::MIDDLE_DOUBLE, alone: 0.49, shared: 0.46 },
    Rate { tiling: Tiling::MIDDLE_8X4, alone: 0.72, shared: 0.54 },
    Rate { tiling: Tiling::LOW_SLICED, alone: 0.46, shared: 0.42 },
    Rate { tiling: Tiling::LOW, alone: 0.51, shared: 0.24 },
    Rate { tiling: Tiling::SMALL_SLICED, alone: 0.53, shared: 0.49 },
    Rate { tiling: Tiling::SMALL, alone: 0.45, shared: 0.14 },
];

/// The same for the tilings for matrix units with three products of two terms, by the size of their tiles.
const MATRIX_RATES: [([u32; 3], f64, f64); 7] = [
    ([32, 32, 32], 0.40, 0.26),
    ([64, 32, 32], 0.57, 0.41),
    ([64, 64, 16], 0.44, 0.30),
    ([64, 64, 32], 0.73, 0.50),
    ([128, 64, 16], 0.71, 0.47),
    ([128, 128, 16], 0.95, 1.04),
    ([128, 128, 32], 1.71, 1.63),
];

/// The same with one product of single terms, without the way of the sums to ordinary registers.
const SINGLE_RATES: [([u32; 3], f64, f64); 9] = [
    ([64, 64, 64], 0.92, 0.70),
    ([128, 64, 32], 0.70, 0.75),
    ([32, 32, 32], 0.40, 0.23),
    ([64, 32, 32], 0.46, 0.34),
    ([64, 64, 16], 0.40, 0.28),
    ([64, 64, 32], 0.53, 0.40),
    ([128, 64, 16], 0.50, 0.50),
    ([128, 128, 16], 0.40, 0.55),
    ([128, 128, 32], 0.65, 0.9),
];

/// The same for f32: not measured anywhere yet. The small ones have four fifths of the time of those without matrix units, since operands are
/// read less often from workgroup memory while the arithmetic is the same; more registers or workgroup memory are no gain.
const F32_RATES: [([u32; 3], f64, f64); 5] = [
    ([32, 32, 16], 0.36, 0.11),
    ([64, 32, 16], 0.41, 0.19),
    ([64, 64, 16], 0.39, 0.37),
    ([64, 64, 32], 0.74, 0.76),
    ([128, 64, 16], 0.70, 0.75),
];

/// The rates of all tilings for matrix units.
pub(super) fn matrix_rates() -> impl Iterator<Item = Rate> {
    let rate = |tiling: &Tiling| {
        let block = [tiling.bm, tiling.bn, tiling.bk];
        let rates = match tiling.class() {
            NumericClass::F32 => &F32_RATES[..],
            NumericClass::F16 | NumericClass::Bf16 => &SINGLE_RATES,
            NumericClass::Bf16x3 | NumericClass::Bf16x2 => &MATRIX_RATES,
        };
        let (_, alone, shared) = *rates.iter().find(|(size, ..)| *size == block)?;
        if tiling.class().terms() == 1 {
            return Some(Rate { tiling: *tiling, alone, shared });
        }
        // Half of the time is that of the products, the rest that of rounding and staging.
        let share = 0.5 + f64::from(tiling.class().products().len() as u32) / 6.0;
        Some(Rate { tiling: *tiling, alone: alone * share, shared: shared * share })
    };
    Tiling::matrices().filter_map(rate)
}

/// A dispatch that waits for another one, and the beginning and end of a workgroup, in microseconds.
const LEVEL: f64 = 2.5;
const ENDS: f64 = 1.2;
/// Time of a further right factor beside the first.
const MORE: f64 = 0.8;
/// Beginning and end of a workgroup where workgroups share a unit, without and with slices to add up.
const BETWEEN: [f64; 2] = [0.5, 1.2];
/// The way of a matrix of sums to ordinary registers.
const MATRIX_END: f64 = 0.3;
/// Partial sums that one compute unit, and the device, read in a microsecond.
const UNIT_SUMS: f64 = 27_000.0;
const DEVICE_SUMS: f64 = 700_000.0;

impl Rate {
    /// Estimated microseconds of a problem.
    pub(super) fn time(&self, size: &Size, split: u32, units: u64) -> f64 {
        let t = self.tiling;
        let part = size.k.div_ceil(split.into()).next_multiple_of(t.bk.into());
        let parts = size.k.div_ceil(part);
        // A further right factor shares the left one and the barriers.
        let more = 1.0 + MORE * f64::from(size.rights - 1);
        let between = BETWEEN[usize::from(t.slices() > 1)];
        let (groups, steps) = (size.tiles(&t) * parts, more * (part / u64::from(t.bk)) as f64);
        // The rates of several terms are those of whole kernels.
        let matrices = if t.class().terms() == 1 { t.subgroup_matrices() } else { 0.0 };
        let end = matrices * f64::from(size.sums) * MATRIX_END;
        let between = between + end;
        let sums = LEVEL
            + ENDS
            + end
            + match groups.div_ceil(units) {
                1 => steps * self.alone,
                2 => (2.0 * (steps * self.shared + between)).max(steps * self.alone),
                // Units that are done early take from those that are not.
                _ => {
                    let shared = (groups as f64 / units as f64 + 0.5) * (steps * self.shared + between);
                    shared.max(steps * self.alone)
                }
            };
        if parts == 1 {
            return sums;
        }
        let tile = u64::from(t.bm * t.bn * size.sums);
        match Choice::split(t, split).merge {
            Merge::Last => {
                sums + ENDS + (parts * tile) as f64 / UNIT_SUMS + (groups * tile) as f64 / DEVICE_SUMS
            }
            Merge::Dispatch => {
                let all = size.batch * size.m * size.n * parts * u64::from(size.sums);
                sums + LEVEL + all as f64 / DEVICE_SUMS
            }
        }
    }
}

/// The choice with the least estimated time; few rows or columns have tilings of their own.
fn hardware(size: &Size, target: &Target, (classes, neighbours): (&[NumericClass], Neighbours)) -> Choice {
    let units = u64::from(target.compute_units.max(1));
    if size.m <= 16 || size.n <= 16 {
        let tiling = if size.m <= 16 { Tiling::FLAT } else { Tiling::TALL };
        return Choice::parts(tiling, size.split(&tiling, 2 * WAVES * units));
    }
    let fits = |tiling: &Tiling| size.allows(tiling, target);
    let large = [Tiling::LARGE_DOUBLE, Tiling::LARGE_SHALLOW_DOUBLE, Tiling::LARGE].into_iter().find(fits);
    let has_units = |class: NumericClass| {
        let has = |format| target.matrix_formats.contains(&format);
        size.work() >= least_work(class) && class.format().map_or(target.has_f32_matrices, has)
    };
    let is_plain = !classes.iter().any(|class| has_units(*class));
    if let Some(large) = large.filter(|large| is_plain && size.tiles(large) >= WAVES * units) {
        return Choice::whole(large);
    }
    let mut best = (f64::INFINITY, Choice::whole(Tiling::SMALL));
    let allowed = |tiling: &Tiling| {
        let class = tiling.class();
        let is_apart = tiling.slices() == 1 || neighbours == Neighbours::None;
        (class == NumericClass::F32 || has_units(class))
            && classes.contains(&class)
            && is_apart
            && !tiling.is_emulated(target)
            && fits(tiling)
    };
    let rates = RATES.into_iter().chain(matrix_rates());
    for rate in rates.filter(|rate| allowed(&rate.tiling)) {
        for split in 1..=size.most_parts(&rate.tiling) {
            let time = rate.time(size, split, units);
            if time < best.0 {
                best = (time, Choice::parts(rate.tiling, split));
            }
        }
    }
    best.1
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
    let allowed = direct.iter().filter(|tiling| size.allows(tiling, target));
    let tiling = allowed.copied().min_by_key(cost).unwrap_or(Tiling::DIRECT);
    let wanted = SOFTWARE_LANES * u64::from(target.compute_units.max(1));
    Choice::parts(tiling, size.split(&tiling, wanted))
}
