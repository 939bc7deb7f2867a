// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stacks from which calls were made and handles of a journal begun.
//!
//! A frame is a line of text. Those of the kernel are first, and within each part the innermost frame:
//!
//! ```text
//! ext4_dirty_inode+0x5b
//! ext4_file_write_iter+0x1c4
//! 8f3c…b1 0x11ca27 /usr/lib/x86_64-linux-gnu/libc.so.6
//! - 0x1189 /home/me/app
//! - -
//! ```
//!
//! A frame of the kernel is the function and the place in it, or `unknown`. A frame of a program is its file's build id, the
//! place in the file (an offset in bytes) and the file's path. A `-`, or an empty path, is not known.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, LE, U16, U32, U64};

use super::{Flags, RawHead};

/// `MOSTRACE_STACK`.
pub const TYPE_STACK: u16 = 13;

/// `enum mostrace_stack_flags`: the program's outermost frames are missing, because there are more than are recorded.
pub const CUT: Flags = Flags(1);

/// `struct mostrace_stack`: a stack, without the text of its frames.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawStack {
    /// Common head; [`CUT`] may be set.
    pub head: RawHead,
    /// The stack's number, to which the sectors of the heads of calls and handles refer.
    pub id: U64<LE>,
    /// Process.
    pub tgid: U32<LE>,
    /// The number of the kernel's frames.
    pub kernel: U16<LE>,
    /// The number of the program's frames.
    pub user: U16<LE>,
}

const _: () = assert!(size_of::<RawStack>() == 48);

/// A stack and its frames, borrowed from a buffer.
#[derive(Clone, Copy, Debug)]
pub struct StackRef<'a> {
    /// The fixed part.
    pub raw: &'a RawStack,
    /// The frames as text: a line for each.
    pub text: &'a [u8],
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// A frame of the kernel: the name of the function, `unknown` if the kernel hides its symbols.
    Kernel(String),
    /// A frame of a program.
    User(Place),
}

/// A place in the code of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// The build id of the file.
    pub build_id: Option<Box<[u8]>>,
    /// The offset in the file, bytes.
    pub offset: Option<u64>,
    /// The path of the file, as its process saw it; empty if it is not known.
    pub path: Box<[u8]>,
}

impl<'a> StackRef<'a> {
    pub(super) fn decode(record: &'a [u8]) -> Result<StackRef<'a>, String> {
        let (raw, rest) =
            RawStack::ref_from_prefix(record).map_err(|_| "shorter than a stack entry")?;
        let end = rest.iter().rposition(|&byte| byte == b'\n');
        let text = rest.get(..end.map_or(0, |end| end.saturating_add(1)));
        let stack = StackRef {
            raw,
            text: text.unwrap_or_default(),
        };
        let frames = usize::from(raw.kernel.get()).saturating_add(raw.user.get().into());
        match stack.frames().count() {
            lines if lines == frames => Ok(stack),
            lines => Err(format!("{lines} lines of a stack with {frames} frames")),
        }
    }

    /// Returns the frames, the innermost one first.
    pub fn frames(&self) -> impl Iterator<Item = Frame> {
        let lines = self.text.split_inclusive(|&byte| byte == b'\n');
        let kernel = usize::from(self.raw.kernel.get());
        lines.enumerate().map(move |(nth, line)| {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            match nth < kernel {
                true => Frame::Kernel(function(line)),
                false => Frame::User(Place::parse(line)),
            }
        })
    }
}

/// Returns the function of `function+0xplace`.
fn function(line: &[u8]) -> String {
    let name = line.split(|&byte| byte == b'+').next();
    String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
}

impl Place {
    /// Returns the line for a frame. It has no line break of its own: the kernel writes one in a path as `\012`.
    #[must_use]
    pub fn line(&self) -> Vec<u8> {
        let hex = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect();
        let build_id: String = self.build_id.as_deref().map_or("-".into(), hex);
        let offset = self.offset.map_or("-".into(), |at| format!("{at:#x}"));
        let mut line = format!("{build_id} {offset} ").into_bytes();
        line.extend(self.path.iter().filter(|&&byte| byte != b'\n'));
        line.push(b'\n');
        line
    }

    fn parse(line: &[u8]) -> Place {
        let mut parts = line.splitn(3, |&byte| byte == b' ');
        let mut text = || std::str::from_utf8(parts.next().unwrap_or_default()).unwrap_or_default();
        let (build_id, offset) = (text(), text());
        let offset = offset.strip_prefix("0x");
        Place {
            build_id: bytes_of(build_id),
            offset: offset
                .filter(|hex| is_hex(hex))
                .and_then(|hex| u64::from_str_radix(hex, 16).ok()),
            path: parts.next().unwrap_or_default().into(),
        }
    }
}

/// Returns the bytes that hexadecimal digits stand for.
fn bytes_of(hex: &str) -> Option<Box<[u8]>> {
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Box<[u8]>> = pairs.map(byte).collect();
    bytes.filter(|_| is_hex(hex) && hex.len().is_multiple_of(2))
}

/// Returns true for digits alone: numbers may have a sign too.
fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        for place in [
            Place::default(),
            Place {
                build_id: Some([0, 0x1f, 0xff].into()),
                offset: Some(0x11_ca27),
                path: b"/a folder/lib c.so"[..].into(),
            },
            Place {
                offset: Some(u64::MAX),
                path: b"[vdso]"[..].into(),
                ..Place::default()
            },
        ] {
            let line = place.line();
            let (end, line) = line.split_last().unwrap();
            assert_eq!((*end, Place::parse(line)), (b'\n', place));
        }
    }

    /// What is no build id or offset is not known, and never an error.
    #[test]
    fn other_words_are_unknown() {
        for line in [
            &b""[..],
            b"-",
            b"abc 12",
            b"+1 0x+2",
            b"\xff 0x \xfe",
            b"0x1 -1 ",
        ] {
            let place = Place::parse(line);
            assert_eq!((place.build_id, place.offset), (None, None), "{line:?}");
        }
    }
}
