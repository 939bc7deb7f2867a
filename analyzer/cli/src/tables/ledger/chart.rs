// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace ledger show --chart`: what was written over time, a line for each group.

use chrono::{DateTime, SecondsFormat};
use mostrace_tables::ledger::Timeline;
use mostrace_trace::tally::sum;
use mostrace_trace::text::size;

/// Number of columns of time.
pub const COLUMNS: usize = 60;
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// A column in which the device was not watched.
const UNWATCHED: char = '·';

/// Returns the lines. All have one scale.
pub fn lines(timeline: &Timeline) -> Vec<String> {
    let all = timeline.rows.iter().flat_map(|row| &row.write_bytes);
    let most = all.copied().max().unwrap_or(0);
    let total = sum(timeline.rows.iter().map(|row| row.total));
    let mut lines = Vec::new();
    for row in timeline.rows.iter().filter(|row| row.total > 0) {
        let columns = row.write_bytes.iter().zip(&timeline.times);
        let columns: String = columns
            .map(|(&bytes, time)| level(bytes, most, time.is_some()))
            .collect();
        let percent = u128::from(row.total) * 100 / u128::from(total.max(1));
        let size = size(row.total as f64);
        lines.push(format!(
            "{size:>11} {percent:>3} % {columns} {}",
            row.name()
        ));
    }
    let length = timeline.length();
    let begin = DateTime::from_timestamp(timeline.begin, 0).unwrap_or_default();
    lines.push(format!(
        "from {} on, each column {length}; █ is {}; {UNWATCHED} was not watched",
        begin.to_rfc3339_opts(SecondsFormat::Secs, true),
        size(most as f64)
    ));
    lines
}

fn level(bytes: u64, most: u64, is_watched: bool) -> char {
    match bytes {
        0 if !is_watched => UNWATCHED,
        0 => ' ',
        bytes => {
            let of = u128::from(bytes) * LEVELS.len() as u128;
            let at = usize::try_from(of.div_ceil(u128::from(most.max(1)))).unwrap_or(1);
            LEVELS[at.clamp(1, LEVELS.len()) - 1]
        }
    }
}

#[cfg(test)]
mod tests {
    use mostrace_tables::ledger::Row;

    use super::*;

    /// A damaged day may claim any number.
    #[test]
    fn sums_of_any_numbers_have_shares() {
        let row = Row {
            total: u64::MAX,
            ..Row::default()
        };
        let timeline = Timeline {
            rows: vec![row.clone(), row],
            ..Timeline::default()
        };
        assert_eq!(lines(&timeline).len(), 3);
    }

    #[test]
    fn the_largest_is_full_and_the_smallest_is_seen() {
        assert_eq!(level(800, 800, true), '█');
        assert_eq!(level(1, u64::MAX, true), '▁');
        assert_eq!(level(400, 800, true), '▄');
        assert_eq!(level(0, 800, true), ' ');
        assert_eq!(level(0, 800, false), '·');
    }
}
