// SPDX-License-Identifier: MIT OR Apache-2.0
//! An instance of tracefs, with buffers, a clock and events of its own. It vanishes with the recorder, in whatever way that ends.
//! It is locked as long as the recorder or its guard lives; an instance that can be locked no longer belongs to anybody.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::error::{At, Error, Result, write_line};
use crate::machine::clock;
use crate::machine::guard::{Guard, Undo};
use crate::machine::kernel;
use crate::machine::lock::Lock;
use crate::machine::mounts::Mount;
use crate::machine::tracefs::{self, Buffer, PAGE_MAX};
use crate::source::bpf::RingSize;
use crate::source::{Remark, remarks};

/// The least size of a buffer, per CPU. An event takes some 100 bytes, so this is what 100,000 of them a second leave on a CPU in
/// 200 ms.
const LEAST: u32 = 1 << 21;
/// All buffers together are at most as large as this many rings of the probes.
const RINGS: u32 = 4;

/// Returns the size in bytes of the buffer of each of `cpus`: where others take the CPU, the recorder may have to wait for it.
fn buffer_bytes(ring: RingSize, cpus: usize) -> u32 {
    let cpus = u32::try_from(cpus).unwrap_or(u32::MAX).max(1);
    let share = ring.bytes().saturating_mul(RINGS) / cpus;
    share.min(ring.bytes()).max(LEAST)
}

/// One event. Its first two bytes hold the number of its tracepoint.
#[derive(Debug)]
pub(super) struct Record {
    pub time_ns: u64,
    pub cpu: u32,
    pub bytes: Vec<u8>,
}

impl Record {
    /// Returns the number of its tracepoint.
    pub fn id(&self) -> u16 {
        let id = self.bytes.first_chunk();
        id.map_or(0, |id| u16::from_le_bytes(*id))
    }
}

/// The running instance.
#[derive(Debug)]
pub(super) struct Instance {
    folder: PathBuf,
    buffers: Vec<Buffer>,
    page: Vec<u8>,
    /// Records that are read but not yet passed on, because another CPU may have an earlier one.
    waiting: Vec<Record>,
    /// The files that end the events that are recorded.
    events: Vec<PathBuf>,
    /// The number of events for which the kernel had no room; None if they could not be counted at the end.
    lost: Option<u64>,
    interference: Vec<String>,
    guard: Option<Guard>,
    notes: Vec<String>,
}

/// Checks that an instance can be made and has these events. It makes one and removes it at once.
///
/// # Errors
/// Returns the reason as an error if it cannot.
pub(crate) fn check(events: &[&str]) -> Result<()> {
    let root = root()?;
    for event in events {
        let path = root.join("events").join(event);
        fs::metadata(&path).at(&path)?;
    }
    let folder = folder(root, "check");
    let _lock = make(&folder)?;
    fs::remove_dir(&folder).at(&folder)
}

/// Returns a name that nobody else has: a process may record several times at once.
fn folder(root: &Path, purpose: &str) -> PathBuf {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let (pid, number) = (std::process::id(), MADE.fetch_add(1, Relaxed));
    let name = format!("mostrace-{pid}-{number}-{purpose}");
    root.join("instances").join(name)
}

/// Makes the folder and locks it. Until it is locked, another recorder may take it for a leftover and remove it.
fn make(folder: &Path) -> Result<Lock> {
    loop {
        fs::create_dir(folder).map_err(|source| Error::NoInstance {
            path: folder.to_owned(),
            source,
        })?;
        match Lock::of_own_folder(folder) {
            Ok(lock) if folder.exists() => return Ok(lock),
            Err(e) if folder.exists() => return Err(e),
            _ => {}
        }
    }
}

/// Returns the folder at which tracefs is mounted.
///
/// # Errors
/// Returns an error if tracefs is not there.
pub(super) fn root() -> Result<&'static Path> {
    Ok(Mount::tracefs()?.path())
}

impl Instance {
    /// Makes an instance for `purpose`, with these events (`system/event`) and a filter for each (`dev == 5`; empty to keep all).
    ///
    /// # Errors
    /// Returns an error if the kernel refuses an instance, an event or a filter.
    pub fn start(purpose: &str, events: &[(&str, String)]) -> Result<Instance> {
        let folder = folder(root()?, purpose);
        let lock = make(&folder)?;
        let guard = Guard::arm(vec![Undo::RemoveFolder(folder.clone())], Some(lock));
        let mut instance = Instance {
            buffers: Vec::new(),
            page: vec![0; PAGE_MAX],
            waiting: Vec::new(),
            events: Vec::new(),
            lost: Some(0),
            interference: Vec::new(),
            guard: Some(guard?),
            notes: Vec::new(),
            folder,
        };
        instance.begin(events)?;
        Ok(instance)
    }

