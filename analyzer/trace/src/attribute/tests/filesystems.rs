// SPDX-License-Identifier: MIT OR Apache-2.0
//! The differences of f2fs and FAT from ext4.

use super::*;
use mostrace_map::class::Provenance;

const BLOCK: u32 = 4096;

/// A map of 4 KiB blocks, 8 sectors each: a checkpoint; `/a.db` (inode 12, generation `generation`) with a node and a block;
/// a block of a deleted file (inode 15, `/gone`).
fn map(generation: Option<u32>) -> Map {
    let extent = |block: u64, kind, inode, file_offset| Extent {
        sector: block * 8,
        sectors: 8,
        kind,
        inode,
        file_offset,
    };
    let extents = vec![
        extent(0, Kind::Checkpoint, 0, None),
        extent(1, Kind::WarmNode, 12, None),
        extent(2, Kind::Regular, 12, Some(8192)),
        extent(3, Kind::Free, 15, None),
    ];
    let inode = |name: &str, deleted| Inode {
        generation,
        names: vec![Name {
            parent: 3,
            name: name.as_bytes().into(),
        }],
        deleted,
        changed_ns: None,
    };
    let inodes = HashMap::from([
        (3, inode("", false)),
        (12, inode("a.db", false)),
        (15, inode("gone", true)),
    ]);
    Map::new(0, 80, extents, inodes)
}

fn node(sector: u64, what: What, change: impl FnOnce(&mut RawFile)) -> FileEntry {
    let mut entry = file(0, sector, BLOCK, "");
    entry.raw.origin = Origin::NODE;
    entry.raw.what = what;
    entry.raw.parent = 0.into();
    change(&mut entry.raw);
    entry
}

/// Returns kind, path and provenance of one block at `sector`.
fn one(
    sector: u64,
    origin: Origin,
    entry: Option<FileEntry>,
    map: &Map,
) -> (Kind, Option<String>, Provenance) {
    let mut who = process(0, sector, BLOCK);
    who.origin = origin;
    let files = entry.into_iter().collect();
    let a = attribute(&[write(0, sector, BLOCK)], vec![who], files, Some(map));
    let [row] = a.rows[..] else {
        panic!("{:?}", a.rows)
    };
    (
        row.kind.unwrap(),
        path(&a, &row),
        a.provenance(&row).unwrap(),
    )
}

#[test]
fn a_node_is_what_its_footer_says() {
    let map = map(Some(1));
    let named = |kind| (kind, Some("/a.db".to_owned()), Provenance::Snapshot);
    // The node is written where the snapshot has a file's block: nodes move at every write.
    for (what, kind) in [
        (What::HOT_NODE, Kind::HotNode),
        (What::WARM_NODE, Kind::WarmNode),
        (What::FSYNC_NODE, Kind::FsyncNode),
        (What::COLD_NODE, Kind::ColdNode),
    ] {
        let entry = node(16, what, |_| {});
        assert_eq!(one(16, Origin::NODE, Some(entry), &map), named(kind));
    }
    // Another file had that inode number.
    let entry = node(16, What::FSYNC_NODE, |raw| raw.generation = 9.into());
    assert_eq!(
        one(16, Origin::NODE, Some(entry), &map),
        (Kind::FsyncNode, None, Provenance::Unknown)
    );
}

#[test]
fn a_node_without_generation_is_named_by_its_place() {
    let map = map(Some(1));
    let entry = |sector| {
        node(sector, What::WARM_NODE, |raw| {
            raw.head.flags = Flags::NO_GENERATION;
        })
    };
    assert_eq!(
        one(8, Origin::NODE, Some(entry(8)), &map).1,
        Some("/a.db".into())
    );
    assert_eq!(one(16, Origin::NODE, Some(entry(16)), &map).1, None);
}

#[test]
fn a_node_that_could_not_be_read_is_a_node() {
    let map = map(Some(1));
    let unread = |sector| node(sector, What::NODE, |raw| raw.ino = 0.into());
    let named = (Kind::WarmNode, Some("/a.db".into()), Provenance::Snapshot);
    let nameless = (Kind::Node, None, Provenance::Live);
    assert_eq!(one(8, Origin::NODE, Some(unread(8)), &map), named);
    assert_eq!(one(16, Origin::NODE, Some(unread(16)), &map), nameless);
    assert_eq!(one(8, Origin::NODE, None, &map), named);
    assert_eq!(one(16, Origin::NODE, None, &map), nameless);
}

#[test]
fn meta_pages_are_what_the_layout_says() {
    let map = map(Some(1));
    assert_eq!(
        one(0, Origin::META, None, &map),
        (Kind::Checkpoint, None, Provenance::Layout)
    );
    // GC moved a file's block without reading it.
    assert_eq!(
        one(16, Origin::META, None, &map),
        (Kind::Regular, Some("/a.db".into()), Provenance::Snapshot)
    );
}

