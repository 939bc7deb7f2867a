// SPDX-License-Identifier: MIT OR Apache-2.0
//! Patches small ext4 and ext3 images that were copied while they were mounted, so that their journals, and the fast commits of
//! one, are replayed. The result must be a map that covers the filesystem, or an error.
//!
//! The images are made once, when the fuzzer starts. That takes root: without it they are not mounted, and there is nothing to
//! replay. The first byte chooses one. A patch is six bytes and its contents: the index of a block that has more than one value
//! (2), the offset in it (2), the number of bytes (1), and whether the checksums of fast commits are corrected (1).
#![no_main]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use mostrace_map::fs::{Image, ReadAt, State, ext4};

const BLOCK: usize = 1024;

static BASES: LazyLock<Vec<Base>> = LazyLock::new(|| {
    let kinds = [
        "-t ext4 -O ^metadata_csum,^64bit,inline_data -I 256 -J size=1",
        "-t ext4 -O ^metadata_csum,fast_commit -J size=2",
        "-t ext3 -J size=1",
    ];
    kinds.into_iter().map(Base::make).collect()
});

fuzz_target!(init: { LazyLock::force(&BASES); }, |data: &[u8]| {
    let Some((&choice, mut rest)) = data.split_first() else {
        return;
    };
    let base = &BASES[usize::from(choice) % BASES.len()];
    let mut over: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    let mut is_mended = false;
    while let [a, b, c, d, len, mend, patch @ ..] = rest {
        let block = base.used[usize::from(u16::from_le_bytes([*a, *b])) % base.used.len()];
        let at = usize::from(u16::from_le_bytes([*c, *d])) % BLOCK;
        let (patch, behind) = patch.split_at(usize::from(len & 63).min(patch.len()));
        let to = over.entry(block).or_insert_with(|| base.block(block));
        let to = to.iter_mut().skip(at).zip(patch);
        to.for_each(|(to, from)| *to = *from);
        is_mended |= mend & 1 == 0;
        rest = behind;
    }
    if is_mended {
        base.mend(&mut over);
    }
    let len = base.bytes.len() as u64;
    let bytes = base.bytes.clone();
    let image = Image::new(Path::new("fuzz"), len, Patched { bytes, over });
    let state = match choice & 0x80 {
        0 => State::NextMount,
        _ => State::AsIs,
    };
    match ext4::build_by(state, &image, 0, &|_| {}) {
        Ok(map) => {
            let mut end = 0;
            for extent in map.extents() {
                assert_eq!(extent.sector, end);
                assert!(extent.sectors > 0);
                end = extent.end();
                let paths = map.paths(extent.inode);
                assert!(paths.iter().all(|path| path.starts_with(b"/")));
            }
            assert!(map.notices().iter().all(|line| !line.contains('\n')));
        }
        Err(error) => {
            let line = error.to_string();
            assert!(line.starts_with("fuzz: ") && !line.contains('\n'), "{line}");
        }
    }
});

struct Base {
    bytes: Arc<Vec<u8>>,
    /// The blocks that have more than one value, which are those of metadata.
    used: Vec<usize>,
    /// The blocks from the first fast commit on.
    fast: Vec<usize>,
}

