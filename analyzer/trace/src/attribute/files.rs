// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of a trace: every inode under every name it was seen with, each kept once.

use std::collections::HashSet;

use mostrace_bundle::entry::{FileRef, Flags, NONE, Origin, RawFile, RawFreed, What};

use super::HashMap;
use super::file::{File, FileId};
use super::file_list::FileList;
use super::name::Name;
use super::sightings::Sightings;
use mostrace_map::Map;
use mostrace_map::class::{Kind, Provenance};
use mostrace_map::fs::is_encrypted;

/// The contents of a file entry.
#[derive(PartialEq, Eq, Hash)]
struct Live<'e> {
    /// Inode number; 0 if unknown.
    inode: u64,
    generation: Option<u32>,
    /// True if the numbers cannot be looked up in a map: they are in-memory numbers or another filesystem's.
    passing: bool,
    /// The filesystem's device number (major << 20 | minor) if it is not the map's, else 0.
    foreign: u32,
    parent: u64,
    name: Name<'e>,
    withheld: bool,
    kind: Kind,
}

impl<'e> Live<'e> {
    /// Decodes an entry.
    fn new(entry: FileRef<'e>, filesystem: Option<u32>) -> Live<'e> {
        let FileRef { raw, name } = entry;
        let flags = raw.head.flags;
        let s_dev = raw.s_dev.get();
        let is_foreign = s_dev != 0 && filesystem.is_some_and(|known| known != s_dev);
        let foreign = if is_foreign { s_dev } else { 0 };
        let generation = raw.generation.get();
        Live {
            inode: raw.ino.get(),
            generation: (!flags.has(Flags::NO_GENERATION)).then_some(generation),
            passing: is_foreign || flags.has(Flags::INO_PASSING),
            foreign,
            parent: raw.parent.get(),
            name: Name::Read(if is_name(name, raw) { name } else { b"" }),
            // An unlinked file no longer has a name, and a node has no dentry.
            withheld: flags.has(Flags::NAME_WITHHELD)
                && !flags.has(Flags::UNLINKED)
                && raw.origin != Origin::NODE,
            kind: match raw.what {
                What::DIRECTORY | What::HOT_NODE => Kind::Directory,
                What::SYMLINK => Kind::Symlink,
                _ => Kind::Regular,
            },
        }
    }

    /// Returns the same, which may outlive the entry.
    fn kept(self) -> Live<'static> {
        Live {
            name: self.name.kept(),
            ..self
        }
    }

    /// Returns the inode number that tables show; None for another filesystem's, which would mean nothing here.
    fn number(&self) -> Option<u64> {
        (self.inode != 0 && self.foreign == 0).then_some(self.inode)
    }
}

/// Returns true if the filesystem keeps the inode's number for such a file, so that it needs no generation to be the same.
fn is_reserved(kind: Kind, live: &Live<'_>) -> bool {
    kind == Kind::Quota && !live.passing
}

/// Returns true if a dentry's name is a real file name. A file opened by its handle (nfsd) may have the name "/", as its
/// dentry is not connected to the tree; `d_tmpfile` of <linux/dcache.h> names a file that never had a name after its inode
/// number.
fn is_name(name: &[u8], raw: &RawFile) -> bool {
    if let None | Some(b'/') = name.last() {
        return raw.what == What::DIRECTORY;
    }
    let is_number = |digits: &[u8]| digits == raw.ino.get().to_string().as_bytes();
    let last = || name.rsplit(|&b| b == b'/').next();
    let is_unlinked = raw.head.flags.has(Flags::UNLINKED);
    !(is_unlinked && matches!(last(), Some([b'#', digits @ ..]) if is_number(digits)))
}

/// A place where a probe saw a piece of a file.
#[derive(Clone, Copy)]
struct Place {
    sector: u64,
    /// Offset in the file, bytes; None if the piece is not contents.
    offset: Option<u64>,
}

/// All files of a trace.
pub(super) struct Files<'m> {
    map: Option<&'m Map>,
    /// The device number of the map's filesystem, major << 20 | minor.
    filesystem: Option<u32>,
    /// The kind of every inode that has blocks of contents.
    kinds: HashMap<u64, Kind>,
    list: FileList,
    /// The last entry of each inode number and its file.
    last: HashMap<u64, (Live<'static>, FileId)>,
    /// The files of the entries before the last.
    by_live: HashMap<Live<'static>, FileId>,
    by_inode: HashMap<u64, FileId>,
    /// Inode numbers of directories that are known to be the snapshot's: a file seen in such a directory is still there at
    /// the snapshot.
    folders: HashSet<u64>,
    sightings: Sightings,
    /// Paths of the mounted tree, by inode and generation.
    tree: HashMap<(u64, u32), Box<[u8]>>,
}

