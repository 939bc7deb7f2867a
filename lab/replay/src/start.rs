// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files and folders that must have existed before the first operation.

use std::collections::BTreeMap;

use crate::deduce::Deduction;
use crate::tree::{Kind, ObjectId};
use crate::{Name, Recorded};

/// A regular file that existed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartFile {
    /// Its size: the size that was seen before an operation changed it, otherwise the least that explains the operations; 0 if the
    /// first open truncated it.
    pub bytes: u64,
    /// Its permissions; None if they are unknown.
    pub mode: Option<u32>,
}

/// What must have existed before the first operation, deduced from the operations. It does not include anything that no operation
/// used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The folders without the root, and their permissions; None if they are unknown.
    pub folders: BTreeMap<Name, Option<u32>>,
    /// The regular files.
    pub files: BTreeMap<Name, StartFile>,
    /// Further names of those files (hard links); each has a name that is in `files`.
    pub links: BTreeMap<Name, Name>,
}

impl Start {
    /// Deduces the start from operations that are ordered by the time at which they began. A path existed if an operation found it
    /// before any operation made it. A name that was absent at its first use did not exist.
    pub fn of(recorded: &Recorded) -> Start {
        let mut deduction = Deduction::default();
        for operation in &recorded.operations {
            deduction.step(operation);
        }
        Start::deduced(deduction)
    }

    pub(crate) fn deduced(mut deduction: Deduction) -> Start {
        deduction.finish();
        let mut start = Start::default();
        for id in deduction.tree.ids() {
            start.add(&deduction, id);
        }
        start
    }

    fn add(&mut self, deduction: &Deduction, id: ObjectId) {
        let object = deduction.tree.object(id);
        let bytes = object.size.at_start();
        if object.start.is_empty() || object.presumed_made && bytes == 0 {
            return;
        }
        let mut names = deduction.tree.start_names(id).into_iter();
        let Some(name) = names.next() else {
            return;
        };
        let mode = object.mode.flatten();
        if object.is_folder() {
            self.folders.insert(name, mode);
        } else if matches!(object.kind, Kind::File | Kind::Unknown) {
            self.links.extend(names.map(|other| (other, name.clone())));
            self.files.insert(name, StartFile { bytes, mode });
        }
    }
}
