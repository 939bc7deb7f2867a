// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads segments and folds them.

use std::io::Read;
use std::path::PathBuf;

use mostrace_bundle::entry::{EntryRef, RawCall};
use mostrace_bundle::manifest::Manifest;
use mostrace_bundle::table::TableReader;
use mostrace_bundle::{Bundle, Zones, layout};

use super::chain::Chain;
use crate::attribute::{Attributor, Registry};
use crate::blktrace::{Completions, Partial, Trace};
use crate::causes::{Causer, Sharing, Tables, are_whole};
use crate::pipeline::{Pipeline, Step};
use crate::recording::Error;

type Result<T> = std::result::Result<T, Error>;

/// Takes the contents of a running recording's segments.
pub trait Fold {
    /// Takes a system call of the segment, and the registry that knows its process; all of a segment's calls come before its
    /// completions. A recording without calls has none.
    fn call(&mut self, call: &RawCall, registry: &Registry<'_>);
    /// Takes a completed request of the segment.
    fn push(&mut self, step: &Step<'_, '_>);
    /// Ends the segment of this manifest. `has_calls` is false if calls are not recorded.
    fn end_segment<R: Read>(
        &mut self,
        manifest: &Manifest,
        pipeline: &Pipeline<'_, R>,
        has_calls: bool,
    );
}

/// Reads segments in their order and folds each when the next one is available, and the last one at the end. A segment's
/// files are opened before the next one is asked for; its directory may be removed then.
///
/// # Errors
/// Returns an error if a segment cannot be read or is not a bundle.
pub fn follow(
    segments: impl IntoIterator<Item = Result<Bundle>>,
    fold: &mut impl Fold,
) -> Result<()> {
    let mut segments = segments.into_iter();
    let Some(first) = segments.next().transpose()? else {
        return Ok(());
    };
    let mut files = Files::default();
    let mut waiting = files.take(&first)?;
    let [
        processes,
        names,
        dirtiers,
        mut handles,
        mut dirtied,
        mut calls,
        mut f2fs,
        mut asked,
        mut cgroups,
        mut comms,
    ] = files.readers()?;
    let mut of_bios = [processes, names, dirtiers];
    let of_bios = of_bios.iter_mut().flatten().collect();
    let mut attributor = Attributor::new(of_bios, None).with_losses(&waiting.manifest.losses);
    if let Some(s_dev) = waiting.manifest.filesystem_dev() {
        attributor = attributor.of_filesystem(s_dev);
    }
    if let Some(filesystem) = &waiting.manifest.filesystem {
        attributor = attributor.of_kind(&filesystem.kind);
    }
    let tables = Tables {
        handles: handles.as_mut(),
        dirtied: dirtied.as_mut(),
        calls: calls.as_mut(),
        f2fs: f2fs.as_mut(),
    };
    let causer = Causer::new(
        tables,
        &waiting.manifest.functions,
        Sharing::default(),
        are_whole(&waiting.manifest),
    );
    let completions = Completions::new(Trace::from_sources(Vec::new(), Partial::Refused));
    let mut pipeline = Pipeline::new(completions, attributor, Some(causer));
    let has_calls = asked.is_some();
    loop {
        let next = segments.next().transpose()?;
        let next = next.map(|next| files.take(&next)).transpose()?;
        if let Some(cgroups) = &mut cgroups {
            cgroups.go_on();
            pipeline.learn_cgroups(cgroups)?;
        }
        if let Some(comms) = &mut comms {
            comms.go_on();
            pipeline.learn_process_names(comms)?;
        }
        if let Some(asked) = &mut asked {
            asked.go_on();
            let end = next.as_ref().map(|_| waiting.manifest.clock.stop_mono_ns);
            let end = end.unwrap_or(u64::MAX);
            while let Some(entry) = asked.next_if(|head| head.time_ns.get() <= end)? {
                if let EntryRef::Call(call) = entry {
                    fold.call(call, pipeline.registry());
                }
            }
        }
        let Waiting { trace, manifest } = waiting;
        let newest = next.as_ref().map_or(&manifest, |next| &next.manifest);
        pipeline.go_on(trace, newest);
        while let Some(step) = pipeline.next()? {
            fold.push(&step);
        }
        fold.end_segment(&manifest, &pipeline, has_calls);
        match next {
            Some(next) => waiting = next,
            None => return Ok(()),
        }
    }
}

/// A segment whose tables are with the readers and whose events are still to be read.
struct Waiting {
    trace: Trace,
    manifest: Manifest,
}

/// The tables that are read. Calls are read twice: ahead of the events for causes, and for what was asked.
const READ: [&str; 10] = [
    layout::PROCESS,
    layout::FILE,
    layout::DIRTIER,
    layout::HANDLE,
    layout::DIRTIED,
    layout::CALL,
    layout::F2FS,
    layout::CALL,
    layout::CGROUP,
    layout::COMM,
];

/// These tables of all segments, each record once.
#[derive(Default)]
struct Files([Table; READ.len()]);

#[derive(Default)]
struct Table {
    /// The table's path in the first segment that has it, for messages.
    path: Option<PathBuf>,
    chain: Chain,
}

impl Files {
    /// Opens a segment's files and hands its tables to the readers.
    fn take(&mut self, segment: &Bundle) -> Result<Waiting> {
        for (table, name) in self.0.iter_mut().zip(READ) {
            if let Some((path, file)) = segment.own(name)? {
                table.path.get_or_insert(path);
                table.chain.push(file);
            }
        }
        let mut sources: Vec<(PathBuf, Box<dyn Read + Send>)> = Vec::new();
        for path in segment.event_files() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some((path, file)) = segment.own(&name)? {
                sources.push((path, Box::new(file)));
            }
        }
        Ok(Waiting {
            trace: Trace::from_sources(sources, Partial::Refused)
                .of_zones(Zones::of(&segment.manifest().device)),
            manifest: segment.manifest().clone(),
        })
    }

    /// Returns readers of those tables that the first segment has.
    fn readers(&self) -> Result<[Option<TableReader<Chain>>; READ.len()]> {
        let mut readers = [const { None }; READ.len()];
        for (reader, table) in readers.iter_mut().zip(&self.0) {
            if let Some(path) = &table.path {
                *reader = Some(TableReader::new(table.chain.clone(), path, false)?);
            }
        }
        Ok(readers)
    }
}
