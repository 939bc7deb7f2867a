// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images as people have them: packed, of whole disks, and of things that have no map. The tables are made by sfdisk, the packed
//! images by gzip and qemu-img.

use crate::ext4::images;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use images::{mke2fs, run, tool};
use mostrace_map::Extent;
use mostrace_map::fs::{Error, Wanted, build, open};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use test_support::{Need, Suite, tests};

const MAKE: Need = Need::Tool("mke2fs", "e2fsprogs");
const SFDISK: Need = Need::Tool("sfdisk", "fdisk");
const QEMU: Need = Need::Tool("qemu-img", "qemu-utils");

pub fn suite() -> Suite {
    test_support::at_once(tests![
        partitions_are_where_sfdisk_puts_them needs [MAKE, SFDISK],
        a_damaged_gpt_is_read_from_its_copy needs [MAKE, SFDISK],
        gzip_is_unpacked needs [MAKE],
        android_sparse_is_read_in_place needs [MAKE],
        virtual_disks_are_converted needs [MAKE, QEMU],
        an_overlay_is_refused needs [MAKE, QEMU],
        what_has_no_map_is_named needs [],
        any_bytes_are_opened needs [],
        changed_containers_are_read_or_refused needs [MAKE, SFDISK],
    ])
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("scratch folder")
}

/// Makes an ext4 of 8 MiB with a file.
fn filesystem(dir: &Path) -> PathBuf {
    let contents = dir.join("contents");
    fs::create_dir_all(&contents).expect("folder");
    fs::write(contents.join("file"), [7; 30_000]).expect("file");
    let image = dir.join("filesystem");
    mke2fs(&image, "-t ext4 -b 1024", 8, Some(&contents));
    image
}

/// The extents of a map, by their place in the filesystem.
fn extents(path: &Path, wanted: Wanted) -> (u64, Vec<Extent>, Vec<String>) {
    let opened = open(path, wanted).unwrap_or_else(|error| panic!("{error}"));
    let start = opened.start_sector;
    let map = build(&opened.image, start).expect("map");
    let place = |extent: &Extent| Extent {
        sector: extent.sector - start,
        ..*extent
    };
    let extents = map.extents().iter().map(place).collect();
    (start, extents, opened.notices)
}

fn plain(path: &Path) -> Vec<Extent> {
    extents(path, Wanted::default()).1
}

/// Makes a disk of 40 MiB with such a table.
fn disk(dir: &Path, script: &str) -> PathBuf {
    let path = dir.join("disk");
    let file = fs::File::create(&path).expect("disk");
    file.set_len(40 << 20).expect("disk");
    let mut sfdisk = tool("sfdisk")
        .arg("-q")
        .arg(&path)
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("sfdisk");
    let mut input = sfdisk.stdin.take().expect("input");
    input.write_all(script.as_bytes()).expect("script");
    drop(input);
    assert!(sfdisk.wait().expect("sfdisk").success(), "{script}");
    path
}

/// Returns the number and the first sector of each partition, as sfdisk prints them.
fn dumped(disk: &Path) -> Vec<(u32, u64)> {
    let out = String::from_utf8(run(tool("sfdisk").arg("-d").arg(disk))).expect("text");
    let line = |line: &str| {
        let (node, rest) = line.split_once(" : start=")?;
        let number: String = node
            .chars()
            .rev()
            .take_while(char::is_ascii_digit)
            .collect();
        let number: String = number.chars().rev().collect();
        let start = rest.split(',').next()?.trim();
        Some((number.parse().ok()?, start.parse().ok()?))
    };
    out.lines().filter_map(line).collect()
}

fn put(disk: &Path, start: u64, image: &Path) {
    images::patch(disk, start * 512, &fs::read(image).expect("image"));
}

fn of_partition(number: u32) -> Wanted {
    Wanted {
        partition: Some(number),
        ..Wanted::default()
    }
}

