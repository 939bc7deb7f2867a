// SPDX-License-Identifier: MIT OR Apache-2.0
//! Derives files' roles from their names and from the names of the files beside them.

use std::collections::HashSet;

use mostrace_map::Map;
use mostrace_map::class::{Kind, Role};

use super::file::{File, database_of};
use super::folders::Folders;

/// What is known of the files beside each file.
pub struct Roles {
    folders: Folders,
    databases: HashSet<Box<[u8]>>,
}

impl Roles {
    /// Learns from these paths, and from those in the map.
    pub fn new<'p>(paths: impl Iterator<Item = &'p [u8]> + Clone, map: Option<&Map>) -> Roles {
        Roles {
            folders: Folders::find(paths.clone(), map),
            databases: paths.filter_map(database_of).map(Into::into).collect(),
        }
    }

    /// Returns the role of a regular file. In a store's directory, the store's names decide. Elsewhere, a file whose `-journal`,
    /// `-wal`, `-shm` or `-mj…` was seen is an SQLite database, whatever its own suffix.
    pub fn of(&self, path: &[u8]) -> Role {
        if let Some(of_store) = self.folders.file(path) {
            return Role::Store(of_store);
        }
        let name = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
        match Role::of_name(name) {
            Role::Other | Role::Temp | Role::Backup if self.databases.contains(path) => Role::Db,
            role => role,
        }
    }
}

/// Gives every regular file with a name its role.
pub(super) fn assign(mut files: Vec<File>, map: Option<&Map>) -> Vec<File> {
    let roles = Roles::new(files.iter().filter_map(|file| file.path.as_deref()), map);
    for file in files.iter_mut().filter(|f| f.kind == Kind::Regular) {
        file.role = file.path.as_deref().map(|path| roles.of(path));
    }
    files
}
