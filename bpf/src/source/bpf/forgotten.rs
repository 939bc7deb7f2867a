// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts dirty pages that the table of dirtiers has forgotten: an LRU map of BPF drops its oldest entry when it is full, and does
//! not report it.

use std::cell::Cell;
use std::mem::offset_of;

use libbpf_rs::{MapCore, MapFlags};
use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::object::per_cpu_sum;
use crate::error::{Error, Result};

/// `enum dirt_count` of dirtier.bpf.h.
const REMEMBERED: u32 = 0;
const SETTLED: u32 = 1;

/// Number of entries that are read from the kernel at once.
const BATCH: u32 = 4096;

/// `struct dirty_page` of dirtier.bpf.h.
#[derive(FromBytes, KnownLayout, Immutable)]
#[repr(C)]
struct DirtyPage {
    mapping: u64,
    index: u64,
    dirty_ns: u64,
    taken_ns: u64,
    pid: u32,
    tgid: u32,
    uid: u32,
    doubt: u16,
    flags: u16,
    comm: [u8; 16],
}

const _: () = assert!(offset_of!(DirtyPage, comm) == 48);

/// Counts the forgotten pages of one recording.
#[derive(Default)]
pub(super) struct Forgotten(Cell<u64>);

impl Forgotten {
    /// Returns the number of pages so far that were forgotten before a bio wrote them. While probes run, the number may be too low,
    /// but never too high.
    ///
    /// # Errors
    /// Returns an error if the kernel does not give the counters or the table.
    pub fn count(&self, counts: &dyn MapCore, pages: &dyn MapCore) -> Result<u64> {
        // The order matters: a page that is counted as waiting here waited during the whole walk, so the walk met it if it is in
        // the table.
        let remembered = per_cpu_sum(counts, REMEMBERED)?;
        let present = waiting(pages)?;
        let settled = per_cpu_sum(counts, SETTLED)?;
        let missing = remembered.saturating_sub(settled).saturating_sub(present);
        self.0.set(self.0.get().max(missing));
        Ok(self.0.get())
    }
}

/// Returns the number of pages in the table that no bio has written since they were dirtied.
fn waiting(pages: &dyn MapCore) -> Result<u64> {
    let mut waiting = 0;
    let batches = pages.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY);
    for (_, page) in batches.map_err(Error::bpf)? {
        let page = DirtyPage::read_from_bytes(&page);
        let page = page.map_err(|_| Error::bpf("a dirty page of another size"))?;
        waiting += u64::from(page.taken_ns < page.dirty_ns);
    }
    Ok(waiting)
}
