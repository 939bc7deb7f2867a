// SPDX-License-Identifier: MIT OR Apache-2.0
//! Goes through the operations in order and deduces what existed before the first one, and which files and names each one uses.

use std::collections::HashMap;

use rustix::io::Errno;

use crate::Name;
use crate::ended::errno;
use crate::flags;
use crate::operation::{Call, Change, FileCall, FileId, Opened, Operation, Target};
use crate::tree::{Entry, EntryPlace, FileTree, Kind, ObjectId};

/// The files and names that an operation uses.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Touched {
    /// Files and folders, whatever their names.
    pub(crate) objects: Vec<ObjectId>,
    /// Names that it looks up.
    pub(crate) uses: Vec<Name>,
    /// Names that it makes, removes or changes, together with all names below.
    pub(crate) changes: Vec<Name>,
}

/// The state of the deduction.
#[derive(Debug, Default)]
pub(crate) struct Deduction {
    pub(crate) tree: FileTree,
    files: HashMap<FileId, ObjectId>,
    inodes: HashMap<(u64, u32), ObjectId>,
    /// Pairs of an object and the object that it replaced.
    replaced: Vec<(ObjectId, ObjectId)>,
    touched: Touched,
}

/// What the failure of an operation with a path tells about names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// The name does not exist.
    Absent,
    /// The name exists already.
    Exists,
    /// The name is a folder, perhaps one that is not empty.
    Folder,
    /// One of the two names lies below the other, and the first one exists; in an exchange, so does the second.
    Inside,
    Other,
}

fn failure(result: i64) -> Option<Failure> {
    (result < 0).then(|| match errno(result) {
        Some(Errno::NOENT) => Failure::Absent,
        Some(Errno::EXIST) => Failure::Exists,
        Some(Errno::ISDIR | Errno::NOTEMPTY) => Failure::Folder,
        _ => Failure::Other,
    })
}

/// Returns the number of bytes that a call moved; 0 if it failed.
fn moved(result: i64) -> u64 {
    u64::try_from(result).unwrap_or(0)
}

impl Deduction {
    /// Takes one more operation, and returns what it uses.
    pub(crate) fn step(&mut self, operation: &Operation) -> &Touched {
        self.touched.objects.clear();
        self.touched.uses.clear();
        self.touched.changes.clear();
        self.call(&operation.call, operation.result);
        &self.touched
    }

    fn call(&mut self, call: &Call, result: i64) {
        match call {
            Call::Open(opened) => self.open(opened, result),
            Call::Opened(opened) => self.opened(opened),
            Call::Of(file, call) => self.contents(*file, *call, result),
            Call::Change(target, change) => self.change(target, change, result),
            Call::Rename { from, to, flags } => self.rename(from, to, *flags, result),
            Call::Link { from, to, follow } => self.hard_link(from, to, *follow, result),
            Call::Symlink { target, path } => {
                self.create(path, Kind::Link(target.clone()), result);
            }
            Call::Mkdir { path, .. } => self.create(path, Kind::Folder, result),
            Call::Mknod { path, mode } => self.create(path, kind_of(*mode, Kind::File), result),
            Call::Unlink(path) => self.remove(path, Kind::File, result),
            Call::Rmdir(path) => self.remove(path, Kind::Folder, result),
            Call::Sync => {}
        }
    }

    fn change(&mut self, target: &Target, change: &Change, result: i64) {
        let follow = matches!(change, Change::Truncate(_) | Change::Chmod(_));
        let id = self.target(target, follow, result);
        if let Some(id) = id.filter(|_| result >= 0) {
            let object = self.tree.object_mut(id);
            match change {
                Change::Truncate(_) => object.size.cut(),
                Change::Chmod(_) => drop(object.mode.get_or_insert(None)),
                _ => {}
            }
        }
    }

