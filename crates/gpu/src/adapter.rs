//! Adapters of whatever API: what they are, and which one is meant.

use serde::Serialize;

/// What an adapter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AdapterType {
    /// A card with its own memory.
    DiscreteGpu,
    /// A GPU given to a virtual machine.
    VirtualGpu,
    /// A GPU that shares the CPU's memory.
    IntegratedGpu,
    /// Something else.
    Other,
    /// A software driver.
    Software,
}

impl AdapterType {
    /// Whether it is a hardware GPU.
    #[must_use]
    pub fn is_hardware(self) -> bool {
        matches!(self, AdapterType::DiscreteGpu | AdapterType::VirtualGpu | AdapterType::IntegratedGpu)
    }
}

/// Which adapter to open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selector {
    /// The first usable one, hardware before software.
    #[default]
    Best,
    /// The first usable hardware GPU; an error if there is none.
    HardwareOnly,
    /// The first usable one whose name contains this text, without regard to case.
    NameContains(String),
    /// The one at this place of the API's list.
    Index(usize),
}

/// An adapter as far as choosing goes.
pub(crate) struct Candidate<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: AdapterType,
    pub(crate) unusable: Option<&'a str>,
}

/// The place of the adapter that is meant among all, or why there is none.
pub(crate) fn choose(all: &[Candidate<'_>], selector: &Selector) -> Result<usize, String> {
    let usable = |candidate: &Candidate<'_>| candidate.unusable.is_none();
    let found = match selector {
        Selector::Best => all.iter().position(usable),
        Selector::HardwareOnly => {
            all.iter().position(|candidate| usable(candidate) && candidate.kind.is_hardware())
        }
        Selector::NameContains(part) => {
            let part = part.to_lowercase();
            let named = |candidate: &Candidate<'_>| candidate.name.to_lowercase().contains(&part);
            let best = all.iter().position(|candidate| named(candidate) && usable(candidate));
            best.or_else(|| all.iter().position(named))
        }
        Selector::Index(index) => (*index < all.len()).then_some(*index),
    };
    let Some(index) = found else { return Err(none_matches(all, selector)) };
    match all[index].unusable {
        Some(reason) => Err(format!("{}: {reason}", all[index].name)),
        None => Ok(index),
    }
}

fn none_matches(all: &[Candidate<'_>], selector: &Selector) -> String {
    if all.is_empty() {
        return "no driver has a device".into();
    }
    let list: Vec<String> = all
        .iter()
        .map(|candidate| match candidate.unusable {
            Some(reason) => format!("{} ({reason})", candidate.name),
            None => format!("{} ({:?})", candidate.name, candidate.kind),
        })
        .collect();
    format!("none of [{}] matches {selector:?}", list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(selector: &Selector) -> Result<usize, String> {
        let kinds = [
            ("Old card", AdapterType::DiscreteGpu, Some("no timeline semaphores")),
            ("Small GPU", AdapterType::IntegratedGpu, None),
            ("llvmpipe", AdapterType::Software, None),
        ];
        let all = kinds.map(|(name, kind, unusable)| Candidate { name, kind, unusable });
        choose(&all, selector)
    }

    #[test]
    fn unusable_adapters_are_passed_over_unless_named() {
        assert_eq!(chosen(&Selector::Best), Ok(1));
        assert_eq!(chosen(&Selector::HardwareOnly), Ok(1));
        assert_eq!(chosen(&Selector::NameContains("PIPE".into())), Ok(2));
        assert_eq!(chosen(&Selector::Index(0)), Err("Old card: no timeline semaphores".into()));
        let named = chosen(&Selector::NameContains("old".into()));
        assert_eq!(named, Err("Old card: no timeline semaphores".into()));
        assert!(
            chosen(&Selector::Index(3)).is_err_and(|reason| reason.contains("Small GPU (IntegratedGpu)"))
        );
    }
}
