// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a folder is copied: all but what this program made. A recording that one measurement leaves in the folder would
//! otherwise be written to the filesystem of the next.

use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use mostrace_bundle::made;
use mostrace_bundle::manifest::Copied;

/// The part of a folder that is copied.
#[derive(Debug, Default)]
pub struct Chosen {
    /// The trees that are copied as a whole, by their paths in the folder; of the folder itself if nothing is left out.
    pub whole: Vec<PathBuf>,
    /// The folders of which something is left out.
    pub parts: Vec<PathBuf>,
    /// What is left out.
    pub left_out: Vec<PathBuf>,
    /// The files that are copied.
    pub copied: Copied,
    /// The room that they take, bytes.
    pub room: u64,
    /// The room beyond which nothing is looked at.
    most: u64,
}

/// The bytes of a block in a file's number of blocks.
const BLOCK: u64 = 512;

impl Chosen {
    /// Looks through a folder, until it holds more than `most` bytes; what is mounted below it is not copied.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read. What lies in a folder below that cannot be read is left to the copy.
    pub fn of(folder: &Path, most: u64) -> io::Result<Chosen> {
        let mut chosen = Chosen {
            most,
            ..Chosen::default()
        };
        let meta = fs::metadata(folder)?;
        let entries = fs::read_dir(folder)?;
        if chosen.look_into(Path::new(""), entries, &meta)? {
            chosen.whole = vec![PathBuf::from(".")];
        }
        Ok(chosen)
    }

    /// Looks through the folder that is called `within` in the copy. Returns true if all of it is copied.
    fn look_into(
        &mut self,
        within: &Path,
        entries: fs::ReadDir,
        of: &Metadata,
    ) -> io::Result<bool> {
        let left_out = self.left_out.len();
        let mut whole = Vec::new();
        for entry in entries {
            let entry = entry?;
            if self.room > self.most {
                break;
            }
            let path = within.join(entry.file_name());
            if self.look_at(&path, &entry, of)? {
                whole.push(path);
            }
        }
        let is_whole = self.left_out.len() == left_out;
        if !is_whole {
            self.whole.extend(whole);
            self.parts.push(within.to_owned());
        }
        Ok(is_whole)
    }

    /// Looks at what is called `path` in the copy. Returns true if all of it is copied.
    fn look_at(&mut self, path: &Path, entry: &DirEntry, folder: &Metadata) -> io::Result<bool> {
        let meta = match entry.metadata() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(true),
            meta => meta?,
        };
        if made::is_made(&entry.path(), &meta) {
            self.left_out.push(path.to_owned());
            return Ok(false);
        }
        if meta.is_dir() && meta.dev() == folder.dev() {
            self.room = self
                .room
                .saturating_add(meta.blocks().saturating_mul(BLOCK));
            return match fs::read_dir(entry.path()) {
                Ok(entries) => self.look_into(path, entries, &meta),
                Err(_) => Ok(true),
            };
        }
        if !meta.is_dir() {
            self.copied.files = self.copied.files.saturating_add(1);
            self.copied.bytes = self.copied.bytes.saturating_add(meta.len());
            self.room = self
                .room
                .saturating_add(meta.blocks().saturating_mul(BLOCK));
        }
        Ok(true)
    }

    /// Returns true if nothing is left out.
    pub fn is_all(&self) -> bool {
        self.left_out.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_program_made_is_left_out() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        for folder in ["src/deep", "out/r", "only/r", "empty"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        let manifest = r#"{"schema": 1, "tool": "mostrace 0.1"}"#;
        for folder in ["out/r", "only/r"] {
            fs::write(at(folder).join("manifest.json"), manifest).unwrap();
        }
        fs::write(at("out/kept"), "12345").unwrap();
        fs::write(at("src/deep/x"), "123").unwrap();
        let chosen = Chosen::of(tmp.path(), u64::MAX).unwrap();
        let sorted = |paths: &[PathBuf]| {
            let mut all: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
            all.sort();
            all
        };
        assert_eq!(sorted(&chosen.left_out), ["only/r", "out/r"]);
        assert_eq!(sorted(&chosen.whole), ["empty", "out/kept", "src"]);
        assert_eq!(sorted(&chosen.parts), ["", "only", "out"]);
        assert_eq!(chosen.copied, Copied { files: 2, bytes: 8 });
        fs::remove_dir_all(at("out/r")).unwrap();
        fs::remove_dir_all(at("only/r")).unwrap();
        let chosen = Chosen::of(tmp.path(), u64::MAX).unwrap();
        assert!(
            chosen.is_all() && sorted(&chosen.whole) == ["."],
            "{chosen:?}"
        );
    }
}
