// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ext4 map compared with debugfs's icheck, testb and ncheck, dumpe2fs, the kernel's FIEMAP and its directory walk:
//! every block and every name of every image.

use crate::ext4::images;
use crate::ext4::oracles;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use images::{Mount, Seen};
use mostrace_map::class::Kind;
use mostrace_map::fs::ext4::By;
use mostrace_map::fs::{Image, State, ext4};
use mostrace_map::{Extent, Map};

/// The first sector of the partition for which the images stand.
const START: u64 = 2048;

const MOUNTED: [Need; 2] = [Need::Loop, Need::Tool("debugfs", "e2fsprogs")];

/// The way in which an image gets its contents.
#[derive(Clone, Copy, PartialEq)]
enum Fill {
    /// The kernel writes them to the image, mounted through a loop device.
    Mounted,
    /// mke2fs writes them, for images that the kernel refuses to mount or takes long to mount.
    Unmounted,
}
use Fill::{Mounted, Unmounted};
use test_support::{Need, Suite, Test, at_once, tests};

pub fn suite() -> Suite {
    let mut all = of_cases();
    all.extend(tests![
        every_kind_is_somewhere needs images::TOOLS,
        an_open_unlinked_file_keeps_its_blocks_and_has_no_name needs MOUNTED,
        bad_blocks_belong_to_their_inode_and_hold_nothing needs images::TOOLS,
        the_value_of_an_attribute_in_an_inode_of_its_own_is_xattr needs images::TOOLS,
        names_of_an_encrypted_directory_are_veiled needs images::TOOLS,
        an_odd_image_path_is_no_option_of_debugfs needs images::TOOLS,
    ]);
    at_once(all)
}

struct Case {
    name: &'static str,
    options: &'static str,
    mib: u64,
    fill: Fill,
}

macro_rules! cases {
    ($($name:ident: $options:literal, $mib:literal MiB, $fill:ident;)+) => {
        [$(Case { name: stringify!($name), options: $options, mib: $mib, fill: $fill }),+]
    };
}

const CASES: [Case; 33] = cases! {
    blocks_4k:      "-t ext4 -b 4096", 32 MiB, Mounted;
    blocks_2k:      "-t ext4 -b 2048", 24 MiB, Mounted;
    blocks_1k:      "-t ext4 -b 1024", 16 MiB, Mounted;
    blocks_64k:     "-t ext4 -b 65536", 64 MiB, Unmounted;
    no_flex_bg:     "-t ext4 -b 1024 -O ^flex_bg", 20 MiB, Mounted;
    small_groups:   "-t ext4 -b 1024 -g 256 -O ^resize_inode", 16 MiB, Mounted;
    meta_bg:        "-t ext4 -b 1024 -g 256 -O meta_bg,^resize_inode", 16 MiB, Mounted;
    meta_bg_32bit:  "-t ext4 -b 1024 -O meta_bg,^resize_inode,^64bit,^flex_bg", 20 MiB, Mounted;
    no_64bit:       "-t ext4 -b 1024 -O ^64bit", 16 MiB, Mounted;
    csum_off:       "-t ext4 -b 1024 -O ^metadata_csum,uninit_bg", 20 MiB, Mounted;
    all_csum_off:   "-t ext4 -b 1024 -O ^metadata_csum,^uninit_bg", 20 MiB, Mounted;
    sparse_super2:  "-t ext4 -b 1024 -O sparse_super2,^resize_inode", 40 MiB, Mounted;
    no_sparse:      "-t ext4 -b 1024 -O ^sparse_super,^resize_inode", 40 MiB, Mounted;
    no_resize:      "-t ext4 -b 1024 -O ^resize_inode", 20 MiB, Mounted;
    inline_data:    "-t ext4 -b 1024 -I 512 -O inline_data", 16 MiB, Mounted;
    inline_256:     "-t ext4 -b 4096 -I 256 -O inline_data", 24 MiB, Mounted;
    bigalloc:       "-t ext4 -b 1024 -O bigalloc -C 8192", 24 MiB, Mounted;
    bigalloc_4k:    "-t ext4 -b 4096 -O bigalloc -C 16384", 48 MiB, Mounted;
    lazy_init:      "-t ext4 -b 1024 -E lazy_itable_init=1,lazy_journal_init=1", 20 MiB, Mounted;
    packed_meta:    "-t ext4 -b 1024 -E packed_meta_blocks=1", 20 MiB, Mounted;
    inodes_128:     "-t ext4 -b 1024 -I 128 -N 5000", 16 MiB, Mounted;
    no_journal:     "-t ext4 -b 1024 -O ^has_journal", 16 MiB, Mounted;
    fast_commit:    "-t ext4 -b 1024 -O fast_commit", 24 MiB, Mounted;
    orphan_file:    "-t ext4 -b 1024 -O orphan_file", 16 MiB, Mounted;
    ea_inode:       "-t ext4 -b 1024 -O ea_inode", 16 MiB, Mounted;
    casefold:       "-t ext4 -b 1024 -O casefold", 16 MiB, Unmounted;
    mmp:            "-t ext4 -b 1024 -O mmp", 16 MiB, Unmounted;
    quota:          "-t ext4 -b 1024 -O quota,project", 16 MiB, Unmounted;
    ext3_1k:        "-t ext3 -b 1024", 16 MiB, Mounted;
    ext3_4k:        "-t ext3 -b 4096", 32 MiB, Mounted;
    ext2_1k:        "-t ext2 -b 1024", 16 MiB, Mounted;
    ext2_2k:        "-t ext2 -b 2048 -I 128", 24 MiB, Mounted;
    ext2_rev_0:     "-t ext2 -r 0 -b 1024", 16 MiB, Mounted;
};

