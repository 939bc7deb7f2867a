// SPDX-License-Identifier: MIT OR Apache-2.0
//! How certain the causes of what was written are, in one line:
//!
//! ```text
//! causes: exact 62 %, shared 30 %, set 5 %, unknown 3 % of the bytes written
//! ```

use super::{Groups, Label};

/// The grouping that the line needs.
pub(super) const COLUMNS: [&str; 1] = ["cause_known"];

/// The words, from the most certain to the least.
const WORDS: [&str; 6] = ["exact", "shared", "first", "set", "proportional", "unknown"];

/// Returns the line, given the sums by [`COLUMNS`]; None if nothing was written, or if the cause of no byte is known.
pub(super) fn line(groups: &Groups) -> Option<String> {
    let whole = groups.total.write_bytes;
    let written = |word: &str| -> u64 {
        let mut groups = groups.groups.iter();
        let of_word = groups
            .find(|(labels, _)| labels.first().and_then(Label::text).as_deref() == Some(word));
        of_word.map_or(0, |(_, totals)| totals.write_bytes)
    };
    if whole == 0 || written("unknown") == whole {
        return None;
    }
    let shares: Vec<String> = WORDS
        .into_iter()
        .filter(|word| written(word) > 0)
        .map(|word| format!("{word} {}", percent(written(word), whole)))
        .collect();
    Some(format!(
        "causes: {} of the bytes written",
        shares.join(", ")
    ))
}

/// Returns `part` in per cent of `whole`; what is rounded to nothing, or to all, is not said to be that.
fn percent(part: u64, whole: u64) -> String {
    let (part, whole) = (u128::from(part), u128::from(whole));
    match (part.saturating_mul(100).saturating_add(whole / 2)).checked_div(whole) {
        Some(0) => "< 1 %".into(),
        Some(100) if part < whole => "> 99 %".into(),
        Some(percent) => format!("{percent} %"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Totals;

    fn groups(sums: &[(&str, u64)]) -> Groups {
        let of = |write_bytes| Totals {
            write_bytes,
            ..Totals::default()
        };
        let mut groups = Groups::default();
        let each = sums.iter();
        groups.groups = each
            .map(|(word, bytes)| (vec![Label::Text((*word).into())], of(*bytes)))
            .collect();
        groups.total = of(sums.iter().map(|(_, bytes)| bytes).sum());
        groups
    }

    #[test]
    fn the_shares_are_in_the_order_of_certainty() {
        let line = line(&groups(&[("unknown", 3), ("shared", 300), ("exact", 697)]));
        let text = "causes: exact 70 %, shared 30 %, unknown < 1 % of the bytes written";
        assert_eq!(line.as_deref(), Some(text));
    }

    #[test]
    fn nearly_all_is_not_all() {
        let line = line(&groups(&[("exact", 9_999), ("set", 1)]));
        let text = "causes: exact > 99 %, set < 1 % of the bytes written";
        assert_eq!(line.as_deref(), Some(text));
    }

    #[test]
    fn a_trace_without_causes_has_no_line() {
        assert_eq!(line(&groups(&[("unknown", 1_000)])), None);
        assert_eq!(line(&groups(&[])), None);
    }
}
