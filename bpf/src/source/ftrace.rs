// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records with ftrace's `blk` tracer, read page by page from `trace_pipe_raw`.
//!
//! This works where debugfs is locked down or absent. The records are those of blktrace except for their first 16 bytes: ftrace's
//! own head covers magic and sequence, and `time` is not filled in; the ring buffer's time is used instead.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use mostrace_bundle::blk_io_trace::{BlkIoTrace, BlkIoTrace2, Prefix, Version};
use zerocopy::FromBytes;
use zerocopy::byteorder::{LE, U16, U32};

use super::{Losses, POLL_INTERVAL, Provides, Remark, Source, remarks};
use crate::error::{Error, Result, write_line};
use crate::machine::device::Device;
use crate::machine::guard::{Guard, Undo};
use crate::machine::leftovers;
use crate::machine::lock::Lock;
use crate::machine::mounts::Mount;
use crate::machine::queue;
use crate::machine::tracefs::{self, Buffer, PAGE_MAX, open_pipe};
use crate::machine::watch::Watch;
use crate::sink::Sink;

const NAME: &str = "ftrace";
/// The size of a buffer, per CPU. A SQLite run makes some 2 MB of events a second.
const BUFFER_KB: u32 = 8192;
/// The poll interval while few events come: a buffer of [`BUFFER_KB`] holds what some 100,000 requests a second leave on one CPU in
/// this time.
const IDLE_INTERVAL: Duration = Duration::from_millis(125);
/// The poll interval while the probes make entries and wake the recorder: they do so when an eighth of their ring is full, which is
/// 2 MiB for the largest ring that is chosen automatically. These are the entries of some 8,000 requests, whose events take 3 MB.
const WOKEN_INTERVAL: Duration = Duration::from_millis(800);
/// If this many events come at a time, the buffers are polled often.
const MANY: u64 = 1 << 12;
/// The running tracer.
#[derive(Debug)]
pub(crate) struct Ftrace {
    enable: PathBuf,
    dev: u32,
    buffers: Vec<Buffer>,
    /// The pipe, which is held open and not read: from 6.8 on (open_pipe_on_cpu), nobody else can open one then.
    trace_pipe: Option<File>,
    page: Vec<u8>,
    /// The current record.
    record: Vec<u8>,
    /// The number of events for which the kernel had no room; None if they could not be counted at the end.
    lost: Option<u64>,
    poll_interval: Duration,
    watch: Watch,
    interference: Vec<String>,
    guard: Option<Guard>,
    notes: Vec<String>,
    /// The lock, which is held while the queue is traced.
    _queue: Lock,
    /// The device, if it must be held open for that time.
    _open: Option<File>,
}

impl Ftrace {
    /// Starts tracing `device`.
    ///
    /// # Errors
    /// Returns an error if the kernel has no blk tracer, if somebody else traces the device or uses ftrace, or if somebody has a
    /// trace whose events the blk tracer would take.
    pub fn start(device: &Device) -> Result<Ftrace> {
        let queue_lock = Lock::of_queue(&device.info, NAME)?;
        let tracer_lock = Lock::of_blk_tracer(&device.info)?;
        let tracefs = Mount::tracefs()?.path();
        let open = queue::hold(device);
        leftovers::put_back(&tracer_lock)?;
        tracefs::check_free(tracefs)?;
        queue::check_free(device)?;
        check_none_is_traced()?;

        let enable = queue::enable(device);
        let mut undo = vec![Undo::Write(enable.clone(), "0".into())];
        undo.extend(tracefs::undo_steps(tracefs)?);
        let undo = leftovers::keep(undo, &tracer_lock)?;
        let guard = Guard::arm(undo, Some(tracer_lock))?;
        // Changing the clock empties the buffer.
        write_line(tracefs.join("trace_clock"), "mono")?;
        write_line(tracefs.join("buffer_size_kb"), &BUFFER_KB.to_string())?;
        write_line(tracefs.join("current_tracer"), "blk")?;
        write_line(tracefs.join("tracing_on"), "1")?;
        let trace_pipe = open_pipe(&tracefs.join("trace_pipe"))?;
        let buffers = tracefs::buffers(tracefs)?;
        let buffers = buffers
            .into_iter()
            .map(|(cpu, folder)| Buffer::open(cpu, folder));
        let buffers = buffers.collect::<Result<_>>()?;
        write_line(&enable, "1")?;
        let watched = tracefs::settings(tracefs).chain(queue::attributes(device));
        Ok(Ftrace {
            enable,
            dev: device.dev,
            buffers,
            trace_pipe: Some(trace_pipe),
            page: vec![0; PAGE_MAX],
            record: Vec::new(),
            lost: Some(0),
            poll_interval: POLL_INTERVAL,
            watch: Watch::new(watched)?,
            interference: Vec::new(),
            guard: Some(guard),
            notes: Vec::new(),
            _queue: queue_lock,
            _open: open,
        })
    }

