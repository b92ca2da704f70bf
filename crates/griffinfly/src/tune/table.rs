//! Tables of choices in files: one per device, replaced as a whole, ignored with a warning where they do not apply.
//!
//! A table holds for one device, one driver and one version of the kernels ([`GENERATOR`]). Its digest covers all of that and the
//! entries. The tables that come with the library count for their device with any driver: they are measurements of
//! that device, as are the constants behind the defaults, and an entry never decides more than speed.

use griffinfly_compile::kernel::families::tuned::{Choices, GENERATOR};
use griffinfly_gpu::DeviceInfo;
use griffinfly_import::ImportError;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Version of the file's form.
const FORMAT: u32 = 1;
/// Larger files are not ours.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The tables that come with the library.
const SHIPPED: [&str; 1] = [include_str!("tables/nvidia-h200.json")];

/// Choices measured on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    format: u32,
    /// Version of the kernels it was measured with.
    pub generator: u32,
    /// The device's own name.
    pub device: String,
    /// Driver name and version.
    pub driver: String,
    /// Where it comes from: revision and command.
    pub origin: String,
    /// The choices.
    pub choices: Choices,
    digest: String,
}

/// Why a table is not used.
#[derive(Debug, Error)]
pub enum TableFault {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    /// Not the form of a table, or of another version of it.
    #[error("it is no table of choices: {0}")]
    Malformed(String),
    /// The digest differs.
    #[error("its content was changed or damaged")]
    Damaged,
    /// Of another device, driver or version of the kernels.
    #[error("it is of {what} {found}, this is {expected}")]
    Foreign {
        /// What differs.
        what: &'static str,
        /// What the table says.
        found: String,
        /// What there is.
        expected: String,
    },
}

impl Table {
    /// A table of what was measured on a device with the kernels of this version.
    #[must_use]
    pub fn new(info: &DeviceInfo, origin: impl Into<String>, choices: Choices) -> Table {
        let (device, driver) = (info.name.clone(), info.driver.clone());
        let (origin, digest) = (origin.into(), String::new());
        let table = Table { format: FORMAT, generator: GENERATOR, device, driver, origin, choices, digest };
        Table { digest: table.digest(), ..table }
    }

    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> String {
        // Numbers, strings and a map of strings: serialisation has nothing to fail at.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// Not the form of a table, or a digest that differs.
    pub fn parse(text: &str) -> Result<Table, TableFault> {
        let table: Table =
            serde_json::from_str(text).map_err(|fault| TableFault::Malformed(fault.to_string()))?;
        if table.format != FORMAT {
            return Err(TableFault::Malformed(format!(
                "format {}, this version reads {FORMAT}",
                table.format
            )));
        }
        if table.digest() == table.digest { Ok(table) } else { Err(TableFault::Damaged) }
    }

    /// Reads a file; `None` where there is none.
    ///
    /// # Errors
    /// As [`Table::parse`], and a file that cannot be read.
    pub fn load(file: &Path) -> Result<Option<Table>, TableFault> {
        match std::fs::metadata(file) {
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(fault) => return Err(fault.into()),
            Ok(metadata) if metadata.len() > MAX_FILE_BYTES => {
                return Err(TableFault::Malformed(format!("{} bytes", metadata.len())));
            }
            Ok(_) => {}
        }
        let bytes = std::fs::read(file)?;
        let text = String::from_utf8(bytes).map_err(|fault| TableFault::Malformed(fault.to_string()))?;
        Table::parse(&text).map(Some)
    }

    /// Writes the file as a whole or not at all, and its directory where that is missing.
    ///
    /// # Errors
    /// An unwritable path, a full disk. What was at the path is still there.
    pub fn save(&self, file: &Path) -> Result<(), ImportError> {
        if let Some(directory) = file.parent() {
            std::fs::create_dir_all(directory).map_err(|source| {
                let (path, step) = (file.to_owned(), "create its directory");
                ImportError::Unwritable { path, step, source }
            })?;
        }
        griffinfly_import::replace(file, &mut |out| out.write_all(self.text().as_bytes()))
    }

    /// Whether it counts for a device: same name and kernels, and unless it came with the library the same driver.
    ///
    /// # Errors
    /// What differs.
    pub fn check(&self, info: &DeviceInfo, any_driver: bool) -> Result<(), TableFault> {
        let (generator, current) = (self.generator.to_string(), GENERATOR.to_string());
        let same = |what, found: &str, expected: &str| {
            let (found, expected) = (found.to_owned(), expected.to_owned());
            if found == expected { Ok(()) } else { Err(TableFault::Foreign { what, found, expected }) }
        };
        same("device", &self.device, &info.name)?;
        same("kernels of version", &generator, &current)?;
        if any_driver { Ok(()) } else { same("driver", &self.driver, &info.driver) }
    }

    fn digest(&self) -> String {
        let bare = Table { digest: String::new(), ..self.clone() }.text();
        // FNV-1a over 64 bits.
        let hash = bare.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{hash:016x}")
    }
}

/// Where the table of a device lies: beside the driver's pipeline cache. `None` where nothing is kept on disk.
#[must_use]
pub fn file(info: &DeviceInfo) -> Option<PathBuf> {
    let directory = griffinfly_gpu::cache_dir()?;
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = info.name.chars().map(letter).collect();
    // Vulkan is what choices were always for.
    let backend = if info.backend == "vulkan" { String::new() } else { format!("{}-", info.backend) };
    Some(directory.join(format!("choices-{backend}{name}.json")))
}

/// The choices that count for a device: those of its file, else those that come with the library, else none. A file that does not
/// count is named in a warning.
pub(crate) fn applicable(info: &DeviceInfo) -> Choices {
    if info.backend == "host" {
        return Choices::new();
    }
    of_file(file(info).as_deref(), info).or_else(|| shipped(info)).unwrap_or_default()
}

/// The choices of a file, if it counts.
pub(super) fn of_file(file: Option<&Path>, info: &DeviceInfo) -> Option<Choices> {
    let file = file?;
    let table = Table::load(file).and_then(|table| match table {
        Some(table) => table.check(info, false).map(|()| Some(table)),
        None => Ok(None),
    });
    match table {
        Ok(table) => table.map(|table| table.choices),
        Err(fault) => {
            tracing::warn!(file = %file.display(), %fault, "a table of choices is ignored; tuning writes it anew");
            None
        }
    }
}

/// The choices that come with the library for a device.
pub(super) fn shipped(info: &DeviceInfo) -> Option<Choices> {
    let tables = SHIPPED.iter().filter_map(|text| Table::parse(text).ok());
    tables.into_iter().find(|table| table.check(info, true).is_ok()).map(|table| table.choices)
}

#[cfg(test)]
pub(super) fn all_shipped() -> impl Iterator<Item = Result<Table, TableFault>> {
    SHIPPED.iter().map(|text| Table::parse(text))
}
