// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads, their descriptors and their current folders.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use crate::{FileId, Name};

/// An open file within the replayed folder.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub id: FileId,
    /// Its path on the recorded machine; None if it has no name.
    pub path: Option<Name>,
    /// The place of the operation that opened it.
    pub opened_by: usize,
    /// The position of the next read or write; None if it is unknown.
    pub position: Cell<Option<u64>>,
    pub append: bool,
    /// True if the file was written or truncated, so that its size is no longer the one at its opening.
    pub changed: Cell<bool>,
}

/// A shared mapping of a file.
#[derive(Clone, Debug)]
pub(super) struct Mapping {
    pub address: u64,
    pub bytes: u64,
    pub file: Rc<OpenFile>,
    pub offset: u64,
}

/// What a descriptor leads to.
#[derive(Clone, Debug)]
pub(super) enum Leads {
    To(Rc<OpenFile>),
    /// It leads to a file outside of the replayed folder, or to no file.
    Elsewhere,
}

#[derive(Clone, Debug)]
struct Descriptor {
    leads: Leads,
    closed_on_exec: bool,
}

/// The descriptors that the threads of a process share.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    open: HashMap<u32, Descriptor>,
    pub mappings: Vec<Mapping>,
}

impl Files {
    /// Returns what a descriptor leads to; None if that is not known.
    pub fn get(&self, descriptor: u32) -> Option<Leads> {
        self.open.get(&descriptor).map(|open| open.leads.clone())
    }

    /// Returns the open file of a descriptor.
    pub fn file(&self, descriptor: u32) -> Option<Rc<OpenFile>> {
        match self.get(descriptor)? {
            Leads::To(file) => Some(file),
            Leads::Elsewhere => None,
        }
    }

    pub fn set(&mut self, descriptor: u32, leads: Leads, closed_on_exec: bool) {
        let open = Descriptor {
            leads,
            closed_on_exec,
        };
        self.open.insert(descriptor, open);
    }

    pub fn forget(&mut self, descriptor: u32) {
        self.open.remove(&descriptor);
    }

    pub fn close_on_exec(&mut self, descriptor: u32, closed_on_exec: bool) {
        if let Some(open) = self.open.get_mut(&descriptor) {
            open.closed_on_exec = closed_on_exec;
        }
    }

    /// Closes a descriptor. Returns the file if this was the last descriptor that leads to it.
    pub fn close(&mut self, descriptor: u32) -> Option<Rc<OpenFile>> {
        let Leads::To(file) = self.open.remove(&descriptor)?.leads else {
            return None;
        };
        // A mapping holds the file too, and outlives the descriptor.
        let mappings = self.mappings.iter();
        let mapped = mappings.filter(|m| Rc::ptr_eq(&m.file, &file)).count();
        (Rc::strong_count(&file) <= mapped.saturating_add(1)).then_some(file)
    }

    /// Returns the known descriptors in a range, in order.
    pub fn between(&self, first: u32, last: u32) -> Vec<u32> {
        let known = self.open.keys().copied();
        let mut all: Vec<u32> = known.filter(|fd| (first..=last).contains(fd)).collect();
        all.sort_unstable();
        all
    }

    /// Returns the descriptors that end if a program is executed, in order.
    pub fn until_exec(&self) -> Vec<u32> {
        let mut all = self.between(0, u32::MAX);
        all.retain(|fd| self.open.get(fd).is_some_and(|open| open.closed_on_exec));
        all
    }
}

/// A thread.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub process: u32,
    pub files: Rc<RefCell<Files>>,
    /// The current folder on the recorded machine; None if it is unknown.
    pub folder: Rc<RefCell<Option<Name>>>,
}

impl Task {
    pub fn new(process: u32, folder: Option<Name>) -> Task {
        Task {
            process,
            files: Rc::default(),
            folder: Rc::new(RefCell::new(folder)),
        }
    }

    /// Returns the thread or process that clone makes with these flags (`CLONE_…`).
    pub fn child(&self, number: u32, flags: u64) -> Task {
        let mut child = self.clone();
        if !has(flags, "CLONE_THREAD") {
            child.process = number;
        }
        child.unshare(!flags);
        child
    }

    /// Gives the thread its own copies of what these flags name.
    pub fn unshare(&mut self, flags: u64) {
        if has(flags, "CLONE_FILES") {
            let files = self.files.borrow().clone();
            self.files = Rc::new(RefCell::new(files));
        }
        if has(flags, "CLONE_FS") {
            let folder = self.folder.borrow().clone();
            self.folder = Rc::new(RefCell::new(folder));
        }
    }
}

fn has(flags: u64, word: &str) -> bool {
    let named = crate::words::CLONE.iter().find(|(name, _)| *name == word);
    named.is_some_and(|(_, bit)| flags & bit != 0)
}
