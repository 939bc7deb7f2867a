// SPDX-License-Identifier: MIT OR Apache-2.0
//! The destination of what sources record: the event files and the tables of a bundle.
//!
//! A recording may go to several bundles, its segments. A [`Sink`] for segments keeps the latest records, and repeats those
//! of requests in flight at the beginning of each segment, so that every segment can be read on its own. Completions are never
//! repeated: every byte is in one segment.
//!
//! [`EventFiles`] are the per-CPU files of block events; [`EntryTables`] and [`CauseTables`] are two sets of tables ([`tables`]).
//! [`completions::Completions`] finds out which of the [`recent::Recent`] records belong to requests that have ended.

use std::collections::BTreeMap;

use mostrace_bundle::blk_io_trace::BlkIoTrace;
use mostrace_bundle::entry::TYPE_CGROUP;
use mostrace_bundle::operation::TYPE_OPERATION;
use mostrace_bundle::{Folder, Packages, layout};
use zerocopy::LE;

use crate::error::Result;

mod cause_tables;
mod completions;
mod cpu_file;
mod entry_tables;
mod event_files;
mod event_reader;
mod file_names;
mod functions;
mod held_back;
mod in_flight;
mod isolated;
mod latest_causes;
mod name_filter;
mod named;
mod owner;
mod process_names;
mod process_tree;
mod recent;
mod stacks;
mod tables;
pub(crate) mod unfinished;

use cause_tables::CauseTables;
pub(crate) use cause_tables::is_cause;
use entry_tables::EntryTables;
pub(crate) use event_files::EventFiles;
pub(crate) use event_reader::EventReader;
pub(crate) use in_flight::Step;
pub use name_filter::NameFilter;
pub(crate) use tables::{Counts, Sample, kind_of, split_entry};
use tables::{Spec, TableSet};

/// Decides how many of the latest records are kept for the next segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention {
    is_segmented: bool,
}

impl Retention {
    /// Returns the retention for a recording that goes to segments, or to one bundle.
    pub fn of(is_segmented: bool) -> Retention {
        Retention { is_segmented }
    }

    /// Returns `most`, or 0 if there is no next segment.
    pub fn room(self, most: usize) -> usize {
        if self.is_segmented { most } else { 0 }
    }
}

/// The results of a segment, known when the next one has begun.
#[derive(Debug, Default)]
pub(crate) struct SegmentEnd {
    /// The number of records in the segment, by the manifest's names, without those that were repeated at its beginning.
    pub counts: BTreeMap<String, u64>,
    /// The number of requests that were issued in the segment or before and did not complete in it; None if they were not counted.
    pub unfinished: Option<u64>,
    /// The number of these requests that the next segment repeats.
    pub under_way: u64,
    /// The place in each of the next segment's files at which its own records begin, behind the repeated ones.
    pub own_from: BTreeMap<String, u64>,
}

/// The files of one bundle, and the records that are kept for the next one.
pub(crate) struct Sink {
    folder: Folder,
    names: NameFilter,
    packages: Option<Packages>,
    retention: Retention,
    /// The per-CPU files of block events.
    pub events: EventFiles,
    is_tool_writing: bool,
    entries: Option<EntryTables>,
    causes: Option<CauseTables>,
    operations: Option<TableSet>,
}

/// The table of operations.
const OPERATIONS: [Spec; 1] = [(TYPE_OPERATION, layout::OPERATION)];

impl Sink {
    /// Makes a sink without files for a bundle in `folder`. The tables keep only names of files that `names` accepts.
    pub fn new(folder: &Folder, names: NameFilter, retention: Retention) -> Sink {
        Sink {
            folder: folder.clone(),
            names,
            packages: None,
            retention,
            events: EventFiles::new(folder, retention),
            is_tool_writing: false,
            entries: None,
            causes: None,
            operations: None,
        }
    }

    /// Returns the folder of the bundle that is being written.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Sets the apps of an Android device; entries are to say which users of isolated processes are theirs.
    pub fn set_packages(&mut self, packages: &Packages) {
        self.packages = Some(packages.clone());
    }

    /// Returns the apps with the users of isolated processes; None if no such user is known.
    pub fn packages(&self) -> Option<Packages> {
        self.entries.as_ref()?.packages()
    }

    /// Leaves the event files to a tool that writes them itself.
    pub fn leave_events_to_tool(&mut self) {
        self.is_tool_writing = true;
    }

