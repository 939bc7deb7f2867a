// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers as people read them.

use crate::fitting::beginning;
use crate::text::grouped;
pub use crate::text::size;

/// Returns `part` in per cent of `whole`, rounded.
pub fn percent(part: u64, whole: u64) -> u64 {
    let (part, whole) = (u128::from(part), u128::from(whole));
    let rounded = part.saturating_mul(100).saturating_add(whole / 2);
    let percent = rounded.checked_div(whole).unwrap_or(0);
    u64::try_from(percent).unwrap_or(u64::MAX)
}

/// Returns true if `part` is at least `percent` per cent of `whole`.
pub fn is_part(part: u64, whole: u64, percent: u64) -> bool {
    let times = |bytes: u64, by: u64| u128::from(bytes).saturating_mul(by.into());
    times(part, 100) >= times(whole, percent)
}

/// Formats a ratio: `17,749 ×`, `284 ×`, `6.6 ×`.
pub fn times(ratio: f64) -> String {
    match ratio >= 100.0 {
        true => format!("{} ×", grouped(ratio.round() as u64)),
        false => format!("{ratio:.1} ×"),
    }
}

/// Cuts a name to a width; a longer one loses its end.
pub fn cut(name: &str, width: usize) -> String {
    let start = beginning(name, width);
    match start.len() == name.len() {
        true => start,
        false => start + "…",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_people_write_them() {
        let told = [17748.6, 284.3, 6.62].map(times);
        assert_eq!(told, ["17,749 ×", "284 ×", "6.6 ×"]);
        assert_eq!([percent(1, 3), percent(2, 3), percent(1, 0)], [33, 67, 0]);
        assert_eq!([cut("abc", 3), cut("abcd", 3)], ["abc", "abc…"]);
    }
}
