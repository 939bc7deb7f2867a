// SPDX-License-Identifier: MIT OR Apache-2.0
//! ftrace's `blk` tracer, read page by page from `trace_pipe_raw`.
//!
//! It works where debugfs is locked down or absent. The records are those of
//! blktrace except for their first 16 bytes: ftrace's own head lies over magic
//! and sequence, and `time` is not filled in; the ring buffer's time is used.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use mostrace_bundle::Folder;
use mostrace_bundle::blk_io_trace::{BlkIoTrace, BlkIoTrace2, Prefix, Version};
use zerocopy::FromBytes;
use zerocopy::byteorder::{LE, U16, U32};

use super::{CpuFiles, EventSource};
use crate::device::Device;
use crate::error::{At, Error, Result, read_line, write_line};
use crate::guard::{Guard, Undo};
use crate::ring_page::RingPage;
use crate::tool;

const TRACEFS: &str = "/sys/kernel/tracing";
/// Per CPU. A SQLite run makes some 2 MB of events a second; polls are 5 ms apart.
const BUFFER_KB: u32 = 8192;
/// The largest sub-buffer that kernels offer (`buffer_subbuf_size_kb`).
const PAGE_MAX: usize = 1 << 18;

/// The running tracer.
#[derive(Debug)]
pub(crate) struct Ftrace {
    tracefs: PathBuf,
    enable: PathBuf,
    dev: u32,
    pipes: Vec<(u32, File)>,
    out: CpuFiles,
    page: Vec<u8>,
    lost: u64,
    guard: Option<Guard>,
}

/// The folder of tracefs, mounted if need be.
///
/// # Errors
/// The kernel has no tracefs.
pub(crate) fn tracefs() -> Result<PathBuf> {
    let dir = Path::new(TRACEFS);
    if !dir.join("current_tracer").exists() {
        // mount(8) and not mount(2): the mount table stays right.
        let mounted = tool::command("mount")?
            .args(["-t", "tracefs", "nodev", TRACEFS])
            .output();
        if !mounted.is_ok_and(|o| o.status.success()) || !dir.join("current_tracer").exists() {
            return Err(Error::NotMounted {
                path: dir,
                kind: "tracefs",
            });
        }
    }
    Ok(dir.to_owned())
}

/// Why the blk tracer cannot be used, if it cannot.
///
/// # Errors
/// The reason.
pub(crate) fn usable(device: &Device) -> Result<()> {
    has_blk(&tracefs()?)?;
    let enable = device.sysfs.join("trace/enable");
    if read_line(&enable)? != "0" {
        return Err(Error::Busy {
            what: enable.display().to_string(),
            by: "the queue is being traced already".into(),
        });
    }
    Ok(())
}

/// Whether the blk tracer is there and nobody uses another one.
///
/// # Errors
/// The reason.
pub(crate) fn has_blk(tracefs: &Path) -> Result<()> {
    let tracers = read_line(tracefs.join("available_tracers"))?;
    if !tracers.split_ascii_whitespace().any(|t| t == "blk") {
        return Err(Error::NoBlkTracer);
    }
    let current = read_line(tracefs.join("current_tracer"))?;
    if current != "nop" {
        return Err(Error::Busy {
            what: "ftrace is in use".into(),
            by: format!(
                "current_tracer is {current} (to free it: echo nop > {})",
                tracefs.join("current_tracer").display()
            ),
        });
    }
    Ok(())
}

impl Ftrace {
    /// Starts tracing `device` into per-CPU files in `folder`.
    ///
    /// # Errors
    /// Not usable, see [`usable`].
    pub fn start(device: &Device, folder: &Folder) -> Result<Ftrace> {
        usable(device)?;
        let tracefs = tracefs()?;
        let enable = device.sysfs.join("trace/enable");
        let guard = Guard::arm(&undo_steps(&tracefs, &enable)?)?;
        // Changing the clock empties the buffer.
        write_line(tracefs.join("trace_clock"), "mono")?;
        write_line(tracefs.join("buffer_size_kb"), &BUFFER_KB.to_string())?;
        write_line(tracefs.join("current_tracer"), "blk")?;
        write_line(tracefs.join("tracing_on"), "1")?;
        let pipes = open_pipes(&tracefs)?;
        let mut source = Ftrace {
            tracefs,
            enable,
            dev: device.dev,
            pipes,
            out: CpuFiles::new(folder),
            page: vec![0; PAGE_MAX],
            lost: 0,
            guard: Some(guard),
        };
        // What others left in the buffer is not ours.
        source.discard()?;
        write_line(&source.enable, "1")?;
        Ok(source)
    }