/// Each case is filled by mke2fs and, where possible, by the kernel.
fn of_cases() -> Vec<Test> {
    let mut all = Vec::new();
    for Case {
        name,
        options,
        mib,
        fill,
    } in CASES
    {
        let filled = move |fill| move || check(name, options, mib, fill);
        all.push(Test::new(name, &images::TOOLS, filled(Unmounted)));
        if fill == Mounted {
            let name = format!("{name}_mounted");
            // e2image saves whole clusters, with what was written there before they were used for metadata.
            let mut needs = MOUNTED.to_vec();
            needs.extend(options.contains("bigalloc").then_some(Need::NoSync));
            all.push(Test::new(name, &needs, filled(Mounted)));
        }
    }
    all
}

/// Makes one image and compares its map with the output of all tools.
fn check(name: &str, options: &str, mib: u64, fill: Fill) {
    let scratch = tempfile::tempdir().expect("scratch folder");
    let image = &scratch.path().join("image");
    let seen = make(image, options, mib, fill, scratch.path());
    let map = ext4::build(image, START).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(map.notices(), [""; 0], "{name}");

    let dump = oracles::Dump::new(image);
    let blocks = Blocks::new(&map, &dump);
    compare_owners(name, image, &blocks, options.contains("bigalloc"));
    compare_layout(name, &dump, &blocks);
    compare_journal(name, &dump, &blocks);
    let fragmented = oracles::inode_of(image, "/fragmented");
    let tree = |(_, o): &(u64, &Extent)| o.kind == Kind::ExtentTree && o.inode == fragmented;
    assert!(
        blocks.iter().any(|block| tree(&block)) || blocks.size == 65536,
        "{name}: no tree"
    );
    compare_ncheck(name, image, &map);
    if let Some((seen, fiemap)) = seen {
        compare_contents(name, &map, &seen, &fiemap, &blocks);
    }
    compare_lists(name, image, &map);
    let snapshot = &scratch.path().join("snapshot");
    oracles::e2image(image, snapshot);
    let from_snapshot = ext4::build(snapshot, START).expect("map of the snapshot");
    assert_eq!(from_snapshot.extents(), map.extents(), "{name}: e2image -r");
    compare_metadata(name, image, snapshot, &map, scratch.path());
}

