// SPDX-License-Identifier: MIT OR Apache-2.0
//! How certain the causes of what was written are.

use super::words::{is_part, percent};
use crate::causes::Known;
use crate::sums::{Groups, Label};
use crate::tally::sum;

/// The certainties in which every causer is known.
const CERTAIN: [Known; 2] = [Known::Exact, Known::Shared];

/// Returns the sentence, given the sums by `cause_known`; None if nothing was written.
pub fn words(groups: &Groups) -> Option<String> {
    let whole = groups.total.write_bytes;
    let written = |word: &str| {
        let mut groups = groups.groups.iter();
        let is_it = |label: &Label| label.text().as_deref() == Some(word);
        let found = groups.find(|(labels, _)| labels.first().is_some_and(is_it));
        found.map_or(0, |(_, totals)| totals.write_bytes)
    };
    let certain = sum(CERTAIN.map(|known| written(known.as_str())));
    let unknown = written("unknown");
    Some(match whole {
        0 => return None,
        _ if unknown == whole => "No cause is known.".into(),
        _ if certain == whole => "The cause is certain for all bytes.".into(),
        _ if is_part(unknown, whole, 1) => format!(
            "The cause is certain for {} of the bytes, unknown for {}.",
            share(certain, whole),
            share(unknown, whole)
        ),
        _ => format!(
            "The cause is certain for {} of the bytes.",
            share(certain, whole)
        ),
    })
}

/// Returns a share. One that rounds to 0 or 100 % without being it says `< 1 %` or `> 99 %`.
fn share(part: u64, whole: u64) -> String {
    match percent(part, whole) {
        0 if part > 0 => "< 1 %".into(),
        100 if part < whole => "> 99 %".into(),
        percent => format!("{percent} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums::Totals;

    fn said(sums: &[(&str, u64)]) -> Option<String> {
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
        words(&groups)
    }

    #[test]
    fn nearly_all_is_not_all() {
        let told = |sums: &[(&str, u64)]| said(sums).unwrap();
        assert_eq!(
            told(&[("exact", 9_999), ("set", 1)]),
            "The cause is certain for > 99 % of the bytes."
        );
        assert_eq!(
            told(&[("unknown", 30), ("shared", 300), ("exact", 670)]),
            "The cause is certain for 97 % of the bytes, unknown for 3 %."
        );
        assert_eq!(
            told(&[("exact", 1), ("shared", 1)]),
            "The cause is certain for all bytes."
        );
        assert_eq!(told(&[("unknown", 1_000)]), "No cause is known.");
        assert_eq!(said(&[]), None);
    }

    #[test]
    fn a_share_that_rounds_to_nothing_or_all_says_so() {
        for (part, words) in [
            (0, "0 %"),
            (1, "< 1 %"),
            (5, "1 %"),
            (500, "50 %"),
            (994, "99 %"),
            (999, "> 99 %"),
            (1000, "100 %"),
        ] {
            assert_eq!(share(part, 1000), words);
        }
    }
}
