// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words for what was done beside writing: reads, discards, zeroes, flushes, and failed requests.

use super::culprits::Culprits;
use super::{is_part, size};
use crate::tables::Totals;
use mostrace_trace::text::grouped;

/// Flushes are reported from this number on, if fewer bytes than `FEW_BYTES` were written for each.
pub(super) const MANY_FLUSHES: u64 = 10;
pub(super) const FEW_BYTES: u64 = 1_000_000;
/// If this part of the flushes was reported already, the rest is not, per cent.
const NEARLY_ALL: u64 = 90;
/// Reads come first if this many times as much was read as written.
const MOSTLY_READ: u64 = 10;

/// Returns how much was read, and by whom.
pub(super) fn reads(total: &Totals, culprits: &Culprits<'_>) -> String {
    let by = culprits.words(total.read_bytes, |t| t.read_bytes);
    format!("{} were read{by}", size(total.read_bytes as f64))
}

/// Returns the words for a trace in which nothing was written.
pub(super) fn nothing_written(total: &Totals, culprits: &Culprits<'_>) -> String {
    match total.read_bytes {
        0 => "Nothing was written, and nothing read".to_owned(),
        _ => format!("Nothing was written, and {}", reads(total, culprits)),
    }
}

/// Returns true if the trace is mostly of reads.
pub(super) fn is_mostly_read(total: &Totals) -> bool {
    total.read_bytes >= total.write_bytes.saturating_mul(MOSTLY_READ)
}

/// Returns the words, each preceded by a semicolon. `told` flushes were reported already.
pub(super) fn words(total: &Totals, told: u64) -> String {
    let bytes = |bytes: u64, what: &str| {
        (bytes > 0).then(|| format!("; {} were {what}", size(bytes as f64)))
    };
    let is_flushed = !is_part(told, total.flushes, NEARLY_ALL)
        && total.flushes >= MANY_FLUSHES
        && total.write_bytes < total.flushes.saturating_mul(FEW_BYTES);
    let flushes = || format!("; {} flushes were asked for", grouped(total.flushes));
    let failed = || format!("; requests that failed: {}", grouped(total.failed));
    let all = [
        bytes(total.discard_bytes, "discarded"),
        bytes(total.write_zeroes_bytes, "zeroed"),
        bytes(total.other_bytes, "moved by passthrough or zone commands"),
        is_flushed.then(flushes),
        (total.failed > 0).then(failed),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beside_writing_is_told_where_it_is_much() {
        let total = Totals {
            write_bytes: 20_000_000,
            flushes: 20,
            ..Totals::default()
        };
        assert_eq!(words(&total, 0), "");
        let total = Totals {
            write_bytes: 19_999_999,
            discard_bytes: 4_096,
            write_zeroes_bytes: 8_192,
            failed: 1,
            ..total
        };
        assert_eq!(
            words(&total, 0),
            "; 4.1 KB were discarded; 8.2 KB were zeroed; 20 flushes were asked for; requests that failed: 1"
        );
        assert_eq!(
            words(&total, 18),
            "; 4.1 KB were discarded; 8.2 KB were zeroed; requests that failed: 1"
        );
        let few = Totals {
            flushes: 9,
            ..Totals::default()
        };
        assert_eq!(words(&few, 0), "");
    }
}
