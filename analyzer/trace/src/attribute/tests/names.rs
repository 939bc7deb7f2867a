// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names that a block gets, and names that it must not get.

use super::*;
use crate::attribute::files::Files;
use mostrace_map::class::{Provenance, Role};

const BLOCK: u32 = 4096;

/// Returns the answers for one block at sector 24 with this file entry.
fn named(entry: FileEntry, map: Option<&Map>) -> (Option<String>, Provenance, Option<u64>, Kind) {
    let a = attribute(
        &[write(0, 24, BLOCK)],
        vec![process(0, 24, BLOCK)],
        vec![entry],
        map,
    );
    let [row] = a.rows[..] else {
        panic!("{:?}", a.rows)
    };
    let inode = a.file(&row).and_then(|f| f.inode);
    (
        path(&a, &row),
        a.provenance(&row).unwrap(),
        inode,
        row.kind.unwrap(),
    )
}

fn with(entry: FileEntry, change: impl FnOnce(&mut RawFile)) -> FileEntry {
    let mut entry = entry;
    change(&mut entry.raw);
    entry
}

#[test]
fn the_live_name_wins_over_the_snapshot() {
    let map = map();
    let entry = || file(0, 24, BLOCK, "old-name");
    let live = |path: &str, inode, kind| (Some(path.into()), Provenance::Live, Some(inode), kind);
    assert_eq!(
        named(entry(), Some(&map)),
        live("/old-name", 12, Kind::Regular)
    );
    assert_eq!(named(entry(), None), live("old-name", 12, Kind::Regular));
    // The number may have been another directory's then.
    let in_sub = with(entry(), |raw| raw.parent = 13.into());
    assert_eq!(
        named(in_sub, Some(&map)),
        live("old-name", 12, Kind::Regular)
    );
    let whole = with(file(0, 24, BLOCK, "/gone/old-name"), |raw| {
        raw.parent = 13.into()
    });
    assert_eq!(
        named(whole, Some(&map)),
        live("/gone/old-name", 12, Kind::Regular)
    );
    // The same file has this name there at the snapshot.
    let x = |generation: u32| {
        with(file(0, 24, BLOCK, "x"), |raw| {
            raw.ino = 14.into();
            raw.parent = 13.into();
            raw.generation = generation.into();
        })
    };
    let at_snapshot = (
        Some("/sub/x".into()),
        Provenance::Snapshot,
        Some(14),
        Kind::Regular,
    );
    assert_eq!(named(x(5), Some(&map)), at_snapshot);
    assert_eq!(named(x(4), Some(&map)), live("x", 14, Kind::Regular));
    let no_parent = with(entry(), |raw| raw.parent = 0.into());
    assert_eq!(
        named(no_parent, Some(&map)),
        live("old-name", 12, Kind::Regular)
    );
    // The directory is gone, and its number was given to a regular file.
    let reused = with(entry(), |raw| raw.parent = 12.into());
    assert_eq!(
        named(reused, Some(&map)),
        live("old-name", 12, Kind::Regular)
    );
}

/// A directory's number is the snapshot's from the first file on that is still in it at the snapshot.
#[test]
fn a_folders_number_is_known_by_a_file_that_stayed_in_it() {
    let map = map();
    let seen = |n: u64, ino: u64, generation: u32, name| {
        with(file(n * 1000, 24, BLOCK, name), |raw| {
            raw.ino = ino.into();
            raw.generation = generation.into();
            raw.parent = 13.into();
        })
    };
    let files = vec![
        seen(0, 50, 1, "x-journal"),
        seen(1, 14, 5, "x"),
        seen(2, 50, 2, "x-journal"),
    ];
    let writes: Vec<_> = (0..3).map(|n| write(n * 1000, 24, BLOCK)).collect();
    let a = attribute(&writes, vec![], files, Some(&map));
    let found: Vec<_> = a
        .rows
        .iter()
        .map(|r| (path(&a, r), a.provenance(r)))
        .collect();
    let snapshot = |path: &str| (Some(path.into()), Some(Provenance::Snapshot));
    assert_eq!(
        found,
        [
            (Some("x-journal".into()), Some(Provenance::Live)),
            snapshot("/sub/x"),
            snapshot("/sub/x-journal"),
        ]
    );
}

