// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which file: every inode under every name it was seen with, each kept once.

use std::collections::HashSet;

use mostrace_bundle::entry::{FileRef, Flags, NONE, Origin, RawFile, RawFreed, What};

use super::HashMap;
use super::role::database_of;
use super::sightings::Sightings;
use mostrace_map::class::{Kind, Provenance, Role};
use mostrace_map::fs::is_encrypted;
use mostrace_map::{Map, Name};

/// The number of a [`File`] in its list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

impl FileId {
    /// No file, or none that is known.
    pub const NONE: FileId = FileId(0);
}

/// One file under one name. What is not known is None.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct File {
    /// Inode number.
    pub inode: Option<u64>,
    /// `i_generation`.
    pub generation: Option<u32>,
    /// What its contents are: regular, directory, symlink, or a file of the filesystem's own.
    pub kind: Kind,
    /// From the filesystem's root, with a leading `/`; without one where only the last component
    /// is known. Raw bytes.
    pub path: Option<Box<[u8]>>,
    /// It had a name then that was not asked for: one of another time is not it.
    pub name_withheld: bool,
    /// How the path was found.
    pub provenance: Provenance,
    /// What a regular file is to SQLite, or to another store; None if it is not regular or has no name.
    pub role: Option<Role>,
}

impl File {
    const NONE: File = File {
        inode: None,
        generation: None,
        kind: Kind::Unmapped,
        path: None,
        name_withheld: false,
        provenance: Provenance::Unknown,
        role: None,
    };

    /// Last component of the path.
    pub fn name(&self) -> Option<&[u8]> {
        self.path
            .as_deref()
            .and_then(|path| path.rsplit(|&b| b == b'/').next())
    }

    /// Path of SQLite's database that it is, or is a temporary file of.
    pub fn database(&self) -> Option<&[u8]> {
        match (self.path.as_deref()?, self.role?) {
            (path, Role::Db) => Some(path),
            (path, _) => database_of(path),
        }
    }
}

/// What a file entry says of its file.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Live {
    /// 0: not known.
    inode: u64,
    generation: Option<u32>,
    /// The numbers are no map's: of inodes in memory, or of another filesystem.
    passing: bool,
    /// Of another filesystem than the map's: major << 20 | minor, else 0.
    foreign: u32,
    parent: u64,
    name: Vec<u8>,
    withheld: bool,
    kind: Kind,
}

