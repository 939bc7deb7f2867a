// SPDX-License-Identifier: MIT OR Apache-2.0
//! Escapes names that may hold any bytes, so that they cannot harm a terminal or a file.

use std::borrow::Cow;
use std::fmt::Write;

/// Writes raw bytes as text without loss: `\\` for a backslash, and `\xNN` for each byte that is not UTF-8 or belongs to a
/// [deceptive](is_deceptive) character.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                c => push(&mut text, c),
            }
        }
        escape_bytes(&mut text, chunk.invalid());
    }
    text
}

/// Escapes deceptive characters in text that may contain escaped names already: backslashes stay as they are.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(is_deceptive) {
        return Cow::Borrowed(text);
    }
    let mut harmless = String::with_capacity(text.len());
    text.chars().for_each(|c| push(&mut harmless, c));
    Cow::Owned(harmless)
}

/// Escapes deceptive characters in several lines; line breaks stay.
pub fn harmless_lines(text: &str) -> String {
    let lines = text.split('\n').map(harmless);
    lines.collect::<Vec<_>>().join("\n")
}

/// Escapes deceptive characters in a JSON document in JSON's own way, so that its strings keep their values.
pub fn harmless_json(json: &str) -> Cow<'_, str> {
    // Outside strings only these three occur; inside, JSON has no unescaped blank but the ordinary one.
    let is_other = |c: char| is_deceptive(c) && !matches!(c, '\n' | '\r' | '\t');
    if !json.contains(is_other) {
        return Cow::Borrowed(json);
    }
    let mut harmless = String::with_capacity(json.len());
    for c in json.chars() {
        match is_other(c) {
            true => escape_units(&mut harmless, c),
            false => harmless.push(c),
        }
    }
    Cow::Owned(harmless)
}

fn push(text: &mut String, c: char) {
    match is_deceptive(c) {
        true => escape_bytes(text, c.encode_utf8(&mut [0; 4]).as_bytes()),
        false => text.push(c),
    }
}

fn escape_bytes(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a String does not fail.
        let _ = write!(text, "\\x{byte:02x}");
    }
}

fn escape_units(text: &mut String, c: char) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        let _ = write!(text, "\\u{unit:04x}");
    }
}

/// Returns true if a character controls a terminal, changes the direction of writing, is invisible, or looks like a blank
/// without being the ordinary one: such a name can make one file look like another.
pub fn is_deceptive(c: char) -> bool {
    match c {
        ' '..='~' => false,
        c => c.is_control() || c.is_whitespace() || is_unseen(c),
    }
}

/// Returns true for invisible characters: `Default_Ignorable_Code_Point` of Unicode 17, which includes direction marks and
/// variation selectors, and some others.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}'
        // Interlinear annotation marks, the empty Braille pattern, an empty note head, hieroglyph controls.
        | '\u{fff9}'..='\u{fffb}' | '\u{2800}' | '\u{1d159}' | '\u{13430}'..='\u{1343f}')
}

/// Formats bytes for people, with a decimal unit (SI).
#[must_use]
pub fn size(bytes: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match UNITS.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes / unit),
        None => format!("{bytes:.0} B"),
    }
}

/// Formats a number with thousands separators: `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{escape, grouped, harmless, harmless_json, harmless_lines, is_deceptive, size};
    use proptest::prelude::*;

    /// Reverses `escape`, to check that nothing is lost.
    fn unescape(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((&first, tail)) = rest.split_first() {
            rest = tail;
            if first != b'\\' {
                bytes.push(first);
            } else if let Some((b'\\', tail)) = rest.split_first() {
                bytes.push(b'\\');
                rest = tail;
            } else {
                let hex = std::str::from_utf8(&rest[1..3]).unwrap();
                bytes.push(u8::from_str_radix(hex, 16).unwrap());
                rest = &rest[3..];
            }
        }
        bytes
    }

    #[test]
    fn hostile_names_become_harmless() {
        for (name, text) in [
            (&b"a.db"[..], "a.db"),
            (b"\x1b[31mred\n", "\\x1b[31mred\\x0a"),
            (b"\\x1b", "\\\\x1b"),
            (b"\xff\xfe", "\\xff\\xfe"),
            ("gpj.\u{202e}txt".as_bytes(), "gpj.\\xe2\\x80\\xaetxt"),
            ("größe".as_bytes(), "größe"),
        ] {
            assert_eq!(escape(name), text);
        }
    }

    /// At least one character of each deceptive kind.
    const DECEPTIVE: [char; 31] = [
        '\0',
        '\t',
        '\n',
        '\r',
        '\u{1b}',
        '\u{7f}',
        '\u{80}',
        '\u{9b}',
        '\u{9f}',
        '\u{a0}',
        '\u{ad}',
        '\u{34f}',
        '\u{61c}',
        '\u{115f}',
        '\u{180e}',
        '\u{2003}',
        '\u{200b}',
        '\u{200d}',
        '\u{2028}',
        '\u{202e}',
        '\u{2066}',
        '\u{2069}',
        '\u{2800}',
        '\u{3000}',
        '\u{3164}',
        '\u{fe0f}',
        '\u{feff}',
        '\u{ffa0}',
        '\u{fffb}',
        '\u{e0041}',
        '\u{e0100}',
    ];

    #[test]
    fn what_deceives_is_escaped_everywhere() {
        for c in DECEPTIVE {
            assert!(is_deceptive(c), "{c:?}");
            let name = format!("a{c}b");
            for text in [escape(name.as_bytes()), harmless(&name).into_owned()] {
                assert!(text.bytes().all(|b| (b' '..=b'~').contains(&b)), "{text}");
                assert_eq!(unescape(&text), name.as_bytes());
            }
            let json = serde_json::to_string(&name).unwrap();
            let json = harmless_json(&json);
            assert!(json.bytes().all(|b| (b' '..=b'~').contains(&b)), "{json}");
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), name);
        }
    }

    #[test]
    fn what_can_be_read_stays() {
        for text in [
            "",
            "größe",
            "日本語",
            "שלום",
            "a b~",
            "e\u{301}",
            "…",
            "😀",
            "\\x1b",
        ] {
            assert_eq!(harmless(text), text);
            assert_eq!(harmless_json(text), text);
        }
        assert_eq!(harmless_lines("a\u{9b}\nb\n"), "a\\xc2\\x9b\nb\n");
    }

    proptest! {
        #[test]
        fn nothing_is_lost(bytes: Vec<u8>) {
            let text = escape(&bytes);
            prop_assert!(!text.contains(is_deceptive));
            prop_assert_eq!(unescape(&text), bytes);
        }

        #[test]
        fn json_says_the_same(texts: Vec<String>) {
            let value = serde_json::json!({ "texts": texts });
            for json in [value.to_string(), format!("{value:#}")] {
                let harmless = harmless_json(&json);
                prop_assert!(!harmless.chars().any(|c| c != '\n' && is_deceptive(c)));
                prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(&harmless).unwrap(), &value);
            }
        }
    }

    #[test]
    fn long_numbers_have_separators_and_large_sizes_a_unit() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (123_456, "123,456"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
        for (bytes, text) in [
            (999.0, "999 B"),
            (1_000.0, "1.0 kB"),
            (999_900.0, "999.9 kB"),
            (1e6, "1.0 MB"),
            (2.5e9, "2.5 GB"),
            (1e12, "1.0 TB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
