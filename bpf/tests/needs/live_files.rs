// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files as they were when they were written: names, numbers and offsets, compared with FIEMAP.
//!
//! The tests run one at a time: signal handlers belong to the process.

use crate::captured;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use captured::{capture, fiemap, options};
use mostrace_bundle::entry::{Flags, Origin, RawHead, RawProcess};
use mostrace_bundle::{Bundle, Entry, entry::FileEntry, layout};
use mostrace_capture::{Choice, record};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, one_by_one, tests};

const XFS_IO: Need = Need::Tool("xfs_io", "xfsprogs");
const PROBES: [Need; 2] = [Need::Loop, Need::Btf];
const NAMELESS: [Need; 3] = [Need::Loop, Need::Btf, Need::Tool("python3", "python3")];

pub fn suite() -> Suite {
    one_by_one(tests![
        names_of_unlinked_linked_and_long needs PROBES,
        padded_writes_move_no_offset needs PROBES,
        names_are_whole_while_renamed needs PROBES,
        a_path_follows_what_is_moved needs PROBES,
        a_file_without_a_name_has_its_own_number needs NAMELESS,
        a_write_like_the_last_one_has_what_has_changed needs NAMELESS,
        encrypted_files_are_known needs [Need::Loop, Need::Btf, Need::Encryption, XFS_IO],
    ])
}

/// iomap pads a direct write that ends within a block with bios of its own: neither these nor later writes may have
/// another offset than in FIEMAP.
fn padded_writes_move_no_offset() {
    let disk = LoopExt4::new(&LoopOptions {
        mkfs: ["-b", "4096"].map(str::to_owned).to_vec(),
        ..LoopOptions::default()
    })
    .unwrap();
    // Half a block from its start, the other half, and a piece in the middle give pads behind, in front and on both
    // sides.
    let script = format!(
        "cd {}\n\
         write() {{ dd if=/dev/urandom conv=notrunc oflag=direct \"$@\" 2>/dev/null; }}\n\
         write of=behind bs=512 count=1\n\
         write of=again bs=4k count=3; write of=again bs=4k count=3\n\
         write of=half bs=2k count=1\n\
         write of=front bs=1k seek=3 count=1\n\
         write of=both bs=1k seek=5 count=2\n\
         write of=again bs=4k count=3; write of=long bs=9k count=1",
        disk.mount_point().display()
    );
    let got = capture(disk.device(), Choice::Bpf, &script);
    got.assert_nothing_lost();
    let mut short = 0;
    for name in ["behind", "again", "half", "front", "both", "long"] {
        let path = disk.mount_point().join(name);
        let ino = path.metadata().unwrap().ino();
        let truth = fiemap(&path, disk.start_sector());
        let mut seen = HashSet::new();
        let of_file = |f: &&FileEntry| f.raw.ino.get() == ino && f.raw.origin == Origin::DIRECT;
        for entry in got.file.iter().filter(of_file) {
            let (sector, offset) = (entry.raw.head.sector.get(), entry.raw.offset.get());
            let sectors = u64::from(entry.raw.head.bytes.get()) / 512;
            for i in 0..sectors {
                let place = truth.get(&(sector + i));
                assert_eq!(
                    place,
                    Some(&(offset / 512 + i)),
                    "{name}: sector {}",
                    sector + i
                );
            }
            seen.insert(sector);
            short += u32::from(sectors < 8);
        }
        assert!(!seen.is_empty(), "{name}");
    }
    assert!(
        short >= 9,
        "iomap padded nothing: {short} bios within a block"
    );
}

fn names_of_unlinked_linked_and_long() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let long = "n".repeat(247) + "-journal";
    let script = format!(
        "cd {}\n\
         dd if=/dev/urandom of={long} bs=4k count=4 conv=fsync 2>/dev/null\n\
         dd if=/dev/urandom of=two-journal bs=4k count=4 2>/dev/null; ln two-journal second\n\
         sync two-journal\n\
         exec 3<>gone-wal; dd if=/dev/urandom bs=4k count=4 >&3 2>/dev/null; rm gone-wal; sync /dev/fd/3\n\
         dd if=/dev/urandom of=plain bs=4k count=4 conv=fsync 2>/dev/null",
        disk.mount_point().display()
    );
    let dir = tempfile::tempdir().unwrap();
    let mut opts = options(
        disk.device(),
        dir.path().join("t.most"),
        Choice::Bpf,
        &script,
    );
    opts.files = "temp".parse().unwrap();
    record(&opts).unwrap();
    let bundle = Bundle::open(&opts.output).unwrap();
    let mut named: HashMap<Vec<u8>, Flags> = HashMap::new();
    for entry in bundle.table(layout::FILE, false).unwrap().unwrap() {
        let Entry::File(f) = entry.unwrap() else {
            panic!("a process entry in the file table")
        };
        named.insert(f.name, f.raw.head.flags);
        assert_eq!(f.raw.parent.get(), 2, "the root directory");
    }
    // With the slash the path is longer than an entry holds, so the folders are left out.
    assert!(named.contains_key(long.as_bytes()), "{named:?}");
    assert!(named[&b"/gone-wal"[..]].has(Flags::UNLINKED));
    let linked = named
        .get(&b"/two-journal"[..])
        .or(named.get(&b"/second"[..]));
    // Either name may come first; only the temporary one is kept under `temp`.
    assert!(linked.is_some_and(|f| f.has(Flags::HARDLINKED)) || named.contains_key(&b""[..]));
    assert!(!named.contains_key(&b"/plain"[..]), "not asked for");
    assert!(named[&b""[..]].has(Flags::NAME_WITHHELD));
}