fn partitions_are_where_sfdisk_puts_them() {
    let dir = scratch();
    let image = filesystem(dir.path());
    let expected = plain(&image);
    for (script, is_mapped) in [
        ("label: dos\n,4M,c\n,9M,83\n,9M,83\n", vec![2, 3]),
        (
            "label: dos\n1: size=4M, type=83\n2: size=30M, type=5\n5: size=9M, type=83\n6: size=9M, type=83\n",
            vec![5, 6],
        ),
        ("label: gpt\n,4M,U,\n,9M,L,\n,9M,L,\n", vec![2, 3]),
        ("label: gpt\n,9M,L,\n", vec![1]),
    ] {
        let disk = disk(dir.path(), script);
        let table = dumped(&disk);
        for &number in &is_mapped {
            let (_, start) = *table.iter().find(|(n, _)| *n == number).expect("partition");
            put(&disk, start, &image);
            let (from, found, told) = extents(&disk, of_partition(number));
            assert_eq!((from, told.len()), (start, 0), "{script}");
            assert_eq!(found, expected, "{script} {number}");
            let by_start = Wanted {
                start_sector: Some(start),
                ..Wanted::default()
            };
            assert_eq!(extents(&disk, by_start).1, expected, "{script} {number}");
        }
        let alone = open(&disk, Wanted::default());
        if table.len() == 1 {
            let (_, found, told) = extents(&disk, Wanted::default());
            assert_eq!(found, expected);
            assert!(
                told[0].contains("partition 1, from sector 2048 on, was taken"),
                "{told:?}"
            );
            continue;
        }
        let said = alone.err().expect("refused").to_string();
        for (number, start) in table {
            let is_extended = script.contains("type=5") && number == 2;
            let named = said.contains(&format!("{number} ("))
                && said.contains(&format!("from {start} on)"));
            assert_eq!(named, !is_extended, "{number} at {start}: {said}");
        }
        assert!(said.contains("(ext4, "), "{said}");
        let missing = open(&disk, of_partition(9))
            .err()
            .expect("refused")
            .to_string();
        assert!(missing.contains("a disk with partitions: "), "{missing}");
    }
    let none = open(&image, of_partition(1))
        .err()
        .expect("refused")
        .to_string();
    assert!(
        none.ends_with("no partition 1: there is no table of partitions"),
        "{none}"
    );
}

fn a_damaged_gpt_is_read_from_its_copy() {
    let dir = scratch();
    let image = filesystem(dir.path());
    let disk = disk(dir.path(), "label: gpt\n,4M,L,\n,9M,L,\n");
    let (_, start) = dumped(&disk)[1];
    put(&disk, start, &image);
    images::patch(&disk, 512 + 40, &[0xff; 8]);
    assert_eq!(extents(&disk, of_partition(2)).1, plain(&image));
}

fn gzip_is_unpacked() {
    let dir = scratch();
    let image = filesystem(dir.path());
    let expected = plain(&image);
    run(Command::new("gzip").arg("-k").arg(&image));
    let packed = dir.path().join("filesystem.gz");
    let (_, found, told) = extents(&packed, Wanted::default());
    assert_eq!(found, expected);
    assert_eq!(told, ["the image is gzip data, which was unpacked"]);
    let bytes = fs::read(&packed).expect("packed");
    fs::write(&packed, &bytes[..bytes.len() / 2]).expect("cut");
    let said = open(&packed, Wanted::default())
        .err()
        .expect("refused")
        .to_string();
    assert!(
        said.starts_with(&format!("{}: gzip data: ", packed.display())),
        "{said}"
    );
}

