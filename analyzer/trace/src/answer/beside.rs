// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was done beside writing: reads, discards, zeroes, passthrough, and requests that failed.

use super::words::size;
use crate::sums::Totals;
use crate::text::grouped;

/// Returns `Besides, 4.1 kB were read, 8.2 kB discarded.`; None if nothing was done. Reads of a trace without writes are the
/// headline's.
pub fn words(total: &Totals) -> Option<String> {
    let read = match total.write_bytes {
        0 => 0,
        _ => total.read_bytes,
    };
    let bytes = [
        (read, "read"),
        (total.discard_bytes, "discarded"),
        (total.write_zeroes_bytes, "zeroed"),
        (total.other_bytes, "moved by passthrough or zone commands"),
    ];
    let bytes = bytes.into_iter().filter(|(bytes, _)| *bytes > 0);
    let done: Vec<String> = bytes
        .map(|(bytes, done)| format!("{} {done}", size(bytes as f64)))
        .collect();
    let done = (!done.is_empty()).then(|| format!("Besides: {}.", done.join(", ")));
    let failed = (total.failed > 0).then(|| match total.failed {
        1 => "1 request failed.".to_owned(),
        many => format!("{} requests failed.", grouped(many)),
    });
    let all: Vec<String> = done.into_iter().chain(failed).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_written_is_told() {
        let total = Totals {
            write_bytes: 20_000_000,
            ..Totals::default()
        };
        assert_eq!(words(&total), None);
        let total = Totals {
            read_bytes: 12,
            discard_bytes: 4_096,
            failed: 1,
            ..total
        };
        let told = words(&total);
        assert_eq!(
            told.as_deref(),
            Some("Besides: 12 B read, 4.1 kB discarded. 1 request failed.")
        );
    }
}
