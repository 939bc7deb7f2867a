// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names from the mounted tree (`record --names DIR`). The names in an encrypted folder (fscrypt) are ciphertext on the disk; while
//! the folder is unlocked, the kernel shows the real ones. The tree is walked before and after the recording, and the names of its
//! files are stored by inode and generation.

use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, mem};

use mostrace_bundle::{Folder, layout, table};

use crate::error::{At, Error, Result};
use crate::machine::clock;
use crate::machine::dev::dev_of_stat;
use crate::machine::mountinfo;
use walk::{Walk, Walked};

mod fscrypt;
mod walk;

/// A folder whose files should be named.
pub(crate) struct WalkedTree {
    path: PathBuf,
    /// The path of the folder from the filesystem's root, without a final `/`.
    from_root: Vec<u8>,
}

impl WalkedTree {
    /// Looks up a folder of the filesystem `s_dev` (major << 20 | minor).
    ///
    /// # Errors
    /// Returns an error if it is not a folder, or if it belongs to another filesystem.
    pub fn find(path: &Path, s_dev: u32) -> Result<WalkedTree> {
        let meta = fs::metadata(path).at(path)?;
        if !meta.is_dir() {
            return Err(Error::malformed(path.display(), "no folder"));
        }
        if dev_of_stat(meta.dev()) != s_dev {
            let what = "not on the filesystem that is recorded";
            return Err(Error::malformed(path.display(), what));
        }
        let whole = fs::canonicalize(path).at(path)?;
        let mounts = mountinfo::reachable();
        let from_root = mountinfo::holding(&mounts, &whole)
            .and_then(|m| Some(from_root(&m.root, whole.strip_prefix(&m.point).ok()?)))
            .ok_or_else(|| Error::malformed(path.display(), "where it is mounted is not known"))?;
        Ok(WalkedTree {
            path: whole,
            from_root,
        })
    }
}

fn from_root(root: &Path, below: &Path) -> Vec<u8> {
    let [root, below] = [root, below].map(|path| path.as_os_str().as_encoded_bytes());
    let mut path = root.strip_suffix(b"/").unwrap_or(root).to_vec();
    if !below.is_empty() {
        path.push(b'/');
        path.extend_from_slice(below);
    }
    path
}

/// The trees of a recording.
#[derive(Default)]
pub(crate) struct Trees {
    trees: Vec<WalkedTree>,
    s_dev: u32,
    /// The number of names that were written.
    named: u64,
    walked: Walked,
}

impl Trees {
    /// Finds the trees of these folders.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`WalkedTree::find`].
    pub fn find(paths: &[PathBuf], s_dev: u32) -> Result<Trees> {
        let trees = paths.iter().map(|path| WalkedTree::find(path, s_dev));
        Ok(Trees {
            trees: trees.collect::<Result<_>>()?,
            s_dev,
            ..Trees::default()
        })
    }

    /// Walks the trees, and adds the names to a bundle's table. Without trees, there is no table. Returns the reasons why trees
    /// could not be walked.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn walk(&mut self, folder: &Folder) -> Result<Vec<Error>> {
        let mut refused = Vec::new();
        if self.trees.is_empty() {
            return Ok(refused);
        }
        let shown = folder.path().join(layout::NAMES);
        let is_new = !folder.has(layout::NAMES)?;
        let mut out = BufWriter::new(folder.append(layout::NAMES)?);
        if is_new {
            out.write_all(&table::header()).at(&shown)?;
        }
        self.walked = Walked::default();
        let now_ns = clock::now().start_mono_ns;
        for tree in &self.trees {
            let root = match walk::open_root(&tree.path) {
                Ok(root) => root,
                Err(e) => {
                    refused.push(e);
                    continue;
                }
            };
            let mut walk = Walk::new(self.s_dev, now_ns, mem::take(&mut self.walked));
            walk.tree(&root, &tree.from_root, &mut |record| {
                out.write_all(record).at(&shown)
            })?;
            self.walked = walk.into_walked();
        }
        self.named += self.walked.named;
        out.flush().at(&shown)?;
        Ok(refused)
    }

    /// Returns the number of names that were written.
    pub fn named(&self) -> Option<u64> {
        (!self.trees.is_empty()).then_some(self.named)
    }

    /// Returns the notes about what the last walk could not name.
    pub fn notes(&self) -> Vec<String> {
        let Walked {
            locked,
            unread,
            left_out,
            ..
        } = self.walked;
        let said = [
            (
                locked,
                "folders below --names are locked: of what is in them the names are encrypted, and stay unknown",
            ),
            (
                unread,
                "files below --names could not be opened: they are not named",
            ),
            (
                left_out,
                "files below --names are not named: there are too many, or their paths are too long",
            ),
        ];
        let said = said.into_iter().filter(|(count, _)| *count > 0);
        said.map(|(count, what)| format!("{count} {what}"))
            .collect()
    }
}

/// Copies the names of one segment to the next.
///
/// # Errors
/// Returns an error if this fails, for example because the disk is full.
pub(crate) fn carry(from: &Folder, to: &Folder) -> Result<()> {
    if !from.has(layout::NAMES)? {
        return Ok(());
    }
    let mut old = from.read(layout::NAMES)?;
    let mut new = to.create(layout::NAMES)?;
    io::copy(&mut old, &mut new).at(to.path().join(layout::NAMES))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_at_the_filesystems_root() {
        for (root, below, path) in [
            ("/", "", ""),
            ("/", "data/app", "/data/app"),
            ("/part", "", "/part"),
            ("/part", "a b", "/part/a b"),
        ] {
            let found = from_root(Path::new(root), Path::new(below));
            assert_eq!(found, path.as_bytes());
        }
    }
}
