// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the disk to look at if the user names none.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// The statistics of each device, one a line (Documentation/admin-guide/iostats.rst): major, minor, name, then the counters.
const STATISTICS: &str = "/proc/diskstats";
const NAME: usize = 2;
const SECTORS_WRITTEN: usize = 9;

/// Returns the disk to which most was written since the machine was started.
///
/// # Errors
/// Returns an error if there is no disk.
pub fn busiest() -> anyhow::Result<PathBuf> {
    let text = fs::read_to_string(STATISTICS).context(STATISTICS)?;
    let name = most_written(&text, is_disk).context("no disk is found: name one with -d DEV")?;
    Ok(Path::new("/dev").join(name))
}

fn most_written(text: &str, is_disk: impl Fn(&str) -> bool) -> Option<&str> {
    let disks = text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let name = *fields.get(NAME)?;
        let written: u64 = fields.get(SECTORS_WRITTEN)?.parse().ok()?;
        is_disk(name).then_some((written, name))
    });
    disks
        .max_by_key(|(written, _)| *written)
        .map(|(_, name)| name)
}

/// Returns true for a whole disk that is hardware, real or virtual: devices above others (device mapper, loop) are seen on
/// these.
fn is_disk(name: &str) -> bool {
    Path::new("/sys/block").join(name).join("device").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
   7       0 loop0 10 0 80 1 90 0 900000 7 0 4 8
   8       0 sda 10 0 80 1 90 0 7000 7 0 4 8 0 0 0 0
   8       1 sda1 10 0 80 1 90 0 7000 7 0 4 8
 259       0 nvme0n1 10 0 9999999 1 90 0 7001 7 0 4 8 0 0 0 0 1 2
 259       1 cut
";

    #[test]
    fn the_disk_that_most_was_written_to() {
        let is_disk = |name: &str| ["sda", "nvme0n1"].contains(&name);
        assert_eq!(most_written(TEXT, is_disk), Some("nvme0n1"));
        assert_eq!(most_written(TEXT, |_| false), None);
    }
}