/// Checks that the map is the same with debugfs's lists of blocks, and where debugfs cannot be asked because the image is no
/// file.
fn compare_lists(name: &str, image: &Path, map: &Map) {
    let opened = &Image::open(image).expect("image");
    let by_debugfs = ext4::build_by(By::Debugfs, opened, START, &|_| {}).expect("map by debugfs");
    let bytes = std::fs::read(image).expect("image");
    let in_memory = &Image::new(Path::new("memory"), bytes.len() as u64, bytes);
    let without = ext4::build_by(By::Walk, in_memory, START, &|_| {}).expect("map without debugfs");
    for (by, other) in [("debugfs", by_debugfs), ("the walker alone", without)] {
        assert_eq!(other.notices(), [""; 0], "{name} by {by}");
        assert_eq!(other.extents(), map.extents(), "{name} by {by}");
    }
}

/// Checks that `metadata` finds no less than e2image saves, and enough for the same map and the same output of e2fsck.
fn compare_metadata(name: &str, image: &Path, snapshot: &Path, map: &Map, scratch: &Path) {
    let own = &scratch.join("metadata");
    let bytes = std::fs::read(image).expect("image");
    let found = ext4::metadata(&Image::open(image).expect("image")).expect("metadata");
    assert_eq!(found.notices, [""; 0], "{name}");
    let mut saved = vec![0; bytes.len()];
    for range in found.ranges {
        let range = range.start as usize..range.end as usize;
        saved[range.clone()].copy_from_slice(&bytes[range]);
    }
    std::fs::write(own, &saved).expect("metadata");
    let theirs = std::fs::read(snapshot).expect("snapshot");
    for (nth, block) in theirs.chunks(1024).enumerate() {
        let same = block.iter().all(|&byte| byte == 0) || saved[nth * 1024..].starts_with(block);
        assert!(same, "{name}: KiB {nth} is in e2image's alone");
    }
    let from_own = ext4::build(own, START).expect("map of the metadata");
    assert_eq!(from_own.extents(), map.extents(), "{name}: metadata");
    assert_eq!(oracles::e2fsck(own), oracles::e2fsck(snapshot), "{name}");
}

type Contents = (Vec<Seen>, BTreeMap<u64, BTreeMap<u64, u64>>);

/// Makes and fills an image. Returns its contents as the kernel shows them if it was mounted.
fn make(image: &Path, options: &str, mib: u64, fill: Fill, scratch: &Path) -> Option<Contents> {
    let mut contents = None;
    if fill == Mounted {
        images::mke2fs(image, options, mib, None);
        // While it is mounted, a bitmap may be written before its checksum.
        let block_size = oracles::Dump::new(image)
            .number("Block size:")
            .expect("size");
        let mount = Mount::new(image, &scratch.join("mnt"));
        images::fill(&mount.dir);
        mount.sync();
        let seen = images::walk(&mount.dir);
        let fiemap = oracles::fiemap(&seen, block_size);
        contents = Some((seen, fiemap));
    } else {
        let tree = scratch.join("tree");
        std::fs::create_dir(&tree).expect("tree");
        images::fill(&tree);
        images::mke2fs(image, options, mib, Some(&tree));
    }
    if !options.contains("-r 0") {
        let bytes = if options.contains("ea_inode") {
            5000
        } else {
            700
        };
        images::add_xattr(image, "/plain/file_5", bytes, scratch);
    }
    contents
}

/// The owners of all blocks, one extent per block.
struct Blocks {
    size: u64,
    owners: Vec<Extent>,
}