    /// Takes a call on the contents of an open file.
    fn contents(&mut self, file: FileId, call: FileCall, result: i64) {
        let (ok, moved) = (result >= 0, moved(result));
        let end = |offset: Option<u64>, bytes| offset.map(|offset| offset.saturating_add(bytes));
        match call {
            FileCall::Read { offset, .. } => self.read(file, end(offset, moved), moved),
            FileCall::Write { offset, .. } => self.written(file, end(offset, moved), moved),
            FileCall::Fallocate(range, mode) => {
                let id = self.file(file);
                let size = &mut self.tree.object_mut(id).size;
                match ok {
                    true if mode & flags::FALLOC_MOVES != 0 => size.cut(),
                    true if mode & flags::FALLOC_KEEP_SIZE == 0 => {
                        size.write(range.offset.saturating_add(range.bytes));
                    }
                    _ => {}
                }
            }
            FileCall::Store(range) => {
                let id = self.file(file);
                let last = range.offset.saturating_add(range.bytes).saturating_sub(1);
                // The last page begins within the file; a store cannot make a file longer.
                let page = last & !(PAGE - 1);
                if ok && range.bytes > 0 {
                    let size = &mut self.tree.object_mut(id).size;
                    size.reaches(page.max(range.offset).saturating_add(1));
                }
            }
            FileCall::Copy {
                from,
                from_offset,
                offset,
                ..
            } => {
                if let Some(from) = from {
                    self.read(from, end(from_offset, moved), moved);
                }
                self.written(file, end(offset, moved), moved);
            }
            FileCall::Clone {
                from,
                from_offset,
                range,
            } => {
                let bytes = if ok { range.bytes } else { 0 };
                self.read(from, end(Some(from_offset), bytes), bytes);
                let until = end(Some(range.offset), bytes).filter(|_| bytes > 0);
                self.written(file, until, u64::from(ok));
            }
            _ => drop(self.file(file)),
        }
    }

    fn read(&mut self, file: FileId, end: Option<u64>, bytes: u64) {
        let id = self.file(file);
        if let Some(end) = end.filter(|_| bytes > 0) {
            self.tree.object_mut(id).size.reaches(end);
        }
    }

    fn written(&mut self, file: FileId, end: Option<u64>, bytes: u64) {
        let id = self.file(file);
        if bytes > 0 {
            self.tree.object_mut(id).size.write(end.unwrap_or(u64::MAX));
        }
    }

    /// Returns the object of an open file, and notes that the operation uses it. If its open was not recorded, the object has no
    /// name.
    fn file(&mut self, file: FileId) -> ObjectId {
        let tree = &mut self.tree;
        let id = *self
            .files
            .entry(file)
            .or_insert_with(|| tree.make(Kind::File));
        self.touch(id);
        id
    }

    fn touch(&mut self, id: ObjectId) {
        if !self.touched.objects.contains(&id) {
            self.touched.objects.push(id);
        }
    }

    /// Notes that the operation looks up a path, and finds where the path leads.
    fn uses(&mut self, path: &Name, follow: bool, evident: bool) -> Option<EntryPlace> {
        let names = &mut self.touched.uses;
        let place = self.tree.walk(path, follow, evident, names);
        names.push(path.clone());
        self.touch_named(place)
    }

    /// Notes that the operation makes, removes or changes a path, and finds where the path leads.
    fn changes(&mut self, path: &Name, follow: bool, evident: bool) -> Option<EntryPlace> {
        let names = &mut self.touched.changes;
        let place = self.tree.walk(path, follow, evident, names);
        names.push(path.clone());
        self.touch_named(place)
    }

    fn touch_named(&mut self, place: Option<EntryPlace>) -> Option<EntryPlace> {
        if let Some(Entry::Object(id)) = place.as_ref().map(|place| self.tree.entry(place)) {
            self.touch(id);
        }
        place
    }

    /// Returns the object at a place that an operation found there.
    fn found(&mut self, place: &EntryPlace) -> ObjectId {
        let id = self.tree.exists(place);
        self.touch(id);
        id
    }

    fn kind(&mut self, id: ObjectId, kind: Kind) {
        let object = self.tree.object_mut(id);
        if object.kind == Kind::Unknown {
            object.kind = kind;
        }
    }

    /// Deduces the kinds of objects that follow from kinds that became known later.
    pub(crate) fn finish(&mut self) {
        for (one, other) in std::mem::take(&mut self.replaced).into_iter().rev() {
            self.same_kind(one, other);
        }
    }

    /// Notes that one object replaced another, so that either both are folders or neither is.
    fn same_kind(&mut self, one: ObjectId, other: ObjectId) {
        for (known, unknown) in [(one, other), (other, one)] {
            match self.tree.object(known).kind {
                Kind::Unknown => {}
                Kind::Folder => self.kind(unknown, Kind::Folder),
                _ => self.kind(unknown, Kind::File),
            }
        }
    }

    fn absent(&mut self, place: Option<&EntryPlace>) {
        if let Some(place) = place.filter(|place| self.tree.entry(place) == Entry::Unknown) {
            self.tree.put(place, None);
        }
    }

