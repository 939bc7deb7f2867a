// SPDX-License-Identifier: MIT OR Apache-2.0
//! The drive's own counters: what it was given to write, what it wrote, and how worn it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The name of a drive's counter in a manifest and in a ledger; NVMe's counters have the names that nvme-cli prints.
///
/// A drive that lacks a counter, or says that it does not report it, has no value for it, and never 0.
pub type Gauge = &'static str;

/// NVMe: thousands of units of 512 bytes that the host wrote, rounded up.
pub const DATA_UNITS_WRITTEN: Gauge = "data_units_written";
/// NVMe: thousands of units of 512 bytes that the host read, rounded up.
pub const DATA_UNITS_READ: Gauge = "data_units_read";
/// NVMe: number of the host's write commands.
pub const HOST_WRITE_COMMANDS: Gauge = "host_write_commands";
/// NVMe: number of the host's read commands.
pub const HOST_READ_COMMANDS: Gauge = "host_read_commands";
/// NVMe, Open Compute Project: bytes that the drive wrote to its media, including its own work.
pub const MEDIA_BYTES_WRITTEN: Gauge = "media_bytes_written";
/// NVMe: the part of its life that the vendor considers used, percent. It may exceed 100; 255 stands for everything above 254.
pub const PERCENTAGE_USED: Gauge = "percentage_used";
/// NVMe: the part of the spare capacity that is left, percent.
pub const AVAILABLE_SPARE: Gauge = "available_spare";
/// NVMe: number of times that data could not be read or written intact.
pub const MEDIA_ERRORS: Gauge = "media_errors";
/// NVMe: a set of bits: 1 for little spare capacity, 2 for temperature, 4 for unreliable, 8 for read-only, 16 for a failed backup
/// of volatile memory.
pub const CRITICAL_WARNING: Gauge = "critical_warning";
/// eMMC and UFS: the used life of the first type of memory, in tenths; 11 stands for more than all of it.
pub const LIFE_TIME_A: Gauge = "life_time_a";
/// eMMC and UFS: the used life of the second type of memory, in tenths; 11 stands for more than all of it.
pub const LIFE_TIME_B: Gauge = "life_time_b";
/// eMMC and UFS: use of the reserved blocks: 1 normal, 2 four fifths used, 3 nine tenths used.
pub const PRE_EOL_INFO: Gauge = "pre_eol_info";

/// All counters, in the order in which they are shown.
pub const ALL: [Gauge; 12] = [
    DATA_UNITS_WRITTEN,
    MEDIA_BYTES_WRITTEN,
    DATA_UNITS_READ,
    HOST_WRITE_COMMANDS,
    HOST_READ_COMMANDS,
    PERCENTAGE_USED,
    AVAILABLE_SPARE,
    MEDIA_ERRORS,
    CRITICAL_WARNING,
    LIFE_TIME_A,
    LIFE_TIME_B,
    PRE_EOL_INFO,
];

/// Bytes in NVMe's data unit.
pub const DATA_UNIT: u64 = 512_000;

/// The counters at one moment, by name.
pub type Gauges = BTreeMap<String, u64>;

/// The counters of the disk below the traced device, which may have other users too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Kernel name of the disk.
    pub disk: String,
    /// The interface from which the counters come: `nvme`, `emmc` or `ufs`.
    pub source: String,
    /// The values before tracing began; for a segment, before its recording began.
    pub before: Gauges,
    /// The values after tracing ended; None in bundles that are not complete, and in all segments but the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Gauges>,
}

impl Health {
    /// Returns by how much a counter grew. None if one of its values is missing, or if the later one is smaller (for example
    /// because the drive was replaced).
    #[must_use]
    pub fn grown(&self, gauge: Gauge) -> Option<u64> {
        let of = |gauges: &Gauges| gauges.get(gauge).copied();
        of(self.after.as_ref()?)?.checked_sub(of(&self.before)?)
    }

    /// Returns the newest value of a counter.
    #[must_use]
    pub fn latest(&self, gauge: Gauge) -> Option<u64> {
        let gauges = self.after.as_ref().unwrap_or(&self.before);
        gauges.get(gauge).copied()
    }

