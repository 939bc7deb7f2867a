// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which file: every inode under every name it was seen with, each kept once.

use mostrace_bundle::entry::FileEntry;

use super::HashMap;
use crate::class::{Kind, Provenance, Role};
use crate::map::Map;

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
    /// How the path was found.
    pub provenance: Provenance,
    /// What a regular file is to SQLite; None if it is not regular or has no name.
    pub role: Option<Role>,
}

impl File {
    const NONE: File = File {
        inode: None,
        generation: None,
        kind: Kind::Unmapped,
        path: None,
        provenance: Provenance::Unknown,
        role: None,
    };

    /// Last component of the path.
    pub fn name(&self) -> Option<&[u8]> {
        self.path
            .as_deref()
            .and_then(|path| path.rsplit(|&b| b == b'/').next())
    }
}

/// What a file entry says of its file.
#[derive(PartialEq, Eq, Hash)]
struct Live {
    inode: u64,
    generation: u32,
    parent: u64,
    name: Vec<u8>,
}

/// All files of a trace.
pub(super) struct Files<'m> {
    map: Option<&'m Map>,
    /// Of every inode with blocks of contents.
    kinds: HashMap<u64, Kind>,
    list: Vec<File>,
    by_file: HashMap<File, FileId>,
    by_live: HashMap<Live, FileId>,
    by_inode: HashMap<u64, FileId>,
}

impl<'m> Files<'m> {
    pub fn new(map: Option<&'m Map>) -> Self {
        let contents = map
            .into_iter()
            .flat_map(Map::extents)
            .filter(|e| e.file_offset.is_some());
        Files {
            map,
            kinds: contents.map(|e| (e.inode, e.kind)).collect(),
            list: vec![File::NONE],
            by_file: HashMap::from_iter([(File::NONE, FileId::NONE)]),
            by_live: HashMap::default(),
            by_inode: HashMap::default(),
        }
    }

    /// A file by its number.
    pub fn get(&self, FileId(id): FileId) -> &File {
        self.list.get(id as usize).unwrap_or(&File::NONE)
    }

    /// The file of an entry.
    pub fn live(&mut self, entry: FileEntry) -> FileId {
        let live = Live {
            inode: entry.raw.ino.get(),
            generation: entry.raw.generation.get(),
            parent: entry.raw.parent.get(),
            name: entry.name,
        };
        if let Some(&id) = self.by_live.get(&live) {
            return id;
        }
        let file = self.identify(&live);
        let id = self.intern(file);
        self.by_live.insert(live, id);
        id
    }

    /// The file that an inode was at the snapshot.
    pub fn snapshot(&mut self, inode: u64) -> FileId {
        if let Some(&id) = self.by_inode.get(&inode) {
            return id;
        }
        let generation = self
            .map
            .and_then(|map| map.inode(inode))
            .map(|i| i.generation);
        let path = self
            .map
            .and_then(|map| map.path(inode))
            .map(Vec::into_boxed_slice);
        let id = self.intern(File {
            inode: Some(inode),
            generation,
            kind: self.kind_of(inode),
            provenance: named(&path, Provenance::Snapshot),
            path,
            role: None,
        });
        self.by_inode.insert(inode, id);
        id
    }

    /// The live name wins over the snapshot's, which may be of later; without one, the snapshot
    /// speaks for the same inode and generation only: the number may have gone to another file.
    fn identify(&self, live: &Live) -> File {
        let known = self.map.and_then(|map| map.inode(live.inode));
        let same = known.is_some_and(|inode| inode.generation == live.generation);
        let (path, provenance) = if !live.name.is_empty() {
            (Some(self.join(live.parent, &live.name)), Provenance::Live)
        } else if same {
            (
                self.map.and_then(|map| map.path(live.inode)),
                Provenance::Snapshot,
            )
        } else {
            (None, Provenance::Unknown)
        };
        let path = path.map(Vec::into_boxed_slice);
        File {
            inode: Some(live.inode),
            generation: Some(live.generation),
            kind: if same {
                self.kind_of(live.inode)
            } else {
                Kind::Regular
            },
            provenance: named(&path, provenance),
            path,
            role: None,
        }
    }

    /// The path of a name in a directory; the name alone if the directory is gone.
    fn join(&self, parent: u64, name: &[u8]) -> Vec<u8> {
        let is_directory = matches!(self.kinds.get(&parent), None | Some(Kind::Directory));
        let directory = self
            .map
            .filter(|_| is_directory)
            .and_then(|map| map.path(parent));
        let Some(mut path) = directory else {
            return name.to_vec();
        };
        if !path.ends_with(b"/") {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        path
    }

    /// An inode without blocks is taken for a regular file: directories have blocks, or their
    /// contents are in the inode and never seen here.
    fn kind_of(&self, inode: u64) -> Kind {
        self.kinds.get(&inode).copied().unwrap_or(Kind::Regular)
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
    /// another time of the trace.
    pub fn fill_in(&mut self) {
        let mut names: HashMap<_, Option<Box<[u8]>>> = HashMap::default();
        for file in self
            .list
            .iter()
            .filter(|f| f.provenance == Provenance::Live)
        {
            names
                .entry((file.inode, file.generation))
                .or_insert_with(|| file.path.clone());
        }
        for file in self
            .list
            .iter_mut()
            .filter(|f| f.path.is_none() && f.generation.is_some())
        {
            if let Some(path) = names.get(&(file.inode, file.generation)) {
                file.path.clone_from(path);
                file.provenance = Provenance::Live;
            }
        }
    }

    pub fn into_list(self) -> Vec<File> {
        self.list
    }
}

/// A path's provenance; without a path there is none.
fn named(path: &Option<Box<[u8]>>, provenance: Provenance) -> Provenance {
    path.as_ref().map_or(Provenance::Unknown, |_| provenance)
}
