// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of a call, as strace writes them.

/// The arguments of a call, split at the commas that are in no string, bracket or brace.
pub(super) struct Args<'t>(Vec<&'t str>);

/// A byte of a call's text that is in no string and in nothing that strace says of a descriptor.
struct Mark {
    at: usize,
    byte: u8,
}

/// Returns the marks of a text.
fn marks(text: &str) -> impl Iterator<Item = Mark> {
    let mut rest = text.bytes().enumerate();
    let mut before = b' ';
    let mut is_whole = true;
    std::iter::from_fn(move || {
        let (at, byte) = rest.next()?;
        let after = text
            .as_bytes()
            .get(at.saturating_add(1))
            .copied()
            .unwrap_or_default();
        match byte {
            b'"' => {
                while let Some((_, inside)) = rest.next() {
                    match inside {
                        b'"' => break,
                        b'\\' => drop(rest.next()),
                        _ => {}
                    }
                }
            }
            // The path of `3</a>`, `AT_FDCWD</a>` and `-100 /* AT_FDCWD */</a>`, but neither `1<<2` nor ` <unfinished ...>`.
            b'<' if matches!(before, b'0'..=b'9' | b'D' | b'/')
                && is_whole
                && !matches!(after, b'<' | b'=' | b' ') =>
            {
                let behind = text.get(at.saturating_add(1)..).unwrap_or_default();
                match described(behind) {
                    Some(length) => {
                        let _ = rest.by_ref().take(length).count();
                    }
                    // The text is cut off; it is not searched again.
                    None => is_whole = false,
                }
            }
            _ => {}
        }
        before = byte;
        Some(Mark { at, byte })
    })
}

/// Returns the length of what strace says of a descriptor, up to the bracket that closes.
fn described(text: &str) -> Option<usize> {
    let is_path = ["/", "\\x2f", "\\57"]
        .iter()
        .any(|slash| text.starts_with(slash));
    let mut depth = 1_usize;
    let mut bytes = text.bytes().enumerate();
    let mut before = b' ';
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'<' => depth = depth.saturating_add(1),
            // A socket has an arrow between its two ends.
            b'>' if before == b'-' && !is_path => {}
            b'>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        before = byte;
    }
    None
}

