// SPDX-License-Identifier: MIT OR Apache-2.0
//! The target of a process: a file, an SQLite database, or the files of a directory.

use crate::answer::is_part;
use crate::attribute::{HashMap, HashSet};
use crate::sums::{Label, Totals};
use crate::tally::Tally;

/// A file or directory is named from the second share on, with `mostly` below the first, per cent.
const NEARLY_ALL: u64 = 95;
const MOST_OF_IT: u64 = 50;

/// Bytes by file; an SQLite database includes its journals.
pub(super) struct Targets<'a>(HashMap<&'a str, u64>);

/// A file, its database, and bytes written.
pub(super) type Row<'a> = (&'a str, &'a Label, u64);

/// Returns the process of a group by process, file and SQLite database, and the rest of it; None if nothing was written.
pub(super) fn row((labels, totals): &(Vec<Label>, Totals)) -> Option<(&str, Row<'_>)> {
    let [Label::Text(process), Label::Text(file), database] = &labels[..] else {
        return None;
    };
    let bytes = totals.write_bytes;
    (bytes > 0).then_some((process.as_str(), (file.as_str(), database, bytes)))
}

impl<'a> Targets<'a> {
    /// Sums up what was written for the files of a process.
    pub fn new(files: impl Iterator<Item = Row<'a>>) -> Targets<'a> {
        let its: Vec<Row<'_>> = files.collect();
        let all: HashSet<&str> = its.iter().map(|(file, ..)| *file).collect();
        let mut targets: HashMap<_, u64> = HashMap::default();
        for (file, database, bytes) in its {
            // A file that only looks like a journal has no database beside it.
            let target = match database {
                Label::Text(database) if all.contains(database.as_str()) => database.as_str(),
                _ => file,
            };
            targets.entry(target).or_default().tally(bytes);
        }
        Targets(targets)
    }

    /// Returns ` for /film` or ` mostly for files in /src`; nothing if no named file or directory has most bytes.
    pub fn words(&self, whole: u64) -> String {
        let file = self.0.iter().map(|(file, bytes)| (*file, *bytes));
        let file = largest(file);
        let folders = self.folders();
        let in_folder = |least: u64| {
            let large = folders.iter().filter(|(_, b)| is_part(**b, whole, least));
            // The deepest directory has the longest name, because each lies in all shorter ones.
            let deepest = large.max_by_key(|(folder, bytes)| (folder.len(), **bytes, **folder));
            deepest.map(|(folder, _)| *folder)
        };
        let is_file = |least: u64| file.filter(|(_, bytes)| is_part(*bytes, whole, least));
        if let Some((file, _)) = is_file(NEARLY_ALL) {
            format!(" for {file}")
        } else if let Some((file, _)) = is_file(MOST_OF_IT) {
            format!(" mostly for {file}")
        } else if let Some(folder) = in_folder(NEARLY_ALL) {
            format!(" for files in {folder}")
        } else if let Some(folder) = in_folder(MOST_OF_IT) {
            format!(" mostly for files in {folder}")
        } else {
            String::new()
        }
    }

    /// Returns the bytes of the files in each directory and below it; the root directory is left out, because it
    /// contains all files.
    fn folders(&self) -> HashMap<&'a str, u64> {
        let mut folders: HashMap<_, u64> = HashMap::default();
        for (file, bytes) in self.0.iter().filter(|(file, _)| file.starts_with('/')) {
            let mut rest = *file;
            while let Some((folder, _)) = rest.rsplit_once('/').filter(|(f, _)| !f.is_empty()) {
                folders.entry(folder).or_default().tally(*bytes);
                rest = folder;
            }
        }
        folders
    }
}

/// Returns the file with the most bytes; of several, the first by name.
fn largest<'a>(all: impl Iterator<Item = (&'a str, u64)>) -> Option<(&'a str, u64)> {
    all.max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(a.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(files: &[(&str, &str, u64)], whole: u64) -> String {
        let label = |word: &str| match word {
            "" => Label::Empty,
            word => Label::Text(word.to_owned()),
        };
        let groups = files
            .iter()
            .map(|(file, database, bytes)| {
                let totals = Totals {
                    write_bytes: *bytes,
                    ..Totals::default()
                };
                let labels = ["app:7", file, database];
                (labels.map(label).to_vec(), totals)
            })
            .collect::<Vec<_>>();
        let rows = groups.iter().filter_map(row);
        Targets::new(rows.map(|(_, row)| row)).words(whole)
    }

    #[test]
    fn a_file_is_named_for_its_part_of_it() {
        let film = ("/film", "", 95);
        assert_eq!(words(&[film, ("/x", "", 5)], 100), " for /film");
        assert_eq!(words(&[film, ("/x", "", 6)], 101), " mostly for /film");
        assert_eq!(words(&[film], 191), "");
        assert_eq!(words(&[], 100), "");
    }

    #[test]
    fn a_database_is_one_with_its_journals() {
        let journal = ("/a.db-journal", "/a.db", 60);
        assert_eq!(words(&[journal, ("/a.db", "/a.db", 40)], 100), " for /a.db");
        // There is no sign of such a database.
        assert_eq!(words(&[journal], 100), " mostly for /a.db-journal");
    }

    #[test]
    fn many_files_are_named_by_their_folder() {
        let of = |names: &[&str]| {
            let files: Vec<_> = names.iter().map(|name| (*name, "", 10)).collect();
            words(&files, 10 * names.len() as u64)
        };
        assert_eq!(of(&["/r/a/1", "/r/a/2", "/r/b/3"]), " for files in /r");
        assert_eq!(of(&["/r/a/1", "/r/a/2", "/3"]), " mostly for files in /r/a");
        // All files are in the root directory, which says nothing.
        assert_eq!(of(&["/1", "/2", "/3"]), "");
        // The directory of a bare file name is unknown.
        assert_eq!(of(&["r/1", "r/2", "(inode 3)"]), "");
    }
}
