// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records that wait until the recording has ended (`--defer`), in a file without a name. They are as the probes wrote them, with
//! addresses of the kernel's memory and names that the user did not ask for; the file is gone when its process is.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use mostrace_bundle::Folder;
use rustix::fs::{FallocateFlags, fallocate};

use crate::error::{At, Result};

/// The name that the file has for a moment.
const NAME: &str = "deferred";

/// The batches, in the order in which they came.
pub(super) struct Spool {
    file: File,
    /// The bundle's folder, for messages.
    place: PathBuf,
    /// The sizes of the batches that are in the file, and where the first one begins.
    sizes: VecDeque<usize>,
    begin: u64,
    end: u64,
}

impl Spool {
    /// Makes an empty file on the filesystem of `folder`.
    ///
    /// # Errors
    /// Returns an error if nothing can be made there.
    pub fn new(folder: &Folder) -> Result<Spool> {
        let file = folder.create(NAME)?;
        folder.remove(NAME)?;
        Ok(Spool {
            file,
            place: folder.path().to_owned(),
            sizes: VecDeque::new(),
            begin: 0,
            end: 0,
        })
    }

    /// Appends a batch.
    ///
    /// # Errors
    /// Returns an error, with the bundle's folder, if there is no room; the batch is not in the file then.
    pub fn put(&mut self, batch: &[u8]) -> Result<()> {
        self.file.write_all_at(batch, self.end).at(&self.place)?;
        self.end += batch.len() as u64;
        self.sizes.push_back(batch.len());
        Ok(())
    }

    /// Takes the first batch out of the file, and gives its room back where the filesystem can do that.
    ///
    /// # Errors
    /// Returns an error, with the bundle's folder, if the file cannot be read.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>> {
        let Some(size) = self.sizes.pop_front() else {
            return Ok(None);
        };
        let mut batch = vec![0; size];
        self.file
            .read_exact_at(&mut batch, self.begin)
            .at(&self.place)?;
        self.begin += size as u64;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // From the file's beginning on: a block in which two batches meet is freed with the second one. FAT cannot; then the room
        // comes back when the file is gone.
        let _ = fallocate(&self.file, flags, 0, self.begin);
        Ok(Some(batch))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn batches_come_back_in_their_order_and_leave_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(&Folder::open(dir.path()).unwrap()).unwrap();
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
        let batches: Vec<Vec<u8>> = (1..40u8).map(|n| vec![n; usize::from(n) * 1000]).collect();
        let (early, late) = batches.split_at(20);
        for batch in early {
            spool.put(batch).unwrap();
        }
        assert_eq!(spool.take().unwrap().as_ref(), Some(&batches[0]));
        for batch in late {
            spool.put(batch).unwrap();
        }
        for batch in &batches[1..] {
            assert_eq!(spool.take().unwrap().as_ref(), Some(batch));
        }
        assert_eq!(spool.take().unwrap(), None);
        let allocated = spool.file.metadata().unwrap().blocks() * 512;
        assert!(allocated <= 4096, "{allocated}");
    }
}