/// The probes keep a path from one write of a file to the next, but not beyond a rename of the file or of a folder
/// above.
fn a_path_follows_what_is_moved() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let script = format!(
        "cd {}; mkdir -p a/b e; exec 3>a/b/f\n\
         write() {{ dd if=/dev/zero of=/dev/fd/3 bs=4k seek=$1 count=1 conv=notrunc oflag=direct 2>/dev/null; }}\n\
         write 0; write 1; mv a/b/f a/b/g; write 2; write 3; mv a c; write 4; mv c/b e/a-longer-name; write 5\n\
         mv e/a-longer-name/g top; write 6; write 7",
        disk.mount_point().display()
    );
    let got = capture(disk.device(), Choice::Bpf, &script);
    got.assert_nothing_lost();
    let ino = disk.mount_point().join("top").metadata().unwrap().ino();
    let of_file = |f: &&FileEntry| f.raw.ino.get() == ino && f.raw.origin == Origin::DIRECT;
    let mut paths = [""; 8].map(str::to_owned);
    for entry in got.file.iter().filter(of_file) {
        let block = usize::try_from(entry.raw.offset.get() / 4096).unwrap();
        paths[block] = String::from_utf8(entry.name.clone()).unwrap();
    }
    let (first, moved) = ("/a/b/f", "/a/b/g");
    let truth = [
        first,
        first,
        moved,
        moved,
        "/c/b/g",
        "/e/a-longer-name/g",
        "/top",
        "/top",
    ];
    assert_eq!(paths, truth);
}

/// Writes files that never get a name. The named file after each takes its number, and the next one its memory: inode and dentry.
const NAMELESS_FILES: &str = "import os, time
for n in range(60):
    f = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(f, b't' * 5000)
    os.fsync(f)
    os.close(f)
    os.close(os.open(str(n), os.O_CREAT | os.O_RDWR, 0o600))
    time.sleep(0.02)
";

/// The kernel calls such a file `#` and its number (`d_tmpfile`).
fn a_file_without_a_name_has_its_own_number() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let script = format!(
        "cd {} && python3 -c \"{NAMELESS_FILES}\"",
        disk.mount_point().display()
    );
    let got = capture(disk.device(), Choice::Bpf, &script);
    let numbers = got.file.iter().filter_map(|entry| {
        let name = str::from_utf8(&entry.name).ok()?.strip_prefix("/#")?;
        assert_eq!(name, entry.raw.ino.get().to_string());
        Some(entry.raw.ino.get())
    });
    assert!(numbers.collect::<HashSet<_>>().len() > 30);
}

/// A rename between the reads of a name's length and of its bytes must not mix two names.
fn names_are_whole_while_renamed() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let long = "l".repeat(200);
    let script = format!(
        "cd {}; : > {long}; exec 3<>{long}\n\
         (while mv {long} short && mv short {long}; do :; done) 2>/dev/null & mover=$!\n\
         dd if=/dev/zero of=/dev/fd/3 bs=4k count=3000 oflag=direct conv=notrunc 2>/dev/null\n\
         kill $mover; wait",
        disk.mount_point().display()
    );
    let got = capture(disk.device(), Choice::Bpf, &script);
    let direct = |f: &&FileEntry| f.raw.origin == Origin::DIRECT;
    let mut seen = HashSet::new();
    for entry in got.file.iter().filter(direct) {
        // If a rename happened in between, there is no path or no name.
        let name = String::from_utf8_lossy(&entry.name).into_owned();
        let name = name.strip_prefix('/').unwrap_or(&name).to_owned();
        assert!(["", "short", &long].contains(&&*name), "{name:?}");
        seen.insert(name);
    }
    assert!(seen.contains("short") && seen.contains(&long), "{seen:?}");
}

