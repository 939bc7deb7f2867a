// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of a filesystem during the deduction: what is known about each name, and which object it names.

use std::collections::HashMap;

use crate::Name;

/// A file, folder or link, that is, an inode, which may have several names. Objects are numbered from 0, the root folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectId(u32);

impl ObjectId {
    /// The root of the filesystem.
    pub(crate) const ROOT: ObjectId = ObjectId(0);
}

/// The kind of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Unknown,
    Folder,
    File,
    /// A symbolic link that the recording made, and its target.
    Link(Vec<u8>),
    /// A FIFO, a socket, a device, or a link whose target is not known.
    Other,
}

/// The object that a name is known to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Nothing is known about the name.
    Unknown,
    Absent,
    Object(ObjectId),
}

/// What is known about an object.
#[derive(Debug, Default)]
pub(crate) struct Object {
    pub(crate) kind: Kind,
    /// The names that it had before the first operation; empty if it did not exist.
    pub(crate) start: Vec<(ObjectId, Box<[u8]>)>,
    /// True if it is only presumed that an operation made it. It has no name in `start` unless this turns out to be wrong.
    pub(crate) presumed_made: bool,
    /// True if an operation such as mkdir was refused because the name existed, as mkdir is for a folder.
    pub(crate) perhaps_folder: bool,
    /// Its permissions before the first operation. The inner option is None if a chmod came before anything showed them.
    pub(crate) mode: Option<Option<u32>>,
    pub(crate) size: crate::size::Size,
    /// The entries of a folder; None for names that are known to be absent.
    children: HashMap<Box<[u8]>, Option<ObjectId>>,
    /// True if an operation made it, so that all its entries are in `children`.
    made: bool,
}

impl Object {
    pub(crate) fn is_folder(&self) -> bool {
        match self.kind {
            Kind::Folder => true,
            Kind::Unknown => self.perhaps_folder || !self.children.is_empty(),
            _ => !self.children.is_empty(),
        }
    }
}

/// The place to which a path leads: an entry of a folder, or the root.
#[derive(Debug)]
pub(crate) struct EntryPlace {
    entry: Option<(ObjectId, Box<[u8]>)>,
}

/// The most symbolic links that the kernel follows in one path (`MAXSYMLINKS`).
const LINKS_MAX: u32 = 40;

/// The names and the objects.
#[derive(Debug)]
pub(crate) struct FileTree {
    objects: Vec<Object>,
}

impl Default for FileTree {
    fn default() -> FileTree {
        let root = Object {
            kind: Kind::Folder,
            ..Object::default()
        };
        FileTree {
            objects: vec![root],
        }
    }
}

impl FileTree {
    pub(crate) fn object(&self, id: ObjectId) -> &Object {
        &self.objects[id.0 as usize]
    }