impl<'m> Files<'m> {
    pub fn new(map: Option<&'m Map>) -> Self {
        let contents = map
            .into_iter()
            .flat_map(Map::extents)
            .filter(|e| e.file_offset.is_some());
        Files {
            map,
            filesystem: None,
            kinds: contents.map(|e| (e.inode, e.kind)).collect(),
            list: FileList::default(),
            last: HashMap::default(),
            by_live: HashMap::default(),
            by_inode: HashMap::default(),
            folders: HashSet::new(),
            sightings: Sightings::default(),
            tree: HashMap::default(),
        }
    }

    /// Sets the device number of the map's filesystem: files of other filesystems are not looked up in the map.
    pub fn set_filesystem(&mut self, s_dev: u32) {
        self.filesystem = Some(s_dev);
    }

    /// Returns true unless the filesystem with this device number is known to be another one than the map's.
    pub fn is_mapped(&self, s_dev: u32) -> bool {
        self.filesystem.is_none_or(|known| known == s_dev)
    }

    /// Takes a name of the mounted tree; if a file has several names, the last one counts.
    pub fn see_tree(&mut self, entry: FileRef<'_>) {
        let FileRef { raw, name } = entry;
        let is_ours = self.filesystem.is_none_or(|known| known == raw.s_dev.get());
        if is_ours && name.starts_with(b"/") {
            let place = (raw.ino.get(), raw.generation.get());
            self.tree.insert(place, name.into());
        }
    }

    /// Takes the name of a file that calls are about. The entry has no sector or offset, so it is not used to identify the
    /// files of other entries.
    pub fn see_called(&mut self, entry: FileRef<'_>) {
        let live = Live::new(entry, self.filesystem);
        let place = Place {
            sector: NONE,
            offset: None,
        };
        if live.foreign == 0 {
            let same = self.is_at_snapshot(&live, place).unwrap_or(false);
            let file = self.identify(&live, same);
            self.list.intern(file);
        }
    }

    /// Returns the number of files.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns a file by its number.
    pub fn get(&self, file: FileId) -> &File {
        self.list.get(file)
    }

    /// Returns the kind of a file.
    pub fn kind(&self, file: FileId) -> Kind {
        self.list.kind(file)
    }

    /// Returns the file of an entry.
    pub fn live(&mut self, entry: FileRef<'_>) -> FileId {
        let live = Live::new(entry, self.filesystem);
        match self.last.get(&live.inode) {
            // Another sighting with the same answer adds nothing.
            Some((last, id)) if *last == live => *id,
            _ => self.changed(entry.raw, live),
        }
    }

    /// Returns the file of an entry that differs from the inode's previous one.
    fn changed(&mut self, raw: &RawFile, live: Live<'_>) -> FileId {
        if let Some((last, id)) = self.last.remove(&live.inode) {
            self.by_live.insert(last, id);
        }
        if let Some(id) = self.sighted(&live) {
            return id;
        }
        let known = self.by_live.get(&live).copied();
        let settled = known.or_else(|| self.settle(raw, &live));
        if let Some(id) = settled {
            self.last.insert(live.inode, (live.kept(), id));
            return id;
        }
        // Another piece of the file may decide more.
        let file = self.identify(&live, false);
        self.list.intern(file)
    }

    /// Returns the file of an entry; None if this piece cannot decide which file it is.
    fn settle(&mut self, raw: &RawFile, live: &Live<'_>) -> Option<FileId> {
        let is_node = raw.origin == Origin::NODE;
        let offset = Some(raw.offset.get()).filter(|&offset| offset != NONE && !is_node);
        let place = Place {
            sector: raw.head.sector.get(),
            offset,
        };
        let same = self.is_at_snapshot(live, place)?;
        let file = self.identify(live, same);
        Some(self.list.intern(file))
    }

    /// Notes a sighting; returns the file if only earlier and later sightings can identify it.
    fn sighted(&mut self, live: &Live<'_>) -> Option<FileId> {
        if live.foreign != 0 {
            return None;
        }
        let Some(generation) = live.generation else {
            let file = || {
                self.list.add(File {
                    inode: Some(live.inode),
                    kind: live.kind,
                    ..File::NONE
                })
            };
            return self.sightings.since(live.inode, file);
        };
        if let Some(file) = self.sightings.see(live.inode, generation) {
            self.list.set_generation(file, generation);
        }
        None
    }