    /// Makes the tables of entries, replacing those of a source that was tried before. Messages about entries name `from`.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn open_entries(&mut self, from: &str) -> Result<()> {
        let names = self.names.clone();
        let mut tables = EntryTables::create(&self.folder, names, from, self.retention)?;
        if let Some(packages) = &self.packages {
            tables.find_apps(packages);
        }
        self.entries = Some(tables);
        Ok(())
    }

    /// Makes the tables of causes; that of stacks only if there are to be any.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn open_causes(&mut self, has_stacks: bool) -> Result<()> {
        let names = self.names.clone();
        let tables = CauseTables::create(&self.folder, names, self.retention, has_stacks)?;
        self.causes = Some(tables);
        Ok(())
    }

    /// Drops the tables of causes, whose source was refused.
    pub fn close_causes(&mut self) {
        self.causes = None;
    }

    /// Makes the table of operations.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn open_operations(&mut self) -> Result<()> {
        self.operations = Some(TableSet::create(&self.folder, &OPERATIONS)?);
        Ok(())
    }

    /// Takes one operation.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn push_operation(&mut self, record: &[u8]) -> Result<()> {
        let table = self.operations.as_mut();
        table.map_or(Ok(()), |table| table.push(record))
    }

    /// Takes one entry. Returns false if there is no table for its type.
    ///
    /// # Errors
    /// Returns an error if the entry is malformed, or if the bundle cannot be written.
    pub fn push_entry(&mut self, entry: &[u8]) -> Result<bool> {
        let tables = self.entries.as_mut();
        tables.map_or(Ok(false), |tables| tables.push(entry))
    }

    /// Returns a file's entry in the table's form, for a [`Sample`]; None if it is malformed, or if there are no tables.
    pub fn made_of(&mut self, file: &[u8]) -> Option<&[u8]> {
        self.entries.as_mut()?.made_of(file)
    }

    /// Takes the entry of a bio that a sample is now.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    #[inline]
    pub fn push_like(&mut self, sample: &mut Sample) -> Result<()> {
        let tables = self.entries.as_mut();
        tables.map_or(Ok(()), |tables| tables.push_like(sample))
    }

    /// Takes one entry of causes. Returns false if there are no tables of causes.
    ///
    /// # Errors
    /// Returns an error if the entry is malformed, or if the bundle cannot be written.
    pub fn push_cause(&mut self, entry: &[u8]) -> Result<bool> {
        // Both kinds of probes report cgroups, but there is only one table.
        if kind_of(entry) == Some(TYPE_CGROUP) {
            return self.push_entry(entry);
        }
        let Some(tables) = &mut self.causes else {
            return Ok(false);
        };
        tables.push(entry)?;
        if let Some(entries) = &mut self.entries {
            entries.name_process(entry)?;
        }
        Ok(true)
    }

    /// Returns true if the stack of this number need not be told again.
    pub fn knows_stack(&self, id: u64) -> bool {
        let causes = self.causes.as_ref();
        causes.is_none_or(|causes| causes.knows_stack(id))
    }

    /// Reports that the command has been started as this process; the tables of causes keep the processes of its tree.
    pub fn command_started(&mut self, pid: u32) {
        if let Some(causes) = &mut self.causes {
            causes.command_started(pid);
        }
    }

    /// Returns the number of events in the segment so far. A tool's events are counted by the sizes of its files; plain records
    /// have no more than a head.
    pub fn event_count(&self) -> u64 {
        if !self.is_tool_writing {
            return self.events.count();
        }
        let names = event_files_in(&self.folder).unwrap_or_default();
        let sizes = names
            .iter()
            .filter_map(|name| self.folder.len_of(name).ok());
        sizes
            .map(|len| len / size_of::<BlkIoTrace<LE>>() as u64)
            .sum()
    }

    /// Returns the number of entries in the segment so far, by the manifest's names.
    pub fn entry_counts(&self) -> Counts {
        let tables = self.entries.as_ref();
        tables.map_or_else(Counts::new, EntryTables::counts)
    }

    /// Returns the number of all records in the segment so far, by the manifest's names.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let causes = self.causes.as_ref().map(CauseTables::counts);
        let events = [("events".to_owned(), self.event_count())];
        let operations = self.operations.as_ref().map(TableSet::counts);
        let tables = self
            .entry_counts()
            .into_iter()
            .chain(causes.into_iter().flatten())
            .chain(operations.into_iter().flatten());
        events.into_iter().chain(tables).collect()
    }

    /// Returns the addresses of the kernel's functions that began handles, in the order of their numbers in the table.
    pub fn functions(&self) -> &[u64] {
        self.causes.as_ref().map_or(&[], CauseTables::functions)
    }

    /// From now on, holds back records of `at_ns` or later until [`Sink::begin_segment`].
    pub fn hold_from(&mut self, at_ns: u64) {
        self.events.hold_from(at_ns);
        if let Some(entries) = &mut self.entries {
            entries.hold_from(at_ns);
        }
    }

    /// Continues into `folder`. The new files begin with the records of requests and transactions in progress, which are also in
    /// the segment before, and with what was held back.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn begin_segment(&mut self, folder: &Folder) -> Result<SegmentEnd> {
        self.flush()?;
        let mut end = SegmentEnd {
            counts: self.counts(),
            ..SegmentEnd::default()
        };
        self.folder = folder.clone();
        let mut events = self.events.begin_segment(folder)?;
        end.unfinished = events.unfinished;
        end.under_way = events.under_way;
        end.own_from = events.own_from;
        if let Some(entries) = &mut self.entries {
            end.own_from
                .extend(entries.begin_segment(folder, &mut events.completions)?);
        }
        if let Some(causes) = &mut self.causes {
            end.own_from.extend(causes.begin_segment(folder)?);
        }
        if let Some(operations) = &mut self.operations {
            end.own_from
                .extend(operations.begin_segment(folder, std::iter::empty())?);
        }
        self.flush()?;
        Ok(end)
    }

    /// Passes buffered records to the kernel.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        self.events.flush()?;
        if let Some(entries) = &mut self.entries {
            entries.flush()?;
        }
        if let Some(operations) = &mut self.operations {
            operations.flush()?;
        }
        self.causes.as_mut().map_or(Ok(()), CauseTables::flush)
    }
}

/// Returns the names of the event files in a bundle, unordered.
///
/// # Errors
/// Returns an error if the folder cannot be read.
pub(crate) fn event_files_in(folder: &Folder) -> Result<Vec<String>> {
    let mut names = folder.names()?;
    names.retain(|name| layout::cpu_of(name).is_some());
    Ok(names)
}
