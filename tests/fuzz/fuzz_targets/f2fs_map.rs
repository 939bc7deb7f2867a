// SPDX-License-Identifier: MIT OR Apache-2.0
//! Patches a small f2fs image, with checksums corrected where the input says so. The result must be a map that covers
//! the filesystem, or an error. mkfs.f2fs and sload.f2fs make the image once, when the fuzzer starts.
//!
//! A patch is six bytes and its contents: the index of a non-zero block (2), the offset in it (2), the number of bytes
//! (1), and whether a checksum is corrected (1).
#![no_main]

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use mostrace_map::fs::{Image, ReadAt, f2fs};

const BLOCK: usize = 4096;
const BYTES: usize = 100 << 20;

static BASE: LazyLock<Base> = LazyLock::new(Base::make);

fuzz_target!(|data: &[u8]| {
    let mut over = BTreeMap::new();
    let mut rest = data;
    while let [a, b, c, d, len, mend, patch @ ..] = rest {
        let block = BASE.used[usize::from(u16::from_le_bytes([*a, *b])) % BASE.used.len()];
        let at = usize::from(u16::from_le_bytes([*c, *d])) % BLOCK;
        let (patch, behind) = patch.split_at(usize::from(*len).min(patch.len()));
        let to: &mut Vec<u8> = over
            .entry(block)
            .or_insert_with(|| BASE.blocks[&block].clone());
        to.iter_mut()
            .skip(at)
            .zip(patch)
            .for_each(|(to, from)| *to = *from);
        if mend & 1 == 0 {
            BASE.mend(block, to);
        }
        rest = behind;
    }
    let bytes = BYTES as u64;
    let patched = Patched {
        blocks: BASE.blocks.clone(),
        over,
    };
    match f2fs::build(&Image::new(Path::new("fuzz"), bytes, patched), 0) {
        Ok(map) => {
            let mut end = 0;
            for extent in map.extents() {
                assert_eq!(extent.sector, end);
                assert!(extent.sectors > 0);
                end = extent.end();
            }
            assert!(end > 0 && end <= bytes / 512);
            for extent in map.extents() {
                let paths = map.paths(extent.inode);
                assert!(paths.iter().all(|path| path.starts_with(b"/")));
            }
        }
        Err(error) => {
            let line = error.to_string();
            assert!(line.starts_with("fuzz: ") && !line.contains('\n'), "{line}");
        }
    }
});

struct Base {
    blocks: Arc<HashMap<usize, Vec<u8>>>,
    /// The blocks that are not zeros, without most of the files' contents.
    used: Vec<usize>,
    uuid: Vec<u8>,
}

impl Base {
    fn make() -> Base {
        let dir = std::env::temp_dir().join(format!("mostrace-fuzz-f2fs-{}", std::process::id()));
        let (image, tree) = (dir.join("image"), dir.join("tree"));
        fs::create_dir_all(tree.join("dir/deep")).expect("tree");
        fs::write(tree.join("many"), vec![b'm'; 40 * BLOCK]).expect("file");
        fs::write(tree.join("direct"), vec![b'd'; 930 * BLOCK]).expect("file");
        fs::write(tree.join("dir/deep/one"), vec![b'o'; BLOCK]).expect("file");
        fs::write(tree.join("dir/inline"), "inline").expect("file");
        fs::hard_link(tree.join("many"), tree.join("dir/link")).expect("link");
        let file = File::create(&image).expect("image");
        file.set_len(BYTES as u64).expect("length");
        let features = "extra_attr,inode_checksum,sb_checksum,inode_crtime,compression,quota";
        let made = Command::new("mkfs.f2fs")
            .args(["-q", "-f", "-O", features])
            .arg(&image)
            .output();
        assert!(made.expect("mkfs.f2fs").status.success());
        let loaded = Command::new("sload.f2fs")
            .arg("-f")
            .args([&tree, &image])
            .output();
        loaded.expect("sload.f2fs");
        let bytes = fs::read(&image).expect("image");
        fs::remove_dir_all(dir).expect("scratch folder");
        let blocks = bytes.chunks_exact(BLOCK).enumerate();
        let blocks: HashMap<usize, Vec<u8>> = blocks
            .filter(|(_, block)| block.iter().any(|byte| *byte != 0))
            .map(|(nth, block)| (nth, block.to_vec()))
            .collect();
        let contents = |block: &Vec<u8>| block.iter().all(|byte| *byte == block[0]);
        let used = blocks
            .iter()
            .filter(|(_, block)| !contents(block))
            .map(|(nth, _)| *nth);
        let mut used: Vec<usize> = used.collect();
        used.sort_unstable();
        let uuid = blocks[&0][1024 + 108..1024 + 124].to_vec();
        Base {
            blocks: blocks.into(),
            used,
            uuid,
        }
    }

    /// Corrects the checksum of a superblock, a checkpoint or an inode.
    fn mend(&self, nth: usize, block: &mut [u8]) {
        const MAGIC: u32 = 0xf2f5_2010;
        let ours = [0, 1].contains(&nth);
        let cp = get32(&self.blocks[&0], 1024 + 76) as usize;
        if ours {
            let sum = crc32(MAGIC, &block[1024..1024 + 3068]);
            put32(block, 1024 + 3068, sum);
        } else if (cp..cp + 1024).contains(&nth) {
            let at = get32(block, 164) as usize;
            if (192..=4092).contains(&at) {
                let sum = crc32(crc32(MAGIC, &block[..at]), &block[at + 4..]);
                put32(block, at, sum);
            }
        } else if block[4072..4076] == block[4076..4080] && block[3] & 0x20 != 0 {
            put32(block, 368, 0);
            let seed = crc32(crc32(u32::MAX, &self.uuid), &block[4076..4080]);
            let sum = crc32(crc32(seed, &block[68..72]), block);
            put32(block, 368, sum);
        }
    }
}

fn get32(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(block[at..at + 4].try_into().expect("four bytes"))
}

fn put32(block: &mut [u8], at: usize, value: u32) {
    block[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Computes the kernel's `f2fs_crc32` bit by bit.
fn crc32(seed: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(seed, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

struct Patched {
    blocks: Arc<HashMap<usize, Vec<u8>>>,
    over: BTreeMap<usize, Vec<u8>>,
}

impl ReadAt for Patched {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let mut at = 0;
        while at < buf.len() {
            let from = offset as usize + at;
            let (nth, skip) = (from / BLOCK, from % BLOCK);
            let len = (BLOCK - skip).min(buf.len() - at);
            let part = &mut buf[at..at + len];
            match self.over.get(&nth).or_else(|| self.blocks.get(&nth)) {
                Some(block) => part.copy_from_slice(&block[skip..skip + len]),
                None => part.fill(0),
            }
            at += len;
        }
        Ok(())
    }
}
