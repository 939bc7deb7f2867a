// SPDX-License-Identifier: MIT OR Apache-2.0
//! Archives: packing and unpacking give the same bundle, and hostile archives do no harm.

use crate::common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use mostrace_bundle::{Bundle, archive, layout};
use tar::{EntryType, Header};

fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|e| {
            (
                e.file_name().into_string().unwrap(),
                fs::read(e.path()).unwrap(),
            )
        })
        .collect()
}

#[test]
fn an_archive_is_the_folder() {
    let tmp = tempfile::tempdir().unwrap();
    let folder = common::bundle(tmp.path());
    fs::write(folder.join("stray.txt"), "not ours").unwrap();
    let packed = tmp.path().join("x.most.tar.zst");
    archive::pack(&folder, &packed).unwrap();
    let unpacked = archive::unpack(&packed).unwrap();
    let mut expected = contents(&folder);
    expected.remove("stray.txt");
    assert_eq!(contents(unpacked.dir.path()), expected);
    assert_eq!(unpacked.cut, None);

    let (a, b) = (
        Bundle::open(&folder).unwrap(),
        Bundle::open(&packed).unwrap(),
    );
    assert_eq!(a.manifest(), b.manifest());
    assert!(!b.is_cut() && b.shortfalls().is_empty());
    let names = |bundle: &Bundle| -> Vec<String> {
        let name = |p: &PathBuf| p.file_name().unwrap().to_str().unwrap().to_owned();
        bundle.event_files().iter().map(name).collect()
    };
    assert_eq!(
        names(&a),
        ["trace.blktrace.0", "trace.blktrace.2", "trace.blktrace.10"]
    );
    assert_eq!(names(&a), names(&b));
    let image = |bundle: &Bundle| fs::read(bundle.snapshot().unwrap().unwrap().path()).unwrap();
    assert_eq!(image(&a), image(&b));
    assert_eq!(image(&a).len(), 1 << 20);
    for name in layout::TABLES {
        let entries = |b: &Bundle| {
            b.table(name, false)
                .unwrap()
                .unwrap()
                .map(Result::unwrap)
                .count()
        };
        assert_eq!(entries(&a), entries(&b));
        assert!(entries(&a) > 0);
    }
}

/// Builds a member whose name is put into the header as it is; the tar crate would refuse such names.
fn member(name: &str, kind: EntryType, size: u64, link: &str) -> Header {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(size);
    header.set_cksum();
    header
}