    /// Treats the snapshot as the last sighting of each inode.
    fn see_snapshot(&mut self) {
        for (inode, generation, file) in self.sightings.open() {
            let now = self.map.and_then(|map| map.inode(inode)?.generation);
            if now == Some(generation) {
                self.list.set_generation(file, generation);
            }
        }
    }

    /// Returns whether the snapshot's inode of that number is the file that the probe saw. The generation decides; without
    /// one, the piece decides if the snapshot has it at the same place. None: this piece cannot decide it.
    fn is_at_snapshot(&self, live: &Live<'_>, place: Place) -> Option<bool> {
        let map = self.map.filter(|_| !live.passing && live.inode != 0);
        let Some((map, known)) = map.and_then(|map| Some((map, map.inode(live.inode)?))) else {
            return Some(false);
        };
        if let (Some(then), Some(now)) = (known.generation, live.generation) {
            return Some(then == now);
        }
        let piece = map.pieces(place.sector, 1).next()?;
        let there = piece.inode == live.inode && piece.file_offset == place.offset;
        (there && piece.kind != Kind::Free).then_some(true)
    }

    /// Returns the file that had this inode number at the snapshot.
    pub fn snapshot(&mut self, inode: u64) -> FileId {
        if let Some(&id) = self.by_inode.get(&inode) {
            return id;
        }
        let generation = self
            .map
            .and_then(|map| map.inode(inode))
            .and_then(|i| i.generation);
        let (path, provenance) = self.path(inode);
        let path = path.map(Vec::into_boxed_slice);
        let id = self.list.intern(File {
            inode: Some(inode),
            generation,
            // An inode without blocks is taken for a regular file: directories have blocks, or have their contents in the
            // inode, which is never seen here.
            kind: self.kind_of(inode).unwrap_or(Kind::Regular),
            provenance: provenance_of(&path, provenance),
            path,
            name_withheld: false,
            role: None,
            final_path: None,
        });
        self.by_inode.insert(inode, id);
        id
    }

    /// Returns the file with this inode number and generation; its name is the one seen at any time of the trace.
    pub fn numbered(&mut self, inode: u64, generation: u32) -> FileId {
        let now = self.map.and_then(|map| map.inode(inode));
        let same = now.is_some_and(|now| now.generation == Some(generation));
        if same {
            // This adds the file to the list in which names are looked up at the end.
            self.snapshot(inode);
        }
        let kind = self.kind_of(inode).filter(|_| same);
        self.list.intern(File {
            inode: Some(inode),
            generation: Some(generation),
            kind: kind.unwrap_or(Kind::Regular),
            ..File::NONE
        })
    }

    /// Returns the file that freed metadata blocks; None if it is on another filesystem than the map.
    pub fn freed(&mut self, raw: &RawFreed) -> Option<FileId> {
        let s_dev = raw.s_dev.get();
        if self.filesystem.is_some_and(|known| known != s_dev) {
            return None;
        }
        let (inode, generation) = (raw.ino.get(), raw.generation.get());
        Some(self.numbered(inode, generation))
    }

    /// Decides the file's name. A live name takes precedence over the snapshot's, which may be newer; without a live name,
    /// the snapshot's name counts only for the same file, because the inode number may have been reused.
    fn identify(&mut self, live: &Live<'_>, same: bool) -> File {
        let known = self.map.filter(|_| same);
        if known.is_some_and(|map| stays(map, live)) && self.folders.insert(live.parent) {
            // Earlier answers about files in this directory can now be improved.
            self.last.clear();
            self.by_live.clear();
        }
        let (path, provenance) = if live.name.is_empty() {
            known.map_or((None, Provenance::Unknown), |_| self.path(live.inode))
        } else if live.name.starts_with(b"/") {
            (Some(live.name.to_vec()), Provenance::Live)
        } else if known.is_some_and(|map| is_there(map, live)) {
            self.in_folder(live)
        } else {
            self.alone(live)
        };
        let path = path.map(Vec::into_boxed_slice);
        File {
            inode: live.number(),
            generation: live.generation,
            kind: self
                .kind_of(live.inode)
                .filter(|kind| same || is_reserved(*kind, live))
                .unwrap_or(live.kind),
            provenance: provenance_of(&path, provenance),
            path,
            name_withheld: live.withheld,
            role: None,
            final_path: None,
        }
    }

    /// Resolves a name whose entry has only the directory's inode number. The root's number never changes. Another number is the
    /// snapshot's directory if a file that was seen in it is still there at the snapshot. Otherwise it may have been another
    /// directory's number, and the name stays bare.
    fn alone(&self, live: &Live<'_>) -> (Option<Vec<u8>>, Provenance) {
        let parent = self.map.and_then(|map| map.inode(live.parent));
        let mut names = parent.into_iter().flat_map(|inode| &inode.names);
        let is_root = names.any(|name| name.parent == live.parent);
        if is_root && !live.passing {
            return (Some([b"/", &live.name[..]].concat()), Provenance::Live);
        }
        let is_known = self.folders.contains(&live.parent) && !live.passing;
        match self.in_folder(live) {
            (Some(path), provenance) if is_known => (Some(path), provenance),
            _ => (Some(live.name.to_vec()), Provenance::Live),
        }
    }

