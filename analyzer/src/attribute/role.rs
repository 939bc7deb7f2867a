// SPDX-License-Identifier: MIT OR Apache-2.0
//! Derives files' roles from their names and from the names of the files beside them.

use std::collections::HashSet;

use mostrace_map::Map;
use mostrace_map::class::{Kind, Role};

use super::File;
use super::folders::Folders;

/// Gives every regular file with a name its role. In a store's directory, the store's names decide. Elsewhere, a file whose
/// `-journal`, `-wal`, `-shm` or `-mj…` was seen is an SQLite database, whatever its own suffix.
pub(super) fn assign(mut files: Vec<File>, map: Option<&Map>) -> Vec<File> {
    let paths = || files.iter().filter_map(|file| file.path.as_deref());
    let folders = Folders::find(paths(), map);
    let databases: HashSet<Box<[u8]>> = paths().filter_map(database_of).map(Into::into).collect();
    for file in files.iter_mut().filter(|f| f.kind == Kind::Regular) {
        let of_store = file.path.as_deref().and_then(|path| folders.file(path));
        let by_name = file.name().map(Role::of_name);
        let companion = file
            .path
            .as_ref()
            .is_some_and(|path| databases.contains(path));
        file.role = match (of_store, by_name) {
            (Some(of_store), _) => Some(Role::Store(of_store)),
            (_, Some(Role::Other | Role::Temp | Role::Backup)) if companion => Some(Role::Db),
            (_, role) => role,
        };
    }
    files
}

/// Returns the path of the database that a temporary file of SQLite belongs to.
pub fn database_of(path: &[u8]) -> Option<&[u8]> {
    let cut = match Role::of_name(path) {
        Role::RollbackJournal => path.len().checked_sub("-journal".len()),
        Role::Wal | Role::Shm => path.len().checked_sub("-wal".len()),
        Role::SuperJournal => path.windows(3).rposition(|w| w == b"-mj"),
        _ => None,
    };
    path.get(..cut?)
        .filter(|base| !base.is_empty() && !base.ends_with(b"/"))
}
