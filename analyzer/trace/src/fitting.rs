// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of a name that fit into columns of a terminal, where some characters are wide.

use unicode_width::UnicodeWidthChar;

/// Returns the beginning of a text that fits into `width` columns.
pub fn beginning(text: &str, width: usize) -> String {
    fitting(text.chars(), width).into_iter().collect()
}

/// Returns the end of a text that fits into `width` columns; a path's end is the file's own name.
pub fn end(text: &str, width: usize) -> String {
    fitting(text.chars().rev(), width)
        .into_iter()
        .rev()
        .collect()
}

fn fitting(chars: impl Iterator<Item = char>, width: usize) -> Vec<char> {
    let mut used = 0_usize;
    let fits = |c: &char| {
        used = used.saturating_add(c.width().unwrap_or(0));
        used <= width
    };
    chars.take_while(fits).collect()
}