/// Of a direct write that is like the last one only the place is recorded, but nothing may be kept that has changed since.
fn a_write_like_the_last_one_has_what_has_changed() {
    const PAGE: u64 = 4096;
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/changes.py");
    let script = format!("python3 {script} direct {}", disk.mount_point().display());
    let got = capture(disk.device(), Choice::Bpf, &script);
    got.assert_nothing_lost();
    let tasks: HashMap<u64, _> = got
        .process
        .iter()
        .map(|p| (p.head.sector.get(), (text(&p.comm), p.uid.get())))
        .collect();
    let seen: HashSet<_> = got
        .file
        .iter()
        .filter(|f| f.raw.origin == Origin::DIRECT && f.raw.offset.get() >= 64 * PAGE)
        .map(|f| {
            let head = &f.raw.head;
            let (comm, uid) = &tasks[&head.sector.get()];
            assert_eq!(u64::from(head.bytes.get()), PAGE);
            assert_eq!(f.raw.nlink.get() == 0, head.flags.has(Flags::UNLINKED));
            let page = f.raw.offset.get() / PAGE - 64;
            (page, text(&f.name), f.raw.nlink.get(), comm.clone(), *uid)
        })
        .collect();
    let states = [
        ("/d/f", 1, "python3", 0),
        ("/d/g", 1, "python3", 0),
        ("/d/g", 2, "python3", 0),
        ("/e/g", 2, "python3", 0),
        ("/e/g", 2, "renamed", 0),
        ("/e/g", 2, "renamed", 7),
        ("/e/g", 0, "renamed", 7),
        ("/new", 1, "renamed", 7),
    ];
    let expected = (0..)
        .zip(states)
        .flat_map(|(nth, (name, nlink, comm, uid))| {
            [0, 1].map(|page| (2 * nth + page, name.to_owned(), nlink, comm.to_owned(), uid))
        });
    let expected: HashSet<_> = expected.collect();
    assert_eq!(seen, expected);
    // Each of the two files had 32 writes before, most of which are like another one.
    let stored = got.bundle.manifest().files[layout::PROCESS];
    let whole = (got.process.len() * size_of::<RawProcess>()) as u64;
    let saved = (size_of::<RawProcess>() - size_of::<RawHead>()) as u64;
    assert!(stored + 50 * saved < whole, "{stored} of {whole} bytes");
    let direct = got.file.iter().filter(|f| f.raw.origin == Origin::DIRECT);
    let numbers = direct.map(|f| (f.raw.ino.get(), f.raw.generation.get()));
    // The new file may have the old one's number.
    assert_eq!(numbers.collect::<HashSet<_>>().len(), 2);
}

/// Returns what precedes the NULs.
fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// Without inline encryption the pages in flight are fscrypt's, which have no mapping.
fn encrypted_files_are_known() {
    let disk = LoopExt4::new(&LoopOptions {
        mkfs: vec!["-O".into(), "encrypt".into()],
        ..LoopOptions::default()
    })
    .unwrap();
    let folder = disk.mount_point().join("encrypted");
    fs::create_dir(&folder).unwrap();
    encrypt(&disk.mount_point(), &folder).unwrap();
    let file = folder.join("secret");
    let script = format!(
        "dd if=/dev/zero of={} bs=64k count=4 conv=fsync 2>/dev/null",
        file.display()
    );
    let got = capture(disk.device(), Choice::Bpf, &script);
    got.assert_nothing_lost();
    let ino = file.metadata().unwrap().ino();
    let truth = fiemap(&file, 0);
    let mut bytes = 0;
    for entry in got.file.iter().filter(|f| f.raw.ino.get() == ino) {
        assert!(entry.name.ends_with(b"/secret"), "{:?}", entry.name);
    }
    for entry in got.of_file(ino) {
        let sector = entry.raw.head.sector.get();
        assert_eq!(truth.get(&sector), Some(&(entry.raw.offset.get() / 512)));
        bytes += entry.raw.head.bytes.get();
    }
    assert_eq!(bytes, 4 << 16);
}

/// Sets an encryption policy with a new key.
fn encrypt(mount: &Path, folder: &Path) -> Result<(), String> {
    let xfs_io = |command: &str, target: &Path| {
        let script = format!(
            "head -c 64 /dev/urandom | xfs_io -c '{command}' {}",
            target.display()
        );
        let out = Command::new("sh").args(["-c", &script]).output();
        let out = out.map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&out.stderr).into_owned();
        if out.status.success() && complaint.is_empty() {
            Ok(said)
        } else {
            Err(format!("xfs_io {command}: {complaint}"))
        }
    };
    let added = xfs_io("add_enckey", mount)?;
    let key = added.split_whitespace().last().unwrap_or_default();
    xfs_io(&format!("set_encpolicy -v 2 {key}"), folder).map(drop)
}
