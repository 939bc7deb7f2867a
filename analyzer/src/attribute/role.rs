// SPDX-License-Identifier: MIT OR Apache-2.0
//! Roles of files, from their names and from those of the files beside them.

use std::collections::HashSet;

use super::File;
use mostrace_map::class::{Kind, Role};

/// Gives every regular file with a name its role. A file whose `-journal`, `-wal`, `-shm` or
/// `-mj…` was seen is a database, whatever its own ending.
pub(super) fn assign(mut files: Vec<File>) -> Vec<File> {
    let databases: HashSet<Box<[u8]>> = files
        .iter()
        .filter_map(|f| database_of(f.path.as_deref()?))
        .map(Into::into)
        .collect();
    for file in files.iter_mut().filter(|f| f.kind == Kind::Regular) {
        let by_name = file.name().map(Role::of_name);
        let companion = file
            .path
            .as_ref()
            .is_some_and(|path| databases.contains(path));
        file.role = match by_name {
            Some(Role::Other | Role::Temp | Role::Backup) if companion => Some(Role::Db),
            role => role,
        };
    }
    files
}

/// The database that a temporary file of SQLite's belongs to, by its path.
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