    /// Returns what the counters tell, in words; None if they tell nothing.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let grown = |gauge, unit: u64, what: &str| {
            let bytes = self.grown(gauge)?.saturating_mul(unit);
            Some(format!("{bytes} bytes {what}"))
        };
        let meanwhile = [
            grown(DATA_UNITS_WRITTEN, DATA_UNIT, "received to write"),
            grown(MEDIA_BYTES_WRITTEN, 1, "written to its media"),
            self.grown(MEDIA_ERRORS)
                .filter(|&errors| errors > 0)
                .map(|errors| format!("{errors} media errors")),
        ];
        let words = meanwhile.into_iter().flatten();
        let words: Vec<String> = words.chain(wear(|gauge| self.latest(gauge))).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// Returns how worn a drive is, in words: one text for each counter that it has. `of` returns a counter's value.
pub fn wear(of: impl Fn(Gauge) -> Option<u64>) -> impl Iterator<Item = String> {
    let tenths = |n: u64| match n {
        1..=10 => format!(
            "{} to {} %",
            n.saturating_sub(1).saturating_mul(10),
            n.saturating_mul(10)
        ),
        _ => "more than 100 %".to_owned(),
    };
    let pre_eol = |n: u64| match n {
        1 => "its spare blocks are fine".to_owned(),
        2 => "80 % of its spare blocks are used".to_owned(),
        3 => "90 % of its spare blocks are used".to_owned(),
        n => format!("pre_eol_info is {n}"),
    };
    [
        of(PERCENTAGE_USED).map(|n| format!("{n} % of its life used")),
        of(AVAILABLE_SPARE).map(|n| format!("{n} % spare left")),
        of(MEDIA_ERRORS).map(|n| format!("{n} media errors in its life")),
        of(CRITICAL_WARNING)
            .filter(|&bits| bits != 0)
            .map(|bits| format!("critical warning {bits:#x}")),
        of(LIFE_TIME_A).map(|n| format!("{} of its life used (type A)", tenths(n))),
        of(LIFE_TIME_B).map(|n| format!("{} of its life used (type B)", tenths(n))),
        of(PRE_EOL_INFO).map(pre_eol),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gauges<const N: usize>(of: [(Gauge, u64); N]) -> Gauges {
        of.map(|(gauge, n)| (gauge.to_owned(), n)).into()
    }

    #[test]
    fn what_a_drive_does_not_have_is_not_said() {
        let none = Health::default();
        assert_eq!(none.grown(DATA_UNITS_WRITTEN), None);
        assert_eq!(none.words(), None);
        let json = serde_json::to_string(&none).unwrap();
        assert_eq!(json, r#"{"disk":"","source":"","before":{}}"#);
    }

    #[test]
    fn nvmes_counters_tell_what_grew_and_what_is() {
        let health = Health {
            before: gauges([(DATA_UNITS_WRITTEN, 10), (MEDIA_BYTES_WRITTEN, 900)]),
            after: Some(gauges([
                (DATA_UNITS_WRITTEN, 12),
                (MEDIA_BYTES_WRITTEN, 800),
                (PERCENTAGE_USED, 3),
                (MEDIA_ERRORS, 0),
                (CRITICAL_WARNING, 0),
            ])),
            ..Health::default()
        };
        // A counter that went back tells nothing, and neither does one without an earlier value.
        assert_eq!(health.grown(MEDIA_BYTES_WRITTEN), None);
        assert_eq!(
            health.words().unwrap(),
            "1024000 bytes received to write, 3 % of its life used, 0 media errors in its life"
        );
    }

    /// JEDEC's JESD84-B51 and JESD220 tell the life used in tenths: 1 is up to 10 %, 11 is beyond the life.
    #[test]
    fn the_life_of_emmc_and_ufs_is_told_in_tenths() {
        for (n, says) in [
            (1, "0 to 10 %"),
            (10, "90 to 100 %"),
            (11, "more than 100 %"),
        ] {
            let words: Vec<String> = wear(|of| (of == LIFE_TIME_A).then_some(n)).collect();
            assert_eq!(words, [format!("{says} of its life used (type A)")]);
        }
    }

    #[test]
    fn hostile_counters_do_no_harm() {
        let all = |n| ALL.map(|gauge| (gauge.to_owned(), n)).into();
        let health = Health {
            before: all(0),
            after: Some(all(u64::MAX)),
            ..Health::default()
        };
        assert_eq!(health.grown(DATA_UNITS_WRITTEN), Some(u64::MAX));
        assert!(health.words().unwrap().contains("more than 100 %"));
    }
}
