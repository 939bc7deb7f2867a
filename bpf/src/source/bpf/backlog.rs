// SPDX-License-Identifier: MIT OR Apache-2.0
//! The batches of records between the thread that takes them out of a ring and the one that makes a bundle of them. What has no room
//! in memory waits in a file without a name. Its records are as the probes wrote them, with addresses of the kernel's memory and
//! names that the user did not ask for; the file is gone when its process is.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use mostrace_bundle::Folder;
use rustix::fs::{FallocateFlags, fallocate};

use crate::error::{At, Result};

/// The name that the file has for a moment.
const NAME: &str = "backlog";

/// How many batches may wait.
pub(super) struct Room {
    pub in_memory: usize,
    pub in_file: usize,
}

/// An [`Outlet`] gives one of these.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Batch(Vec<u8>),
    /// [`Inlet::mark`] was called here.
    Mark,
    /// The other end is gone.
    End,
}

enum Item {
    Batch(Vec<u8>),
    Stored(Stored),
    Mark,
}

/// The place of a batch in the file.
struct Stored {
    file: Arc<File>,
    at: u64,
    len: usize,
}

/// The numbers of batches that wait.
#[derive(Default)]
struct Waiting {
    in_memory: AtomicUsize,
    in_file: AtomicUsize,
}

/// The end that batches are put into.
pub(super) struct Inlet {
    items: SyncSender<Item>,
    wakeup: PipeWriter,
    waiting: Arc<Waiting>,
    in_memory: usize,
    folder: Option<Folder>,
    file: Option<Arc<File>>,
    end: u64,
}

/// The end that they are taken from.
pub(super) struct Outlet {
    items: Receiver<Item>,
    /// A pipe with one byte for each item.
    woken: PipeReader,
    waiting: Arc<Waiting>,
    /// The folder of the file, for messages.
    place: PathBuf,
}

/// Makes an empty backlog. Without a folder it has no file.
///
/// # Errors
/// Returns an error if no descriptor is left.
pub(super) fn backlog(room: &Room, folder: Option<&Folder>) -> Result<(Inlet, Outlet)> {
    let in_file = folder.map_or(0, |_| room.in_file);
    let (sender, receiver) = sync_channel(room.in_memory + in_file);
    let (woken, wakeup) = io::pipe().at("pipe")?;
    let waiting = Arc::new(Waiting::default());
    let inlet = Inlet {
        items: sender,
        wakeup,
        waiting: Arc::clone(&waiting),
        in_memory: room.in_memory,
        folder: folder.cloned(),
        file: None,
        end: 0,
    };
    let outlet = Outlet {
        items: receiver,
        woken,
        waiting,
        place: folder.map_or_else(PathBuf::new, |folder| folder.path().to_owned()),
    };
    Ok((inlet, outlet))
}

impl Inlet {
    /// Puts a batch in. If there is no room, waits until there is. Returns false if nobody takes it.
    ///
    /// # Errors
    /// Returns an error, with the bundle's folder, if the file cannot be written; the batch is lost then.
    pub fn put(&mut self, batch: Vec<u8>) -> Result<bool> {
        let is_full = self.waiting.in_memory.load(Ordering::Relaxed) >= self.in_memory;
        let item = match self.folder.clone().filter(|_| is_full) {
            Some(folder) => Item::Stored(self.store(&batch, &folder)?),
            None => {
                self.waiting.in_memory.fetch_add(1, Ordering::Relaxed);
                Item::Batch(batch)
            }
        };
        Ok(self.send(item))
    }

    /// Marks the present end. Returns false if nobody will take the mark.
    pub fn mark(&mut self) -> bool {
        self.send(Item::Mark)
    }

    fn send(&mut self, item: Item) -> bool {
        self.items.send(item).is_ok() && self.wakeup.write_all(&[0]).is_ok()
    }

    fn store(&mut self, batch: &[u8], folder: &Folder) -> Result<Stored> {
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => {
                let file = Arc::new(folder.create(NAME)?);
                folder.remove(NAME)?;
                self.file = Some(Arc::clone(&file));
                file
            }
        };
        // FAT gives no room back (`Outlet::load`), but what it has can be used again.
        if self.waiting.in_file.load(Ordering::Acquire) == 0 {
            self.end = 0;
        }
        let at = self.end;
        file.write_all_at(batch, at).at(folder.path())?;
        self.waiting.in_file.fetch_add(1, Ordering::Relaxed);
        self.end += batch.len() as u64;
        let len = batch.len();
        Ok(Stored { file, at, len })
    }
}