impl Base {
    fn make(options: &str) -> Base {
        // Each file is written through to the disk.
        let scratch = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let scratch = scratch.expect("scratch folder");
        let (image, at) = (scratch.path().join("image"), scratch.path().join("mnt"));
        fs::create_dir(&at).expect("mount point");
        let file = File::create(&image).expect("image");
        file.set_len(8 << 20).expect("length");
        let mut mke2fs = Command::new("mke2fs");
        mke2fs.args(["-q", "-F", "-b", "1024", "-N", "64"]);
        mke2fs.args(options.split_whitespace()).arg(&image);
        assert!(mke2fs.status().expect("mke2fs").success());
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop"]).args([&image, &at]);
        let is_mounted = mount.status().expect("mount").success();
        let bytes = if is_mounted {
            fill(&at);
            fs::read(&image)
        } else {
            fs::read(&image)
        };
        if is_mounted {
            let umount = Command::new("umount").arg(&at).status();
            assert!(umount.expect("umount").success());
        }
        let bytes = bytes.expect("image");
        let blocks = || bytes.chunks_exact(BLOCK).enumerate();
        let used = blocks().filter(|(_, block)| block.iter().any(|byte| *byte != block[0]));
        // The head of a fast commit: its tag, and the length of its value.
        let first = blocks().find(|(_, block)| block.starts_with(&[9, 0, 8, 0]));
        let fast = first.map_or(0..0, |(nth, _)| nth..nth + 16);
        Base {
            used: used.map(|(nth, _)| nth).collect(),
            fast: fast.collect(),
            bytes: bytes.clone().into(),
        }
    }

    fn block(&self, nth: usize) -> Vec<u8> {
        self.bytes[nth * BLOCK..][..BLOCK].to_vec()
    }

    /// Corrects the checksums of the fast commits' tails, as far as their tags can be read.
    fn mend(&self, over: &mut BTreeMap<usize, Vec<u8>>) {
        const TAIL: u16 = 8;
        let mut crc = 0;
        for &nth in &self.fast {
            let block = over.entry(nth).or_insert_with(|| self.block(nth));
            let mut at = 0;
            while let Some(&[a, b, c, d]) = block.get(at..).and_then(|rest| rest.first_chunk()) {
                let (tag, len) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
                let end = at + 4 + usize::from(len);
                if end > BLOCK {
                    break;
                }
                let is_tail = tag == TAIL && len >= 8;
                let covered = if is_tail { at..at + 8 } else { at..end };
                // The kernel's crc32c inverts neither the initial value nor the result.
                crc = !crc32c::crc32c_append(!crc, &block[covered]);
                if is_tail {
                    block[at + 8..at + 12].copy_from_slice(&crc.to_le_bytes());
                    crc = 0;
                }
                at = end;
            }
        }
    }
}

/// Makes files of each kind and some changes of them that are in the journal alone.
fn fill(root: &Path) {
    for n in 0..12 {
        fs::create_dir(root.join(format!("dir{n}"))).expect("folder");
        write(&root.join(format!("dir{n}/file")), n * 700);
    }
    let far = File::create(root.join("far")).expect("file");
    far.set_len(40 << 20).expect("length");
    write(&root.join("long"), 90_000);
    std::os::unix::fs::symlink("t".repeat(80), root.join("link")).expect("link");
    let whole = Command::new("sync").arg("-f").arg(root).status();
    assert!(whole.expect("sync").success());
    for n in 0..8 {
        write(&root.join(format!("dir{n}/new")), 3000);
        let (from, to) = (format!("dir{n}/file"), format!("dir{n}/renamed"));
        fs::rename(root.join(from), root.join(to)).expect("renamed");
        write(&root.join("long"), 90_000 - n * 9000);
        fs::remove_file(root.join(format!("dir{n}/new"))).expect("removed");
        write(&root.join(format!("dir{n}/kept")), 100);
    }
}

/// Writes a file and waits until it is in the journal.
fn write(path: &Path, len: usize) {
    let mut file = File::create(path).expect("file");
    file.write_all(&vec![b'x'; len]).expect("contents");
    file.sync_all().expect("on the disk");
}

struct Patched {
    bytes: Arc<Vec<u8>>,
    over: BTreeMap<usize, Vec<u8>>,
}

impl ReadAt for Patched {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.bytes.read_exact_at(buf, offset)?;
        let from = offset as usize;
        let end = from + buf.len();
        for (nth, block) in self.over.range(from / BLOCK..end.div_ceil(BLOCK)) {
            let begin = nth * BLOCK;
            let (first, last) = (from.max(begin), end.min(begin + BLOCK));
            buf[first - from..last - from].copy_from_slice(&block[first - begin..last - begin]);
        }
        Ok(())
    }
}
