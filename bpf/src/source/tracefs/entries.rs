// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries from plain tracepoints: who queues a bio, and to which file it belongs, as far as the filesystem's own events show it.

use std::collections::BTreeMap;

use mostrace_bundle::tracepoints::{Bio, Follower, Moment, Tells, Thread, Volume};

use super::events::only;
use super::instance::{self, Instance, Record};
use super::task::Tasks;
use super::tracepoints::{Event, Told, find};
use crate::error::Result;
use crate::machine::device::Device;
use crate::machine::processes::comm_of;
use crate::sink::Sink;
use crate::source::process_names::open_entries;
use crate::source::{Losses, Provides, Remark, Source, remarks};

/// The running tracepoints.
pub(crate) struct TracefsEntries {
    instance: Instance,
    /// What the entries lack on this kernel.
    limits: Vec<String>,
    /// The tracepoints, by number.
    events: BTreeMap<u16, Event>,
    follower: Follower,
    tasks: Tasks,
}

impl TracefsEntries {
    /// Starts the tracepoints, and makes the tables. The files are those of `volume`.
    ///
    /// # Errors
    /// Returns an error if the kernel has no plain tracepoint of bios or refuses an instance, or if the bundle cannot be written.
    pub fn start(
        device: &Device,
        volume: Option<Volume>,
        sink: &mut Sink,
    ) -> Result<TracefsEntries> {
        let root = instance::root()?;
        let found = find(root, volume.as_ref())?;
        let listened: Vec<(&str, String)> = found
            .iter()
            .map(|(name, event)| {
                let mut devs = vec![device.dev, device.disk_dev];
                devs.extend(volume.as_ref().map(|volume| volume.dev));
                let has_dev = event.format.find("dev").is_some();
                (*name, if has_dev { only(&devs) } else { String::new() })
            })
            .collect();
        let instance = Instance::start("entries", &listened)?;
        open_entries(sink, "tracefs")?;
        let by_id = found.into_iter().map(|(_, event)| (event.format.id, event));
        let events: BTreeMap<_, _> = by_id.collect();
        let limits = limits(&events);
        let sectors = device.info.start_sector..device.end_sector();
        let page_size = rustix::param::page_size() as u64;
        Ok(TracefsEntries {
            instance,
            limits,
            events,
            follower: Follower::new(device.disk_dev, sectors, volume, page_size),
            tasks: Tasks::default(),
        })
    }

    fn push(&mut self, records: &[Record], sink: &mut Sink) -> Result<()> {
        records
            .iter()
            .try_for_each(|record| self.take(record, sink))
    }

    fn take(&mut self, record: &Record, sink: &mut Sink) -> Result<()> {
        let Some(Event { tells, format }) = self.events.get(&record.id()) else {
            return Ok(());
        };
        let told = Told {
            format,
            bytes: &record.bytes,
        };
        if *tells != Tells::Queue {
            self.follower.take(*tells, &told);
            return Ok(());
        }
        let Some(bio) = Bio::of(&told) else {
            return Ok(());
        };
        let at = Moment {
            time_ns: record.time_ns,
            cpu: record.cpu,
        };
        let thread = |bio: &Bio| thread(&mut self.tasks, record, bio);
        self.follower
            .queue(at, &bio, thread, |entry| sink.push_entry(entry).map(drop))
    }
}

fn thread(tasks: &mut Tasks, record: &Record, bio: &Bio) -> Thread {
    let task = tasks.get(bio.pid, &bio.comm);
    Thread {
        pid: bio.pid,
        tgid: task.tgid,
        uid: task.uid,
        comm: comm_of(&bio.comm),
        is_kernels: task.is_kernels,
        queued_ns: record.time_ns,
    }
}

/// Returns what entries from these tracepoints lack.
fn limits(events: &BTreeMap<u16, Event>) -> Vec<String> {
    let tells = |tells| events.values().any(|event| event.tells == tells);
    let mut notes = Vec::new();
    if !tells(Tells::F2fsPage) && !tells(Tells::ExtMapped) {
        notes.push(
            "entries tracefs: the filesystem has no events: of files nothing is seen live".into(),
        );
    } else if !tells(Tells::Path) && !tells(Tells::PathOfSome) {
        notes.push(
            "entries tracefs: no event tells names: a file that is gone at the snapshot has none"
                .into(),
        );
    }
    notes
}

impl Source for TracefsEntries {
    fn name(&self) -> &'static str {
        "tracefs"
    }

    fn provides(&self) -> Provides {
        Provides::ENTRIES | Provides::SEGMENTS
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
        let losses = self.instance.lost().map(|lost| {
            let losses = [
                ("entries_tracefs", lost),
                ("extents_forgotten", self.follower.forgotten()),
            ];
            losses.map(|(name, n)| (name.to_owned(), n))
        });
        Ok(losses.into_iter().flatten().collect())
    }

    fn remarks(&self) -> Vec<Remark> {
        let limits = remarks(&self.limits, Remark::Limit);
        limits.chain(self.instance.remarks()).collect()
    }
}
