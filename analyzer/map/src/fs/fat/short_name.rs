// SPDX-License-Identifier: MIT OR Apache-2.0
//! The 8.3 name of a directory entry.
//!
//! Its bytes are in the code page of the system that wrote the volume, which is not recorded. Code page 437 is assumed,
//! the default of Linux (`codepage=437`) and mtools.

/// Bits of `lcase`: the name, or the extension, is shown in small letters (Windows NT).
const CASE_LOWER_BASE: u8 = 0x08;
const CASE_LOWER_EXT: u8 = 0x10;

/// The characters of code page 437 from 0x80 on; those below are ASCII.
const CP437: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»\
                     ░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
                     αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

/// Returns the name as Linux shows it on a vfat mounted with default options (`shortname=mixed`, UTF-8); empty if it
/// has none.
pub fn decode(raw: &[u8; 11], lcase: u8) -> String {
    let (base, extension) = raw.split_at(8);
    let mut base = base.to_vec();
    // On the disk 0x05 stands for 0xe5, which marks a deleted entry.
    if let Some(first) = base.first_mut().filter(|first| **first == 0x05) {
        *first = 0xe5;
    }
    let mut name = part(&base, lcase & CASE_LOWER_BASE != 0);
    let extension = part(extension, lcase & CASE_LOWER_EXT != 0);
    if !extension.is_empty() {
        name.push('.');
        name.push_str(&extension);
    }
    name
}

/// Decodes bytes up to a NUL, without the spaces that pad them.
fn part(raw: &[u8], lower: bool) -> String {
    let len = raw.iter().position(|&byte| byte == 0);
    let bytes = raw.get(..len.unwrap_or(raw.len())).unwrap_or(raw);
    let text: String = bytes
        .iter()
        .map(|&byte| {
            if lower {
                small(cp437(byte))
            } else {
                cp437(byte)
            }
        })
        .collect();
    text.trim_end_matches(' ').to_owned()
}

fn cp437(byte: u8) -> char {
    let high = byte
        .checked_sub(0x80)
        .and_then(|nth| CP437.chars().nth(nth.into()));
    high.unwrap_or(char::from(byte))
}

/// Returns the small letter, if the code page has one.
fn small(letter: char) -> char {
    let mut lower = letter.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(small), None) if small.is_ascii() || CP437.contains(small) => small,
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_as_linux_does() {
        for (raw, lcase, name) in [
            (b"README  TXT", 0x00, "README.TXT"),
            (b"README  TXT", 0x08, "readme.TXT"),
            (b"README  TXT", 0x10, "README.txt"),
            (b"README  TXT", 0x18, "readme.txt"),
            (b"A B     C D", 0x00, "A B.C D"),
            (b"NOEXT      ", 0x18, "noext"),
            (b"        EXT", 0x00, ".EXT"),
            (b"           ", 0x00, ""),
            (b"AB\0DEFGHIJK", 0x00, "AB.IJK"),
            (b"\x05BC     \x9a\xe2 ", 0x00, "σBC.ÜΓ"),
            (b"\x8e\xea\xe4     \x9a\xe2 ", 0x18, "äΩσ.üΓ"),
        ] {
            assert_eq!(decode(raw, lcase), name, "{raw:?}");
        }
    }

    #[test]
    fn the_code_page_is_that_of_the_kernel() {
        assert_eq!(CP437.chars().count(), 128);
        // A sample of `charset2uni` in fs/nls/nls_cp437.c.
        for (byte, code) in [
            (0x80, 0xc7),
            (0x9e, 0x20a7),
            (0xa9, 0x2310),
            (0xb3, 0x2502),
            (0xc4, 0x2500),
            (0xdb, 0x2588),
            (0xe6, 0xb5),
            (0xed, 0x3c6),
            (0xf9, 0x2219),
            (0xff, 0xa0),
        ] {
            assert_eq!(u32::from(cp437(byte)), code, "{byte:#x}");
        }
    }
}