impl Blocks {
    fn new(map: &Map, dump: &oracles::Dump) -> Blocks {
        let size = dump.number("Block size:").expect("block size");
        let count = dump.number("Block count:").expect("block count");
        let per_block = size / 512;
        let owner = |block: u64| {
            let pieces: Vec<_> = map.pieces(START + block * per_block, per_block).collect();
            assert_eq!(
                pieces.len(),
                1,
                "block {block} has several owners: {pieces:?}"
            );
            pieces[0]
        };
        let extents = map.extents();
        assert_eq!(extents.first().map(|first| first.sector), Some(START));
        assert_eq!(
            extents.last().map(Extent::end),
            Some(START + count * per_block)
        );
        Blocks {
            size,
            owners: (0..count).map(owner).collect(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = (u64, &Extent)> {
        (0..).zip(&self.owners)
    }
}

/// icheck names the inode of each block; testb reports whether the block is allocated.
fn compare_owners(name: &str, image: &Path, blocks: &Blocks, bigalloc: bool) {
    let count = blocks.owners.len() as u64;
    let inodes = oracles::icheck(image, count);
    let in_use = oracles::testb(image, count);
    for (block, owner) in blocks.iter() {
        let at = block as usize;
        assert_eq!(
            owner.inode, inodes[at],
            "{name}: icheck of block {block}: {owner:?}"
        );
        assert_eq!(
            owner.kind != Kind::Free,
            in_use[at],
            "{name}: testb of block {block}: {owner:?}"
        );
        // Only the unused rest of a cluster, and the boot block, are allocated without an owner.
        let nobodys = bigalloc || (block == 0 && blocks.size == 1024);
        assert!(
            owner.kind != Kind::Unmapped || nobodys,
            "{name}: block {block} has no owner"
        );
    }
}

/// dumpe2fs lists the blocks of each group's own metadata.
fn compare_layout(name: &str, dump: &oracles::Dump, blocks: &Blocks) {
    use Kind::*;
    let own = [
        Superblock,
        GroupDesc,
        BlockBitmap,
        InodeBitmap,
        InodeTable,
        Mmp,
    ];
    let layout =
        |(block, owner): (u64, &Extent)| own.contains(&owner.kind).then_some((block, owner.kind));
    let found: BTreeMap<u64, Kind> = blocks.iter().filter_map(layout).collect();
    assert_eq!(found, dump.layout(), "{name}: dumpe2fs");
}

/// The journal's superblock must come first and the fast-commit area last.
fn compare_journal(name: &str, dump: &oracles::Dump, blocks: &Blocks) {
    let of = |kind| {
        blocks
            .iter()
            .filter(move |(_, o)| o.kind == kind)
            .map(|(_, o)| o.file_offset.unwrap())
    };
    let Some(length) = dump.number("Total journal blocks:") else {
        assert_eq!(
            of(Kind::Jbd2Superblock)
                .chain(of(Kind::JournalBlock))
                .count(),
            0,
            "{name}"
        );
        return;
    };
    let fast = dump.number("Fast commit length:").unwrap_or(0);
    let offsets = |range: std::ops::Range<u64>| range.map(|n| n * blocks.size).collect::<Vec<_>>();
    let sorted = |kind| {
        of(kind)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    };
    assert_eq!(sorted(Kind::Jbd2Superblock), [0], "{name}");
    assert_eq!(
        sorted(Kind::JournalBlock),
        offsets(1..length - fast),
        "{name}: fast commits {fast}"
    );
    assert_eq!(
        sorted(Kind::FastCommit),
        offsets(length - fast..length),
        "{name}"
    );
}

/// ncheck's output must be exactly our names, byte for byte.
fn compare_ncheck(name: &str, image: &Path, map: &Map) {
    let numbers: Vec<u64> = (3..6000)
        .filter(|&number| map.inode(number).is_some())
        .collect();
    let said = oracles::ncheck(image, &numbers);
    let mut length = 0;
    for &number in &numbers {
        for path in map.paths(number) {
            let record = [format!("{number}\t").as_bytes(), &as_ncheck(&path), b"\n"].concat();
            let shown = String::from_utf8_lossy(&record).into_owned();
            assert!(
                oracles::find(&said, &record).is_some(),
                "{name}: ncheck lacks {shown:?}"
            );
            length += record.len();
        }
    }
    assert_eq!(length, said.len(), "{name}: ncheck says more");
}

/// Converts a path to ncheck's form: `//name` in the root, and at most the last 33 components.
fn as_ncheck(path: &[u8]) -> Vec<u8> {
    let slashes: Vec<usize> = (0..path.len()).filter(|&at| path[at] == b'/').collect();
    match slashes.len() {
        1 => [b"/", path].concat(),
        0..=33 => path.to_vec(),
        parts => [b"...", &path[slashes[parts - 33]..]].concat(),
    }
}

/// Compares names, kinds, and the offset of every block in its file with the kernel's directory walk and FIEMAP.
fn compare_contents(
    name: &str,
    map: &Map,
    seen: &[Seen],
    fiemap: &BTreeMap<u64, BTreeMap<u64, u64>>,
    blocks: &Blocks,
) {
    let mut paths: BTreeMap<u64, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for entry in seen {
        paths
            .entry(entry.inode)
            .or_default()
            .insert(entry.path.clone());
    }
    for (&inode, paths) in &paths {
        let ours: BTreeSet<_> = map.paths(inode).into_iter().collect();
        assert_eq!(&ours, paths, "{name}: paths of inode {inode}");
        assert!(map.path(inode).is_some_and(|path| paths.contains(&path)));
    }
    let mut found: BTreeMap<u64, BTreeMap<u64, u64>> = fiemap
        .keys()
        .map(|&inode| (inode, BTreeMap::new()))
        .collect();
    for (block, owner) in blocks.iter() {
        if let (Kind::Regular | Kind::Directory, Some(map)) =
            (owner.kind, found.get_mut(&owner.inode))
        {
            map.insert(block, owner.file_offset.expect("offset") / blocks.size);
        }
    }
    assert_eq!(&found, fiemap, "{name}: FIEMAP");
    let types: BTreeMap<u64, _> = seen
        .iter()
        .map(|seen| (seen.inode, seen.file_type))
        .collect();
    for (block, owner) in blocks.iter() {
        let Some(file_type) = types.get(&owner.inode) else {
            continue;
        };
        let fits = match owner.kind {
            Kind::Regular => file_type.is_file(),
            Kind::Directory => file_type.is_dir(),
            Kind::Symlink => file_type.is_symlink(),
            kind => [Kind::ExtentTree, Kind::Xattr].contains(&kind),
        };
        assert!(fits, "{name}: block {block} of {file_type:?}: {owner:?}");
    }
}

fn every_kind_is_somewhere() {
    let scratch = tempfile::tempdir().expect("scratch folder");
    let image = &scratch.path().join("image");
    make(
        image,
        "-t ext4 -b 1024 -O mmp,quota,orphan_file,fast_commit",
        32,
        Unmounted,
        scratch.path(),
    );
    let map = ext4::build(image, START).expect("map");
    let found: BTreeSet<Kind> = map.extents().iter().map(|extent| extent.kind).collect();
    use Kind::*;
    // The log's own blocks are tested elsewhere.
    let inside = [Descriptor, MetadataCopy, DataCopy, Commit, Revoke];
    let of_f2fs = [Checkpoint, Sit, Nat, Ssa];
    let of_fat = [BootRecord, Fsinfo, Fat];
    let of_btrfs = [Btree];
    let others = [&inside[..], &of_f2fs, &of_fat, &of_btrfs].concat();
    let all = Kind::ALL
        .iter()
        .copied()
        .filter(|kind| !others.contains(kind) && !kind.is_node());
    assert_eq!(found, all.collect());
    let xattr = map
        .extents()
        .iter()
        .find(|extent| extent.kind == Xattr)
        .expect("xattr");
    let acl = oracles::ask(image, "stat /plain/file_5");
    assert!(
        acl.contains(&format!("File ACL: {}\n", (xattr.sector - START) / 2)),
        "{acl}"
    );
}

fn an_open_unlinked_file_keeps_its_blocks_and_has_no_name() {
    let scratch = tempfile::tempdir().expect("scratch folder");
    let (image, snapshot) = (
        scratch.path().join("image"),
        scratch.path().join("snapshot"),
    );
    images::mke2fs(&image, "-t ext4 -b 1024", 16, None);
    let mount = Mount::new(&image, &scratch.path().join("mnt"));
    let path = mount.dir.join("gone");
    std::fs::write(&path, [1; 10_000]).expect("write");
    let open = std::fs::File::open(&path).expect("open");
    mount.sync();
    let number = std::os::unix::fs::MetadataExt::ino(&open.metadata().expect("metadata"));
    std::fs::remove_file(&path).expect("remove");
    mount.sync();
    let device = images::run(
        images::tool("findmnt")
            .args(["-no", "SOURCE"])
            .arg(&mount.dir),
    );
    let device = String::from_utf8_lossy(&device).trim().to_owned();
    oracles::e2image(Path::new(&device), &snapshot);
    let opened = Image::open(&snapshot).expect("snapshot");
    let map = ext4::build_by(State::Mounted, &opened, START, &|_| {}).expect("map");
    let sectors = map
        .extents()
        .iter()
        .filter(|e| e.inode == number && e.kind == Kind::Regular);
    assert_eq!(sectors.map(|extent| extent.sectors).sum::<u64>(), 20);
    assert_eq!((map.path(number), map.paths(number).len()), (None, 0));
    // The same holds for a map of the mounted device itself.
    let live = ext4::build(Path::new(&device), START).expect("map of the device");
    assert_eq!(live.extents(), map.extents());
    drop(open);
}

fn bad_blocks_belong_to_their_inode_and_hold_nothing() {
    let scratch = tempfile::tempdir().expect("scratch folder");
    let (image, list) = (scratch.path().join("image"), scratch.path().join("bad"));
    std::fs::write(&list, "9000\n9001\n9100\n").expect("list");
    images::mke2fs(
        &image,
        &format!("-t ext4 -b 1024 -l {}", list.display()),
        16,
        None,
    );
    let map = ext4::build(&image, START).expect("map");
    for block in [9000, 9001, 9100] {
        let piece = map.pieces(START + block * 2, 2).next().expect("piece");
        assert_eq!((piece.kind, piece.inode), (Kind::Unmapped, 1));
    }
    assert_eq!(map.notices(), [""; 0]);
}

fn the_value_of_an_attribute_in_an_inode_of_its_own_is_xattr() {
    let scratch = tempfile::tempdir().expect("scratch folder");
    let image = &scratch.path().join("image");
    make(
        image,
        "-t ext4 -b 1024 -O ea_inode",
        16,
        Unmounted,
        scratch.path(),
    );
    let map = ext4::build(image, START).expect("map");
    let owner = oracles::inode_of(image, "/plain/file_5");
    let value = |e: &&Extent| e.kind == Kind::Xattr && e.inode != owner;
    // debugfs stores one block of it.
    assert_eq!(
        map.extents()
            .iter()
            .filter(value)
            .map(|e| e.sectors)
            .sum::<u64>(),
        2
    );
}

fn names_of_an_encrypted_directory_are_veiled() {
    let scratch = tempfile::tempdir().expect("scratch folder");
    let image = &scratch.path().join("image");
    make(
        image,
        "-t ext4 -b 1024 -O encrypt",
        16,
        Unmounted,
        scratch.path(),
    );
    let file = oracles::inode_of(image, "/plain/file_5");
    let flag = ["-w", "-R", "set_inode_field /plain flags 0x80800"];
    images::run(images::tool("debugfs").args(flag).arg(image));
    let map = ext4::build(image, START).expect("map");
    assert_eq!(
        map.path(file).as_deref(),
        Some(&b"/plain/<encrypted:66696c655f35>"[..])
    );
}

fn an_odd_image_path_is_no_option_of_debugfs() {
    let scratch = tempfile::tempdir().expect("scratch folder");
    let image = &scratch.path().join("-x?offset=1024 \"\n");
    images::mke2fs(&scratch.path().join("image"), "-t ext4", 8, None);
    std::fs::rename(scratch.path().join("image"), image).expect("rename");
    let map = ext4::build(image, 0).expect("map");
    assert_eq!(map.notices(), [""; 0]);
    assert!(map.extents().iter().any(|extent| extent.inode == 2));
}
