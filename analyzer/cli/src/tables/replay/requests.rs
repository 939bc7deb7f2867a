// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requests of a trace, as `replay --blocks` makes them again.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use anyhow::bail;
use mostrace_bundle::entry::UNKNOWN_ID;
use mostrace_replay::blocks::{Op, Request};
use mostrace_trace::attribute;
use mostrace_trace::blktrace::action::{BLK_TC_FLUSH, BLK_TC_FUA, act, is_note, ta};
use mostrace_trace::blktrace::{Completion, Completions, Event, Part, Trace};
use mostrace_trace::recording::Recording;

/// The requests that a device completed.
#[derive(Default)]
pub struct Requests {
    /// The requests, by the time when they were completed.
    pub all: Vec<Request>,
    /// The number of requests that are not made again, by reason.
    pub left_out: BTreeMap<&'static str, u64>,
    /// The notices of the trace's reader.
    pub notices: Vec<String>,
}

/// A bio with a preflush or FUA. The request made for it may show neither, because the block layer divides it into steps.
#[derive(Clone, Copy)]
struct Bio {
    sector: u64,
    bytes: u32,
    action: u64,
}

/// The bios that ask for a flush or for FUA.
#[derive(Default)]
struct Bios {
    /// The bios with data, each under the time when it was queued, ns.
    queued: HashMap<u64, Vec<Bio>>,
    /// The flushes without data whose completion has not been read, each under its sector, the time when it was queued, ns, and its
    /// number.
    flushes: BTreeMap<(u64, u64, usize), Request>,
}

impl Bios {
    fn read(mut trace: Trace) -> anyhow::Result<Bios> {
        let mut bios = Bios::default();
        while let Some(event) = trace.next()? {
            let asks = event.action & (BLK_TC_FLUSH | BLK_TC_FUA) != 0;
            if asks && !is_note(event.action) && act(event.action) == ta::QUEUE {
                bios.add(&event);
            }
        }
        Ok(bios)
    }

    fn add(&mut self, event: &Event<'_>) {
        if event.bytes > 0 {
            self.queued.entry(event.time_ns).or_default().push(Bio {
                sector: event.sector,
                bytes: event.bytes,
                action: event.action,
            });
            return;
        }
        let flush = Request {
            op: Op::Flush,
            sector: event.sector,
            bytes: 0,
            fua: false,
            preflush: false,
            thread: Some(event.pid).filter(|&pid| pid != UNKNOWN_ID),
            queued_ns: event.time_ns,
            completed_ns: event.time_ns,
        };
        let key = (event.sector, event.time_ns, self.flushes.len());
        self.flushes.insert(key, flush);
    }

    /// Returns the bio that a part belongs to, if it is one of these.
    fn of(&self, part: &Part) -> Option<&Bio> {
        let mut queued = self.queued.get(&part.q_ns?)?.iter();
        queued.find(|bio| {
            let begin = part.sector.checked_sub(bio.sector);
            let begin = begin.and_then(|sectors| sectors.checked_mul(512));
            let end = begin.and_then(|begin| begin.checked_add(part.bytes.into()));
            part.sector == bio.sector || end.is_some_and(|end| end <= bio.bytes.into())
        })
    }

    /// Takes the flush without data that a completion ended. A trace without bio numbers does not say which of several it was:
    /// they do the same, so the one queued first will do.
    fn take_flush(&mut self, completion: &Completion<'_>) -> Option<Request> {
        let q_ns = completion.parts.first()?.q_ns;
        let (from_ns, until_ns) = q_ns.map_or((0, completion.time_ns), |q_ns| (q_ns, q_ns));
        let at = |ns, number| (completion.sector, ns, number);
        let mut waiting = self
            .flushes
            .range(at(from_ns, 0)..=at(until_ns, usize::MAX));
        let key = *waiting.next()?.0;
        let mut flush = self.flushes.remove(&key)?;
        flush.completed_ns = completion.time_ns;
        Some(flush)
    }
}

impl Requests {
    /// Reads the requests of a bundle, of segments, or of a bare trace.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be read, or is not of one recording and one device.
    pub fn read(path: &Path) -> anyhow::Result<Requests> {
        let recordings = Recording::open_all(&[PathBuf::from(path)], false)?;
        let [recording] = &recordings[..] else {
            bail!("{}: is not one recording", path.display());
        };
        let mut bios = Bios::read(recording.events()?)?;
        let mut completions = Completions::new(recording.events()?);
        let mut requests = Requests::default();
        // The writes whose flush sequences have not ended, by their queueing and place.
        let mut sequences: HashMap<(u64, u64), usize> = HashMap::new();
        let mut device = None;
        while let Some(completion) = completions.next()? {
            if *device.get_or_insert(completion.device) != completion.device {
                bail!("{}: has the requests of several devices", path.display());
            }
            requests.take(&completion, &mut bios, &mut sequences);
        }
        requests.notices = completions
            .notices()
            .iter()
            .map(ToString::to_string)
            .collect();
        Ok(requests)
    }

