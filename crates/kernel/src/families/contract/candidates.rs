//! The text of a choice, and which choices are worth measuring for a contraction.
//!
//! A text names a tiling of the closed table, the parts and who adds them: `64x64x16/4x4/db split3 joined`. Only texts that name
//! something a target runs parse, so a text from elsewhere is at worst not used. Candidates are ranked by the estimates that the
//! default choice minimises; tilings without a measured rate get one from the size of their tiles.

use super::choose::{Choice, Merge, Neighbours, RATES, Rate, Size, choose_for, matrix_rates};
use super::gemv_choice as gemv;
use super::tiling::{Staging, Tiling};
use griffinfly_ir::loops::Contract;
use griffinfly_ir::target::{NumericClass, Target};
use std::fmt;

/// Splits tried per tiling, the best estimates first.
const SPLITS: usize = 2;
/// Tilings with lanes that are tried where one is the default.
const LANES: usize = 6;
/// Microseconds of a workgroup for a tile of products: a constant and a slope over the tile of [`Tiling::LARGE_DOUBLE`], fitted to
/// the measured rates, alone and shared.
const FITTED: [[f64; 2]; 2] = [[0.38, 1.42], [0.12, 1.98]];

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.tiling)?;
        if self.split > 1 {
            write!(f, " split{}", self.split)?;
        }
        if self.merge == Merge::Last { f.write_str(" joined") } else { Ok(()) }
    }
}

/// The choice that a text names, if the target runs its tiling with one of these numeric classes.
#[must_use]
pub fn parse(text: &str, target: &Target, classes: &[NumericClass]) -> Option<Choice> {
    let (rest, merge) = match text.strip_suffix(" joined") {
        Some(rest) => (rest, Merge::Last),
        None => (text, Merge::Dispatch),
    };
    let (name, split) = match rest.rsplit_once(" split") {
        Some((name, parts)) => (name, parts.parse().ok()?),
        None => (rest, 1),
    };
    let runs = |tiling: &&Tiling| tiling.fits(target, classes) && tiling.to_string() == name;
    let tiling = *Tiling::all().iter().chain(Tiling::matrices()).find(runs)?;
    let choice = Choice { tiling, split, merge };
    let makes_sense = merge == Merge::Dispatch || (split > 1 && tiling.is_staged());
    (makes_sense && choice.to_string() == text).then_some(choice)
}

/// Up to `most` different choices for a contraction, given what runs at the same time: the default one first, then by estimated time.
#[must_use]
pub fn candidates(
    contract: &Contract,
    target: &Target,
    (classes, neighbours): (&[NumericClass], Neighbours),
    most: usize,
) -> Vec<Choice> {
    let default = choose_for(contract, target, (classes, neighbours));
    let size = Size::of(contract);
    let others = if target.is_hardware {
        let few = gemv::ranked(contract, target).into_iter().take(LANES).map(Choice::whole);
        few.chain(staged(&size, target, classes)).collect()
    } else {
        direct(&default)
    };
    let mut all = vec![default];
    for choice in others {
        let leaves_room = neighbours == Neighbours::None || choice.tiling.slices() == 1;
        if leaves_room && !all.contains(&choice) && size.allows(&choice.tiling, target) {
            all.push(choice);
        }
    }
    all.truncate(most.max(1));
    all
}

/// On software drivers: the tilings without workgroup memory, in parts as the default is and whole.
fn direct(default: &Choice) -> Vec<Choice> {
    let direct = Tiling::all().iter().filter(|tiling| tiling.is_direct());
    direct.flat_map(|tiling| [Choice::parts(*tiling, default.split), Choice::whole(*tiling)]).collect()
}

/// Tilings with workgroup memory, each with its best splits; where those are in parts, added by either way.
fn staged(size: &Size, target: &Target, classes: &[NumericClass]) -> Vec<Choice> {
    let units = u64::from(target.compute_units.max(1));
    let tilings = Tiling::all().iter().filter(|t| t.is_staged()).map(|tiling| rate(*tiling));
    let mut all: Vec<(f64, Choice)> = Vec::new();
    let fits = |rate: &Rate| {
        let tiling = &rate.tiling;
        tiling.fits(target, classes) && size.allows(tiling, target) && !tiling.is_emulated(target)
    };
    for rate in tilings.chain(matrix_rates()).filter(fits) {
        let parts = 1..=size.most_parts(&rate.tiling);
        let time = |split| (rate.time(size, split, units), Choice::split(rate.tiling, split));
        let mut timed: Vec<(f64, Choice)> = parts.map(time).collect();
        timed.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.extend(timed.into_iter().take(SPLITS));
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let other = |choice: Choice| match choice.merge {
        Merge::Last => Choice { merge: Merge::Dispatch, ..choice },
        Merge::Dispatch => Choice { merge: Merge::Last, ..choice },
    };
    let ways = |(at, (_, choice)): (usize, (f64, Choice))| {
        let two_ways = at == 0 && choice.split > 1;
        [Some(choice), two_ways.then(|| other(choice))].into_iter().flatten()
    };
    all.into_iter().enumerate().flat_map(ways).collect()
}

/// The measured rate of a tiling, or one fitted to them.
fn rate(tiling: Tiling) -> Rate {
    let known = RATES.iter().find(|rate| rate.tiling == tiling);
    known.copied().unwrap_or_else(|| {
        let large = Tiling::LARGE_DOUBLE;
        let products = |t: Tiling| f64::from(t.bm * t.bn * t.bk);
        let tile = products(tiling) / products(large);
        // A second barrier per tile of products.
        let barriers = if tiling.staging == Staging::Single { 1.1 } else { 1.0 };
        let [alone, shared] = FITTED.map(|[constant, slope]| (constant + slope * tile) * barriers);
        Rate { tiling, alone, shared }
    })
}