#[test]
fn without_a_name_the_snapshot_speaks_for_the_same_generation_only() {
    let map = map();
    let same = file(0, 24, BLOCK, "");
    let found = (
        Some("/a.db".into()),
        Provenance::Snapshot,
        Some(12),
        Kind::Regular,
    );
    assert_eq!(named(same, Some(&map)), found);
    // The block and the inode number were given to another file since, which must not be named.
    let gone = with(file(0, 24, BLOCK, ""), |raw| raw.generation = 99.into());
    assert_eq!(
        named(gone, Some(&map)),
        (None, Provenance::Unknown, Some(12), Kind::Regular)
    );
    let other = with(file(0, 24, BLOCK, ""), |raw| raw.ino = 999.into());
    assert_eq!(
        named(other, Some(&map)),
        (None, Provenance::Unknown, Some(999), Kind::Regular)
    );
    let no_map = (None, Provenance::Unknown, Some(12), Kind::Regular);
    assert_eq!(named(file(0, 24, BLOCK, ""), None), no_map);
}

#[test]
fn the_map_tells_what_the_inode_is() {
    let map = map();
    let folder = with(file(0, 24, BLOCK, ""), |raw| raw.ino = 13.into());
    let found = (
        Some("/sub".into()),
        Provenance::Snapshot,
        Some(13),
        Kind::Directory,
    );
    assert_eq!(named(folder, Some(&map)), found);
    let reused = with(file(0, 24, BLOCK, ""), |raw| {
        raw.ino = 13.into();
        raw.generation = 2.into();
    });
    assert_eq!(
        named(reused, Some(&map)),
        (None, Provenance::Unknown, Some(13), Kind::Regular)
    );
}

#[test]
fn a_name_seen_at_another_time_names_the_same_generation() {
    let writes = [
        write(0, 24, BLOCK),
        write(1000, 32, BLOCK),
        write(2000, 40, BLOCK),
    ];
    let processes = [(0, 24), (1000, 32), (2000, 40)].map(|(t, s)| process(t, s, BLOCK));
    let other = with(file(2000, 40, BLOCK, ""), |raw| raw.generation = 2.into());
    let files = vec![
        file(0, 24, BLOCK, ""),
        file(1000, 32, BLOCK, "x-journal"),
        other,
    ];
    let a = attribute(&writes, processes.into(), files, None);
    let found: Vec<_> = a
        .rows
        .iter()
        .map(|r| (path(&a, r), a.provenance(r).unwrap()))
        .collect();
    assert_eq!(
        found,
        [
            (Some("x-journal".into()), Provenance::Live),
            (Some("x-journal".into()), Provenance::Live),
            (None, Provenance::Unknown),
        ]
    );
}

#[test]
fn a_companion_makes_a_database() {
    let names = [
        "notes",
        "notes-wal",
        "photo",
        "big.tmp",
        "big.tmp-mj0A1B2C3D4",
        "k-journal",
        "",
    ];
    let mut writes = Vec::new();
    let mut files = Vec::new();
    for (n, name) in (0..).zip(names) {
        writes.push(write(n * 1000, n * 8, BLOCK));
        files.push(with(file(n * 1000, n * 8, BLOCK, name), |raw| {
            raw.ino = (100 + n).into()
        }));
    }
    let a = attribute(&writes, vec![], files, None);
    let roles: Vec<_> = a.rows.iter().map(|r| a.file(r).unwrap().role).collect();
    assert_eq!(
        roles,
        [
            Some(Role::Db),
            Some(Role::Wal),
            Some(Role::Other),
            Some(Role::Db),
            Some(Role::SuperJournal),
            Some(Role::RollbackJournal),
            None,
        ]
    );
}

