// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first page of a block device, brought into its page cache with a buffer_head: the kernel keeps both addresses of
//! such a page, and the probes learn from one of them where any page's bytes are (`page_address` of compat.bpf.h).

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::{Advice, MmapOptions};
use rustix::fs::{self, fadvise};

/// Brings it in. A page that is there without a buffer_head, as a read(2) leaves it, goes first, if it is clean.
///
/// # Errors
/// The device cannot be opened or mapped.
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
    // Without it the fault reads ahead, which attaches no buffer_head.
    mapped.advise(Advice::Random)?;
    touch(mapped.as_ptr());
    Ok(())
}

#[allow(unsafe_code)]
fn touch(first: *const u8) {
    // SAFETY: it is mapped for reading. Where the device cannot be read, the recording could not begin: its filesystem was
    // recognised by the same page.
    unsafe { first.read_volatile() };
}
