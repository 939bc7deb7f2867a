// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores to a mapping, into pages that another process has made dirty before.

use std::io;
use std::ops::Range;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::{Changed, another};
use crate::patterns::Pattern;
use crate::site::Site;

pub const PATTERN: Pattern = Pattern {
    name: "stores",
    parts: &["written", "pair", "mapped-before"],
    work,
};

const BYTES: usize = 256 << 10;
const ROUNDS: u64 = 16;

/// A writable mapping of a file's first BYTES bytes.
struct Mapped<'a, 'b> {
    file: &'a Changed<'b>,
    at: *mut u8,
}

impl<'a, 'b> Mapped<'a, 'b> {
    fn new(file: &'a Changed<'b>) -> io::Result<Mapped<'a, 'b>> {
        let (access, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the mapping is new, of a file that nobody truncates.
        let at = unsafe { mmap(ptr::null_mut(), BYTES, access, shared, &file.file, 0)? };
        Ok(Mapped {
            file,
            at: at.cast(),
        })
    }

    fn store(&self, range: Range<u64>) -> io::Result<()> {
        assert!(range.end <= BYTES as u64);
        let (start, bytes) = (range.start as usize, (range.end - range.start) as usize);
        self.file.change(range, || {
            // SAFETY: the range lies in the mapping; other processes may store there too, but nobody reads it as data.
            unsafe { ptr::write_bytes(self.at.add(start), std::process::id() as u8, bytes) };
            Ok(())
        })
    }
}

impl Drop for Mapped<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` made.
        let _ = unsafe { munmap(self.at.cast(), BYTES) };
    }
}

fn work(site: &Site, part: &str) -> io::Result<()> {
    let file = Changed::synced(site, &format!("/stores-{part}"), BYTES as u64)?;
    let mapped = Mapped::new(&file)?;
    for round in 0..ROUNDS {
        let page = round * 8192;
        match part {
            // A store into a page that is dirty already.
            "written" => {
                another(|| file.write(page..page + 4096))?;
                another(|| Mapped::new(&file)?.store(page + 8..page + 16))?;
            }
            // Two processes with mappings of their own.
            "pair" => {
                another(|| Mapped::new(&file)?.store(page + 8..page + 16))?;
                another(|| Mapped::new(&file)?.store(page + 100..page + 200))?;
            }
            // The page is writable in this process's mapping when another process writes to it, so that the second store
            // makes no fault.
            _ => {
                mapped.store(page..page + 8)?;
                another(|| file.write(page + 1000..page + 1100))?;
                mapped.store(page + 2000..page + 2008)?;
            }
        }
        file.file.sync_data()?;
    }
    Ok(())
}
