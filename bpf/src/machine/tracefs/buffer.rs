// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the ring buffer of one CPU page by page from its `trace_pipe_raw`.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::Stats;
use super::ring_page::RingPage;
use crate::error::{At, Error, Result};

/// The largest sub-buffer that kernels offer (`buffer_subbuf_size_kb`).
pub(crate) const PAGE_MAX: usize = 1 << 18;

/// The ring buffer of one CPU.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub cpu: u32,
    pub folder: PathBuf,
    /// The open pipe; None after it was read to its end.
    pub pipe: Option<File>,
    /// The number of events that were taken from it.
    taken: u64,
}

/// Opens a pipe so that reads do not wait.
fn open_pipe(path: &Path) -> Result<File> {
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut pipe = OpenOptions::new();
    pipe.read(true).custom_flags(nonblock).open(path).at(path)
}

impl Buffer {
    /// Opens the buffer of `cpu` in `folder`, `per_cpu/cpuN`.
    ///
    /// # Errors
    /// Returns an error if the pipe cannot be opened.
    pub fn open(cpu: u32, folder: PathBuf) -> Result<Buffer> {
        let pipe = open_pipe(&folder.join("trace_pipe_raw"))?;
        Ok(Buffer {
            cpu,
            pipe: Some(pipe),
            taken: 0,
            folder,
        })
    }

    /// Passes on all events that are there now: the CPU, time and bytes of each. `page` is a buffer for one sub-buffer.
    ///
    /// # Errors
    /// Returns an error if the buffer cannot be read, if its contents are malformed, or if `take` fails.
    pub fn drain(
        &mut self,
        page: &mut [u8],
        mut take: impl FnMut(u32, u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        loop {
            let len = self.read_page(page)?;
            if len == 0 {
                return Ok(());
            }
            let events = RingPage::new(&page[..len]).ok_or_else(|| {
                Error::malformed(self.folder.display(), "malformed page in trace_pipe_raw")
            })?;
            for (time_ns, payload) in events {
                self.taken += 1;
                take(self.cpu, time_ns, payload)?;
            }
        }
    }

    /// Reads one sub-buffer. Returns its length; 0 if there is none.
    fn read_page(&mut self, page: &mut [u8]) -> Result<usize> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(0);
        };
        loop {
            match pipe.read(page) {
                Ok(n) => return Ok(n),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(0),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e).at(self.folder.join("trace_pipe_raw")),
            }
        }
    }

    /// Returns the kernel's counters of the buffer, and a message if they differ from what was read here.
    ///
    /// # Errors
    /// Returns an error if the counters cannot be read.
    pub fn account(&self) -> Result<(Stats, Option<String>)> {
        let stats = Stats::read(&self.folder)?;
        let file = self.folder.display();
        let wrong = match stats.read.checked_sub(self.taken) {
            Some(0) => None,
            Some(others) => Some(format!(
                "{file}: {others} events were read by somebody else"
            )),
            None => Some(format!(
                "{file}: the buffer was emptied by somebody else: of {} events read the kernel knows {}",
                self.taken, stats.read
            )),
        };
        Ok((stats, wrong))
    }
}
