// SPDX-License-Identifier: MIT OR Apache-2.0
//! The settings of the kernel's recorder, which are changed for one recording and then restored.

use std::path::{Path, PathBuf};

use crate::error::{Result, read_line, write_line};
use crate::machine::guard::{Guard, Undo};

/// The size of each CPU's ring. A SQLite run makes some 1 MB of entries a second; polls are 5 ms apart, but a busy machine may run
/// the recorder late.
const RING_KB: u32 = 4096;

const FILESYSTEMS: &str = "filesystems";

/// The present settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    dir: PathBuf,
    pub dev: String,
    pub names: String,
    pub ring_kb: String,
    /// The filesystems whose causes are recorded; None if the recorder records no causes.
    pub filesystems: Option<String>,
}

impl Parameters {
    /// Reads the settings from the module's folder in sysfs.
    ///
    /// # Errors
    /// Returns an error if there is no folder, or if only root may read it.
    pub fn read(dir: &Path) -> Result<Parameters> {
        Ok(Parameters {
            dir: dir.to_owned(),
            dev: read_line(dir.join("dev"))?,
            names: read_line(dir.join("names"))?,
            ring_kb: read_line(dir.join("ring_kb"))?,
            filesystems: match dir.join(FILESYSTEMS).exists() {
                true => Some(read_line(dir.join(FILESYSTEMS))?),
                false => None,
            },
        })
    }

    /// Checks that no recording runs by setting a setting to its present value, which is refused during a recording.
    ///
    /// # Errors
    /// Returns an error with EBUSY if a recording runs.
    pub fn check_free(&self) -> Result<()> {
        self.write("names", &self.names)
    }

    /// Configures the recorder for one device, for the causes of `filesystems` (MAJ:MIN), and for all names; the sink keeps only
    /// the requested names, as with any other source. The guard restores the settings when it is dropped.
    ///
    /// # Errors
    /// Returns an error if the recorder refuses.
    pub fn change(&self, dev: &str, filesystems: &[String]) -> Result<Guard> {
        let undo = |name: &str, text: &str| Undo::Write(self.dir.join(name), text.to_owned());
        let mut steps = vec![
            undo("dev", &self.dev),
            undo("names", &self.names),
            undo("ring_kb", &self.ring_kb),
        ];
        let before = self.filesystems.as_ref();
        steps.extend(before.map(|before| undo(FILESYSTEMS, before)));
        let guard = Guard::arm(steps, None)?;
        self.write("dev", dev)?;
        self.write("names", "all")?;
        if self.ring_kb.parse().is_ok_and(|kb: u32| kb < RING_KB) {
            self.write("ring_kb", &RING_KB.to_string())?;
        }
        if before.is_some() {
            self.write(FILESYSTEMS, &filesystems.join(","))?;
        }
        Ok(guard)
    }

    /// Writes a setting with a newline, because an empty text would not be written at all.
    fn write(&self, name: &str, text: &str) -> Result<()> {
        write_line(self.dir.join(name), &format!("{text}\n"))
    }
}
