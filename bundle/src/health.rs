// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device's own counters: what the drive itself says that it was given, wrote, and how worn it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A counter of a drive.
///
/// A drive that does not have one, or says that it does not report it, has no value: never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// Its name in a manifest and in a ledger; for NVMe's the one that nvme-cli prints.
    pub name: &'static str,
    /// True if it only grows, so that a difference tells what happened between two readings.
    pub grows: bool,
}

const fn grows(name: &'static str) -> Gauge {
    Gauge { name, grows: true }
}

const fn state(name: &'static str) -> Gauge {
    Gauge { name, grows: false }
}

/// NVMe: thousands of units of 512 bytes that the host wrote, rounded up.
pub const DATA_UNITS_WRITTEN: Gauge = grows("data_units_written");
/// NVMe: the same of what the host read.
pub const DATA_UNITS_READ: Gauge = grows("data_units_read");
/// NVMe: commands by which the host wrote.
pub const HOST_WRITE_COMMANDS: Gauge = grows("host_write_commands");
/// NVMe: commands by which the host read.
pub const HOST_READ_COMMANDS: Gauge = grows("host_read_commands");
/// NVMe of the Open Compute Project: bytes that the drive wrote to its media, its own work included.
pub const MEDIA_BYTES_WRITTEN: Gauge = grows("media_bytes_written");
/// NVMe: how much of its life the vendor considers used, percent; may exceed 100, and 255 stands for all above 254.
pub const PERCENTAGE_USED: Gauge = state("percentage_used");
/// NVMe: how much of the spare capacity is left, percent.
pub const AVAILABLE_SPARE: Gauge = state("available_spare");
/// NVMe: times that data could not be read or written intact.
pub const MEDIA_ERRORS: Gauge = grows("media_errors");
/// NVMe: a set of bits: 1 little spare left, 2 temperature, 4 unreliable, 8 read-only, 16 backup of volatile memory failed.
pub const CRITICAL_WARNING: Gauge = state("critical_warning");
/// eMMC and UFS: used life of the first type of memory, in tenths; 11 stands for more than all.
pub const LIFE_TIME_A: Gauge = state("life_time_a");
/// eMMC and UFS: the same of the second type of memory.
pub const LIFE_TIME_B: Gauge = state("life_time_b");
/// eMMC and UFS: 1 normal, 2 four fifths of the reserved blocks are used, 3 nine tenths are.
pub const PRE_EOL_INFO: Gauge = state("pre_eol_info");

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
    /// Whence the counters are: `nvme`, `emmc` or `ufs`.
    pub source: String,
    /// Before tracing began; for a segment, before its recording began.
    pub before: Gauges,
    /// After tracing ended; None in bundles that are not complete, and in all segments but the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Gauges>,
}

impl Health {
    /// Returns by how much a counter grew. None if it has not both values, or does not grow (the drive was replaced, say).
    #[must_use]
    pub fn grown(&self, gauge: Gauge) -> Option<u64> {
        let of = |gauges: &Gauges| gauges.get(gauge.name).copied();
        of(self.after.as_ref()?)?.checked_sub(of(&self.before)?)
    }

    /// Returns the newest value of a counter.
    #[must_use]
    pub fn latest(&self, gauge: Gauge) -> Option<u64> {
        let gauges = self.after.as_ref().unwrap_or(&self.before);
        gauges.get(gauge.name).copied()
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

/// Returns how worn a drive is, in words, one for each counter that it has.
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
        of.map(|(gauge, n)| (gauge.name.to_owned(), n)).into()
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
        // A counter that went back tells nothing, nor does one that was not there before.
        assert_eq!(health.grown(MEDIA_BYTES_WRITTEN), None);
        assert_eq!(
            health.words().unwrap(),
            "1024000 bytes received to write, 3 % of its life used, 0 media errors in its life"
        );
    }

    #[test]
    fn hostile_counters_do_no_harm() {
        let all = |n| ALL.map(|gauge| (gauge.name.to_owned(), n)).into();
        let health = Health {
            before: all(0),
            after: Some(all(u64::MAX)),
            ..Health::default()
        };
        assert_eq!(health.grown(DATA_UNITS_WRITTEN), Some(u64::MAX));
        assert!(health.words().unwrap().contains("more than 100 %"));
    }
}
