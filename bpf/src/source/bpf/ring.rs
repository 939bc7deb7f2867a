// SPDX-License-Identifier: MIT OR Apache-2.0
//! A BPF ring buffer, from which many records are taken at a time.
//!
//! ```text
//! page 0          consumer position, ours to write
//! page 1          producer position
//! page 2 …        the data:
//!                 u32 len (bit 31: busy, bit 30: discarded), u32, len bytes, up to a multiple of 8
//! ```
//! Source: `kernel/bpf/ringbuf.c`. libbpf calls a function for each record and then frees it. This code copies a batch of finished
//! records as it is, and frees it at once. The kernel maps the data twice in a row, so that no record is split at the end of the
//! ring; this code maps it once and copies in two pieces there, because every mapped page counts as this process's memory, whether
//! it is read or not.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use libbpf_rs::MapCore;
use memmap2::{MmapOptions, MmapRaw};

const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEAD: usize = 8;

/// The mapped ring, which has one reader.
pub(super) struct Ring {
    fd: OwnedFd,
    consumer: MmapRaw,
    /// The page of the producer's position, followed by the data.
    producer: MmapRaw,
    page: usize,
    /// The size of the data in bytes, a power of 2.
    size: usize,
}

impl Ring {
    /// Maps a map's ring.
    ///
    /// # Errors
    /// Returns an error if the map is not a ring, or if there is not enough memory.
    pub fn of(map: &dyn MapCore) -> io::Result<Ring> {
        let fd = map.as_fd().try_clone_to_owned()?;
        let page = rustix::param::page_size();
        let size = map.max_entries() as usize;
        let raw = fd.as_raw_fd();
        let consumer = MmapOptions::new().len(page).map_raw(raw)?;
        let producer = MmapOptions::new()
            .offset(page as u64)
            .len(page + size)
            .map_raw_read_only(raw)?;
        Ok(Ring {
            fd,
            consumer,
            producer,
            page,
            size,
        })
    }

    /// Returns the size of the data in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the end of the reserved part, finished or not.
    #[allow(unsafe_code)]
    pub fn produced(&self) -> usize {
        // SAFETY: the page begins with an unsigned long, which lives as long as the mapping.
        let position = unsafe { &*self.producer.as_ptr().cast::<AtomicUsize>() };
        position.load(Ordering::Acquire)
    }

    /// Returns the end of what was taken.
    pub fn consumed(&self) -> usize {
        self.consumer_position().load(Ordering::Relaxed)
    }

    #[allow(unsafe_code)]
    fn consumer_position(&self) -> &AtomicUsize {
        // SAFETY: the same holds as for the producer's position.
        unsafe { &*self.consumer.as_ptr().cast::<AtomicUsize>() }
    }

    /// Takes whole records in the ring's own form (see [`records`]), up to the first one that is not finished, or until there are
    /// `limit` bytes.
    pub fn take(&mut self, limit: usize) -> Vec<u8> {
        let start = self.consumed();
        let produced = self.produced();
        let mut end = start;
        while end != produced && end.wrapping_sub(start) < limit {
            let len = self.len_at(end).load(Ordering::Acquire);
            if len & BUSY != 0 {
                break;
            }
            end = end.wrapping_add(stride(len));
        }
        let bytes = end.wrapping_sub(start);
        debug_assert!(bytes <= self.size);
        let to_the_end = self.size - (start & (self.size - 1));
        let ahead = bytes.min(to_the_end);
        let mut taken = Vec::with_capacity(bytes);
        taken.extend_from_slice(self.piece(start, ahead));
        taken.extend_from_slice(self.piece(start.wrapping_add(ahead), bytes - ahead));
        self.consumer_position().store(end, Ordering::Release);
        taken
    }

    /// Returns finished records, not beyond the end of the ring.
    #[allow(unsafe_code)]
    fn piece(&self, position: usize, bytes: usize) -> &[u8] {
        // SAFETY: this is within the mapping, and nobody writes to records that are finished and not yet freed.
        unsafe { std::slice::from_raw_parts(self.data_at(position), bytes) }
    }

    #[allow(unsafe_code)]
    fn data_at(&self, position: usize) -> *const u8 {
        let offset = self.page + (position & (self.size - 1));
        // SAFETY: this is within the mapping.
        unsafe { self.producer.as_ptr().add(offset) }
    }

    #[allow(unsafe_code)]
    fn len_at(&self, position: usize) -> &AtomicU32 {
        // SAFETY: positions of records are multiples of 8, and so is the ring's size: a length is never split.
        unsafe { &*self.data_at(position).cast::<AtomicU32>() }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns the number of bytes from one record to the next.
fn stride(len: u32) -> usize {
    let len = (len & !(BUSY | DISCARDED)) as usize;
    HEAD + len.next_multiple_of(8)
}

/// Returns the records in a batch that was taken, without discarded ones.
pub(super) fn records(mut batch: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        loop {
            let (head, rest) = batch.split_first_chunk::<4>()?;
            let len = u32::from_ne_bytes(*head);
            let at = batch.len().min(stride(len));
            batch = &batch[at..];
            if len & DISCARDED == 0 {
                return rest.get(HEAD - 4..)?.get(..len as usize);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn put(batch: &mut Vec<u8>, record: &[u8], flags: u32) {
        batch.extend((record.len() as u32 | flags).to_ne_bytes());
        batch.extend([0; 4]);
        batch.extend(record);
        batch.resize(batch.len().next_multiple_of(8), 0);
    }

    proptest! {
        #[test]
        fn records_come_out_as_they_were_put_in(
            all in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40), any::<bool>()), 0..20)
        ) {
            let mut batch = Vec::new();
            for (record, kept) in &all {
                put(&mut batch, record, if *kept { 0 } else { DISCARDED });
            }
            let kept: Vec<&[u8]> = all.iter().filter(|r| r.1).map(|r| &r.0[..]).collect();
            prop_assert_eq!(records(&batch).collect::<Vec<_>>(), kept);
        }

        #[test]
        fn any_bytes_come_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let taken: usize = records(&bytes).map(<[u8]>::len).sum();
            prop_assert!(taken <= bytes.len());
        }
    }
}