    fn read_buffers(&mut self, sink: &mut Sink) -> Result<()> {
        let (events, record, dev) = (&mut sink.events, &mut self.record, self.dev);
        for buffer in &mut self.buffers {
            buffer.drain(&mut self.page, |cpu, time, payload| {
                match restore(time, payload, dev, record) {
                    Some(pid) => events.push(cpu, pid, record),
                    None => Ok(()),
                }
            })?;
        }
        Ok(())
    }

    /// Reads the kernel's counters of the buffers, all of which were just emptied.
    fn account(&mut self) -> Result<()> {
        let mut lost: u64 = 0;
        self.interference = self.watch.changes();
        for buffer in &self.buffers {
            let (stats, wrong) = buffer.account()?;
            lost = lost.saturating_add(stats.lost);
            self.interference.extend(wrong);
        }
        self.lost = Some(lost);
        Ok(())
    }
}

/// Checks that no queue is traced: the blk tracer would take the events of each, including those that somebody traces with
/// blktrace.
fn check_none_is_traced() -> Result<()> {
    let traced = queue::traced();
    match traced.is_empty() {
        true => Ok(()),
        false => Err(Error::Busy {
            what: "ftrace's blk tracer takes the events of every disk".into(),
            by: format!("{} is being traced", traced.join(", ")),
        }),
    }
}

impl Source for Ftrace {
    fn name(&self) -> &'static str {
        NAME
    }

    fn provides(&self) -> Provides {
        Provides::EVENTS | Provides::SEGMENTS
    }

    fn poll_interval(&self, others_wake: bool) -> Duration {
        let longest = if others_wake {
            WOKEN_INTERVAL
        } else {
            IDLE_INTERVAL
        };
        self.poll_interval.min(longest)
    }

    fn poll(&mut self, sink: &mut Sink) -> Result<()> {
        self.watch.poll();
        let before = sink.events.count();
        self.read_buffers(sink)?;
        self.poll_interval = match sink.events.count() - before {
            0..MANY => WOKEN_INTERVAL.min(self.poll_interval * 2),
            _ => POLL_INTERVAL,
        };
        Ok(())
    }

    fn drain(&mut self, sink: &mut Sink) -> Result<()> {
        self.watch.check();
        self.read_buffers(sink)?;
        self.account()
    }

    fn stop(&mut self, _what: Provides, sink: &mut Sink) -> Result<()> {
        self.lost = None;
        self.watch.check();
        write_line(&self.enable, "0")?;
        self.read_buffers(sink)?;
        self.account()?;
        for buffer in &mut self.buffers {
            buffer.pipe = None;
        }
        self.trace_pipe = None;
        // The tracer cannot be changed while its pipes are open.
        self.notes.extend(self.guard.take().and_then(Guard::end));
        Ok(())
    }

    fn losses(&self) -> Result<Losses> {
        let lost = self.lost.map(|lost| ("events_tracer".to_owned(), lost));
        Ok(lost.into_iter().collect())
    }

    fn remarks(&self) -> Vec<Remark> {
        let interference = remarks(&self.interference, Remark::Interference);
        remarks(&self.notes, Remark::Note)
            .chain(interference)
            .collect()
    }
}

/// Makes a record from a payload, whose first 16 bytes are ftrace's. Returns its pid; None for another kind of event.
///
/// The magic number is overwritten, so v7 and v8 are distinguished by the place of the device and of a plausible pdu length.
fn restore(time: u64, payload: &[u8], dev: u32, record: &mut Vec<u8>) -> Option<u32> {
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
    record.clear();
    record.extend_from_slice(payload.get(..len)?);
    let (prefix, _) = Prefix::<LE>::mut_from_prefix(record).ok()?;
    prefix.magic = version.magic().into();
    prefix.time = time.into();
    Some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mostrace_bundle::blk_io_trace::{Decoded, Event, Layout, decode, encode};

    const EITHER: [(Version, usize); 2] = [(Version::V7, 48), (Version::V8, 64)];

    /// Builds a record as ftrace has it, with its own head over the first 16 bytes.
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
            // This payload is padded to a multiple of 8.
            let payload = [covered(version, 5, &[1; 5]), vec![0; 3]].concat();
            let mut record = vec![7; 100];
            let pid = restore(99, &payload, 5, &mut record).unwrap();
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
        let restore = |payload: &[u8], dev| restore(0, payload, dev, &mut Vec::new());
        assert!(restore(&[0; 12], 0).is_none());
        for (version, _) in EITHER {
            assert!(restore(&covered(version, 5, &[]), 6).is_none());
            let mut long = covered(version, 5, &[]);
            long.extend([0; 40]);
            assert!(restore(&long, 5).is_none());
        }
    }
}
