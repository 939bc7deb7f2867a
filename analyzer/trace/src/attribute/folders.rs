// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the directories that belong to a store of the [table](mostrace_map::stores), by a directory's own name or by the
//! files in it, seen in the trace or at the snapshot.

use mostrace_map::Map;
use mostrace_map::stores::{Mark, Name, STORES, Store, StoreFile, depth, is_name, may_end};

use super::HashMap;

/// Stores by the paths of directories whose contents identify them; paths have no `/` at the end.
#[derive(Default)]
pub(super) struct Folders(HashMap<Box<[u8]>, &'static Store>);

/// The marks' names that were seen, by directory and the mark's index. A bit stands for each name: first the names it
/// requires, then those it forbids.
type Seen = HashMap<(Box<[u8]>, usize), u32>;

impl Folders {
    /// Finds the stores' directories by the paths of the trace and of the snapshot.
    pub fn find<'p>(paths: impl Iterator<Item = &'p [u8]>, map: Option<&Map>) -> Folders {
        let mut seen = Seen::default();
        for path in paths.filter(|path| path.starts_with(b"/")) {
            see(path, &mut seen);
        }
        for (number, name) in map.into_iter().flat_map(Map::names) {
            let mut names = marks().flat_map(|(_, mark)| names(mark));
            if names.any(|pieces| may_end(pieces, &name.name))
                && let Some(path) = map.and_then(|map| map.path_of(number, name))
            {
                see(&path, &mut seen);
            }
        }
        let mut folders: Vec<(usize, Box<[u8]>)> = seen
            .into_iter()
            .filter(|((_, at), seen)| {
                let mark = marks().nth(*at);
                mark.is_some_and(|(_, mark)| is_whole(mark, *seen, map.is_some()))
            })
            .map(|((folder, at), _)| (at, folder))
            .collect();
        // If a directory has marks of several stores, the table's first store wins.
        folders.sort_by(|a, b| b.cmp(a));
        let store = |at: usize| marks().nth(at).map(|(store, _)| store);
        let folders = folders
            .into_iter()
            .filter_map(|(at, folder)| Some((folder, store(at)?)));
        Folders(folders.collect())
    }

    /// Returns the role of a file in the store whose directory it lies in, at any depth; the deepest directory with an
    /// answer counts.
    pub fn file(&self, path: &[u8]) -> Option<StoreFile> {
        let slashes = path.iter().enumerate().filter(|(_, b)| **b == b'/');
        let mut slashes = slashes.map(|(at, _)| at).rev();
        slashes.find_map(|at| {
            let (folder, name) = (path.get(..at)?, path.get(at.checked_add(1)?..)?);
            let by_marks = self.0.get(folder).copied();
            let by_name = STORES.iter().filter(|store| is_called(store, folder));
            let mut stores = by_marks.into_iter().chain(by_name);
            stores.find_map(|store| StoreFile::find(store, name))
        })
    }
}

/// Returns true if the directory's own name identifies the store.
fn is_called(store: &Store, folder: &[u8]) -> bool {
    let name = folder.rsplit(|&b| b == b'/').next().unwrap_or_default();
    store.folders.iter().any(|pieces| is_name(pieces, name))
}

/// Returns all marks of the table.
fn marks() -> impl Iterator<Item = (&'static Store, &'static Mark)> {
    STORES
        .iter()
        .flat_map(|store| store.marks.iter().map(move |mark| (store, mark)))
}

fn names(mark: &'static Mark) -> impl Iterator<Item = Name> {
    mark.has.iter().chain(mark.lacks).copied()
}

/// Notes which marks have a name that matches the path.
fn see(path: &[u8], seen: &mut Seen) {
    for (at, (_, mark)) in marks().enumerate() {
        for (nth, pieces) in (0..u32::BITS).zip(names(mark)) {
            if let Some((folder, below)) = split(path, depth(pieces))
                && is_name(pieces, below)
            {
                *seen.entry((folder.into(), at)).or_default() |= 1 << nth;
            }
        }
    }
}

/// Returns true if all required names of a mark were seen and none of its forbidden ones, whose absence only a snapshot
/// proves.
fn is_whole(mark: &Mark, seen: u32, are_all_known: bool) -> bool {
    let has = (0..u32::BITS)
        .zip(mark.has)
        .all(|(nth, _)| seen >> nth & 1 != 0);
    let lacks = seen >> mark.has.len() == 0 && are_all_known;
    has && (mark.lacks.is_empty() || lacks)
}

