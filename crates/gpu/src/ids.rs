//! Ids among the inputs: checked when they are written, whatever the device.

use griffinfly_compile::program::ExternalKind;

/// Which ids an input may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ids {
    limit: i32,
    ignore: Option<i32>,
}

impl Ids {
    /// The rule of an input that holds ids.
    pub(crate) fn of(kind: &ExternalKind) -> Option<Ids> {
        match *kind {
            ExternalKind::Input { id_limit: Some(limit), ignore } => Some(Ids { limit, ignore }),
            _ => None,
        }
    }

    /// What is wrong with ids given as native-endian `i32`, if anything.
    pub(crate) fn fault(self, bytes: &[u8]) -> Option<String> {
        let ids = bytes.chunks_exact(4).filter_map(|word| word.try_into().ok()).map(i32::from_ne_bytes);
        let wrong = |id: &i32| !(0..self.limit).contains(id) && Some(*id) != self.ignore;
        let (position, id) = ids.enumerate().find(|(_, id)| wrong(id))?;
        Some(format!("id {id} at position {position} is not in 0..{}", self.limit))
    }
}
