// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fields of an event as its text has them: `dev = (254,3), ino = 5, page_index = 0x10` of f2fs, `dev 8,1 ino 5` of ext4.
//!
//! The names are those of the kernel's records, which its texts change in part; see include/trace/events/f2fs.h, ext4.h and
//! android_fs.h.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::RandomState;
use mostrace_bundle::tracepoints::{EVENTS, FOLLOWING, Fields, PATHS, Tells};

use super::words::{device, hexadecimal, number, split_once};

/// Returns what an event tells of files.
pub(super) fn tells(event: &[u8]) -> Option<Tells> {
    static ALL: LazyLock<HashMap<&[u8], Tells, RandomState>> = LazyLock::new(|| {
        let paths = PATHS.iter().map(|(name, _)| (*name, Tells::Path));
        let following = FOLLOWING.iter().map(|name| (*name, Tells::Regular));
        let all = paths.chain(EVENTS).chain(following);
        let all = all.filter_map(|(name, tells)| Some((name.split_once('/')?.1.as_bytes(), tells)));
        all.filter(|(_, tells)| *tells != Tells::Queue).collect()
    });
    ALL.get(event).copied()
}

/// An event's text.
pub(super) struct Told<'a> {
    pub thread: u32,
    /// The path that is ahead of the other fields, as `entry_name`; it may have anything in it.
    path: Option<&'a [u8]>,
    fields: &'a [u8],
}

impl<'a> Told<'a> {
    pub fn of(thread: u32, fields: &'a [u8]) -> Told<'a> {
        const NAME: &[u8] = b"entry_name ";
        const BEHIND: &[u8] = b", offset ";
        let named = fields
            .strip_prefix(NAME)
            .and_then(|rest| split_once(rest, BEHIND));
        let (path, fields) = match named {
            // The number that follows needs its own name.
            Some((path, rest)) => {
                let ahead = NAME.len().saturating_add(path.len()).saturating_add(2);
                (Some(path), fields.get(ahead..).unwrap_or(rest))
            }
            None => (None, fields),
        };
        Told {
            thread,
            path,
            fields,
        }
    }

    /// Returns the word behind `name`, `name =` or `name=`.
    fn value(&self, name: &str) -> Option<&'a [u8]> {
        let name = name.as_bytes();
        let mut windows = self.fields.windows(name.len()).enumerate();
        let is_it = |(at, window): &(usize, &[u8])| {
            let before = at.checked_sub(1).and_then(|at| self.fields.get(at));
            let behind = at.checked_add(name.len());
            let behind = behind.and_then(|at| self.fields.get(at));
            *window == name
                && before.is_none_or(|byte| matches!(byte, b' ' | b','))
                && behind.is_some_and(|byte| matches!(byte, b' ' | b'='))
        };
        // Behind a path comes a command line, which may have anything in it; the inode is last.
        let (at, _) = match self.path.is_some() && name == b"ino" {
            true => windows.rfind(is_it)?,
            false => windows.find(is_it)?,
        };
        let rest = self.fields.get(at.checked_add(name.len())?..)?;
        let rest = rest.trim_ascii_start();
        let rest = rest.strip_prefix(b"=").unwrap_or(rest).trim_ascii_start();
        if let Some(inside) = rest.strip_prefix(b"(") {
            return Some(split_once(inside, b")")?.0);
        }
        let ends = |byte: &u8| *byte == b' ' || (*byte == b',' && name != b"dev");
        rest.get(..rest.iter().position(ends).unwrap_or(rest.len()))
    }
}

impl Fields for Told<'_> {
    fn number(&self, field: &str) -> Option<u64> {
        match field {
            "dev" => device(self.value("dev")?).map(u64::from),
            // 7.x has folios.
            "index" => any_number(
                self.value("page_index")
                    .or_else(|| self.value("folio_index"))?,
            ),
            "new_blkaddr" => any_number(self.value("newaddr")?),
            // Of old kernels also WRITE_SYNC and the like. What is no write is of no interest.
            "op" => Some(self.value("rw")?.starts_with(b"WRITE").into()),
            "type" => match self.value("type")?.rsplit(|byte| *byte == b'_').next()? {
                b"DATA" => Some(0),
                b"NODE" => Some(1),
                _ => None,
            },
            _ => any_number(self.value(field)?),
        }
    }

    fn signed(&self, field: &str) -> Option<i64> {
        let word = self.value(field)?;
        let digits = word.strip_prefix(b"-").unwrap_or(word);
        let value = i64::try_from(number(digits)?).ok()?;
        Some(if digits.len() < word.len() {
            value.saturating_neg()
        } else {
            value
        })
    }

    fn text(&self, field: &str) -> Option<&[u8]> {
        self.path.filter(|_| field == "pathbuf")
    }

    fn has_flag(&self, field: &str, names: &[&str]) -> Option<bool> {
        let mut set = self.value(field)?.split(|byte| *byte == b'|');
        Some(set.any(|flag| names.iter().any(|name| name.as_bytes() == flag)))
    }

    fn thread(&self) -> Option<u32> {
        Some(self.thread)
    }
}

/// Parses a decimal number, or a hexadecimal one with 0x.
fn any_number(word: &[u8]) -> Option<u64> {
    match word.strip_prefix(b"0x") {
        None => number(word),
        Some(digits) => hexadecimal(digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_the_names_of_the_records() {
        let page = b"dev = (254,3), ino = 5, page_index = 0x10, oldaddr = 0xffffffff, newaddr = 0x2a00, rw = WRITE(S), type = WARM_DATA";
        let page = Told::of(7, page);
        let names = ["dev", "ino", "index", "new_blkaddr", "op", "type", "pino"];
        assert_eq!(
            names.map(|name| page.number(name)),
            [
                Some(254 << 20 | 3),
                Some(5),
                Some(16),
                Some(0x2a00),
                Some(1),
                Some(0),
                None
            ]
        );
        let folio = Told::of(
            7,
            b"dev = (254,3), ino = 5, folio_index = 0x11, oldaddr = 0x0",
        );
        assert_eq!(folio.number("index"), Some(17));
        let mapped =
            b"dev 7,0 ino 12 flags CREATE|DELALLOC lblk 3 pblk 33280 len 4 mflags NM ret -5";
        let mapped = Told::of(7, mapped);
        assert_eq!(mapped.number("dev"), Some(7 << 20));
        assert_eq!(mapped.number("pblk"), Some(33280));
        assert_eq!(mapped.signed("ret"), Some(-5));
        assert_eq!(mapped.has_flag("flags", &["DELALLOC"]), Some(true));
        assert_eq!(mapped.has_flag("flags", &["UNWRIT"]), Some(false));
        let path = b"entry_name /a, ino 3 b, offset 4096, bytes 100, cmdline x ino 9, pid 5, i_size 0, ino 12";
        let path = Told::of(7, path);
        assert_eq!(path.text("pathbuf"), Some(&b"/a, ino 3 b"[..]));
        assert_eq!(
            ["offset", "bytes", "ino"].map(|name| path.number(name)),
            [Some(4096), Some(100), Some(12)]
        );
    }

    #[test]
    fn only_events_that_tell_of_files_count() {
        assert_eq!(tells(b"f2fs_submit_page_write"), Some(Tells::F2fsPage));
        assert_eq!(tells(b"ext4_da_write_begin"), Some(Tells::Regular));
        assert_eq!(tells(b"f2fs_datawrite_start"), Some(Tells::Path));
        assert_eq!(tells(b"f2fs_sync_file_enter"), None);
        assert_eq!(tells(b"block_bio_queue"), None);
    }
}
