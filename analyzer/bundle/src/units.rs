// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sizes and times as users write them; one rule for all options.

use std::time::Duration;

/// Units of bytes that say themselves what they are worth.
const NAMED: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];
/// Suffixes of sizes, as of a file or a buffer: powers of 1024, as programs that make them have it.
const SIZES: [(&str, u64); 5] = [
    ("K", 1 << 10),
    ("k", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
];
/// Suffixes of amounts, as of what was written: powers of 1000, as they are printed.
const AMOUNTS: [(&str, u64); 5] = [
    ("K", 1_000),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];
/// Units of time: each suffix with its length in seconds.
const TIMES: [(&str, f64); 5] = [
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
    ("d", 86400.0),
];

/// Parses the size of a file or a buffer in bytes: a whole number, alone, with a unit (kB, MB, KiB, MiB …), or with the suffix K, M,
/// G or T (powers of 1024).
///
/// # Errors
/// Returns an error if the text is not a size, or is more than 2^64 − 1.
pub fn size(text: &str) -> Result<u64, String> {
    let bytes = bytes(text, &SIZES);
    bytes.ok_or_else(|| format!("`{text}` is not a size; examples: 4096, 64K, 256M, 1G"))
}

/// Parses an amount of bytes: a whole number, alone, with a unit (kB, MB, KiB, MiB …), or with the suffix K, M, G or T (powers of
/// 1000).
///
/// # Errors
/// Returns an error if the text is not an amount, or is more than 2^64 − 1.
pub fn amount(text: &str) -> Result<u64, String> {
    let bytes = bytes(text, &AMOUNTS);
    bytes.ok_or_else(|| format!("`{text}` is not an amount; examples: 4096, 64kB, 5MB, 4MiB"))
}

fn bytes(text: &str, bare: &[(&str, u64)]) -> Option<u64> {
    let with_unit = with_unit(text, &NAMED).or_else(|| with_unit(text, bare));
    let (number, unit) = with_unit.unwrap_or((text, 1));
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// Parses a time: a number of seconds, alone or with the suffix ms, s, m, h or d as its unit.
pub fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = with_unit(text, &TIMES).unwrap_or((text, 1.0));
    let seconds: Option<f64> = number.parse().ok();
    let time = seconds.and_then(|number| Duration::try_from_secs_f64(number * unit).ok());
    time.ok_or_else(|| format!("`{text}` is not a time; examples: 10, 1.5s, 500ms, 10m, 1h"))
}

/// Parses `80%` or `80` as 0.8.
///
/// # Errors
/// Returns an error if the text is not a percentage, or is below 0.
pub fn percent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.strip_suffix('%').unwrap_or(text).parse().ok();
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    let share = number.map(|number| number / 100.0);
    share.ok_or_else(|| format!("`{text}` is not a percentage; examples: 80%, 7, 12.5%"))
}

/// Returns true if the text ends in a unit of size.
#[must_use]
pub fn has_unit_of_size(text: &str) -> bool {
    with_unit(text, &NAMED)
        .or(with_unit(text, &SIZES))
        .is_some()
}

/// Returns true if the text ends in a unit of time.
#[must_use]
pub fn has_unit_of_time(text: &str) -> bool {
    with_unit(text, &TIMES).is_some()
}

/// Splits a text into its number and what its unit is worth. Longer suffixes come first in `units`, as `ms` also ends
/// in `s`.
fn with_unit<'t, T: Copy>(text: &'t str, units: &[(&str, T)]) -> Option<(&'t str, T)> {
    let mut units = units.iter();
    units.find_map(|&(unit, worth)| Some((text.strip_suffix(unit)?, worth)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_decimal_unless_they_say_otherwise() {
        for (text, bytes) in [
            ("4096", 4096),
            ("5M", 5_000_000),
            ("5MB", 5_000_000),
            ("5MiB", 5 << 20),
            ("40k", 40_000),
        ] {
            assert_eq!(amount(text), Ok(bytes), "{text}");
        }
        assert_eq!(
            [size("5MB"), size("5MiB"), size("5M")],
            [Ok(5_000_000), Ok(5 << 20), Ok(5 << 20)]
        );
        assert!(amount("5m").is_err() && amount("20000000TB").is_err());
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("4096", 4096),
            ("64k", 65536),
            ("64K", 65536),
            ("5M", 5 << 20),
            ("1G", 1 << 30),
            ("100T", 100 << 40),
            ("0", 0),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "1.5G", "-1", "5m", "5 M", "5XB", "16777216T", "x"] {
            let says = format!("`{text}` is not a size; examples: 4096, 64K, 256M, 1G");
            assert_eq!(size(text), Err(says));
        }
    }

    #[test]
    fn times() {
        for (text, millis) in [
            ("10", 10_000),
            ("0.25", 250),
            ("1s", 1000),
            ("1.5s", 1500),
            ("500ms", 500),
            ("10m", 600_000),
            ("1h", 3_600_000),
            ("2d", 172_800_000),
        ] {
            assert_eq!(time(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "-1", "1M", "1y", "inf", "NaN", "1e30h"] {
            let says = format!("`{text}` is not a time; examples: 10, 1.5s, 500ms, 10m, 1h");
            assert_eq!(time(text), Err(says));
        }
    }

    #[test]
    fn a_unit_tells_a_time_from_a_size() {
        for (text, is_time, is_size) in [
            ("5ms", true, false),
            ("2h", true, false),
            ("64K", false, true),
            ("5MiB", false, true),
            ("10", false, false),
        ] {
            let units = (has_unit_of_time(text), has_unit_of_size(text));
            assert_eq!(units, (is_time, is_size), "{text}");
        }
    }

    #[test]
    fn percentages_may_have_a_sign() {
        let shares = ["80%", "80", "12.5%"].map(percent);
        assert_eq!(shares, [Ok(0.8), Ok(0.8), Ok(0.125)]);
        for wrong in ["", "%", "x", "inf", "8 %", "-1%"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