impl Live {
    /// The name is put into `memory`, so that an entry does not allocate.
    fn new(entry: FileRef<'_>, filesystem: Option<u32>, mut memory: Vec<u8>) -> Live {
        let FileRef { raw, name } = entry;
        let flags = raw.head.flags;
        let s_dev = raw.s_dev.get();
        let is_foreign = s_dev != 0 && filesystem.is_some_and(|known| known != s_dev);
        let foreign = if is_foreign { s_dev } else { 0 };
        let generation = raw.generation.get();
        memory.clear();
        if is_name(name, raw) {
            memory.extend_from_slice(name);
        }
        Live {
            inode: raw.ino.get(),
            generation: (!flags.has(Flags::NO_GENERATION)).then_some(generation),
            passing: is_foreign || flags.has(Flags::INO_PASSING),
            foreign,
            parent: raw.parent.get(),
            name: memory,
            // An unlinked file has none any more, and a node is no dentry's.
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

    /// Where the inode is: filesystem and number.
    fn place(&self) -> (u32, u64) {
        (self.foreign, self.inode)
    }

    /// The number that tables show: another filesystem's means nothing here.
    fn number(&self) -> Option<u64> {
        (self.inode != 0 && self.foreign == 0).then_some(self.inode)
    }
}

/// Whether the name of a dentry is one. Of a file opened by its handle (nfsd) it may be "/", the dentry
/// being no part of the tree; `d_tmpfile` of <linux/dcache.h> calls a file that never had a name by
/// its number.
fn is_name(name: &[u8], raw: &RawFile) -> bool {
    if let None | Some(b'/') = name.last() {
        return raw.what == What::DIRECTORY;
    }
    let is_number = |digits: &[u8]| digits == raw.ino.get().to_string().as_bytes();
    let last = || name.rsplit(|&b| b == b'/').next();
    let is_unlinked = raw.head.flags.has(Flags::UNLINKED);
    !(is_unlinked && matches!(last(), Some([b'#', digits @ ..]) if is_number(digits)))
}

/// Where a probe saw a piece of a file.
#[derive(Clone, Copy)]
struct Place {
    sector: u64,
    /// None for what is not contents.
    offset: Option<u64>,
}

/// All files of a trace.
pub(super) struct Files<'m> {
    map: Option<&'m Map>,
    /// The number of the map's filesystem, major << 20 | minor.
    filesystem: Option<u32>,
    /// Of every inode with blocks of contents.
    kinds: HashMap<u64, Kind>,
    list: Vec<File>,
    by_file: HashMap<File, FileId>,
    /// What the last entry of each inode said, and which file that is.
    last: HashMap<(u32, u64), (Live, FileId)>,
    /// The same of what was said before that.
    by_live: HashMap<Live, FileId>,
    by_inode: HashMap<u64, FileId>,
    /// Numbers that are the snapshot's folders': a file was seen in them that is still there.
    folders: HashSet<u64>,
    sightings: Sightings,
    /// Paths of the mounted tree, by inode and generation.
    tree: HashMap<(u64, u32), Box<[u8]>>,
    /// The last entry's name, kept for its memory.
    name: Vec<u8>,
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
            list: vec![File::NONE],
            by_file: HashMap::from_iter([(File::NONE, FileId::NONE)]),
            last: HashMap::default(),
            by_live: HashMap::default(),
            by_inode: HashMap::default(),
            folders: HashSet::new(),
            sightings: Sightings::default(),
            tree: HashMap::default(),
            name: Vec::new(),
        }
    }

    /// The map is of the filesystem of this number: files of another one are not looked up in it.
    pub fn set_filesystem(&mut self, s_dev: u32) {
        self.filesystem = Some(s_dev);
    }

    /// Takes a name of the mounted tree; of several of one file the last counts.
    pub fn see_tree(&mut self, entry: FileRef<'_>) {
        let FileRef { raw, name } = entry;
        let is_ours = self.filesystem.is_none_or(|known| known == raw.s_dev.get());
        if is_ours && name.starts_with(b"/") {
            let place = (raw.ino.get(), raw.generation.get());
            self.tree.insert(place, name.into());
        }
    }

    /// Takes the name of a file that calls are about. It is of no piece of the file, and settles nothing of others.
    pub fn see_called(&mut self, entry: FileRef<'_>) {
        let live = Live::new(entry, self.filesystem, Vec::new());
        let place = Place {
            sector: NONE,
            offset: None,
        };
        if live.foreign == 0 {
            let same = self.is_at_snapshot(&live, place).unwrap_or(false);
            let file = self.identify(&live, same);
            self.intern(file);
        }
    }

    /// A file by its number.
    pub fn get(&self, FileId(id): FileId) -> &File {
        self.list.get(id as usize).unwrap_or(&File::NONE)
    }

    /// The file of an entry.
    pub fn live(&mut self, entry: FileRef<'_>) -> FileId {
        let live = Live::new(entry, self.filesystem, std::mem::take(&mut self.name));
        let id = match self.last.get(&live.place()) {
            // Another sighting of the same tells nothing new.
            Some((last, id)) if *last == live => *id,
            _ => self.changed(entry.raw, &live),
        };
        self.name = live.name;
        id
    }

    /// The file of an entry that says something else than the one before of its inode.
    fn changed(&mut self, raw: &RawFile, live: &Live) -> FileId {
        if let Some((last, id)) = self.last.remove(&live.place()) {
            self.by_live.insert(last, id);
        }
        if let Some(id) = self.sighted(live) {
            return id;
        }
        let known = self.by_live.get(live).copied();
        let settled = known.or_else(|| self.settle(raw, live));
        if let Some(id) = settled {
            self.last.insert(live.place(), (live.clone(), id));
            return id;
        }
        // Another piece of the file may tell more.
        let file = self.identify(live, false);
        self.intern(file)
    }

    /// The file of an entry, unless this piece of it does not decide it.
    fn settle(&mut self, raw: &RawFile, live: &Live) -> Option<FileId> {
        let is_node = raw.origin == Origin::NODE;
        let offset = Some(raw.offset.get()).filter(|&offset| offset != NONE && !is_node);
        let place = Place {
            sector: raw.head.sector.get(),
            offset,
        };
        let same = self.is_at_snapshot(live, place)?;
        let file = self.identify(live, same);
        Some(self.intern(file))
    }

    /// Notes a sighting; the file, if only the sightings before and after can tell it.
    fn sighted(&mut self, live: &Live) -> Option<FileId> {
        if live.foreign != 0 {
            return None;
        }
        let Some(generation) = live.generation else {
            let id = FileId(u32::try_from(self.list.len()).unwrap_or(0));
            let file = || {
                self.list.push(File {
                    inode: Some(live.inode),
                    kind: live.kind,
                    ..File::NONE
                });
                id
            };
            return self.sightings.since(live.inode, file);
        };
        if let Some(FileId(id)) = self.sightings.see(live.inode, generation)
            && let Some(file) = self.list.get_mut(id as usize)
        {
            file.generation = Some(generation);
        }
        None
    }

    /// The snapshot is the last sighting.
    fn see_snapshot(&mut self) {
        for (inode, generation, FileId(id)) in self.sightings.open() {
            let now = self.map.and_then(|map| map.inode(inode)?.generation);
            if now == Some(generation)
                && let Some(file) = self.list.get_mut(id as usize)
            {
                file.generation = now;
            }
        }
    }

    /// Whether the snapshot's inode of that number is the file that the probe saw: the generation
    /// tells; without one, that the piece is where the snapshot has it. None: not by this piece.
    fn is_at_snapshot(&self, live: &Live, place: Place) -> Option<bool> {
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

    /// The file that an inode was at the snapshot.
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
        let id = self.intern(File {
            inode: Some(inode),
            generation,
            // Without blocks it is taken for a regular file: directories have blocks, or their
            // contents are in the inode and never seen here.
            kind: self.kind_of(inode).unwrap_or(Kind::Regular),
            provenance: provenance_of(&path, provenance),
            path,
            name_withheld: false,
            role: None,
        });
        self.by_inode.insert(inode, id);
        id
    }

    /// The file of this number and generation, which is called as it is seen at any time of the trace.
    pub fn numbered(&mut self, inode: u64, generation: u32) -> FileId {
        let now = self.map.and_then(|map| map.inode(inode));
        let same = now.is_some_and(|now| now.generation == Some(generation));
        if same {
            // In the list, where its name is looked for in the end.
            self.snapshot(inode);
        }
        let kind = self.kind_of(inode).filter(|_| same);
        self.intern(File {
            inode: Some(inode),
            generation: Some(generation),
            kind: kind.unwrap_or(Kind::Regular),
            ..File::NONE
        })
    }

    /// The file that gave blocks of metadata back; None if it is of another filesystem than the map.
    pub fn freed(&mut self, raw: &RawFreed) -> Option<FileId> {
        let s_dev = raw.s_dev.get();
        if self.filesystem.is_some_and(|known| known != s_dev) {
            return None;
        }
        let (inode, generation) = (raw.ino.get(), raw.generation.get());
        Some(self.numbered(inode, generation))
    }

    /// The live name wins over the snapshot's, which may be of later; without one, the snapshot
    /// speaks for the same file only: the number may have gone to another one.
    fn identify(&mut self, live: &Live, same: bool) -> File {
        let known = self.map.filter(|_| same);
        if known.is_some_and(|map| stays(map, live)) && self.folders.insert(live.parent) {
            // What was said of others in it can now be said better.
            self.last.clear();
            self.by_live.clear();
        }
        let (path, provenance) = if live.name.is_empty() {
            known.map_or((None, Provenance::Unknown), |_| self.path(live.inode))
        } else if live.name.starts_with(b"/") {
            (Some(live.name.clone()), Provenance::Live)
        } else if known.is_some_and(|map| is_there(map, live)) {
            self.in_folder(live)
        } else {
            self.alone(live)
        };
        let path = path.map(Vec::into_boxed_slice);
        File {
            inode: live.number(),
            generation: live.generation,
            kind: if same {
                self.kind_of(live.inode).unwrap_or(live.kind)
            } else {
                live.kind
            },
            provenance: provenance_of(&path, provenance),
            path,
            name_withheld: live.withheld,
            role: None,
        }
    }

    /// A name of which an entry tells its folder's number alone. The root's is nobody else's ever. Another one is that of the
    /// snapshot's folder if a file was seen in it before that is there at the snapshot, and still in it; else it may have
    /// been another's then, and the name stands by itself.
    fn alone(&self, live: &Live) -> (Option<Vec<u8>>, Provenance) {
        let parent = self.map.and_then(|map| map.inode(live.parent));
        let mut names = parent.into_iter().flat_map(|inode| &inode.names);
        let is_root = names.any(|name| name.parent == live.parent);
        if is_root && !live.passing {
            return (Some([b"/", &live.name[..]].concat()), Provenance::Live);
        }
        let is_known = self.folders.contains(&live.parent) && !live.passing;
        match self.in_folder(live) {
            (Some(path), provenance) if is_known => (Some(path), provenance),
            _ => (Some(live.name.clone()), Provenance::Live),
        }
    }

    /// The path of the snapshot's inode of that number: by the mounted tree where the snapshot has none, or one that is
    /// encrypted.
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

    /// The name in the snapshot's folder of that number.
    fn in_folder(&self, live: &Live) -> (Option<Vec<u8>>, Provenance) {
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

    /// What the snapshot has as the contents of an inode; None if it has no blocks.
    fn kind_of(&self, inode: u64) -> Option<Kind> {
        self.kinds.get(&inode).copied()
    }

    fn intern(&mut self, file: File) -> FileId {
        if let Some(&id) = self.by_file.get(&file) {
            return id;
        }
        let id = FileId(u32::try_from(self.list.len()).unwrap_or(0));
        self.list.push(file.clone());
        self.by_file.insert(file, id);
        id
    }

    /// Gives files without a name the one that the same inode and generation was seen with at
    /// another time of the trace, live or at the snapshot, or before and after it in the mounted tree.
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

    /// The map that they are looked up in.
    pub fn map(&self) -> Option<&'m Map> {
        self.map
    }

    pub fn into_list(self) -> Vec<File> {
        self.list
    }
}

/// Of the file's names at the snapshot, those in the folder that it was seen in.
fn names_there<'m>(map: &'m Map, live: &Live) -> impl Iterator<Item = &'m Name> {
    let names = map.inode(live.inode).into_iter().flat_map(|i| &i.names);
    names.filter(move |name| name.parent == live.parent)
}

/// Whether the file is in that folder at the snapshot.
fn stays(map: &Map, live: &Live) -> bool {
    names_there(map, live).next().is_some()
}

/// Whether it is called so there.
fn is_there(map: &Map, live: &Live) -> bool {
    names_there(map, live).any(|name| *name.name == *live.name)
}

/// A path's provenance; without a path there is none.
fn provenance_of(path: &Option<Box<[u8]>>, provenance: Provenance) -> Provenance {
    path.as_ref().map_or(Provenance::Unknown, |_| provenance)
}
