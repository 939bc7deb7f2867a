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
    /// Its path on the recorded machine.
    pub path: Name,
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

/// The descriptors that the threads of a process share.
#[derive(Debug, Default)]
pub(super) struct Files {
    open: HashMap<u32, Rc<OpenFile>>,
    pub mappings: Vec<Mapping>,
}

impl Files {
    pub fn get(&self, descriptor: u32) -> Option<Rc<OpenFile>> {
        self.open.get(&descriptor).cloned()
    }

    /// Assigns a file to a descriptor; None if the descriptor now belongs to a file elsewhere.
    pub fn set(&mut self, descriptor: u32, file: Option<Rc<OpenFile>>) {
        match file {
            Some(file) => drop(self.open.insert(descriptor, file)),
            None => drop(self.open.remove(&descriptor)),
        }
    }

    /// Closes a descriptor. Returns the file if this was the last descriptor that leads to it.
    pub fn close(&mut self, descriptor: u32) -> Option<Rc<OpenFile>> {
        let file = self.open.remove(&descriptor)?;
        // A mapping holds the file too, and outlives the descriptor.
        let mapped = self
            .mappings
            .iter()
            .filter(|m| Rc::ptr_eq(&m.file, &file))
            .count();
        (Rc::strong_count(&file) <= mapped.saturating_add(1)).then_some(file)
    }

    /// Returns the open descriptors in a range, in order.
    pub fn between(&self, first: u32, last: u32) -> Vec<u32> {
        let mut all: Vec<u32> = self
            .open
            .keys()
            .copied()
            .filter(|fd| (first..=last).contains(fd))
            .collect();
        all.sort_unstable();
        all
    }

    /// A copy, as fork makes it: other descriptors of the same open files.
    fn copied(&self) -> Files {
        Files {
            open: self.open.clone(),
            mappings: self.mappings.clone(),
        }
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
        let has = |word| {
            let named = crate::words::CLONE.iter().find(|(name, _)| *name == word);
            named.is_some_and(|(_, bit)| flags & bit != 0)
        };
        Task {
            process: if has("CLONE_THREAD") {
                self.process
            } else {
                number
            },
            files: match has("CLONE_FILES") {
                true => Rc::clone(&self.files),
                false => Rc::new(RefCell::new(self.files.borrow().copied())),
            },
            folder: match has("CLONE_FS") {
                true => Rc::clone(&self.folder),
                false => Rc::new(self.folder.as_ref().clone()),
            },
        }
    }
}