impl Outlet {
    /// Returns a descriptor that can be read when there is something to take.
    pub fn wakeup_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// Returns how many batches wait.
    pub fn len(&self) -> usize {
        let waiting = &self.waiting;
        waiting.in_memory.load(Ordering::Relaxed) + waiting.in_file.load(Ordering::Relaxed)
    }

    /// Takes what was put in first; None if nothing waits.
    ///
    /// # Errors
    /// Returns an error, with the bundle's folder, if the file cannot be read.
    pub fn try_take(&mut self) -> Result<Option<Taken>> {
        match self.items.try_recv() {
            Ok(item) => self.load(item).map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Ok(Some(Taken::End)),
        }
    }

    /// Takes what was put in first, or waits for it.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Outlet::try_take`].
    pub fn take(&mut self) -> Result<Taken> {
        match self.items.recv() {
            Ok(item) => self.load(item),
            Err(_) => Ok(Taken::End),
        }
    }

    fn load(&mut self, item: Item) -> Result<Taken> {
        // The byte is there, or will be at once.
        self.woken.read_exact(&mut [0]).at("pipe")?;
        let stored = match item {
            Item::Mark => return Ok(Taken::Mark),
            Item::Batch(batch) => {
                self.waiting.in_memory.fetch_sub(1, Ordering::Relaxed);
                return Ok(Taken::Batch(batch));
            }
            Item::Stored(stored) => stored,
        };
        let mut batch = vec![0; stored.len];
        let read = stored.file.read_exact_at(&mut batch, stored.at);
        read.at(&self.place)?;
        // From the file's beginning on: a block in which two batches meet is freed with the second one. FAT cannot.
        let (flags, end) = (
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            stored.at + batch.len() as u64,
        );
        let _ = fallocate(&stored.file, flags, 0, end);
        self.waiting.in_file.fetch_sub(1, Ordering::Release);
        Ok(Taken::Batch(batch))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    const ROOM: Room = Room {
        in_memory: 3,
        in_file: 50,
    };

    #[test]
    fn what_has_no_room_in_memory_waits_in_a_file_and_leaves_nothing_there() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let (mut inlet, mut outlet) = backlog(&ROOM, Some(&folder)).unwrap();
        let batches: Vec<Vec<u8>> = (1..40u8).map(|n| vec![n; usize::from(n) * 1000]).collect();
        for round in 0..2 {
            let (early, late) = batches.split_at(20);
            for batch in early {
                assert!(inlet.put(batch.clone()).unwrap());
            }
            assert_eq!(outlet.take().unwrap(), Taken::Batch(batches[0].clone()));
            for batch in late {
                assert!(inlet.put(batch.clone()).unwrap());
            }
            assert!(inlet.mark());
            assert_eq!(outlet.len(), 38);
            for batch in &batches[1..] {
                let taken = outlet.try_take().unwrap();
                assert_eq!(taken, Some(Taken::Batch(batch.clone())), "round {round}");
            }
            assert_eq!(outlet.try_take().unwrap(), Some(Taken::Mark));
            assert_eq!(outlet.try_take().unwrap(), None);
            assert_eq!(dir.path().read_dir().unwrap().count(), 0);
            let file = inlet.file.as_ref().unwrap().metadata().unwrap();
            assert!(file.blocks() * 512 <= 4096, "{}", file.blocks());
            // The second round begins where the first one did.
            assert!(file.len() < 800_000, "{}", file.len());
        }
        drop(inlet);
        assert_eq!(outlet.take().unwrap(), Taken::End);
    }

    #[test]
    fn without_a_file_the_other_end_waits_for_room() {
        let (mut inlet, mut outlet) = backlog(&ROOM, None).unwrap();
        let putting = std::thread::spawn(move || {
            (0..100u8).all(|n| inlet.put(vec![n]).unwrap()) && inlet.put(vec![]).unwrap()
        });
        for n in 0..100 {
            assert_eq!(outlet.take().unwrap(), Taken::Batch(vec![n]));
            assert!(outlet.len() <= ROOM.in_memory + 1);
        }
        assert_eq!(outlet.take().unwrap(), Taken::Batch(vec![]));
        assert!(putting.join().unwrap());
        let (mut inlet, outlet) = backlog(&ROOM, None).unwrap();
        drop(outlet);
        assert!(!inlet.put(vec![1]).unwrap());
    }
}
