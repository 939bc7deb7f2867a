// SPDX-License-Identifier: MIT OR Apache-2.0
//! Labels of files, and their roles.

use std::collections::HashSet;

use mostrace_map::class::{Kind, Role};

use super::{By, Lookup, of_files, of_known_causes};
use crate::attribute::{File, HashMap};
use crate::origins::Origins;
use crate::text::escape;

/// The role of a regular file whose name is unknown.
const UNKNOWN_ROLE: &str = "unknown";

/// Returns a file's label: its path, or else its inode with the generation, because an inode number alone may have been
/// reused.
pub fn file_label(file: &File) -> Option<String> {
    match (&file.path, file.inode?, file.generation) {
        (Some(path), ..) => Some(escape(path)),
        (None, inode, Some(generation)) => {
            Some(format!("(inode {inode}, generation {generation})"))
        }
        (None, inode, None) => Some(format!("(inode {inode})")),
    }
}

/// Returns the labels of files.
pub fn file_labels(origins: &Origins, by: By) -> Vec<Option<String>> {
    of_files(origins, by, |at, file| file_label_of(origins, at, file))
}

/// Returns the label of the file at index `at`. If there are several recordings, an inode number gets its recording's name;
/// a path does not need it.
fn file_label_of(origins: &Origins, at: usize, file: &File) -> Option<String> {
    let label = file_label(file)?;
    if file.path.is_some() {
        return Some(label);
    }
    Some(label + &origins.suffix(origins.of_file(at)))
}

/// Returns the labels of files under the names that they have in the end, with the number of files that were renamed to it.
fn final_labels(origins: &Origins) -> Vec<Option<String>> {
    let origin = |at: usize| origins.of_file(at);
    let mut renamed: HashMap<&[u8], HashSet<_>> = HashMap::default();
    for (at, file) in origins.names.files.iter().enumerate() {
        if let Some(path) = file.renamed_to() {
            let id = (origin(at), file.inode, file.generation);
            renamed.entry(path).or_default().insert(id);
        }
    }
    of_files(origins, By::Own, |at, file| {
        let path = file.final_path.as_deref();
        match path.and_then(|path| Some((path, renamed.get(path)?.len()))) {
            Some((path, 1)) => Some(format!("{} (1 file renamed to it)", escape(path))),
            Some((path, n)) => Some(format!("{} ({n} files renamed to it)", escape(path))),
            None => file_label_of(origins, at, file),
        }
    })
}

/// Returns the file of the cause, or else the file that is written or read, by the row's cause and file.
pub fn cause_or_files(
    origins: &Origins,
) -> Lookup<impl Fn([u64; 2]) -> u64 + Send + Sync + 'static> {
    cause_or(origins, file_labels(origins, By::Own))
}

/// The same under the names that files have in the end.
pub fn cause_or_final_files(
    origins: &Origins,
) -> Lookup<impl Fn([u64; 2]) -> u64 + Send + Sync + 'static> {
    cause_or(origins, final_labels(origins))
}

fn cause_or(
    origins: &Origins,
    labels: Vec<Option<String>>,
) -> Lookup<impl Fn([u64; 2]) -> u64 + Send + Sync + 'static> {
    let files = of_known_causes(origins, |cause| cause.file.0);
    Lookup::new(labels, move |[cause, file]: [u64; 2]| {
        let of_cause = files.get(cause as usize).copied().flatten();
        of_cause.map_or(file, u64::from)
    })
}

/// Returns the code of a kind in a row; 0 is none.
pub const fn kind_code(kind: Kind) -> u64 {
    (kind as u64).saturating_add(1)
}

/// Returns roles, which only regular files and their flushes have, by the row's [`kind_code`] and its file.
pub fn roles(origins: &Origins) -> Lookup<impl Fn([u64; 2]) -> u64 + Send + Sync + 'static> {
    // The first word is the empty one.
    let number = |at: usize| at.saturating_add(1) as u64;
    let unknown = number(Role::all().count());
    let words = Role::all().map(Role::as_str).chain([UNKNOWN_ROLE]);
    let words = words.map(|word| Some(word.to_owned()));
    let role = |file: &File| file.role.map_or(unknown, |role| number(role.number()));
    let roles: Vec<u64> = origins.names.files.iter().map(role).collect();
    Lookup::new(
        std::iter::once(None).chain(words),
        move |[kind, file]: [u64; 2]| {
            let of_file = || roles.get(file as usize).copied().unwrap_or(unknown);
            let is_regular = kind == kind_code(Kind::Regular);
            let is_flush_of_file = kind == 0 && file != 0;
            match file {
                0 if is_regular => unknown,
                _ if is_regular || is_flush_of_file => of_file(),
                _ => 0,
            }
        },
    )
}