#[test]
fn without_generations_the_place_decides() {
    let map = map(None);
    let entry = |offset: u64| {
        let mut entry = file(0, 16, BLOCK, "");
        entry.raw.generation = 77.into();
        entry.raw.offset = offset.into();
        entry
    };
    assert_eq!(
        one(16, Origin::FILE, Some(entry(8192)), &map),
        (Kind::Regular, Some("/a.db".into()), Provenance::Snapshot)
    );
    // The same number occurs at another place: the file may be an earlier one.
    assert_eq!(
        one(16, Origin::FILE, Some(entry(0)), &map),
        (Kind::Regular, None, Provenance::Unknown)
    );
}

#[test]
fn one_piece_in_its_place_names_the_whole_file() {
    let map = map(None);
    let entry = |t, sector, offset: u64| {
        let mut entry = file(t, sector, BLOCK, "");
        entry.raw.generation = 77.into();
        entry.raw.offset = offset.into();
        entry
    };
    let writes = [write(0, 40, BLOCK), write(1000, 16, BLOCK)];
    let who = [process(0, 40, BLOCK), process(1000, 16, BLOCK)];
    let files = vec![entry(0, 40, 0), entry(1000, 16, 8192)];
    let a = attribute(&writes, who.into(), files, Some(&map));
    let names: Vec<_> = a.rows.iter().map(|row| path(&a, row)).collect();
    assert_eq!(names, [Some("/a.db".into()), Some("/a.db".into())]);
}

#[test]
fn a_passing_number_leads_nowhere() {
    let map = map(None);
    let mut entry = file(0, 16, BLOCK, "x-journal");
    entry.raw.head.flags = Flags::INO_PASSING;
    entry.raw.offset = 8192.into();
    entry.raw.parent = 3.into();
    assert_eq!(
        one(16, Origin::FILE, Some(entry.clone()), &map),
        (Kind::Regular, Some("x-journal".into()), Provenance::Live)
    );
    entry.name.clear();
    assert_eq!(one(16, Origin::FILE, Some(entry), &map).1, None);
}

/// Plain tracepoints tell no generation, and f2fs writes a quota file to another place each time.
#[test]
fn a_quota_file_is_known_by_its_number() {
    let quota = |inode| Extent {
        sector: 8,
        sectors: 8,
        kind: Kind::Quota,
        inode,
        file_offset: Some(0),
    };
    let map = Map::new(0, 80, vec![quota(4)], HashMap::new());
    for (ino, expected) in [(4, Kind::Quota), (12, Kind::Regular)] {
        let mut entry = file(0, 32, BLOCK, "");
        entry.raw.ino = ino.into();
        entry.raw.head.flags = Flags::NO_GENERATION;
        assert_eq!(one(32, Origin::FILE, Some(entry.clone()), &map).0, expected);
        entry.raw.head.flags = Flags::INO_PASSING;
        assert_eq!(one(32, Origin::FILE, Some(entry), &map).0, Kind::Regular);
    }
}

#[test]
fn a_deleted_file_owns_nothing() {
    let map = map(None);
    assert_eq!(
        one(24, Origin::UNKNOWN, None, &map),
        (Kind::Free, None, Provenance::Unknown)
    );
}

#[test]
fn a_directory_is_known_live() {
    let map = map(Some(1));
    let mut entry = file(0, 32, BLOCK, "");
    entry.raw.ino = 99.into();
    entry.raw.what = What::DIRECTORY;
    assert_eq!(
        one(32, Origin::FILE, Some(entry), &map),
        (Kind::Directory, None, Provenance::Unknown)
    );
}

/// Attributes a direct node of inode 12 between two sightings of it; returns the names of the three rows.
fn between(before: u32, after: Option<u32>, map: Option<&Map>) -> [Option<String>; 3] {
    let data = |t, sector, generation: u32, name| {
        let mut entry = file(t, sector, BLOCK, name);
        entry.raw.generation = generation.into();
        entry
    };
    let mut direct = file(1000, 48, BLOCK, "");
    direct.raw.origin = Origin::NODE;
    direct.raw.what = What::FSYNC_NODE;
    direct.raw.head.flags = Flags::NO_GENERATION;
    let mut files = vec![data(0, 40, before, "x-wal"), direct];
    let mut writes = vec![write(0, 40, BLOCK), write(1000, 48, BLOCK)];
    if let Some(after) = after {
        files.push(data(2000, 56, after, ""));
        writes.push(write(2000, 56, BLOCK));
    }
    let a = attribute(&writes, vec![], files, map);
    let mut names = a.rows.iter().map(|row| path(&a, row));
    std::array::from_fn(|_| names.next().flatten())
}

#[test]
fn a_node_between_two_sightings_of_a_file_is_its_own() {
    let name = || Some("x-wal".to_owned());
    assert_eq!(between(7, Some(7), None), [name(), name(), name()]);
    // The number may have been reused in between.
    assert_eq!(between(7, Some(8), None), [name(), None, None]);
    assert_eq!(between(7, None, None), [name(), None, None]);
    // The snapshot is a sighting too.
    let names = |generation| between(7, None, Some(&map(Some(generation))));
    assert_eq!(names(7), [name(), name(), None]);
    assert_eq!(names(8), [name(), None, None]);
}