/// Packs an image in blocks of 4 KiB as img2simg does: zeros are left out, blocks of one byte are filled, the rest is raw.
fn sparse(image: &[u8]) -> Vec<u8> {
    let blocks: Vec<&[u8]> = image.chunks(4096).collect();
    let kind = |block: &&&[u8]| match (block.iter().all(|b| *b == block[0]), block[0]) {
        (true, 0) => 0xcac3_u16,
        (true, _) => 0xcac2,
        (false, _) => 0xcac1,
    };
    let mut chunks = Vec::new();
    let mut count = 0u32;
    let mut at = 0;
    while at < blocks.len() {
        let of = kind(&&blocks[at]);
        let same =
            |block: &&&[u8]| kind(block) == of && (of != 0xcac2 || block[0] == blocks[at][0]);
        let run = blocks[at..].iter().take_while(same).count();
        let data: Vec<u8> = match of {
            0xcac1 => blocks[at..at + run].concat(),
            0xcac2 => blocks[at][..4].to_vec(),
            _ => Vec::new(),
        };
        chunks.extend(of.to_le_bytes());
        chunks.extend([0; 2]);
        chunks.extend((run as u32).to_le_bytes());
        chunks.extend((data.len() as u32 + 12).to_le_bytes());
        chunks.extend(data);
        (at, count) = (at + run, count + 1);
    }
    let mut packed = 0xed26_ff3a_u32.to_le_bytes().to_vec();
    packed.extend([1, 0, 0, 0, 28, 0, 12, 0]);
    for field in [4096, blocks.len() as u32, count, 0] {
        packed.extend(field.to_le_bytes());
    }
    [packed, chunks].concat()
}

fn android_sparse_is_read_in_place() {
    let dir = scratch();
    let image = filesystem(dir.path());
    let expected = plain(&image);
    let bytes = fs::read(&image).expect("image");
    let packed = dir.path().join("sparse.img");
    fs::write(&packed, sparse(&bytes)).expect("sparse");
    let (_, found, told) = extents(&packed, Wanted::default());
    assert_eq!(found, expected);
    assert_eq!(
        told,
        ["the image is an Android sparse image, which was unpacked"]
    );
    let opened = open(&packed, Wanted::default()).expect("image").image;
    assert_eq!(opened.bytes(), bytes.len() as u64);
    // Every byte, in reads that cross chunks.
    for at in (0..bytes.len() - 9001).step_by(8999) {
        let read = opened.read(at as u64, 9001, "x").expect("read");
        assert!(read == bytes[at..at + 9001], "at {at}");
    }
    fs::write(&packed, &sparse(&bytes)[..5000]).expect("cut");
    assert!(open(&packed, Wanted::default()).is_err());
}

fn virtual_disks_are_converted() {
    let dir = scratch();
    let image = filesystem(dir.path());
    let expected = plain(&image);
    for format in ["qcow2", "vmdk", "vpc", "vhdx", "vdi"] {
        let to = dir.path().join(format!("disk.{format}"));
        run(tool("qemu-img")
            .args(["convert", "-O", format])
            .arg(&image)
            .arg(&to));
        let (_, found, told) = extents(&to, Wanted::default());
        assert_eq!(found, expected, "{format}");
        assert_eq!(told.len(), 1, "{format}");
    }
}

fn an_overlay_is_refused() {
    let dir = scratch();
    let image = filesystem(dir.path());
    let overlay = dir.path().join("overlay.qcow2");
    run(tool("qemu-img")
        .args(["create", "-q", "-f", "qcow2", "-F", "raw", "-b"])
        .arg(&image)
        .arg(&overlay));
    let said = open(&overlay, Wanted::default())
        .err()
        .expect("refused")
        .to_string();
    assert!(said.contains("it needs another file"), "{said}");
}

fn what_has_no_map_is_named() {
    let dir = scratch();
    let path = dir.path().join("image");
    for (at, magic, says) in [
        (
            0,
            &b"XFSB"[..],
            "first blocks: no filesystem recognised: this is XFS",
        ),
        (0x1_0040, b"_BHRfS_M", "this is btrfs"),
        (4086, b"SWAPSPACE2", "this is swap space"),
        (0, b"PK\x03\x04", "this is a zip archive: unpack it"),
    ] {
        let mut bytes = vec![0; 1 << 17];
        bytes[at..at + magic.len()].copy_from_slice(magic);
        fs::write(&path, bytes).expect("image");
        let opened = open(&path, Wanted::default()).expect("opened");
        let said = build(&opened.image, 0).expect_err("no map").to_string();
        assert!(said.ends_with(says), "{said}");
    }
}