/// Splits a path into the directory that lies `folders` levels above the path's own and the name below it.
fn split(path: &[u8], folders: usize) -> Option<(&[u8], &[u8])> {
    let slashes = path.iter().enumerate().rev().filter(|(_, b)| **b == b'/');
    let (at, _) = slashes.into_iter().nth(folders)?;
    Some((path.get(..at)?, path.get(at.checked_add(1)?..)?))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap as Inodes;

    use mostrace_map::{Inode, Name};

    use super::*;

    /// Returns the roles of the `traced` paths; the `snapshot`'s paths, if any, exist at the snapshot.
    fn roles(traced: &[&str], snapshot: Option<&[&str]>) -> Vec<&'static str> {
        let map = snapshot.map(map);
        let paths = traced.iter().map(|path| path.as_bytes());
        let folders = Folders::find(paths, map.as_ref());
        let role = |path: &&str| folders.file(path.as_bytes()).map_or("", StoreFile::as_str);
        traced.iter().map(role).collect()
    }

    /// Makes a map of these paths, with an inode for each directory in them.
    fn map(paths: &[&str]) -> Map {
        let mut numbers = Inodes::from([(String::new(), 2)]);
        let mut inodes = Inodes::new();
        let mut name = |path: &str| {
            let mut parent = 2;
            let mut so_far = String::new();
            for part in path.split('/').skip(1) {
                so_far = format!("{so_far}/{part}");
                let next = numbers.len() as u64 + 2;
                let number = *numbers.entry(so_far.clone()).or_insert(next);
                let names = vec![Name {
                    parent,
                    name: part.as_bytes().into(),
                }];
                let inode = Inode {
                    names,
                    ..Inode::default()
                };
                inodes.insert(number, inode);
                parent = number;
            }
        };
        paths.iter().for_each(|path| name(path));
        let root = Name {
            parent: 2,
            name: Box::default(),
        };
        let root = Inode {
            names: vec![root],
            ..Inode::default()
        };
        inodes.insert(2, root);
        Map::new(0, 8, Vec::new(), inodes)
    }

    const HEX: &str = "5a1b0c7d9e8f7a6b5c4d3e2f1a0b9c8d7e6f5a";

    #[test]
    fn a_name_alone_is_no_role() {
        let alone = [
            "/x/000004.log",
            "/x/data.mdb",
            "/x/index",
            "/x/1259",
            "/x/a.xml",
            "/x/t.ibd",
            "/x/a.pb",
            "/x/a.realm",
        ];
        assert_eq!(roles(&alone, None), [""; 8]);
        assert_eq!(roles(&alone, Some(&[])), [""; 8]);
    }

    #[test]
    fn lmdb_is_data_beside_its_lock() {
        let both = ["/store/data.mdb", "/store/lock.mdb"];
        assert_eq!(roles(&both, None), ["lmdb_data", "lmdb_lock"]);
        // The files lie in the root directory, and only the snapshot has the lock.
        assert_eq!(roles(&["/data.mdb"], Some(&["/lock.mdb"])), ["lmdb_data"]);
        assert_eq!(roles(&["/a/data.mdb"], Some(&["/b/lock.mdb"])), [""]);
    }

    #[test]
    fn rocksdb_has_all_of_leveldb_and_options() {
        let written = [
            "/r/000004.log",
            "/r/000009.sst",
            "/r/MANIFEST-000005",
            "/r/LOG",
            "/r/film",
        ];
        let level = ["/r/CURRENT", "/r/LOCK"];
        assert_eq!(
            roles(&written, Some(&level)),
            [
                "leveldb_wal",
                "leveldb_table",
                "leveldb_manifest",
                "leveldb_other",
                ""
            ]
        );
        let rocks = ["/r/CURRENT", "/r/LOCK", "/r/IDENTITY", "/r/OPTIONS-000007"];
        assert_eq!(
            roles(&written, Some(&rocks)),
            [
                "rocksdb_wal",
                "rocksdb_table",
                "rocksdb_manifest",
                "rocksdb_other",
                ""
            ]
        );
        // Without a snapshot, the absence of OPTIONS files is unknown.
        let traced = ["/r/000004.log", "/r/MANIFEST-000005", "/r/CURRENT"];
        assert_eq!(roles(&traced, None), [""; 3]);
        assert_eq!(
            roles(&traced, Some(&[])),
            ["leveldb_wal", "leveldb_manifest", "leveldb_other"]
        );
    }

    #[test]
    fn postgres_is_known_by_its_control_file_or_its_log() {
        let written = [
            "/pg/base/5/16385",
            "/pg/base/5/16385.1",
            "/pg/base/5/16385_fsm",
            "/pg/base/5/16385_vm",
            "/pg/global/1262",
            "/pg/pg_wal/000000010000000000000003",
            "/pg/pg_xact/0000",
            "/pg/pg_logical/replorigin_checkpoint",
            "/pg/README",
        ];
        let roles_of = [
            "postgres_relation",
            "postgres_relation",
            "postgres_fsm",
            "postgres_vm",
            "postgres_relation",
            "postgres_wal",
            "postgres_xact",
            "postgres_other",
            "",
        ];
        assert_eq!(roles(&written, None), roles_of);
        let marks = ["/pg/PG_VERSION", "/pg/global/pg_control"];
        assert_eq!(roles(&written[..1], Some(&marks)), ["postgres_relation"]);
        let space = ["/space/PG_15_202209061/5/16390", "/space/x/5/16390"];
        assert_eq!(roles(&space, None), ["postgres_relation", ""]);
    }

    #[test]
    fn innodb_is_known_by_its_system_tablespace() {
        let written = [
            "/m/shop/orders.ibd",
            "/m/ibdata1",
            "/m/#innodb_redo/#ib_redo10",
            "/m/ib_logfile0",
            "/m/undo_001",
            "/m/#ib_16384_0.dblwr",
            "/m/ibtmp1",
            "/m/binlog.000001",
        ];
        assert_eq!(
            roles(&written, None),
            [
                "innodb_tablespace",
                "innodb_tablespace",
                "innodb_redo",
                "innodb_redo",
                "innodb_undo",
                "innodb_doublewrite",
                "innodb_temp",
                "",
            ]
        );
    }

    #[test]
    fn androids_stores_are_known_by_their_folders() {
        let written = [
            "/data/a.b/shared_prefs/a.xml",
            "/data/a.b/shared_prefs/a.xml.bak",
            "/data/a.b/files/datastore/s.preferences_pb",
            "/data/a.b/files/datastore/s.preferences_pb.tmp",
            "/data/a.b/files/datastore/user.pb",
            "/data/a.b/files/datastore/user.pb.tmp",
            "/data/a.b/files/user.pb",
            "/data/a.b/files/default.realm",
            "/data/a.b/files/default.realm.lock",
            "/data/a.b/files/default.realm.note",
        ];
        assert_eq!(
            roles(&written, None),
            [
                "shared_prefs",
                "shared_prefs_backup",
                "datastore",
                "datastore_temp",
                "datastore",
                "datastore_temp",
                "",
                "realm",
                "realm_lock",
                "realm_note",
            ]
        );
    }

    #[test]
    fn git_is_known_by_its_folder_or_by_a_head_beside_objects() {
        let object = format!("/w/.git/objects/0a/{HEX}");
        let pack = format!("/w/.git/objects/pack/pack-00{HEX}.pack");
        let index_of_pack = format!("/w/.git/objects/pack/pack-00{HEX}.idx");
        let written = [
            &object,
            &pack,
            &index_of_pack,
            "/w/.git/index",
            "/w/.git/index.lock",
            "/w/.git/refs/heads/fix-journal",
            "/w/.git/logs/HEAD",
            "/w/.git/COMMIT_EDITMSG",
            "/w/index",
        ];
        assert_eq!(
            roles(&written, None),
            [
                "git_object",
                "git_pack",
                "git_pack_index",
                "git_index",
                "git_index",
                "git_ref",
                "git_log",
                "git_other",
                "",
            ]
        );
        // A bare repository may have any name.
        let object = format!("/bare/objects/0a/{HEX}");
        let bare = [&object[..], "/bare/HEAD", "/bare/config"];
        assert_eq!(roles(&bare, None), ["git_object", "git_ref", "git_other"]);
        assert_eq!(roles(&bare[1..], None), [""; 2]);
    }
}
