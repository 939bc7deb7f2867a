// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names that may hold anything, as text that cannot harm a terminal or a file.

use std::fmt::Write;

/// Writes raw bytes as text, without loss: `\\` for a backslash, and `\xNN` for each byte of what
/// is not UTF-8, of control characters (newlines, escape sequences), and of the characters that
/// turn the direction of writing or take no room, with which a name can pass for another.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                c if is_deceptive(c) => {
                    escape_bytes(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes())
                }
                c => text.push(c),
            }
        }
        escape_bytes(&mut text, chunk.invalid());
    }
    text
}

fn escape_bytes(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a String does not fail.
        let _ = write!(text, "\\x{byte:02x}");
    }
}

fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests {
    use super::escape;
    use proptest::prelude::*;

    /// The way back, to see that nothing is lost.
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

    proptest! {
        #[test]
        fn nothing_is_lost(bytes: Vec<u8>) {
            let text = escape(&bytes);
            prop_assert!(!text.chars().any(char::is_control));
            prop_assert_eq!(unescape(&text), bytes);
        }
    }
}
