// SPDX-License-Identifier: MIT OR Apache-2.0
//! Breaks lines that are wider than the terminal between words.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// On a narrower terminal lines stay as they are.
const NARROWEST: usize = 30;
/// Commands to be copied begin so.
const COMMAND: &str = "next: ";

/// Breaks lines that are wider than `width`. What continues a line stands below what it says: behind a name or a number and two
/// blanks, if there is one.
pub fn wrapped(text: &str, width: usize) -> String {
    let lines = text.split_inclusive('\n');
    lines.map(|line| broken(line, width)).collect()
}

fn broken(line: &str, width: usize) -> String {
    let (words, end) = match line.strip_suffix('\n') {
        Some(words) => (words, "\n"),
        None => (line, ""),
    };
    if width < NARROWEST || words.width() <= width || words.starts_with(COMMAND) {
        return line.to_owned();
    }
    let (before, words) = words.split_at(beginning(words, width / 2));
    let indent = match before.width() {
        0 => 2,
        indent => indent,
    };
    let mut out = before.to_owned();
    let mut column = before.width();
    for (nth, word) in words.split(' ').enumerate() {
        let wide = word.width();
        if nth > 0 && column + 1 + wide > width {
            out += "\n";
            out += &" ".repeat(indent);
            column = indent;
        } else if nth > 0 {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += wide;
    }
    out + end
}

/// The byte at which a line's sentence begins: the last one behind two blanks that is in the first `most` columns, or 0.
fn beginning(line: &str, most: usize) -> usize {
    let mut at = 0;
    let mut blanks = 0;
    let mut column = 0;
    for (byte, c) in line.char_indices() {
        if column > most {
            break;
        }
        if c != ' ' && blanks >= 2 {
            at = byte;
        }
        blanks = if c == ' ' { blanks + 1 } else { 0 };
        column += c.width().unwrap_or(0);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_goes_on_below_itself() {
        let text = "   71 %  ext4's journal, mostly because the WAL grew\nshort\n";
        let narrow = "   71 %  ext4's journal, mostly because\n         the WAL grew\nshort\n";
        assert_eq!(wrapped(text, 40), narrow);
        assert_eq!(wrapped(text, 200), text);
        assert_eq!(
            wrapped(
                "Each of 1,000 transactions stored 108 B and wrote 30.7 kB",
                40
            ),
            "Each of 1,000 transactions stored 108 B\n  and wrote 30.7 kB"
        );
        assert_eq!(
            wrapped("ok  functions          known from the kernel's symbols", 48),
            "ok  functions          known from the kernel's\n                       symbols"
        );
    }

    #[test]
    fn what_is_copied_or_cannot_be_broken_stays() {
        for line in [
            "next: mostrace analyze a-recording.most --full; mostrace report",
            "/a/path/without/any/blank/that/is/longer/than/the/terminal",
        ] {
            assert_eq!(wrapped(line, 40), line);
        }
        assert_eq!(
            wrapped("no room for words on this terminal", 20)
                .lines()
                .count(),
            1
        );
    }
}
