// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recognises files that this program made, by their bytes. `measure` does not copy them for its command.

use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde::Deserialize;

use crate::{archive, layout};

/// The bytes at the beginning of a page within which it says by what it was made.
const HEAD: u64 = 1024;
/// A page says this there.
const GENERATOR: &[u8] = b"<meta name=\"generator\" content=\"mostrace ";
/// The bytes at the beginning and the end of a Parquet file.
const PARQUET: &[u8] = b"PAR1";
/// The bytes at the end of a ledger's day within which its columns are named.
const TAIL: i64 = 64 << 10;
/// Columns that only a ledger's days have together.
const OF_A_DAY: [&[u8]; 3] = [b"command", b"write_bytes", b"watched_ms"];
/// The longest manifest that is looked at.
const MANIFEST: u64 = 16 << 20;

/// Returns true for a recording, packed or not, for a page of a report, and for a day of a ledger. What cannot be read is
/// nothing of these.
pub fn is_made(path: &Path, meta: &Metadata) -> bool {
    if meta.is_dir() {
        return is_recording(path);
    }
    let opened = || open(path).filter(|_| meta.is_file());
    opened().is_some_and(is_packed) || opened().is_some_and(is_page_or_day)
}

/// Opens what is a file, even if it is another thing by now.
fn open(path: &Path) -> Option<File> {
    let flags = rustix::fs::OFlags::RDONLY
        | rustix::fs::OFlags::NOFOLLOW
        | rustix::fs::OFlags::NONBLOCK
        | rustix::fs::OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok()?;
    let file = File::from(file);
    file.metadata().ok()?.is_file().then_some(file)
}

fn is_recording(folder: &Path) -> bool {
    /// The fields by which a manifest is known.
    #[derive(Deserialize)]
    struct Head {
        schema: u32,
        tool: String,
    }
    let manifest = || -> Option<Head> {
        let file = open(&folder.join(layout::MANIFEST))?;
        serde_json::from_reader(file.take(MANIFEST)).ok()
    };
    manifest().is_some_and(|head| head.schema > 0 && head.tool.starts_with("mostrace "))
}

/// Returns true for a recording in an archive: its first file is the manifest.
fn is_packed(file: File) -> bool {
    archive::first_name(file).is_some_and(|name| name == layout::MANIFEST)
}

fn is_page_or_day(mut file: File) -> bool {
    let mut head = Vec::new();
    let read = (&mut file).take(HEAD).read_to_end(&mut head);
    match read {
        Ok(_) if head.starts_with(PARQUET) => is_day(file),
        Ok(_) => has(&head, GENERATOR),
        Err(_) => false,
    }
}

fn is_day(mut file: File) -> bool {
    let mut tail = Vec::new();
    let read = file
        .seek(SeekFrom::End(-TAIL))
        .or_else(|_| file.seek(SeekFrom::Start(0)))
        .and_then(|_| file.take(TAIL.unsigned_abs()).read_to_end(&mut tail));
    read.is_ok() && OF_A_DAY.iter().all(|name| has(&tail, name))
}

fn has(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Manifest, Writer, archive};

    fn is(path: &Path) -> bool {
        is_made(path, &fs::symlink_metadata(path).unwrap())
    }

    #[test]
    fn recordings_and_pages_are_known_by_their_bytes() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        let manifest = Manifest {
            schema: 1,
            tool: "mostrace 0.1".into(),
            ..Manifest::default()
        };
        let writer = Writer::create(&at("any")).unwrap();
        writer.put_manifest(&manifest).unwrap();
        archive::pack(&at("any"), &at("packed")).unwrap();
        fs::write(
            at("page"),
            "<!doctype html>\n<meta name=\"generator\" content=\"mostrace 0.1\">",
        )
        .unwrap();
        fs::write(
            at("other.html"),
            "<!doctype html>\n<meta name=\"generator\" content=\"other\">",
        )
        .unwrap();
        fs::create_dir(at("x.most")).unwrap();
        fs::write(
            at("x.most/manifest.json"),
            "{\"name\": \"an app of the web\"}",
        )
        .unwrap();
        fs::write(at("x.most.tar.zst"), b"\x28\xb5\x2f\xfd").unwrap();
        fs::write(at("day"), "PAR1 command write_bytes watched_ms PAR1").unwrap();
        fs::write(at("table"), "PAR1 command write_bytes PAR1").unwrap();
        for name in ["any", "packed", "page", "day"] {
            assert!(is(&at(name)), "{name}");
        }
        for name in [
            "other.html",
            "table",
            "x.most",
            "x.most.tar.zst",
            "any/manifest.json",
        ] {
            assert!(!is(&at(name)), "{name}");
        }
    }
}
