// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads segments and folds them.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::PathBuf;

use mostrace_bundle::entry::EntryRef;
use mostrace_bundle::manifest::Manifest;
use mostrace_bundle::table::{TableReader, header};
use mostrace_bundle::{Bundle, Zones, layout};

use super::chain::Chain;
use crate::attribute::Attributor;
use crate::blktrace::{Completions, Partial, Trace};
use crate::causes::{Causer, Sharing, Tables, are_whole};
use crate::origins::Base;
use crate::pipeline::{Fold, Pipeline};
use crate::recording::Error;

type Result<T> = std::result::Result<T, Error>;

/// The most processes, files and causes that are remembered. A program can give its threads any number of names, and make any number
/// of files.
const MOST_NAMED: usize = 1 << 17;

/// Reads segments in their order and folds each when the next one is available, and the last one at the end. A segment's
/// files are opened before the next one is asked for; its directory may be removed then.
///
/// If too much is remembered after a segment, all of it is forgotten, and the next one is read as if it were the first: what was changed
/// before and is written later has causers only as far as that segment repeats them.
///
/// # Errors
/// Returns an error if a segment cannot be read or is not a bundle.
pub fn follow(
    segments: impl IntoIterator<Item = Result<Bundle>>,
    fold: &mut impl Fold,
) -> Result<()> {
    follow_within(MOST_NAMED, segments, fold)
}

fn follow_within(
    most: usize,
    segments: impl IntoIterator<Item = Result<Bundle>>,
    fold: &mut impl Fold,
) -> Result<()> {
    let mut segments = segments.into_iter();
    let mut next = segments.next().transpose()?;
    while let Some(first) = next {
        fold.begin(Base::default());
        next = stretch(most, &first, &mut segments, fold)?;
    }
    Ok(())
}

/// Reads segments until more than `most` is remembered, and returns the one that follows.
fn stretch(
    most: usize,
    first: &Bundle,
    segments: &mut impl Iterator<Item = Result<Bundle>>,
    fold: &mut impl Fold,
) -> Result<Option<Bundle>> {
    let mut files = Files::default();
    let mut waiting = files.begin(first)?;
    let [
        processes,
        names,
        dirtiers,
        mut handles,
        mut dirtied,
        mut calls,
        mut all_calls,
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
        calls: calls.as_mut().zip(all_calls.as_mut()),
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
        // What the segment at hand adds is not known yet, so this is decided a segment late.
        let is_full = pipeline.named() > most;
        let (next, later) = if is_full { (None, next) } else { (next, None) };
        let mut next = next.map(|next| files.take(&next)).transpose()?;
        if let Some(next) = &mut next {
            next.count_left_out(&waiting.manifest);
        }
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
            fold.step(&step)?;
        }
        pipeline.end(fold, Some(&manifest), has_calls)?;
        match next {
            Some(next) => waiting = next,
            None => return Ok(later),
        }
    }
}

/// A segment whose tables are with the readers and whose events are still to be read.
struct Waiting {
    trace: Trace,
    manifest: Manifest,
}

/// The name of a loss: segments that were left out because the reader was too slow.
const LEFT_OUT: &str = "segments";

impl Waiting {
    /// Counts the segments between this one and the one before as lost.
    fn count_left_out(&mut self, before: &Manifest) {
        let number = |manifest: &Manifest| manifest.segment.as_ref().map(|s| s.number);
        let passed = number(&self.manifest).zip(number(before));
        let passed = passed.map_or(0, |(this, before)| this.saturating_sub(before));
        if passed > 1 {
            let lost = self.manifest.losses.entry(LEFT_OUT.to_owned()).or_default();
            *lost = lost.saturating_add(u64::from(passed).saturating_sub(1));
        }
    }
}

/// The tables that are read. Calls are read three times: ahead of the events for causes, further ahead for those that last long, and
/// for what was asked.
const READ: [&str; 11] = [
    layout::PROCESS,
    layout::FILE,
    layout::DIRTIER,
    layout::HANDLE,
    layout::DIRTIED,
    layout::CALL,
    layout::CALL,
    layout::F2FS,
    layout::CALL,
    layout::CGROUP,
    layout::COMM,
];
/// The place of the calls that are summed up: the last table of calls.
const ASKED: usize = READ.len() - 3;

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
    /// Opens the first segment's files, with the records that it repeats of the one before; but the calls that are summed up were
    /// summed up with that one.
    fn begin(&mut self, segment: &Bundle) -> Result<Waiting> {
        let name = READ.get(ASKED).copied().unwrap_or_default();
        let repeats = segment
            .place(name)
            .is_some_and(|(_, own_from)| own_from > 0);
        if let Some(table) = self.0.get_mut(ASKED).filter(|_| repeats) {
            // What is skipped begins with the header.
            table.chain.push(Cursor::new(header()));
        }
        self.open(segment, |at, name| match at {
            ASKED => segment.own(name),
            _ => segment.whole(name),
        })
    }

    /// Opens a segment's files and hands its tables to the readers.
    fn take(&mut self, segment: &Bundle) -> Result<Waiting> {
        self.open(segment, |_, name| segment.own(name))
    }

    fn open(
        &mut self,
        segment: &Bundle,
        open: impl Fn(
            usize,
            &str,
        ) -> std::result::Result<Option<(PathBuf, File)>, mostrace_bundle::Error>,
    ) -> Result<Waiting> {
        for (at, (table, name)) in self.0.iter_mut().zip(READ).enumerate() {
            if let Some((path, file)) = open(at, name)? {
                table.path.get_or_insert(path);
                table.chain.push(file);
            }
        }
        let mut sources: Vec<(PathBuf, Box<dyn Read + Send>)> = Vec::new();
        for path in segment.event_files() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some((path, file)) = open(READ.len(), &name)? {
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use super::*;
    use crate::pipeline::{Step, Stretch};

    /// What all segments wrote, and how often the numbers began.
    #[derive(Default)]
    struct Written {
        bytes: u64,
        begun: usize,
        segments: usize,
    }

    impl Fold for Written {
        fn begin(&mut self, _: Base) {
            self.begun += 1;
        }

        fn step(&mut self, step: &Step<'_, '_>) -> io::Result<()> {
            let bytes = step.rows.iter().map(|row| u64::from(row.bytes));
            self.bytes += bytes.sum::<u64>();
            Ok(())
        }

        fn end(&mut self, _: &Stretch<'_>) -> io::Result<()> {
            self.segments += 1;
            Ok(())
        }
    }

    fn written(most: usize, segments: usize) -> Written {
        let sample =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces/f2fs-wal.most.tar.zst");
        let mut written = Written::default();
        let bundles = (0..segments).map(|_| Ok(Bundle::open(&sample)?));
        follow_within(most, bundles, &mut written).unwrap();
        written
    }

    #[test]
    fn what_is_forgotten_takes_no_bytes_with_it() {
        let one = written(usize::MAX, 1);
        assert!(one.bytes > 0 && one.begun == 1);
        let three = written(0, 3);
        assert_eq!((three.segments, three.begun), (3, 3));
        assert_eq!(three.bytes, 3 * one.bytes);
    }
}