/// Opens what begins as one of the formats does and goes on with anything: it is read or refused.
fn any_bytes_are_opened() {
    let dir = scratch();
    let path = dir.path().join("image");
    let head = prop::sample::select(vec![
        vec![0x1f, 0x8b, 8, 0],
        [
            &0xed26_ff3a_u32.to_le_bytes()[..],
            &[1, 0, 0, 0, 28, 0, 12, 0, 0, 16, 0, 0],
        ]
        .concat(),
        [
            vec![0; 446],
            vec![0, 0, 2, 0, 0xee, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0],
        ]
        .concat(),
        [
            vec![0; 446],
            vec![0, 0, 2, 0, 0x05, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0],
        ]
        .concat(),
        Vec::new(),
    ]);
    let noise = prop::collection::vec((0usize..2000, any::<u8>()), 0..200);
    let config = test_support::property::config(file!(), 300);
    let ran = TestRunner::new(config).run(&(head, noise), |(head, noise)| {
        let mut bytes = head;
        bytes.resize(2048, 0);
        noise.iter().for_each(|&(at, byte)| bytes[at] = byte);
        bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
        fs::write(&path, &bytes).expect("image");
        for partition in [None, Some(1), Some(5)] {
            let wanted = Wanted {
                partition,
                start_sector: None,
            };
            if let Ok(opened) = open(&path, wanted) {
                let _ = build(&opened.image, opened.start_sector);
            }
        }
        Ok(())
    });
    ran.expect("any image is read or refused");
}

/// Changes bytes of images as people have them, mostly where their own structures are: each is read or refused in one line.
fn changed_containers_are_read_or_refused() {
    let dir = scratch();
    let image = fs::read(filesystem(dir.path())).expect("image");
    let gzip = |bytes: &[u8]| {
        let packed = dir.path().join("to_pack");
        fs::write(&packed, bytes).expect("image");
        run(tool("gzip").arg("-c").arg(&packed))
    };
    let table = |script| {
        let path = disk(dir.path(), script);
        // The tables are in the first and the last sectors; a shorter disk is a faster one.
        let bytes = fs::read(path).expect("disk");
        [&bytes[..1 << 20], &image[..1 << 20], &bytes[39 << 20..]].concat()
    };
    let logical = table("label: dos\n,1M,83\n,30M,5\n,4M,83\n,4M,83\n");
    let gpt = table("label: gpt\n,1M\n,1M\n");
    let packed = sparse(&image);
    // Each with how many bytes of it are its own structures.
    let all = [
        (gzip(&image), 64),
        (gzip(&packed), 64),
        (packed, 4096),
        (logical, 512),
        (gpt, 34 * 512),
    ];
    let path = dir.path().join("changed");
    let place = (any::<bool>(), any::<prop::sample::Index>());
    let value = prop_oneof![any::<u8>(), Just(0), Just(0xff), Just(0x7f)];
    let changes = prop::collection::vec((place, value), 1..8);
    let cut = prop::option::weighted(0.2, any::<prop::sample::Index>());
    let config = test_support::property::config(file!(), 120);
    let ran = TestRunner::new(config).run(&(0..all.len(), changes, cut), |(nth, changes, cut)| {
        let (sound, own) = &all[nth];
        let mut bytes = sound.clone();
        for ((is_own, at), value) in changes {
            let most = if is_own { *own } else { bytes.len() };
            bytes[at.index(most)] = value;
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        fs::write(&path, &bytes).expect("image");
        for partition in [None, Some(1), Some(5)] {
            let wanted = Wanted {
                partition,
                start_sector: None,
            };
            let built =
                open(&path, wanted).and_then(|opened| build(&opened.image, opened.start_sector));
            if let Err(error) = built {
                let line = error.to_string();
                prop_assert!(line.starts_with(path.to_str().expect("text")), "{}", line);
                let is_list = matches!(error, Error::Partitioned { .. });
                prop_assert!(is_list || !line.contains('\n'), "{}", line);
            }
        }
        Ok(())
    });
    ran.expect("a map or a line");
}