    fn begin(&mut self, events: &[(&str, String)]) -> Result<()> {
        write_line(self.folder.join("trace_clock"), "mono")?;
        let buffers = tracefs::buffers(&self.folder)?;
        let bytes = buffer_bytes(RingSize::of_this_machine(), buffers.len());
        let kib = (bytes >> 10).to_string();
        write_line(self.folder.join("buffer_size_kb"), &kib)?;
        write_line(self.folder.join("tracing_on"), "1")?;
        for (cpu, folder) in buffers {
            self.buffers.push(Buffer::open(cpu, folder)?);
        }
        for (event, filter) in events {
            let event = self.folder.join("events").join(event);
            if !filter.is_empty() {
                write_line(event.join("filter"), filter)?;
            }
            let enable = event.join("enable");
            write_line(&enable, "1")?;
            self.events.push(enable);
        }
        Ok(())
    }

    /// Takes the events that have come, in time order over all CPUs. Events that come meanwhile are taken the next time.
    ///
    /// # Errors
    /// Returns an error if a buffer cannot be read.
    pub fn take(&mut self) -> Result<Vec<Record>> {
        let until_ns = clock::now().start_mono_ns;
        self.read()?;
        let later = self
            .waiting
            .partition_point(|record| record.time_ns < until_ns);
        let later = self.waiting.split_off(later);
        Ok(std::mem::replace(&mut self.waiting, later))
    }

    fn read(&mut self) -> Result<()> {
        let waiting = &mut self.waiting;
        for buffer in &mut self.buffers {
            buffer.drain(&mut self.page, |cpu, time_ns, payload| {
                waiting.push(Record {
                    time_ns,
                    cpu,
                    bytes: payload.to_vec(),
                });
                Ok(())
            })?;
        }
        self.waiting.sort_by_key(|record| record.time_ns);
        Ok(())
    }

    /// Ends the events but for the first `kept`, in the order in which they began, and waits until none is being recorded any more.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses.
    pub fn end_but(&mut self, kept: usize) -> Result<()> {
        self.lost = None;
        let kept = kept.min(self.events.len());
        for enable in self.events.drain(kept..) {
            write_line(&enable, "0")?;
        }
        kernel::wait_for_programs();
        Ok(())
    }

    /// Stops the events, and takes what is left.
    ///
    /// # Errors
    /// Returns an error if a buffer cannot be read.
    pub fn stop(&mut self) -> Result<Vec<Record>> {
        self.end_but(0)?;
        self.read()?;
        self.account()?;
        self.close();
        Ok(std::mem::take(&mut self.waiting))
    }

    fn close(&mut self) {
        for buffer in &mut self.buffers {
            buffer.pipe = None;
        }
    }

    /// Removes the instance. Up to 5.8, the kernel refuses that as long as a pipe of any instance is open, so all are stopped before.
    pub fn remove(&mut self) {
        self.close();
        self.notes.extend(self.guard.take().and_then(Guard::end));
    }

    fn account(&mut self) -> Result<()> {
        let mut lost: u64 = 0;
        self.interference.clear();
        for buffer in &self.buffers {
            let (stats, wrong) = buffer.account()?;
            lost = lost.saturating_add(stats.lost);
            self.interference.extend(wrong);
        }
        self.lost = Some(lost);
        Ok(())
    }

    /// Returns the number of events for which the kernel had no room; complete after [`Instance::stop`], and None if an end failed.
    pub fn lost(&self) -> Option<u64> {
        self.lost
    }

    /// Returns the instance's remarks; complete after [`Instance::remove`].
    pub fn remarks(&self) -> Vec<Remark> {
        let interference = remarks(&self.interference, Remark::Interference);
        remarks(&self.notes, Remark::Note)
            .chain(interference)
            .collect()
    }
}

impl Drop for Instance {
    /// An instance cannot be removed while its pipes are open.
    fn drop(&mut self) {
        self.buffers.clear();
        drop(self.guard.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_have_a_part_of_the_memory() {
        const MIB: u32 = 1 << 20;
        let of = |ring: &str, cpus| buffer_bytes(ring.parse().unwrap(), cpus) / MIB;
        // A machine of two CPUs and 16 GiB; phones; servers.
        assert_eq!([of("8M", 2), of("4M", 8), of("1M", 4)], [8, 2, 2]);
        assert_eq!([of("16M", 16), of("16M", 128)], [4, 2]);
    }
}