    fn discard(&mut self) -> Result<()> {
        for (_, pipe) in &mut self.pipes {
            while read_page(pipe, &mut self.page, &self.tracefs)? > 0 {}
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<()> {
        for (cpu, pipe) in &mut self.pipes {
            loop {
                let len = read_page(pipe, &mut self.page, &self.tracefs)?;
                if len == 0 {
                    break;
                }
                let page = RingPage::new(&self.page[..len]).ok_or_else(|| {
                    Error::malformed(format!("trace_pipe_raw of CPU {cpu}"), "malformed page")
                })?;
                for (time, payload) in page {
                    if let Some((pid, mut record)) = restore(time, payload, self.dev) {
                        self.out.push(*cpu, pid, &mut record)?;
                    }
                }
            }
        }
        self.out.flush()
    }
}

impl EventSource for Ftrace {
    fn name(&self) -> &'static str {
        "ftrace"
    }

    fn poll(&mut self) -> Result<()> {
        self.drain()
    }

    fn events(&self) -> u64 {
        self.out.events()
    }

    fn stop(&mut self) -> Result<()> {
        write_line(&self.enable, "0")?;
        self.drain()?;
        self.lost = lost(&self.tracefs, &self.pipes);
        // The tracer cannot be changed while its pipes are open.
        self.pipes.clear();
        drop(self.guard.take());
        Ok(())
    }

    fn losses(&self) -> BTreeMap<String, u64> {
        BTreeMap::from([("events_tracer".to_owned(), self.lost)])
    }
}

/// All that was changed, in an order that leaves nothing running.
fn undo_steps(tracefs: &Path, enable: &Path) -> Result<Vec<Undo>> {
    let clock = read_line(tracefs.join("trace_clock"))?;
    let clock = clock
        .split_once('[')
        .and_then(|(_, t)| t.split_once(']'))
        .map_or("local", |(c, _)| c);
    let on = read_line(tracefs.join("tracing_on"))?;
    // `7 (expanded: 1408)` before first use
    let size = read_line(tracefs.join("buffer_size_kb"))?;
    let size = size
        .split_ascii_whitespace()
        .next()
        .unwrap_or("1408")
        .to_owned();
    let write = |name: &str, text: &str| Undo::Write(tracefs.join(name), text.to_owned());
    Ok(vec![
        Undo::Write(enable.to_owned(), "0".into()),
        write("current_tracer", "nop"),
        write("tracing_on", &on),
        write("trace_clock", clock),
        write("buffer_size_kb", &size),
    ])
}

fn open_pipes(tracefs: &Path) -> Result<Vec<(u32, File)>> {
    let dir = tracefs.join("per_cpu");
    let mut pipes = Vec::new();
    for entry in fs::read_dir(&dir).at(&dir)? {
        let name = entry.at(&dir)?.file_name();
        let Some(cpu) = name
            .to_str()
            .and_then(|n| n.strip_prefix("cpu")?.parse().ok())
        else {
            continue;
        };
        let path = dir.join(&name).join("trace_pipe_raw");
        let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(nonblock)
            .open(&path)
            .at(&path)?;
        pipes.push((cpu, file));
    }
    pipes.sort_by_key(|(cpu, _)| *cpu);
    Ok(pipes)
}

/// One sub-buffer; 0 when there is none.
fn read_page(pipe: &mut File, page: &mut [u8], tracefs: &Path) -> Result<usize> {
    loop {
        match pipe.read(page) {
            Ok(n) => return Ok(n),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e).at(tracefs.join("per_cpu/…/trace_pipe_raw")),
        }
    }
}