    pub(crate) fn object_mut(&mut self, id: ObjectId) -> &mut Object {
        &mut self.objects[id.0 as usize]
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ObjectId> + use<> {
        (0..self.objects.len() as u32).map(ObjectId)
    }

    fn add(&mut self, object: Object) -> ObjectId {
        let id = ObjectId(u32::try_from(self.objects.len()).expect("fewer objects than 2^32"));
        self.objects.push(object);
        id
    }

    /// Adds an object that an operation made and that has no name yet.
    pub(crate) fn make(&mut self, kind: Kind) -> ObjectId {
        self.add(Object {
            kind,
            made: true,
            ..Object::default()
        })
    }

    /// Finds the place to which a path leads. `follow` tells whether a symbolic link in the last component is followed. `evident`
    /// tells that an operation found the path's folder, so that the folder exists. `through` receives the paths that result from
    /// following symbolic links on the way. Returns None if the path's folder is not known.
    pub(crate) fn walk(
        &mut self,
        path: &Name,
        follow: bool,
        evident: bool,
        through: &mut Vec<Name>,
    ) -> Option<EntryPlace> {
        let mut rest = components(path.as_bytes());
        let mut trail: Vec<(ObjectId, Box<[u8]>)> = Vec::new();
        let mut links = 0;
        while let Some(part) = rest.pop() {
            let folder = trail.last().map_or(ObjectId::ROOT, |(id, _)| *id);
            if *part == *b".." {
                trail.pop();
                continue;
            }
            let entry = self.child(folder, &part);
            if let Some(target) = self.link(entry).filter(|_| follow || !rest.is_empty()) {
                links += 1;
                if links > LINKS_MAX {
                    return None;
                }
                if target.starts_with(b"/") {
                    trail.clear();
                }
                rest.extend(components(target));
                through.extend(join(&trail, &rest));
                continue;
            }
            if rest.is_empty() {
                return Some(EntryPlace {
                    entry: Some((folder, part)),
                });
            }
            let next = match entry {
                Entry::Object(id) => id,
                _ if evident => self.found(folder, &part),
                _ => return None,
            };
            if evident && self.object(next).kind == Kind::Unknown {
                self.object_mut(next).kind = Kind::Folder;
            }
            trail.push((next, part));
        }
        // The path ended in `..` or at the root.
        let last = trail.pop();
        let entry = last.map(|(_, part)| {
            let folder = trail.last().map_or(ObjectId::ROOT, |(id, _)| *id);
            (folder, part)
        });
        Some(EntryPlace { entry })
    }

    fn link(&self, entry: Entry) -> Option<&[u8]> {
        match entry {
            Entry::Object(id) => match &self.object(id).kind {
                Kind::Link(target) => Some(target),
                _ => None,
            },
            _ => None,
        }
    }

    fn child(&self, folder: ObjectId, part: &[u8]) -> Entry {
        let folder = self.object(folder);
        match folder.children.get(part) {
            Some(Some(id)) => Entry::Object(*id),
            Some(None) => Entry::Absent,
            None if folder.made => Entry::Absent,
            None => Entry::Unknown,
        }
    }

    pub(crate) fn entry(&self, place: &EntryPlace) -> Entry {
        match &place.entry {
            Some((folder, part)) => self.child(*folder, part),
            None => Entry::Object(ObjectId::ROOT),
        }
    }

    /// Returns the object that an operation found at a place. The object was there from the start, unless this contradicts what is
    /// known; its origin is unknown then.
    pub(crate) fn exists(&mut self, place: &EntryPlace) -> ObjectId {
        match &place.entry {
            Some((folder, part)) => self.found(*folder, part),
            None => ObjectId::ROOT,
        }
    }

    fn found(&mut self, folder: ObjectId, part: &[u8]) -> ObjectId {
        let entry = self.child(folder, part);
        let mut object = Object::default();
        match entry {
            Entry::Object(id) => return id,
            Entry::Unknown => object.start.push((folder, part.into())),
            Entry::Absent => object.made = true,
        }
        let id = self.add(object);
        self.object_mut(folder)
            .children
            .insert(part.into(), Some(id));
        id
    }

    /// Sets the object that a place has from now on.
    pub(crate) fn put(&mut self, place: &EntryPlace, object: Option<ObjectId>) {
        if let Some((folder, part)) = &place.entry {
            let children = &mut self.object_mut(*folder).children;
            children.insert(part.clone(), object);
        }
    }

    /// Notes that an object, which is known under another name, was also at this place from the start.
    pub(crate) fn link_from_start(&mut self, place: &EntryPlace, object: ObjectId) {
        if let Some(at) = place.entry.clone() {
            self.object_mut(object).start.push(at);
            self.put(place, Some(object));
        }
    }

    /// Notes that an object may have been at this place from the start, although an operation presumably made it.
    pub(crate) fn presume_made(&mut self, place: &EntryPlace, object: ObjectId) {
        let at = place.entry.clone();
        let object = self.object_mut(object);
        object.presumed_made = true;
        object.start.extend(at);
    }

    /// Returns the names that an object had before the first operation.
    pub(crate) fn start_names(&self, id: ObjectId) -> Vec<Name> {
        let start = self.object(id).start.iter();
        start
            .filter_map(|(folder, part)| self.start_name(*folder, part))
            .collect()
    }

    fn start_name(&self, mut folder: ObjectId, part: &[u8]) -> Option<Name> {
        let mut parts: Vec<&[u8]> = vec![part];
        while folder != ObjectId::ROOT {
            let (above, part) = self.object(folder).start.first()?;
            parts.push(part);
            folder = *above;
        }
        parts.reverse();
        Name::new(&parts.join(&b'/'))
    }
}

/// Returns a path's components, the last one first, without empty ones and `.`.
fn components(path: &[u8]) -> Vec<Box<[u8]>> {
    let parts = path.rsplit(|&byte| byte == b'/');
    let parts = parts.filter(|part| !part.is_empty() && *part != b".");
    parts.map(Into::into).collect()
}

/// Returns the path that consists of a folder and the components in `rest`, whose last item is the first component.
fn join(trail: &[(ObjectId, Box<[u8]>)], rest: &[Box<[u8]>]) -> Option<Name> {
    let parts = trail.iter().map(|(_, part)| part);
    let parts: Vec<&[u8]> = parts.chain(rest.iter().rev()).map(|part| &**part).collect();
    Name::new(&parts.join(&b'/'))
}
