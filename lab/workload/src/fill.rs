// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fills a volume and measures how that changes its latency. The files have no names, so nothing is left however the
//! run ends.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::value_parser;
use serde::{Deserialize, Serialize};

use crate::measure::{Progress, in_threads};
use crate::{Error, Latency, Result};

const BLOCK: usize = 4096;
const BLOCK_BYTES: u64 = 4096;
/// The least size of each file with which the volume is filled, bytes; and the largest number of files.
const FILE_BYTES: u64 = 16 << 20;
const MOST_FILES: u64 = 256;
/// Size of the file on which latency is measured, bytes.
const PROBE_BYTES: u64 = 16 << 20;

/// Settings for filling a volume.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct FillSettings {
    /// A folder on the volume
    pub path: PathBuf,
    /// The part of the volume that is used at the end
    #[arg(long = "to", value_name = "PERCENT", default_value_t = 80, value_parser = value_parser!(u8).range(1..100))]
    pub percent: u8,
    /// Number of writes over which each latency is measured
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = value_parser!(u32).range(1..=1 << 24))]
    pub probes: u32,
    /// The seed of the order of the writes
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Latencies of random 4 KiB writes, each with fdatasync(), on a volume before and after it was filled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filled {
    /// Version of this record's format.
    pub schema: u32,
    /// Percentage of blocks in use, before and after.
    pub used_percent: [u64; 2],
    /// Number of bytes that were written to fill the volume.
    pub filled_bytes: u64,
    /// Latency before the volume was filled.
    pub before: Option<Latency>,
    /// Latency when it was full.
    pub after: Option<Latency>,
    /// Latency after fstrim reported the free blocks to the device; None if fstrim failed.
    pub after_fstrim: Option<Latency>,
    /// Output of fstrim.
    pub fstrim: String,
}

impl FillSettings {
    fn check(&self) -> Result<()> {
        match self.percent {
            1..100 if self.probes > 0 => Ok(()),
            1..100 => Err(Error::Setting("a latency needs at least one write".into())),
            _ => Err(Error::Setting(
                "a volume can be filled to between 1 and 99 %".into(),
            )),
        }
    }

    /// Returns the number of 4 KiB blocks to be written, for filling and for measuring: the total of a progress bar.
    ///
    /// # Errors
    /// Returns an error if the path is not on a volume.
    pub fn steps(&self) -> Result<u64> {
        let missing = Space::of(&self.path)?.missing(self.percent) / BLOCK_BYTES;
        Ok(missing.saturating_add(u64::from(self.probes).saturating_mul(3)))
    }
}

/// Fills the volume and measures latency; `progress` counts written blocks.
pub fn run_fill(settings: &FillSettings, progress: &Progress) -> Result<Filled> {
    settings.check()?;
    let mut chance = fastrand::Rng::with_seed(settings.seed);
    let before_percent = Space::of(&settings.path)?.used_percent();
    let place = Error::io(&settings.path);
    let probe = file_by_chance(
        &settings.path,
        PROBE_BYTES,
        &mut chance,
        &Progress::default(),
    );
    let probe = probe.map_err(place)?;
    let latency = |chance: &mut fastrand::Rng| measure(&probe, settings, chance, progress);
    let before = latency(&mut chance)?;
    let filled = fill(settings, &mut chance, progress)?;
    let filled_bytes = filled.iter().map(|(_, bytes)| bytes).sum();
    let after = latency(&mut chance)?;
    let after_percent = Space::of(&settings.path)?.used_percent();
    let (trimmed, said) = fstrim(&settings.path);
    let after_fstrim = match trimmed {
        true => latency(&mut chance)?,
        false => None,
    };
    Ok(Filled {
        schema: 1,
        used_percent: [before_percent, after_percent],
        filled_bytes,
        before,
        after,
        after_fstrim,
        fstrim: said,
    })
}

/// Writes files until the wanted percentage is in use, each in 4 KiB blocks in random order. The files exist while they
/// are held.
fn fill(
    settings: &FillSettings,
    chance: &mut fastrand::Rng,
    progress: &Progress,
) -> Result<Vec<(File, u64)>> {
    let missing = || Ok::<u64, Error>(Space::of(&settings.path)?.missing(settings.percent));
    let each = missing()?.div_ceil(MOST_FILES).max(FILE_BYTES);
    let mut filled = Vec::new();
    loop {
        let bytes = missing()?.min(each) / BLOCK_BYTES * BLOCK_BYTES;
        if bytes == 0 {
            return Ok(filled);
        }
        match file_by_chance(&settings.path, bytes, chance, progress) {
            Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(filled),
            file => filled.push((file.map_err(Error::io(&settings.path))?, bytes)),
        }
    }
}

/// Makes a file without a name and writes it in random order.
fn file_by_chance(
    folder: &Path,
    bytes: u64,
    chance: &mut fastrand::Rng,
    progress: &Progress,
) -> io::Result<File> {
    let file = tempfile::tempfile_in(folder)?;
    let mut block = [0; BLOCK];
    let mut order: Vec<u64> = (0..bytes / BLOCK_BYTES).collect();
    chance.shuffle(&mut order);
    for number in order {
        chance.fill(&mut block);
        file.write_all_at(&block, number.saturating_mul(BLOCK_BYTES))?;
        progress.step();
    }
    file.sync_all()?;
    Ok(file)
}

/// Measures writes of 4 KiB at random places of a file, each with fdatasync().
fn measure(
    file: &File,
    settings: &FillSettings,
    chance: &mut fastrand::Rng,
    progress: &Progress,
) -> Result<Option<Latency>> {
    let (_, measured) = in_threads(vec![chance.fork()], progress, |chance, stopwatch| {
        let mut block = [0; BLOCK];
        for _ in 0..settings.probes {
            chance.fill(&mut block);
            let at = chance
                .u64(0..PROBE_BYTES / BLOCK_BYTES)
                .saturating_mul(BLOCK_BYTES);
            stopwatch.time(|| {
                let written = file.write_all_at(&block, at);
                let synced = written.and_then(|()| file.sync_data());
                synced.map_err(Error::io(&settings.path))
            })?;
        }
        Ok(())
    })?;
    Ok(Latency::of(&measured.operations))
}

/// Runs fstrim. Returns whether it succeeded, and its output.
fn fstrim(path: &Path) -> (bool, String) {
    match Command::new("fstrim").arg("-v").arg(path).output() {
        Err(error) => (false, format!("fstrim: {error}")),
        Ok(output) => {
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said).trim().replace('\n', "; ");
            (output.status.success(), said)
        }
    }
}

/// The space of a volume, in bytes.
struct Space {
    all: u64,
    used: u64,
}

impl Space {
    fn of(path: &Path) -> Result<Self> {
        let told = rustix::fs::statvfs(path).map_err(|e| Error::io(path)(e.into()))?;
        let bytes = |blocks: u64| blocks.saturating_mul(told.f_frsize);
        Ok(Self {
            all: bytes(told.f_blocks),
            used: bytes(told.f_blocks.saturating_sub(told.f_bfree)),
        })
    }

    fn used_percent(&self) -> u64 {
        self.used
            .saturating_mul(100)
            .checked_div(self.all)
            .unwrap_or(0)
    }

    /// Returns the number of bytes to write until `percent` per cent are in use.
    fn missing(&self, percent: u8) -> u64 {
        let wanted = (self.all / 100).saturating_mul(percent.into());
        wanted.saturating_sub(self.used)
    }
}
