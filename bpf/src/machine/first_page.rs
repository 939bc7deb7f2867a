// SPDX-License-Identifier: MIT OR Apache-2.0
//! Brings the first page of a block device into its page cache, with a buffer_head. The kernel keeps both addresses of such a page,
//! and from one of them the probes learn where the bytes of any page are (`page_address` of compat.bpf.h).

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::{Advice, MmapOptions};
use rustix::fs::{self, fadvise};

/// Brings the page into the cache. If it is there without a buffer_head, as read(2) leaves it, it is first dropped, provided that
/// it is clean.
///
/// # Errors
/// Returns an error if the device cannot be opened or mapped.
pub(crate) fn bring(device: &Path) -> io::Result<()> {
    let file = File::open(device)?;
    let page = rustix::param::page_size();
    fadvise(
        &file,
        0,
        std::num::NonZeroU64::new(page as u64),
        fs::Advice::DontNeed,
    )?;
    let mapped = MmapOptions::new().len(page).map_raw_read_only(&file)?;
    // Without this, the fault reads ahead, which attaches no buffer_head.
    mapped.advise(Advice::Random)?;
    touch(mapped.as_ptr());
    Ok(())
}

#[allow(unsafe_code)]
fn touch(first: *const u8) {
    // SAFETY: the page is mapped for reading. If the device could not be read, the recording could not begin, because its
    // filesystem was recognised by the same page.
    unsafe { first.read_volatile() };
}