    /// Returns the path of the snapshot's inode of that number; the mounted tree's path if the snapshot has none or an
    /// encrypted one.
    fn path(&self, inode: u64) -> (Option<Vec<u8>>, Provenance) {
        let path = self.map.and_then(|map| map.path(inode));
        let provenance = match &path {
            Some(path) if is_encrypted(path) => Provenance::Encrypted,
            Some(_) => return (path, Provenance::Snapshot),
            None => Provenance::Unknown,
        };
        let known = self.map.and_then(|map| map.inode(inode));
        let generation = known.and_then(|inode| inode.generation);
        match generation.and_then(|generation| self.tree.get(&(inode, generation))) {
            Some(path) => (Some(path.to_vec()), Provenance::Tree),
            None => (path, provenance),
        }
    }

    /// Returns the name below the path of its directory at the snapshot.
    fn in_folder(&self, live: &Live<'_>) -> (Option<Vec<u8>>, Provenance) {
        let (folder, provenance) = self.path(live.parent);
        let path = folder.map(|mut path| {
            if !path.ends_with(b"/") {
                path.push(b'/');
            }
            path.extend_from_slice(&live.name);
            path
        });
        (path, provenance)
    }

    /// Returns the kind that the inode's contents have at the snapshot; None if it has no blocks.
    fn kind_of(&self, inode: u64) -> Option<Kind> {
        self.kinds.get(&inode).copied()
    }

    /// Gives each file without a name the name of the same inode and generation at another time: live, at the snapshot, or in the
    /// mounted tree before or after the trace.
    pub fn fill_in(&mut self) {
        self.see_snapshot();
        let key = |file: &File| (file.inode, file.generation);
        let is_nameless = |file: &File| file.path.is_none() && file.generation.is_some();
        let nameless = self.list.iter().filter(|file| is_nameless(file));
        let mut names: HashMap<_, Option<&File>> = nameless.map(|f| (key(f), None)).collect();
        for provenance in [
            Provenance::Live,
            Provenance::Snapshot,
            Provenance::Tree,
            Provenance::Encrypted,
        ] {
            for file in self.list.iter().filter(|f| f.provenance == provenance) {
                if let Some(name) = names.get_mut(&key(file)) {
                    name.get_or_insert(file);
                }
            }
        }
        let names: HashMap<_, _> = names
            .into_iter()
            .filter_map(|(key, file)| Some((key, (file?.provenance, file?.path.clone()))))
            .collect();
        let tree = &self.tree;
        let of_tree = |file: &File| {
            let path = tree.get(&(file.inode?, file.generation?))?;
            Some((Provenance::Tree, Some(path.clone())))
        };
        for file in self.list.iter_mut().filter(|file| is_nameless(file)) {
            let name = names.get(&key(file)).cloned();
            let name =
                name.filter(|(found, _)| !(file.name_withheld && *found == Provenance::Live));
            if let Some((provenance, path)) = name.or_else(|| of_tree(file)) {
                file.path = path;
                file.provenance = provenance;
            }
        }
    }

    /// Returns the map that files are looked up in.
    pub fn map(&self) -> Option<&'m Map> {
        self.map
    }

    pub fn into_list(self) -> Vec<File> {
        self.list.into_list()
    }
}

/// Returns the file's names at the snapshot in the directory that the entry has.
fn names_there<'m>(map: &'m Map, live: &Live<'_>) -> impl Iterator<Item = &'m mostrace_map::Name> {
    let names = map.inode(live.inode).into_iter().flat_map(|i| &i.names);
    names.filter(move |name| name.parent == live.parent)
}

/// Returns true if the file is in that directory at the snapshot.
fn stays(map: &Map, live: &Live<'_>) -> bool {
    names_there(map, live).next().is_some()
}

/// Returns true if the file has that name in that directory at the snapshot.
fn is_there(map: &Map, live: &Live<'_>) -> bool {
    names_there(map, live).any(|name| *name.name == *live.name)
}

/// Returns the provenance of a path; `Unknown` without a path.
fn provenance_of(path: &Option<Box<[u8]>>, provenance: Provenance) -> Provenance {
    path.as_ref().map_or(Provenance::Unknown, |_| provenance)
}
