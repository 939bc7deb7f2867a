// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of processes from plain tracepoints, for sources of entries that do not report them.

use mostrace_bundle::entry::{Flags, RawComm, comm_flags};
use zerocopy::IntoBytes;

use super::format::{Field, Format};
use super::instance::{self, Instance, Record};
use crate::error::Result;
use crate::sink::Sink;
use crate::source::process_names::entry;
use crate::source::{Losses, Provides, Remark, Source};

/// The tracepoints, the field of each with the new name, and what each shows. Threads are not told from processes: the number of a
/// thread belongs to no process, and nobody asks for its name.
const EVENTS: [(&str, &str, Flags); 2] = [
    ("task/task_newtask", "comm", comm_flags::STARTED),
    ("task/task_rename", "newcomm", comm_flags::CHANGED),
];

/// One of the tracepoints.
#[derive(Debug)]
struct Event {
    id: u16,
    pid: Field,
    comm: Field,
    flags: Flags,
}

/// The running tracepoints.
pub(crate) struct ProcessNames {
    instance: Instance,
    events: Vec<Event>,
}

impl ProcessNames {
    /// Starts the tracepoints.
    ///
    /// # Errors
    /// Returns an error if the kernel lacks one of them, or refuses an instance.
    pub fn start() -> Result<ProcessNames> {
        let root = instance::root()?;
        let event = |(name, comm, flags): (&str, &str, Flags)| {
            let format = Format::read(root, name)?;
            // Some kernels show only the thread that made the change, which is the one that is renamed unless it wrote to another
            // one's file in /proc.
            let pid = format
                .find("pid")
                .map_or_else(|| format.field("common_pid"), Ok)?;
            Ok(Event {
                id: format.id,
                pid,
                comm: format.field(comm)?,
                flags,
            })
        };
        let events = EVENTS.into_iter().map(event).collect::<Result<_>>()?;
        let listened = EVENTS.map(|(name, ..)| (name, String::new()));
        Ok(ProcessNames {
            instance: Instance::start("names", &listened)?,
            events,
        })
    }

    fn push(&self, records: &[Record], sink: &mut Sink) -> Result<()> {
        let mut entries = records.iter().filter_map(|record| self.entry(record));
        entries.try_for_each(|entry| sink.push_entry(entry.as_bytes()).map(|_| ()))
    }

    fn entry(&self, record: &Record) -> Option<RawComm> {
        let event = self.events.iter().find(|event| event.id == record.id())?;
        let tgid = u32::try_from(event.pid.number(&record.bytes)?).ok()?;
        let comm = event.comm.text(&record.bytes)?;
        Some(entry(tgid, record.time_ns, event.flags, comm))
    }
}

impl Source for ProcessNames {
    fn name(&self) -> &'static str {
        "tracefs"
    }

    fn provides(&self) -> Provides {
        Provides::NAMES | Provides::SEGMENTS
    }

    fn poll(&mut self, sink: &mut Sink) -> Result<()> {
        let records = self.instance.take()?;
        self.push(&records, sink)
    }

    fn stop(&mut self, _what: Provides, sink: &mut Sink) -> Result<()> {
        let records = self.instance.stop()?;
        self.push(&records, sink)
    }

    fn finish(&mut self, _sink: &mut Sink) -> Result<()> {
        self.instance.remove();
        Ok(())
    }

    fn losses(&self) -> Result<Losses> {
        let lost = self.instance.lost();
        Ok(lost
            .map(|lost| ("names_tracefs".to_owned(), lost))
            .into_iter()
            .collect())
    }

    fn remarks(&self) -> Vec<Remark> {
        self.instance.remarks()
    }
}
