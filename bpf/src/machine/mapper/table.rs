// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table of the device mapper: the targets of its runs of sectors.

use zerocopy::byteorder::native_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// One line of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedTarget {
    /// First sector on the mapped device.
    pub start: u64,
    pub sectors: u64,
    /// The type of the target, such as `linear`.
    pub name: String,
    /// The place of its sectors; None if its type scatters them, or is not known here.
    pub lower: Option<Lower>,
}

/// A place on the device below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lower {
    /// `major:minor`.
    pub dev: String,
    /// First sector on that device.
    pub start: u64,
}

/// `struct dm_target_spec`; its parameters follow as a string that ends with a NUL.
#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct DmTargetSpec {
    sector_start: U64,
    length: U64,
    status: U32,
    /// The offset of the next target from the first one.
    next: U32,
    target_type: [u8; 16],
}

/// Parses `count` targets from the kernel's list; None if they are not plausible.
pub fn parse(data: &[u8], count: u32) -> Option<Vec<MappedTarget>> {
    let mut targets = Vec::new();
    let mut at = 0;
    for _ in 0..count {
        let (spec, rest) = DmTargetSpec::ref_from_prefix(data.get(at..)?).ok()?;
        let name = text(&spec.target_type)?.to_owned();
        let lower = lower(&name, text(rest)?);
        targets.push(MappedTarget {
            start: spec.sector_start.get(),
            sectors: spec.length.get(),
            name,
            lower,
        });
        at = usize::try_from(spec.next.get()).ok()?;
    }
    Some(targets)
}

/// Returns the text up to the NUL.
fn text(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|&b| b == 0)?;
    std::str::from_utf8(bytes.get(..end)?).ok()
}

/// Returns the device below and the first sector there, for targets that keep the order of their sectors. The key of a crypt target
/// is skipped.
fn lower(target: &str, parameters: &str) -> Option<Lower> {
    let words: Vec<&str> = parameters.split_ascii_whitespace().collect();
    let at = match (target, words.len()) {
        ("linear", 2) => 0,
        // Before Android's 5.4, there was no IV offset.
        ("default-key", 4) => 2,
        // The parameters are: cipher key iv_offset device start …
        ("crypt" | "default-key", 5..) => 3,
        _ => return None,
    };
    Some(Lower {
        dev: (*words.get(at)?).to_owned(),
        start: words.get(at + 1)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spec(start: u64, length: u64, kind: &str, parameters: &str, at: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(start.to_ne_bytes());
        bytes.extend(length.to_ne_bytes());
        bytes.extend([0; 4]);
        let len = (40 + parameters.len() + 1).next_multiple_of(8);
        bytes.extend(((at + len) as u32).to_ne_bytes());
        let mut name = kind.as_bytes().to_vec();
        name.resize(16, 0);
        bytes.extend(name);
        bytes.extend(parameters.as_bytes());
        bytes.resize(len, 0);
        bytes
    }

    fn lower_of(kind: &str, parameters: &str) -> Option<(String, u64)> {
        let targets = parse(&spec(0, 8, kind, parameters, 0), 1).unwrap();
        let lower = targets[0].lower.clone()?;
        Some((lower.dev, lower.start))
    }

    #[test]
    fn targets_say_where_they_lie() {
        let at = |dev: &str, start| Some((dev.to_owned(), start));
        assert_eq!(lower_of("linear", "7:0 2048"), at("7:0", 2048));
        let crypt = "aes-xts-plain64 :64:logon:cryptsetup:x 0 253:1 32768 1 allow_discards";
        assert_eq!(lower_of("crypt", crypt), at("253:1", 32768));
        let key = "aes-xts-plain64 - 0 259:5 0 3 allow_discards sector_size:4096 iv_large_sectors";
        assert_eq!(lower_of("default-key", key), at("259:5", 0));
        assert_eq!(
            lower_of("default-key", "AES-256-XTS 00 8:3 16"),
            at("8:3", 16)
        );
        assert_eq!(lower_of("striped", "2 128 7:0 0 7:1 0"), None);
        assert_eq!(lower_of("linear", "7:0 x"), None);
    }

    #[test]
    fn targets_follow_one_another() {
        let mut data = spec(0, 100, "linear", "7:0 8", 0);
        data.extend(spec(100, 50, "linear", "7:1 0", data.len()));
        let targets = parse(&data, 2).unwrap();
        let runs: Vec<_> = targets.iter().map(|t| (t.start, t.sectors)).collect();
        assert_eq!(runs, [(0, 100), (100, 50)]);
        assert_eq!(parse(&data, 3), None);
        assert_eq!(parse(&data[..data.len() - 24], 2), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(data: Vec<u8>, count in 0u32..9) {
            parse(&data, count);
        }
    }
}