    fn target(&mut self, target: &Target, follow: bool, result: i64) -> Option<ObjectId> {
        let path = match target {
            Target::File(file) => return Some(self.file(*file)),
            Target::Path(path) => path,
        };
        let failure = failure(result);
        let place = self.uses(path, follow, failure.is_none());
        match failure {
            None => Some(self.found(place.as_ref()?)),
            Some(Failure::Absent) => {
                self.absent(place.as_ref());
                None
            }
            Some(_) => None,
        }
    }

    fn open(&mut self, opened: &Opened, result: i64) {
        let Some(path) = &opened.path else {
            self.nameless(opened, result >= 0);
            return;
        };
        let flags = opened.flags;
        let creates = flags & flags::O_CREAT != 0;
        let exclusive = creates && flags & flags::O_EXCL != 0;
        let temporary = flags & flags::O_TMPFILE == flags::O_TMPFILE;
        let follow = flags & flags::O_NOFOLLOW == 0 && !exclusive;
        let failure = failure(result);
        let evident = matches!(failure, None | Some(Failure::Exists | Failure::Folder));
        let place = match creates {
            true => self.changes(path, follow, evident),
            false => self.uses(path, follow, evident),
        };
        let Some(place) = place else {
            self.nameless(opened, failure.is_none());
            return;
        };
        match failure {
            None if temporary => {
                let folder = self.found(&place);
                self.kind(folder, Kind::Folder);
                self.nameless(opened, true);
            }
            None => self.open_at(&place, opened, exclusive),
            Some(Failure::Absent) if !creates => self.absent(Some(&place)),
            Some(Failure::Exists) => drop(self.found(&place)),
            Some(Failure::Folder) => {
                let id = self.found(&place);
                self.kind(id, Kind::Folder);
            }
            Some(_) => {}
        }
    }

    /// Takes an open whose path is unknown, or that made a file without a name.
    fn nameless(&mut self, opened: &Opened, ok: bool) {
        if let Some(file) = opened.file.filter(|_| ok) {
            self.files.remove(&file);
            self.file(file);
        }
    }

    fn open_at(&mut self, place: &EntryPlace, opened: &Opened, exclusive: bool) {
        let entry = self.tree.entry(place);
        let looked = opened.i_mode != 0 || opened.inode != (0, 0);
        let presumably = opened.flags & flags::O_CREAT != 0 && !looked;
        let id = match entry {
            _ if opened.created || exclusive => self.made_at(place),
            Entry::Absent if opened.flags & flags::O_CREAT != 0 => self.made_at(place),
            Entry::Unknown if presumably => {
                let id = self.made_at(place);
                self.tree.presume_made(place, id);
                id
            }
            Entry::Unknown => self.known_by_inode(place, opened),
            _ => self.tree.exists(place),
        };
        if opened.inode != (0, 0) {
            self.inodes.insert(opened.inode, id);
        }
        self.look(id, opened);
        if let Some(file) = opened.file {
            self.files.insert(file, id);
        }
        self.touch(id);
    }

    fn made_at(&mut self, place: &EntryPlace) -> ObjectId {
        let id = self.tree.make(Kind::File);
        self.tree.put(place, Some(id));
        id
    }

    /// Returns the object at a place about which nothing is known. If an object with another name has the same inode, it is that
    /// one.
    fn known_by_inode(&mut self, place: &EntryPlace, opened: &Opened) -> ObjectId {
        let known = self.inodes.get(&opened.inode).copied();
        let known = known.filter(|id| !self.tree.object(*id).start.is_empty());
        match known {
            Some(id) if self.tree.object(id).kind == Kind::File => {
                self.tree.link_from_start(place, id);
                id
            }
            _ => self.tree.exists(place),
        }
    }

    /// Notes what an open tells about its file.
    fn look(&mut self, id: ObjectId, opened: &Opened) {
        let writes = opened.flags & flags::O_ACCMODE != 0;
        let truncates = opened.flags & flags::O_TRUNC != 0;
        let by_flags = match opened.flags {
            flags if flags & flags::O_DIRECTORY != 0 => Kind::Folder,
            _ if writes || truncates => Kind::File,
            _ => Kind::Unknown,
        };
        self.kind(id, kind_of(opened.i_mode, by_flags));
        let object = self.tree.object_mut(id);
        if opened.i_mode != 0 {
            object.mode.get_or_insert(Some(opened.i_mode & 0o7777));
        }
        match opened.size {
            _ if truncates => object.size.cut(),
            Some(size) => object.size.is(size),
            None => {}
        }
    }

