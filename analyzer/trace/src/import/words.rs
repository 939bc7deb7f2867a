// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words of a line, one after the other.

/// What is left of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    pub fn of(line: &'a [u8]) -> Words<'a> {
        Words {
            rest: line.trim_ascii(),
        }
    }

    /// Returns what is left, without the blanks ahead.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes the next word.
    pub fn word(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(u8::is_ascii_whitespace);
        let (word, rest) = self.rest.split_at_checked(end.unwrap_or(self.rest.len()))?;
        self.rest = rest.trim_ascii_start();
        (!word.is_empty()).then_some(word)
    }

    /// Takes the next word if it is this one.
    pub fn eat(&mut self, expected: &[u8]) -> Option<()> {
        let mut ahead = *self;
        (ahead.word()? == expected).then(|| *self = ahead)
    }

    /// Takes the next word, which is a number.
    pub fn number(&mut self) -> Option<u64> {
        number(self.word()?)
    }

    /// Takes the rest, which is a name in brackets: `[kworker/1:2H-kb]`.
    pub fn in_brackets(&mut self) -> Option<&'a [u8]> {
        let name = self.rest.strip_prefix(b"[")?;
        let end = name.iter().rposition(|&byte| byte == b']')?;
        let (name, rest) = name.split_at_checked(end)?;
        self.rest = rest.get(1..)?.trim_ascii_start();
        Some(name)
    }
}

/// Parses a decimal number of no other characters than digits.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |sum, &byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Parses a hexadecimal number without 0x.
pub(super) fn hexadecimal(digits: &[u8]) -> Option<u64> {
    let is_plain = digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok()?;
    u64::from_str_radix(text, 16).ok().filter(|_| is_plain)
}

/// Parses a device's number, `8,16`: major << 20 | minor.
pub(super) fn device(word: &[u8]) -> Option<u32> {
    let comma = word.iter().position(|&byte| byte == b',')?;
    let (major, minor) = word.split_at_checked(comma)?;
    device_of(number(major)?, number(minor.get(1..)?)?)
}

/// Returns major << 20 | minor.
pub(super) fn device_of(major: u64, minor: u64) -> Option<u32> {
    let is_valid = major < 1 << 12 && minor < 1 << 20;
    is_valid.then(|| u32::try_from(major << 20 | minor).ok())?
}

/// Parses a number with a fraction in units of which one has `scale` of ours: `12.000345` s with 10⁹ is in ns. Digits below
/// our unit are dropped.
pub(super) fn scaled(word: &[u8], scale: u64) -> Option<u64> {
    let Some(dot) = word.iter().position(|&byte| byte == b'.') else {
        return number(word)?.checked_mul(scale);
    };
    let (whole, fraction) = word.split_at_checked(dot)?;
    let digits = fraction.get(1..)?;
    number(digits)?;
    let mut unit = scale;
    let mut sum = number(whole)?.checked_mul(scale)?;
    for &byte in digits {
        unit = unit.checked_div(10)?;
        let digit = u64::from(byte.checked_sub(b'0')?);
        sum = sum.checked_add(digit.checked_mul(unit)?)?;
    }
    Some(sum)
}

/// Returns what is behind the first `needle`, and what is ahead of it.
pub(super) fn split_once<'a>(text: &'a [u8], needle: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text
        .windows(needle.len())
        .position(|window| window == needle)?;
    let (ahead, rest) = text.split_at_checked(at)?;
    Some((ahead, rest.get(needle.len()..)?))
}

/// Returns what is behind the last `needle`, and what is ahead of it.
pub(super) fn rsplit_once<'a>(text: &'a [u8], needle: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text
        .windows(needle.len())
        .rposition(|window| window == needle)?;
    let (ahead, rest) = text.split_at_checked(at)?;
    Some((ahead, rest.get(needle.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_whole_or_nothing() {
        for (digits, value) in [
            (&b"0"[..], Some(0)),
            (b"18446744073709551615", Some(u64::MAX)),
            (b"18446744073709551616", None),
            (b"+1", None),
            (b"1x", None),
            (b"", None),
        ] {
            assert_eq!(number(digits), value, "{digits:?}");
        }
        assert_eq!(device(b"259,3"), Some(259 << 20 | 3));
        assert_eq!(device(b"4096,3"), None);
        for (word, ns) in [
            (&b"17284.993652"[..], Some(17_284_993_652_000)),
            (b"0.0000000019", Some(1)),
            (b"3", Some(3_000_000_000)),
            (b"18446744073709551615.1", None),
            (b"1.", None),
            (b".5", None),
            (b"1.-5", None),
        ] {
            assert_eq!(scaled(word, 1_000_000_000), ns, "{word:?}");
        }
    }

    #[test]
    fn words_are_taken_in_order() {
        let mut words = Words::of(b"  8,0  C 12 + 8 [a [b] c]\n");
        assert_eq!(words.word(), Some(&b"8,0"[..]));
        assert_eq!(words.eat(b"D"), None);
        assert_eq!(words.eat(b"C"), Some(()));
        assert_eq!(words.number(), Some(12));
        assert_eq!(words.number(), None);
        assert_eq!(words.number(), Some(8));
        assert_eq!(words.in_brackets(), Some(&b"a [b] c"[..]));
        assert!(words.word().is_none());
    }
}