/// Writes an archive of these members, each with its data.
fn archive_of(path: &Path, members: &[(Header, &[u8])]) {
    let mut tar = Vec::new();
    for (header, data) in members {
        tar.extend_from_slice(header.as_bytes());
        tar.extend_from_slice(data);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    fs::write(path, zstd::encode_all(&tar[..], 1).unwrap()).unwrap();
}

#[test]
fn hostile_members_stay_in_the_folder() {
    let tmp = tempfile::tempdir().unwrap();
    let outside = tmp.path().join("outside");
    fs::write(&outside, "untouched").unwrap();
    let packed = tmp.path().join("evil.tar.zst");
    let out = outside.to_str().unwrap();
    let file = EntryType::Regular;
    archive_of(
        &packed,
        &[
            (member("../../outside", file, 4, ""), b"evil"),
            (member(out, file, 4, ""), b"evil"),
            (member("process.entries", EntryType::Symlink, 0, out), b""),
            (member("file.entries", EntryType::Link, 0, out), b""),
            (member("trace.blktrace.0", EntryType::Char, 0, ""), b""),
            (member("trace.blktrace.1", EntryType::Fifo, 0, ""), b""),
            (member("trace.blktrace.2", EntryType::Directory, 0, ""), b""),
            (member("../../x.most/manifest.json", file, 2, ""), b"{}"),
            (member("/trace.blktrace.3", file, 4, ""), b"four"),
        ],
    );
    let unpacked = archive::unpack(&packed).unwrap();
    let got = contents(unpacked.dir.path());
    let names: Vec<&str> = got.keys().map(String::as_str).collect();
    assert_eq!(names, ["manifest.json", "trace.blktrace.3"]);
    for entry in fs::read_dir(unpacked.dir.path()).unwrap() {
        assert!(entry.unwrap().file_type().unwrap().is_file());
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "untouched");
    assert_eq!(contents(tmp.path()).len(), 2);
}

#[test]
fn damaged_archives_are_errors_that_name_them() {
    let tmp = tempfile::tempdir().unwrap();
    let whole = tmp.path().join("whole.tar.zst");
    archive::pack(&common::bundle(tmp.path()), &whole).unwrap();
    let whole = fs::read(whole).unwrap();
    let path = tmp.path().join("bad.tar.zst");
    let file = EntryType::Regular;
    let mut bad: Vec<(&str, Vec<u8>)> = vec![
        ("empty", vec![]),
        ("text", b"hello, this is no archive at all".to_vec()),
        ("cut before the manifest", whole[..20].to_vec()),
        ("flipped", {
            let mut flipped = whole.clone();
            flipped[4] ^= 0x40;
            flipped
        }),
        ("junk behind it", [&whole[..], b"junk"].concat()),
    ];
    for (what, members) in [
        (
            "huge",
            vec![(member(layout::MANIFEST, file, 1 << 40, ""), &b"{}"[..])],
        ),
        (
            "twice",
            vec![(member(layout::MANIFEST, file, 2, ""), &b"{}"[..]); 2],
        ),
    ] {
        archive_of(&path, &members);
        bad.push((what, fs::read(&path).unwrap()));
    }
    for (what, bytes) in bad {
        fs::write(&path, bytes).unwrap();
        let error = Bundle::open(&path).expect_err(what).to_string();
        assert!(
            error.contains("bad.tar.zst") || error.contains("manifest.json"),
            "{what}: {error}"
        );
        assert!(!error.contains('\n'), "{error}");
        // The message names the archive: the user does not know the temporary folder.
        assert!(
            what != "twice" || error.contains("bad.tar.zst: it contains manifest.json twice"),
            "{error}"
        );
    }
}

/// Writes an archive of one member of `size` zero bytes ahead of a manifest.
fn archive_of_zeros(path: &Path, first: &Header, size: u64) {
    let mut out = zstd::Encoder::new(fs::File::create(path).unwrap(), 3).unwrap();
    out.write_all(first.as_bytes()).unwrap();
    io::copy(
        &mut io::repeat(0).take(size.next_multiple_of(512)),
        &mut out,
    )
    .unwrap();
    let manifest = member(layout::MANIFEST, EntryType::Regular, 2, "");
    out.write_all(manifest.as_bytes()).unwrap();
    let rest = [&b"{}"[..], &[0; 510 + 1024]].concat();
    out.write_all(&rest).unwrap();
    out.finish().unwrap();
}

#[test]
fn long_headers_are_not_kept_in_memory() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("long.tar.zst");
    let size = 32 << 20;
    for kind in [
        EntryType::GNULongName,
        EntryType::GNULongLink,
        EntryType::XHeader,
    ] {
        archive_of_zeros(&path, &member("x", kind, size, ""), size);
        let error = archive::unpack(&path).expect_err("too long").to_string();
        assert!(
            error.contains("more than 65536 bytes of headers"),
            "{error}"
        );
    }
}

#[test]
fn a_name_may_be_long() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("long.tar.zst");
    let name = format!("{}/{}", "folder/".repeat(500), layout::MANIFEST);
    let long = member("x", EntryType::GNULongName, name.len() as u64, "");
    let short = member("folder", EntryType::Regular, 2, "");
    archive_of(&path, &[(long, name.as_bytes()), (short, b"{}")]);
    let unpacked = archive::unpack(&path).unwrap();
    assert_eq!(contents(unpacked.dir.path())[layout::MANIFEST], b"{}");
}

#[test]
fn an_archive_unpacks_to_what_one_of_its_size_can_hold() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("large.tar.zst");
    // One name that unpacking keeps and one that it skips.
    for name in ["trace.blktrace.0", "other"] {
        let size = 80 << 20;
        archive_of_zeros(&path, &member(name, EntryType::Regular, size, ""), size);
        let error = archive::unpack(&path).expect_err("too large").to_string();
        assert!(error.contains("it unpacks to more than"), "{error}");
    }
}