    fn opened(&mut self, opened: &Opened) {
        let place = opened
            .path
            .as_ref()
            .and_then(|path| self.uses(path, true, true));
        match place {
            // The open itself happened before the recording, so it did not make or truncate the file.
            Some(place) => {
                let seen = Opened {
                    flags: opened.flags & !(flags::O_CREAT | flags::O_TRUNC | flags::O_EXCL),
                    created: false,
                    ..opened.clone()
                };
                self.open_at(&place, &seen, false);
            }
            None => self.nameless(opened, true),
        }
    }

    fn create(&mut self, path: &Name, kind: Kind, result: i64) {
        let failure = failure(result);
        let evident = matches!(failure, None | Some(Failure::Exists));
        let Some(place) = self.changes(path, false, evident) else {
            return;
        };
        match failure {
            None => {
                let id = self.tree.make(kind);
                self.tree.put(&place, Some(id));
                self.touch(id);
            }
            Some(Failure::Exists) => {
                let id = self.found(&place);
                self.tree.object_mut(id).perhaps_folder |= kind == Kind::Folder;
            }
            Some(_) => {}
        }
    }

    fn remove(&mut self, path: &Name, kind: Kind, result: i64) {
        let failure = failure(result);
        let evident = matches!(failure, None | Some(Failure::Folder));
        let Some(place) = self.changes(path, false, evident) else {
            return;
        };
        match failure {
            None => {
                let id = self.found(&place);
                self.kind(id, kind);
                self.tree.put(&place, None);
            }
            Some(Failure::Folder) => {
                let id = self.found(&place);
                self.kind(id, Kind::Folder);
            }
            Some(Failure::Absent) => self.absent(Some(&place)),
            Some(_) => {}
        }
    }

    fn hard_link(&mut self, from: &Target, to: &Name, follow: bool, result: i64) {
        let failure = failure(result);
        let evident = matches!(failure, None | Some(Failure::Exists));
        let from = match from {
            Target::File(file) => Some(self.file(*file)),
            Target::Path(path) => {
                let place = self.uses(path, follow, evident);
                place.filter(|_| evident).map(|place| self.found(&place))
            }
        };
        let to = self.changes(to, false, evident);
        let (Some(id), Some(to)) = (from, to) else {
            return;
        };
        if evident {
            match failure {
                None => {
                    self.kind(id, Kind::File);
                    self.tree.put(&to, Some(id));
                }
                Some(_) => drop(self.found(&to)),
            }
        }
    }

    fn rename(&mut self, from: &Name, to: &Name, flags: u32, result: i64) {
        let failure = match leads_into_itself(from, to, flags, result) {
            true => Some(Failure::Inside),
            false => failure(result),
        };
        let evident = !matches!(failure, Some(Failure::Absent | Failure::Other));
        let from = self.changes(from, false, evident);
        let to = self.changes(to, false, evident);
        let (Some(from), Some(to)) = (from, to) else {
            return;
        };
        match failure {
            None if flags & flags::RENAME_EXCHANGE != 0 => {
                let (one, other) = (self.found(&from), self.found(&to));
                self.tree.put(&from, Some(other));
                self.tree.put(&to, Some(one));
            }
            None => {
                let id = self.found(&from);
                if let Entry::Object(replaced) = self.tree.entry(&to) {
                    self.same_kind(id, replaced);
                    self.replaced.push((id, replaced));
                }
                // Two names of one file are both kept.
                if self.tree.entry(&to) != Entry::Object(id) {
                    self.tree.put(&from, None);
                    self.tree.put(&to, Some(id));
                }
            }
            Some(Failure::Exists | Failure::Folder) => {
                self.found(&from);
                self.found(&to);
            }
            Some(Failure::Inside) => {
                self.found(&from);
                // The kernel also checks first that there is something to exchange it with.
                if flags & flags::RENAME_EXCHANGE != 0 {
                    self.found(&to);
                }
            }
            Some(_) => {}
        }
    }
}

/// Returns true if a rename was refused because one of its names lies below the other. The kernel checks first that there is
/// something to rename (`do_renameat2` of fs/namei.c).
fn leads_into_itself(from: &Name, to: &Name, flags: u32, result: i64) -> bool {
    let is_known = [0, flags::RENAME_EXCHANGE, flags::RENAME_NOREPLACE].contains(&flags);
    let is_nested = from.is_in(to) || to.is_in(from);
    is_known && is_nested && errno(result) == Some(Errno::INVAL)
}

/// The smallest page of any machine, bytes.
const PAGE: u64 = 4096;

fn kind_of(mode: u32, unknown: Kind) -> Kind {
    match mode & flags::S_IFMT {
        0 => unknown,
        flags::S_IFDIR => Kind::Folder,
        flags::S_IFREG => Kind::File,
        _ => Kind::Other,
    }
}
