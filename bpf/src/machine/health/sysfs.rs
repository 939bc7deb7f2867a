// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads from sysfs what eMMC and UFS report about their wear.
//!
//! An eMMC has `life_time` and `pre_eol_info` in its card's folder (`drivers/mmc/core/mmc.c`); the kernel reads them when it finds
//! the card. A UFS has `health_descriptor` in its controller's folder (`drivers/ufs/core/ufs-sysfs.c`); the kernel asks the
//! controller each time.

use std::path::{Path, PathBuf};

use mostrace_bundle::health::{Gauge, Gauges, LIFE_TIME_A, LIFE_TIME_B, PRE_EOL_INFO};

use crate::error::read_line;

/// A folder, and its files with the counters in each.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    files: &'static [(&'static str, &'static [Gauge])],
}

/// Returns the counters of the card behind a disk.
pub fn emmc(disk: &Path) -> Option<Folder> {
    let path = disk.join("device");
    path.join("life_time").exists().then_some(Folder {
        path,
        files: &[
            ("life_time", &[LIFE_TIME_A, LIFE_TIME_B]),
            ("pre_eol_info", &[PRE_EOL_INFO]),
        ],
    })
}

/// Returns the counters of the controller to which a disk belongs.
pub fn ufs(disk: &Path) -> Option<Folder> {
    let folders = disk
        .ancestors()
        .map(|folder| folder.join("health_descriptor"));
    let path = folders.into_iter().find(|folder| folder.is_dir())?;
    Some(Folder {
        path,
        files: &[
            ("life_time_estimation_a", &[LIFE_TIME_A]),
            ("life_time_estimation_b", &[LIFE_TIME_B]),
            ("eol_info", &[PRE_EOL_INFO]),
        ],
    })
}

impl Folder {
    /// Reads the counters. 0 means `not defined` and is left out.
    pub fn read(&self) -> Gauges {
        let mut gauges = Gauges::new();
        for (name, has) in self.files {
            let text = read_line(self.path.join(name)).unwrap_or_default();
            for (gauge, word) in has.iter().zip(text.split_ascii_whitespace()) {
                if let Some(value) = number(word).filter(|&value| value != 0) {
                    gauges.insert((*gauge).into(), value);
                }
            }
        }
        gauges
    }
}

/// Parses a number such as `0x01`.
fn number(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn gauges<const N: usize>(of: [(Gauge, u64); N]) -> Gauges {
        of.map(|(gauge, n)| (gauge.to_owned(), n)).into()
    }

    #[test]
    fn an_emmc_has_two_life_times_in_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().join("mmcblk0");
        assert!(emmc(&disk).is_none());
        fs::create_dir_all(disk.join("device")).unwrap();
        fs::write(disk.join("device/life_time"), "0x02 0x00\n").unwrap();
        fs::write(disk.join("device/pre_eol_info"), "0x01\n").unwrap();
        let expected = gauges([(LIFE_TIME_A, 2), (PRE_EOL_INFO, 1)]);
        assert_eq!(emmc(&disk).unwrap().read(), expected);
        fs::write(disk.join("device/life_time"), "what\n").unwrap();
        fs::remove_file(disk.join("device/pre_eol_info")).unwrap();
        assert_eq!(emmc(&disk).unwrap().read(), Gauges::new());
    }

    #[test]
    fn a_ufs_has_them_at_its_controller() {
        let dir = tempfile::tempdir().unwrap();
        let controller = dir.path().join("1d84000.ufshc");
        let disk = controller.join("host0/target0:0:0/0:0:0:0/block/sda");
        fs::create_dir_all(&disk).unwrap();
        assert!(ufs(&disk).is_none());
        let health = controller.join("health_descriptor");
        fs::create_dir(&health).unwrap();
        for (name, text) in [
            ("life_time_estimation_a", "0x0B\n"),
            ("life_time_estimation_b", "0x01\n"),
            ("eol_info", "0x02\n"),
        ] {
            fs::write(health.join(name), text).unwrap();
        }
        let expected = gauges([(LIFE_TIME_A, 11), (LIFE_TIME_B, 1), (PRE_EOL_INFO, 2)]);
        assert_eq!(ufs(&disk).unwrap().read(), expected);
    }
}
