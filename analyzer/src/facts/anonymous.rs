// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names that tell nothing: what is equal stays equal, and what a file is to SQLite can still be seen.

use super::Facts;

/// Hexadecimal digits of a name.
const DIGITS: usize = 12;
/// The longest extension that is kept, bytes.
const EXTENSION: usize = 8;
/// What SQLite appends to a database's name.
const APPENDED: [&[u8]; 3] = [b"-journal", b"-wal", b"-shm"];

/// What names are hashed with.
pub type Key = [u8; 32];

impl Facts {
    /// Replaces the names of processes, apps and the components of paths by their keyed hash (BLAKE3); extensions, and what SQLite appends
    /// to a database's name, are kept. Who does not have the key cannot try names.
    pub fn anonymize(&mut self, key: &Key) {
        for process in &mut self.names.processes {
            process.comm = process.comm.as_deref().map(|comm| hashed(key, comm));
        }
        for file in &mut self.names.files {
            file.path = file.path.as_deref().map(|path| path_of(key, path));
        }
        let packages = self.packages.take();
        self.packages = packages.map(|packages| packages.renamed(|name| hashed(key, name)));
    }
}

fn path_of(key: &Key, path: &[u8]) -> Box<[u8]> {
    let components = path.split(|&b| b == b'/');
    let hidden: Vec<Box<[u8]>> = components.map(|name| name_of(key, name)).collect();
    hidden.join(&b'/').into()
}

/// Of one component.
fn name_of(key: &Key, name: &[u8]) -> Box<[u8]> {
    if name.is_empty() {
        return name.into();
    }
    let is_end = |end: &&&[u8]| name.len() > end.len() && name.ends_with(end);
    let appended = APPENDED.iter().find(is_end).copied().unwrap_or_default();
    let base = &name[..name.len() - appended.len()];
    let extension = extension_of(base);
    let stem = &base[..base.len() - extension.len()];
    [&hashed(key, stem), extension, appended].concat().into()
}

/// From the last dot on, if it is short and plain, and something is ahead of it.
fn extension_of(name: &[u8]) -> &[u8] {
    let Some(dot) = name.iter().rposition(|&b| b == b'.').filter(|&at| at > 0) else {
        return &[];
    };
    let (plain, extension) = (&name[dot + 1..], &name[dot..]);
    let is_plain = !plain.is_empty() && plain.iter().all(u8::is_ascii_alphanumeric);
    match is_plain && plain.len() <= EXTENSION {
        true => extension,
        false => &[],
    }
}

/// Of a whole name, as of a process.
pub(crate) fn hashed(key: &Key, name: &[u8]) -> Box<[u8]> {
    let hash = blake3::keyed_hash(key, name).to_hex();
    hash.as_bytes()[..DIGITS].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_and_its_journal_stay_together() {
        let key = [7; 32];
        let hidden = |path: &str| String::from_utf8(path_of(&key, path.as_bytes()).into()).unwrap();
        let database = hidden("/data/secret.db");
        assert_eq!(
            hidden("/data/secret.db-journal"),
            format!("{database}-journal")
        );
        assert_eq!(hidden("/data/secret.db-wal"), format!("{database}-wal"));
        assert!(
            database.starts_with('/') && database.ends_with(".db"),
            "{database}"
        );
        assert!(
            !database.contains("data") && !database.contains("secret"),
            "{database}"
        );
        assert_eq!(database.split('/').count(), 3);
        // Another key, another name; a long extension may tell something.
        assert_ne!(
            path_of(&[8; 32], b"/data/secret.db"),
            database.as_bytes().into()
        );
        assert!(!hidden("/letter.to-my-bank").contains("bank"));
        assert_eq!(hidden("/"), "/");
    }
}