/// Returns the place of the parenthesis that ends the arguments; None if there is none.
pub(super) fn end(text: &str) -> Option<usize> {
    let mut depth = 1_usize;
    marks(text).find_map(|Mark { at, byte }| {
        match byte {
            b'(' | b'[' | b'{' => depth = depth.saturating_add(1),
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

impl<'t> Args<'t> {
    pub fn split(text: &'t str) -> Args<'t> {
        let mut args = Vec::new();
        let (mut begin, mut depth) = (0, 0_usize);
        for Mark { at, byte } in marks(text) {
            match byte {
                b'(' | b'[' | b'{' => depth = depth.saturating_add(1),
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                b',' if depth == 0 => {
                    args.push(text.get(begin..at).unwrap_or_default().trim());
                    begin = at.saturating_add(1);
                }
                _ => {}
            }
        }
        let last = text.get(begin..).unwrap_or_default().trim();
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

    /// Returns a descriptor and what `strace -y` says of it; None for a negative number.
    pub fn descriptor(&self, n: usize) -> Option<(u32, Described)> {
        descriptor(self.text(n))
    }

    /// Returns the folder from which a path counts: the current one, or that of a descriptor.
    pub fn folder(&self, n: usize) -> Folder {
        let text = self.text(n);
        let current = ["AT_FDCWD", "-100", "4294967196", "0xffffff9c"];
        if let Some(rest) = current.iter().find_map(|word| text.strip_prefix(word)) {
            // -X verbose has the name in a comment.
            let rest = rest.split_once("*/").map_or(rest, |(_, rest)| rest);
            return Folder::Current(path(described_as(rest)));
        }
        match descriptor(text) {
            Some((number, described)) => Folder::Descriptor(number, path(described)),
            None => Folder::Unknown,
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

/// What `strace -y` says of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Described {
    /// It says nothing.
    Not,
    /// It leads to this path.
    Path(Vec<u8>),
    /// It leads to a file without a name, which had this path, or has a number for a name.
    Nameless(Vec<u8>),
    /// It leads to a socket, a pipe or the like.
    Other,
}

/// Returns a descriptor, and what `strace -y` says of it.
pub(super) fn descriptor(text: &str) -> Option<(u32, Described)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit());
    let (number, rest) = text.split_at(end.unwrap_or(text.len()));
    Some((number.parse().ok()?, described_as(rest)))
}

/// Returns what `</a/path>` says.
fn described_as(text: &str) -> Described {
    let parts = text
        .strip_prefix('<')
        .and_then(|text| text.split_at_checked(described(text)?));
    let Some((inside, behind)) = parts else {
        return Described::Not;
    };
    // With -yy a device has its numbers behind its path, again in brackets.
    let path = unescape(inside.split('<').next().unwrap_or_default());
    if !path.starts_with(b"/") {
        return Described::Other;
    }
    match path.strip_suffix(b" (deleted)") {
        Some(path) => Described::Nameless(path.to_vec()),
        None if behind.starts_with(">(deleted)") => Described::Nameless(path),
        None => Described::Path(path),
    }
}

fn path(described: Described) -> Option<Vec<u8>> {
    match described {
        Described::Path(path) => Some(path),
        _ => None,
    }
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
        let path = |path: &[u8]| Described::Path(path.to_vec());
        assert_eq!(args.descriptor(0), Some((3, path(b"/a,b"))));
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
        let args = Args::split("AT_FDCWD</home>, 5, -7, {st_mode=S_IFREG|0644, st_size=77, ...}");
        assert_eq!(args.folder(0), Folder::Current(Some(b"/home".to_vec())));
        assert_eq!(args.folder(1), Folder::Descriptor(5, None));
        assert_eq!(args.folder(2), Folder::Unknown);
        assert_eq!(field(args.text(3), "st_size"), Some("77"));
        assert_eq!(string("\"abc\"..."), None);
    }

    #[test]
    fn descriptors_are_described() {
        let described = |text| descriptor(text).unwrap().1;
        assert_eq!(described("3"), Described::Not);
        assert_eq!(described("3<socket:[12]>"), Described::Other);
        assert_eq!(
            described("3<TCP:[127.0.0.1:1->127.0.0.1:2]>"),
            Described::Other
        );
        assert_eq!(described(r"3<\x2f\x61>"), Described::Path(b"/a".to_vec()));
        assert_eq!(
            described("1</dev/pts/0<char 136:0>>"),
            Described::Path(b"/dev/pts/0".to_vec())
        );
        for nameless in ["3</r/#12 (deleted)>", "3</r/#12>(deleted)"] {
            assert_eq!(described(nameless), Described::Nameless(b"/r/#12".to_vec()));
        }
        let args = Args::split(r#"3</r/a[(,">, 4<TCP:[1->2]>, 1<<2, 5</r/->"#);
        assert_eq!(
            args.0,
            [r#"3</r/a[(,">"#, "4<TCP:[1->2]>", "1<<2", "5</r/->"]
        );
    }

    #[test]
    fn the_current_folder_in_each_form() {
        for text in ["AT_FDCWD", "-100", "4294967196", "-100 /* AT_FDCWD */"] {
            assert_eq!(Args::split(text).folder(0), Folder::Current(None), "{text}");
            let at = format!("{text}</r>");
            let there = Folder::Current(Some(b"/r".to_vec()));
            assert_eq!(Args::split(&at).folder(0), there, "{at}");
        }
    }

    proptest! {
        #[test]
        fn any_arguments_are_taken(text in "[\\PC\"<>{}(),\\\\x]{0,40}") {
            let args = Args::split(&text);
            for n in 0..3 {
                let _ = (args.plain(n), args.descriptor(n), args.folder(n), args.string(n));
            }
            let _ = end(&text);
        }
    }
}
