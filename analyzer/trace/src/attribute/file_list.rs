// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of a trace by their numbers.

use mostrace_map::class::Kind;

use super::{File, FileId, HashMap};

/// Files, of which the first is none.
pub(super) struct FileList {
    files: Vec<File>,
    /// The kind of each: all that most rows ask for, and few enough bytes to stay in a core's cache.
    kinds: Vec<Kind>,
    by_file: HashMap<File, FileId>,
}

impl Default for FileList {
    fn default() -> Self {
        FileList {
            files: vec![File::NONE],
            kinds: vec![File::NONE.kind],
            by_file: HashMap::from_iter([(File::NONE, FileId::NONE)]),
        }
    }
}

impl FileList {
    /// Returns the number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns a file by its number.
    pub fn get(&self, FileId(id): FileId) -> &File {
        self.files.get(id as usize).unwrap_or(&File::NONE)
    }

    /// Returns the kind of a file.
    pub fn kind(&self, FileId(id): FileId) -> Kind {
        let kind = self.kinds.get(id as usize).copied();
        kind.unwrap_or(File::NONE.kind)
    }

    /// Sets the generation of a file.
    pub fn set_generation(&mut self, FileId(id): FileId, generation: u32) {
        if let Some(file) = self.files.get_mut(id as usize) {
            file.generation = Some(generation);
        }
    }

    /// Adds a file, be it like another one.
    pub fn add(&mut self, file: File) -> FileId {
        let id = FileId(u32::try_from(self.files.len()).unwrap_or(0));
        self.kinds.push(file.kind);
        self.files.push(file);
        id
    }

    /// Returns the number of a file, adding it if it is new.
    pub fn intern(&mut self, file: File) -> FileId {
        if let Some(&id) = self.by_file.get(&file) {
            return id;
        }
        let id = self.add(file.clone());
        self.by_file.insert(file, id);
        id
    }

    /// Returns the files in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    /// Returns the same, whose names can be set.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut File> {
        self.files.iter_mut()
    }

    /// Returns the files, indexed by number.
    pub fn into_list(self) -> Vec<File> {
        self.files
    }
}
