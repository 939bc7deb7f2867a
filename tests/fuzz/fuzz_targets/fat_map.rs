// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps damaged FAT volumes, or any bytes as a volume. The result must be an error or a map that covers all, never a
//! panic.
//!
//! The first byte chooses one of the volumes, which mkfs.vfat and mtools make once; patches follow, each a place (3
//! bytes), a length (1 byte) and that many bytes. Otherwise all the rest of the input is the image.
#![no_main]

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, LazyLock};
use std::{fs, io};

use libfuzzer_sys::fuzz_target;
use mostrace_map::fs::{Image, ReadAt, fat};

/// The volumes: FAT12, FAT16 and FAT32, with clusters of one sector.
static VOLUMES: LazyLock<Vec<Arc<Vec<u8>>>> = LazyLock::new(|| {
    let kinds = [("12", 300), ("16", 2500), ("32", 34_000)];
    let volumes = kinds.into_iter().map(|(bits, kib)| {
        let scratch = tempfile::tempdir().expect("scratch folder");
        let image = scratch.path().join("image");
        let file = fs::File::create(&image).expect("image");
        file.set_len(kib << 10).expect("length");
        let mkfs = ["-F", bits, "-S", "512", "-s", "1"];
        run(Command::new("mkfs.vfat").args(mkfs).arg(&image));
        fill(&image, scratch.path());
        let mut bytes = fs::read(&image).expect("image");
        if bits == "32" {
            cut(&mut bytes);
        }
        Arc::new(bytes)
    });
    volumes.collect()
});

/// Shortens the FAT32 to 500 clusters, which are faster to read. Linux accepts it; mtools does not support less than
/// 65525 clusters.
fn cut(bytes: &mut Vec<u8>) {
    let fat_length = u32::from_le_bytes([bytes[36], bytes[37], bytes[38], bytes[39]]);
    let sectors = 32 + 2 * fat_length + 500;
    for record in [0, 6 * 512] {
        bytes[record + 19..record + 21].fill(0);
        bytes[record + 32..record + 36].copy_from_slice(&sectors.to_le_bytes());
    }
    bytes.truncate(sectors as usize * 512);
}

fn fill(image: &Path, scratch: &Path) {
    let tree = scratch.join("tree");
    fs::create_dir_all(tree.join("dir/inner dir")).expect("tree");
    for n in 0..20 {
        for dir in ["dir", "dir/inner dir"] {
            let path = tree
                .join(dir)
                .join(format!("a name of some slots {n}.text"));
            fs::write(path, vec![b'x'; n * 300]).expect("file");
        }
    }
    let mtool = |name: &str, args: &[&str]| {
        run(Command::new(name).arg("-i").arg(image).args(args));
    };
    let tree = tree.join("dir").display().to_string();
    mtool("mcopy", &["-s", "-Q", &tree, "::/"]);
    mtool("mdel", &["::/dir/a name of some slots 7.text"]);
}

fn run(command: &mut Command) {
    let path = std::env::var("PATH").unwrap_or_default();
    let command = command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    let output = command.output().expect("dosfstools and mtools");
    assert!(output.status.success(), "{command:?}: {output:?}");
}

/// A volume whose reads show patches.
struct Patched {
    bytes: Arc<Vec<u8>>,
    patches: Vec<(usize, Vec<u8>)>,
}

impl ReadAt for Patched {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.bytes.read_exact_at(buf, offset)?;
        let from = offset as usize;
        for (at, bytes) in &self.patches {
            for (at, byte) in (*at..).zip(bytes) {
                if let Some(place) = at.checked_sub(from).and_then(|at| buf.get_mut(at)) {
                    *place = *byte;
                }
            }
        }
        Ok(())
    }
}

fn patches(mut data: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let mut patches = vec![];
    while let [low, mid, high, length, rest @ ..] = data {
        let at = usize::from(*low) | usize::from(*mid) << 8 | usize::from(*high) << 16;
        let (bytes, rest) = rest.split_at(usize::from(*length % 33).min(rest.len()));
        patches.push((at, bytes.to_vec()));
        data = rest;
    }
    patches
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else {
        return;
    };
    let bytes = match VOLUMES.get(usize::from(choice % 4)) {
        Some(volume) => volume.clone(),
        None => Arc::new(data.to_vec()),
    };
    let len = bytes.len() as u64;
    let patches = if choice % 4 < 3 {
        patches(data)
    } else {
        vec![]
    };
    let image = Image::new("fuzz".as_ref(), len, Patched { bytes, patches });
    match fat::build(&image, 3) {
        Ok(map) => {
            let extents = map.extents();
            assert_eq!(extents[0].sector, 3);
            assert!(
                extents
                    .windows(2)
                    .all(|pair| pair[0].end() == pair[1].sector)
            );
            assert!(extents.iter().all(|extent| extent.sectors > 0));
            for extent in extents.iter().filter(|extent| extent.inode != 0) {
                assert!(map.path(extent.inode).is_some(), "{extent:?}");
            }
        }
        Err(error) => assert!(error.to_string().starts_with("fuzz: ")),
    }
});