/// A file of another filesystem has inode numbers of its own.
#[test]
fn another_filesystem_lends_no_inode_number() {
    let map = map();
    let other = 7 << 20 | 1;
    let read = |s_dev: u32| {
        let mut table = header().to_vec();
        table.extend(file_record(&with(file(0, 24, BLOCK, "x.db"), |raw| {
            raw.s_dev = s_dev.into();
        })));
        let mut reader = TableReader::new(&table[..], Path::new("table"), false).unwrap();
        let attributor = Attributor::new(vec![&mut reader], Some(&map)).of_filesystem(7 << 20);
        let mut attributor = attributor;
        let (_, rows) = attributor.push(&write(0, 24, BLOCK)).unwrap();
        let id = rows[0].file;
        let names = attributor.finish(None).unwrap();
        let file = names.file(id).unwrap();
        (file.inode, file.path.as_deref().map(<[u8]>::to_vec))
    };
    assert_eq!(read(7 << 20), (Some(12), Some(b"/x.db".to_vec())));
    assert_eq!(read(other), (None, Some(b"x.db".to_vec())));
}

/// A temporary file is renamed to a name that the user did not ask for, and keeps its old name for what it wrote before.
#[test]
fn a_withheld_name_is_not_that_of_another_time() {
    let before = file(0, 24, BLOCK, "x.tmp");
    let after = with(file(1000, 32, BLOCK, ""), |raw| {
        raw.head.flags = Flags::NAME_WITHHELD
    });
    let gone = with(file(2000, 40, BLOCK, ""), |raw| {
        raw.head.flags = Flags::UNLINKED
    });
    let writes = [
        write(0, 24, BLOCK),
        write(1000, 32, BLOCK),
        write(2000, 40, BLOCK),
    ];
    let a = attribute(&writes, vec![], vec![before, after, gone], None);
    let found: Vec<_> = a.rows.iter().map(|row| path(&a, row)).collect();
    let name = Some("x.tmp".to_owned());
    assert_eq!(found, [name.clone(), None, name]);
}

/// Dentries may have names that no directory has.
#[test]
fn what_a_dentry_is_called_need_not_be_a_name() {
    let path = |name: &str, change: fn(&mut RawFile)| {
        named(with(file(0, 24, BLOCK, name), change), None).0
    };
    assert_eq!(path("/", |_| ()), None);
    assert_eq!(path("#12", |raw| raw.head.flags = Flags::UNLINKED), None);
    assert_eq!(path("#12", |_| ()), Some("#12".into()));
    assert_eq!(
        path("#13", |raw| raw.head.flags = Flags::UNLINKED),
        Some("#13".into())
    );
}

/// Makes a map whose `/sub` is an encrypted directory with ciphertext names: 13 is `/sub`, 15 a directory in it, 12 a file
/// in that.
fn encrypted_map() -> Map {
    let inode = |generation, parent, name: &str| Inode {
        generation: Some(generation),
        names: vec![Name {
            parent,
            name: name.as_bytes().into(),
        }],
        ..Inode::default()
    };
    let inodes = HashMap::from([
        (2, inode(0, 2, "")),
        (13, inode(1, 2, "sub")),
        (15, inode(3, 13, "<encrypted:00ff>")),
        (12, inode(1, 15, "<encrypted:77>")),
    ]);
    let extents = map().extents().to_vec();
    Map::new(0, 80, extents, inodes)
}