/// Events overwritten or dropped since the buffer was last emptied.
fn lost(tracefs: &Path, pipes: &[(u32, File)]) -> u64 {
    pipes
        .iter()
        .filter_map(|(cpu, _)| read_line(tracefs.join(format!("per_cpu/cpu{cpu}/stats"))).ok())
        .flat_map(|stats| stats.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|line| {
            let (name, number) = line.split_once(": ")?;
            ["overrun", "commit overrun", "dropped events"]
                .contains(&name)
                .then(|| number.trim().parse::<u64>().ok())?
        })
        .sum()
}

/// Puts a record's first 16 bytes right; None for another kind of event. Returns its pid too.
///
/// v7 and v8 are told apart by where the device and a fitting pdu length stand, as
/// the magic is overwritten.
fn restore(time: u64, payload: &[u8], dev: u32) -> Option<(u32, Vec<u8>)> {
    // Payloads are padded to a multiple of 4, or of 8 on some machines.
    let whole = |head: usize, device: U32<LE>, pdu_len: U16<LE>| {
        let len = head + usize::from(pdu_len.get());
        let fits = len <= payload.len() && payload.len() < len + 8;
        (fits && device.get() == dev).then_some(len)
    };
    let as_v7 = || {
        let (head, _) = BlkIoTrace::<LE>::ref_from_prefix(payload).ok()?;
        let len = whole(size_of_val(head), head.device, head.pdu_len)?;
        Some((Version::V7, head.pid.get(), len))
    };
    let as_v8 = || {
        let (head, _) = BlkIoTrace2::<LE>::ref_from_prefix(payload).ok()?;
        let len = whole(size_of_val(head), head.device, head.pdu_len)?;
        Some((Version::V8, head.pid.get(), len))
    };
    let (version, pid, len) = as_v7().or_else(as_v8)?;
    let mut record = payload.get(..len)?.to_vec();
    let (prefix, _) = Prefix::<LE>::mut_from_prefix(&mut record).ok()?;
    prefix.magic = version.magic().into();
    prefix.time = time.into();
    Some((pid, record))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mostrace_bundle::blk_io_trace::{Decoded, Event, Layout, decode, encode};

    const EITHER: [(Version, usize); 2] = [(Version::V7, 48), (Version::V8, 64)];

    /// A record as ftrace has it: its own head lies over the first 16 bytes.
    fn covered(version: Version, dev: u32, pdu: &[u8]) -> Vec<u8> {
        let layout = Layout {
            version,
            big_endian: false,
        };
        let event = Event {
            pid: 42,
            device: dev,
            pdu,
            ..Event::default()
        };
        let mut record = Vec::new();
        encode(&event, layout, &mut record).unwrap();
        record[..16].fill(0xee);
        record
    }

    #[test]
    fn a_record_gets_its_magic_and_time() {
        for (version, head) in EITHER {
            // Padded to a multiple of 8.
            let payload = [covered(version, 5, &[1; 5]), vec![0; 3]].concat();
            let (pid, record) = restore(99, &payload, 5).unwrap();
            assert_eq!(pid, 42);
            let Decoded::Record(event, len) = decode(&record) else {
                panic!("{record:?}")
            };
            assert_eq!((len, record.len()), (head + 5, head + 5));
            assert_eq!((event.time_ns, event.pid, event.device), (99, 42, 5));
            assert_eq!(event.pdu, [1; 5]);
            assert_eq!(record[..4], version.magic().to_le_bytes());
        }
    }

    #[test]
    fn other_events_are_left_out() {
        assert!(restore(0, &[0; 12], 0).is_none());
        for (version, _) in EITHER {
            assert!(restore(0, &covered(version, 5, &[]), 6).is_none());
            let mut long = covered(version, 5, &[]);
            long.extend([0; 40]);
            assert!(restore(0, &long, 5).is_none());
        }
    }
}