    /// Returns the end of the last range that a request names, bytes.
    pub fn end(&self) -> u64 {
        let end = |request: &Request| match request.op {
            Op::Flush => 0,
            _ => request
                .sector
                .saturating_mul(512)
                .saturating_add(request.bytes.into()),
        };
        self.all.iter().map(end).max().unwrap_or(0)
    }

    fn take(
        &mut self,
        completion: &Completion<'_>,
        bios: &mut Bios,
        sequences: &mut HashMap<(u64, u64), usize>,
    ) {
        let bio = completion
            .parts
            .iter()
            .find_map(|part| bios.of(part))
            .copied();
        let place = |part: &Part| Some((part.q_ns?, part.sector));
        let first = completion.parts.first().and_then(place);
        let op = match attribute::Op::of(completion.action, completion.bytes) {
            attribute::Op::Read => Op::Read,
            attribute::Op::Write => Op::Write,
            attribute::Op::Discard => Op::Discard,
            attribute::Op::WriteZeroes => Op::WriteZeroes,
            attribute::Op::Flush => {
                match (
                    bios.take_flush(completion),
                    first.and_then(|first| sequences.remove(&first)),
                ) {
                    (Some(flush), _) => self.all.push(flush),
                    // The end of a write's flush sequence.
                    (None, Some(write)) => self.all[write].completed_ns = completion.time_ns,
                    (None, None) if bio.is_some() => {
                        self.leave_out("writes whose own completion was not seen");
                    }
                    (None, None) => self.leave_out("flushes whose queueing was not seen"),
                }
                return;
            }
            // The device's part of the flushes above.
            attribute::Op::DeviceFlush => return,
            _ => {
                return self.leave_out("neither reads nor writes, such as passthrough");
            }
        };
        let has = |bit: u64| {
            let action = completion.action | bio.map_or(0, |bio| bio.action);
            op == Op::Write && action & bit != 0
        };
        let last = completion.parts.iter().max_by_key(|part| part.q_ns);
        let queued_ns = last.and_then(|part| part.q_ns).or(completion.d_ns);
        if op == Op::Write
            && bio.is_some()
            && let Some(first) = first
        {
            sequences.insert(first, self.all.len());
        }
        self.all.push(Request {
            op,
            sector: completion.sector,
            bytes: completion.bytes,
            fua: has(BLK_TC_FUA),
            preflush: has(BLK_TC_FLUSH),
            thread: last.and_then(|part| part.pid),
            queued_ns: queued_ns.unwrap_or(completion.time_ns),
            completed_ns: completion.time_ns,
        });
    }

    fn leave_out(&mut self, why: &'static str) {
        let count = self.left_out.entry(why).or_default();
        *count = count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use mostrace_bundle::blk_io_trace::action::BLK_TC_WRITE;
    use mostrace_bundle::blk_io_trace::{Layout, Version, encode};

    use super::*;

    /// Without bio numbers it is unknown which of two flushes a completion ends.
    #[test]
    fn flushes_that_wait_at_once_are_all_made() {
        let event = |cpu, time_ns, action| Event {
            device: 8 << 20,
            cpu,
            pid: 100 + cpu,
            time_ns,
            action,
            ..Event::default()
        };
        let asked = BLK_TC_FLUSH | BLK_TC_WRITE;
        let events = [
            event(0, 10, asked | ta::QUEUE),
            event(1, 20, asked | ta::QUEUE),
            event(0, 30, BLK_TC_FLUSH | ta::ISSUE),
            event(0, 50, BLK_TC_FLUSH | ta::COMPLETE),
            event(0, 51, asked | ta::COMPLETE),
            event(0, 52, asked | ta::COMPLETE),
            // Its queueing was lost.
            event(0, 60, asked | ta::COMPLETE),
        ];
        let layout = Layout {
            version: Version::V7,
            big_endian: false,
        };
        let mut bytes = Vec::new();
        for event in &events {
            encode(event, layout, &mut bytes).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("sda.blktrace.0");
        fs::write(&trace, bytes).unwrap();
        let read = Requests::read(&trace).unwrap();
        let made: Vec<_> = read
            .all
            .iter()
            .map(|flush| (flush.op, flush.thread, flush.queued_ns, flush.completed_ns))
            .collect();
        let expected = [
            (Op::Flush, Some(100), 10, 51),
            (Op::Flush, Some(101), 20, 52),
        ];
        assert_eq!(made, expected);
        let left_out = BTreeMap::from([("flushes whose queueing was not seen", 1)]);
        assert_eq!(read.left_out, left_out);
    }
}
