// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of a call, as strace writes them.

/// The arguments of a call, split at the commas that are in no string, bracket or brace.
pub(super) struct Args<'t>(Vec<&'t str>);

impl<'t> Args<'t> {
    pub fn split(text: &'t str) -> Args<'t> {
        let mut args = Vec::new();
        let (mut begin, mut depth, mut quoted, mut escaped) = (0, 0_usize, false, false);
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ if quoted => {}
                b'(' | b'[' | b'{' | b'<' => depth = depth.saturating_add(1),
                b')' | b']' | b'}' | b'>' => depth = depth.saturating_sub(1),
                b',' if depth == 0 => {
                    args.push(text[begin..at].trim());
                    begin = at + 1;
                }
                _ => {}
            }
        }
        let last = text[begin..].trim();
        if !(args.is_empty() && last.is_empty()) {
            args.push(last);
        }
        Args(args)
    }

    /// Returns an argument as it is written, empty if there are fewer.
    pub fn text(&self, n: usize) -> &'t str {
        self.0.get(n).copied().unwrap_or_default()
    }

    /// Returns a number: decimal, hexadecimal or octal, or flags whose names are in `words`, joined by `|`. A comment
    /// (`/* … */`) is dropped; an unknown name counts as 0.
    pub fn number(&self, n: usize, words: &[(&str, u64)]) -> Option<u64> {
        let text = self.text(n).split("/*").next()?.trim();
        text.split('|').map(str::trim).try_fold(0_u64, |sum, word| {
            let named = words.iter().find(|(name, _)| *name == word);
            let value = match named {
                Some((_, value)) => *value,
                None if word.starts_with(|first: char| first.is_ascii_uppercase()) => 0,
                None => number(word)?,
            };
            Some(sum | value)
        })
    }

    pub fn plain(&self, n: usize) -> Option<u64> {
        self.number(n, &[])
    }

    /// Returns a descriptor and the path that `strace -y` puts behind it; None for a negative number.
    pub fn descriptor(&self, n: usize) -> Option<(u32, Option<Vec<u8>>)> {
        descriptor(self.text(n))
    }

    /// Returns the folder from which a path counts: the path behind `AT_FDCWD` or a descriptor.
    pub fn folder(&self, n: usize) -> Folder {
        let text = self.text(n);
        match text.strip_prefix("AT_FDCWD") {
            Some(rest) => Folder::Current(behind(rest)),
            None => match descriptor(text) {
                Some((number, path)) => Folder::Descriptor(number, path),
                None => Folder::Unknown,
            },
        }
    }

    /// Returns a string's bytes; None if it is not a string, or if strace cut it off.
    pub fn string(&self, n: usize) -> Option<Vec<u8>> {
        string(self.text(n))
    }
}

/// The folder from which a relative path counts.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Folder {
    /// The current folder, and its path if strace shows it.
    Current(Option<Vec<u8>>),
    /// A folder with a descriptor, and its path if strace shows it.
    Descriptor(u32, Option<Vec<u8>>),
    Unknown,
}

/// Returns a descriptor, and the path that `strace -y` puts behind it.
pub(super) fn descriptor(text: &str) -> Option<(u32, Option<Vec<u8>>)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit());
    let (number, rest) = text.split_at(end.unwrap_or(text.len()));
    Some((number.parse().ok()?, behind(rest)))
}

/// Returns the path in `</a/path>`; sockets, pipes and the like have none.
fn behind(text: &str) -> Option<Vec<u8>> {
    let path = text
        .strip_prefix('<')?
        .split_at(text.rfind('>')?.checked_sub(1)?)
        .0;
    // With -yy a device has its numbers behind its path, again in brackets.
    let path = path.split('<').next()?;
    path.starts_with('/').then(|| unescape(path))
}

/// Returns the bytes of a quoted string; None if it is cut off (`"abc"...`).
pub(super) fn string(text: &str) -> Option<Vec<u8>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    Some(unescape(inner))
}

/// Returns a value such as `st_size=8192` in a structure.
pub(super) fn field<'t>(structure: &'t str, name: &str) -> Option<&'t str> {
    let inner = structure.strip_prefix('{')?.strip_suffix('}')?;
    let mut fields = inner.split(", ").filter_map(|field| field.split_once('='));
    fields
        .find(|(field, _)| *field == name)
        .map(|(_, value)| value)
}

pub(super) fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if word.len() > 1 && word.starts_with('0') => u64::from_str_radix(word, 8).ok(),
        None => word.parse().ok(),
    }
}

/// Replaces C's escapes, as strace writes them.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = text.bytes().peekable();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(b'v') => out.push(0x0b),
            Some(b'f') => out.push(0x0c),
            Some(b'x') => {
                let digits = [bytes.next(), bytes.next()].map(|d| hexadecimal(d.unwrap_or(b'0')));
                out.push(digits[0] << 4 | digits[1]);
            }
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    let Some(next) = bytes.next_if(|next| (b'0'..=b'7').contains(next)) else {
                        break;
                    };
                    value = value << 3 | u32::from(next - b'0');
                }
                out.extend(value.to_le_bytes().first());
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

fn hexadecimal(digit: u8) -> u8 {
    char::from(digit)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arguments_are_split_outside_of_strings_and_brackets() {
        let args = Args::split(r#"3</a,b>, [{iov_base="x, y", iov_len=4}], 0x10, "q\"\x41\1012""#);
        assert_eq!(args.0.len(), 4);
        assert_eq!(args.descriptor(0), Some((3, Some(b"/a,b".to_vec()))));
        assert_eq!(args.plain(2), Some(16));
        assert_eq!(args.string(3), Some(b"q\"AA2".to_vec()));
        assert_eq!(Args::split("").0.len(), 0);
    }

    #[test]
    fn flags_are_added() {
        let words = [("O_RDWR", 2), ("O_CREAT", 64)];
        let args = Args::split("O_RDWR|O_CREAT|O_NEWER|0x400, -1, 0644 /* what */");
        assert_eq!(args.number(0, &words), Some(2 | 64 | 0x400));
        assert_eq!(args.plain(1), None);
        assert_eq!(args.plain(2), Some(0o644));
    }

    #[test]
    fn folders_and_fields() {
        let args = Args::split("AT_FDCWD</home>, 5, -100, {st_mode=S_IFREG|0644, st_size=77, ...}");
        assert_eq!(args.folder(0), Folder::Current(Some(b"/home".to_vec())));
        assert_eq!(args.folder(1), Folder::Descriptor(5, None));
        assert_eq!(args.folder(2), Folder::Unknown);
        assert_eq!(field(args.text(3), "st_size"), Some("77"));
        assert_eq!(string("\"abc\"..."), None);
    }

    proptest! {
        #[test]
        fn any_arguments_are_taken(text in "[\\PC\"<>{}(),\\\\x]{0,40}") {
            let args = Args::split(&text);
            for n in 0..3 {
                let _ = (args.plain(n), args.descriptor(n), args.folder(n), args.string(n));
            }
        }
    }
}