/// Returns the rows' names for one write of each of `files`, where the mounted tree had the names in `tree`.
fn by_tree(files: Vec<FileEntry>, tree: &[FileEntry]) -> Vec<(Option<String>, Provenance)> {
    let map = encrypted_map();
    let writes: Vec<_> = (0..files.len() as u64)
        .map(|n| write(n * 1000, 24, BLOCK))
        .collect();
    let (files, tree) = (
        table(files.iter().map(file_record)),
        table(tree.iter().map(file_record)),
    );
    let reader = |table| TableReader::new(table, Path::new("table"), false).unwrap();
    let (mut files, mut tree) = (reader(&files[..]), reader(&tree[..]));
    let mut attributor = Attributor::new(vec![&mut files], Some(&map))
        .of_filesystem(7 << 20)
        .with_tree(&mut tree)
        .unwrap();
    let mut a = Attributed::default();
    for completion in &writes {
        let (request, rows) = attributor.push(completion).unwrap();
        a.push(request, rows);
    }
    a.names = attributor.finish(None).unwrap();
    let found = a.rows.iter();
    found
        .map(|row| (path(&a, row), a.provenance(row).unwrap()))
        .collect()
}

/// Makes the entry of the mounted tree's path for this inode number and generation.
fn tree(ino: u64, generation: u32, path: &str) -> FileEntry {
    with(file(0, 0, 0, path), |raw| {
        raw.ino = ino.into();
        raw.generation = generation.into();
    })
}

#[test]
fn the_mounted_tree_names_what_is_encrypted_on_the_disk() {
    let nameless = || file(0, 24, BLOCK, "");
    let of = |path: &str, provenance| (Some(path.to_owned()), provenance);
    let ciphertext = of(
        "/sub/<encrypted:00ff>/<encrypted:77>",
        Provenance::Encrypted,
    );
    assert_eq!(
        by_tree(vec![nameless()], &[]),
        std::slice::from_ref(&ciphertext)
    );
    // Another file had the number then.
    let other = tree(12, 2, "/sub/dir/other.db");
    assert_eq!(
        by_tree(vec![nameless()], &[other]),
        std::slice::from_ref(&ciphertext)
    );
    // The name is of another filesystem.
    let foreign = with(tree(12, 1, "/sub/dir/a.db"), |raw| raw.s_dev = 9.into());
    assert_eq!(by_tree(vec![nameless()], &[foreign]), [ciphertext]);
    let known = [tree(12, 1, "/sub/old"), tree(12, 1, "/sub/dir/a.db")];
    assert_eq!(
        by_tree(vec![nameless()], &known),
        [of("/sub/dir/a.db", Provenance::Tree)]
    );
    // The file has its own live name, and its directory the tree's.
    let journal = |at: u64| {
        with(file(at, 24, BLOCK, "a.db-journal"), |raw| {
            raw.ino = 40.into();
            raw.parent = 15.into();
        })
    };
    let stays = with(file(0, 24, BLOCK, "a.db"), |raw| raw.parent = 15.into());
    let folder = [tree(15, 3, "/sub/dir")];
    assert_eq!(
        by_tree(vec![stays, journal(1000)], &folder),
        [
            of("/sub/dir/a.db", Provenance::Tree),
            of("/sub/dir/a.db-journal", Provenance::Tree)
        ]
    );
    // The file was gone at the snapshot, and had its name in the tree before.
    let gone = with(nameless(), |raw| raw.ino = 77.into());
    let known = [tree(77, 1, "/sub/dir/gone")];
    assert_eq!(
        by_tree(vec![gone], &known),
        [of("/sub/dir/gone", Provenance::Tree)]
    );
}

/// A number and a generation are enough to know what the snapshot says of an inode, but not another file that has its number.
#[test]
fn a_numbered_file_is_of_the_snapshots_kind_if_it_is_the_same() {
    let map = map();
    let mut files = Files::new(Some(&map));
    let mut kind = |inode, generation| {
        let file = files.numbered(inode, generation);
        files.kind(file)
    };
    assert_eq!(kind(13, 1), Kind::Directory);
    assert_eq!(kind(13, 7), Kind::Regular);
    assert_eq!(kind(12, 1), Kind::Regular);
}
