// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads one recording with its map and its tables.

use std::collections::BTreeSet;
use std::path::Path;

use mostrace_bundle::{Bundle, DeviceNumber, layout};
use mostrace_map::Map;
use mostrace_map::fs::jbd2::Journal;
use mostrace_map::fs::{self, How, Image, State, Wanted};

use super::maps::{Source, journal_of, map_of, on_the_disk, opened};
use super::remarks::Remarks;
use super::{Error, Options, Progress, Result};
use crate::attribute::{Attributor, Family, Loops, Names, Renames, Served};
use crate::blktrace::{Completions, WallClock};
use crate::causes::{self, Cause, Causer};
use crate::origins::{Base, Origin};
use crate::pipeline::{Fold, Pipeline};
use crate::recording::{Joined, Recording, Table};
use crate::tally::Tally;
use crate::transactions::{Database, databases};

/// The manifest's name of lost entries, which may include those of the command's processes.
const FORKS_LOST: &str = "causes_ring";

/// The most disks that are counted: a damaged trace may name any number.
const MOST_DISKS: usize = 16;

/// Requests between two reports of progress.
const TELL: u32 = 1 << 14;

pub(super) struct Reader<'a> {
    pub options: &'a Options,
    pub recording: &'a Recording,
    pub watcher: &'a dyn Fn(Progress),
}

/// What a recording that was read to its end leaves beside its rows.
pub(super) struct Ended {
    /// Its properties, without its name.
    pub origin: Origin,
    pub names: Names,
    pub databases: Vec<Database>,
    pub causes: Vec<Cause>,
    /// The number of completed requests.
    pub requests: u32,
}

/// What the completed requests show of the recording as a whole.
#[derive(Default)]
struct Seen {
    requests: u32,
    disks: BTreeSet<u32>,
    /// The times of the first and the last completion, ns.
    span: Option<(u64, u64)>,
}

impl Seen {
    fn see(&mut self, device: u32, time_ns: u64) {
        self.requests.tally(1);
        if self.disks.len() < MOST_DISKS {
            self.disks.insert(device);
        }
        let (first, last) = self.span.unwrap_or((time_ns, time_ns));
        self.span = Some((first.min(time_ns), last.max(time_ns)));
    }
}

impl Reader<'_> {
    /// Passes the completed requests to the fold. `base` is where the recording's numbers begin.
    pub fn fold(
        &self,
        fold: &mut impl Fold,
        base: Base,
        map: Option<&Map>,
        journal: Option<&Journal>,
        remarks: &mut Remarks,
    ) -> Result<Ended> {
        let manifest = self.recording.manifest();
        let mut tables = Vec::new();
        for name in layout::TABLES {
            tables.extend(self.recording.table(name)?.map(|table| (name, table)));
        }
        let of_bios = tables.iter_mut().map(|(_, table)| table).collect();
        let mut of_causes = self.tables_of_causes()?;
        let mut all_calls = match self.options.causes {
            Some(_) => self.recording.table(layout::CALL)?,
            None => None,
        };
        let mut pipeline = Pipeline::new(
            Completions::new(self.recording.events()?),
            self.attributor(of_bios, map, journal)?
                .with_served(self.served(remarks)?),
            self.causer(&mut of_causes, &mut all_calls),
        );
        let mut seen = Seen::default();
        fold.begin(base);
        while let Some(step) = pipeline.next()? {
            seen.see(step.request.device, step.request.time_ns);
            fold.step(&step)?;
            if seen.requests.is_multiple_of(TELL) {
                let (done, total) = pipeline.progress();
                (self.watcher)(Progress {
                    step: "reading events",
                    done,
                    total,
                });
            }
        }
        pipeline.end(fold, manifest, false)?;
        let mut end = pipeline.finish()?;
        let databases = self.asked(&mut end.names, map)?;
        let [missing, others] = self.recording.told(end.completions.notices());
        remarks.warnings.extend(missing);
        // A bundle is of one disk.
        if seen.disks.len() > 1 && manifest.is_none() {
            remarks.notices.push(several_disks(&seen.disks));
        }
        remarks.notices.extend(others);
        for (name, table) in &tables {
            if let Some(at) = table.cut_at() {
                remarks.notices.push(format!(
                    "{name}: cut short at byte {at}; what follows is left out"
                ));
            }
        }
        for (what, count) in end.cut_short {
            remarks.notices.push(format!(
                "{what}: no room for {count}; what they touched is not said to be exact"
            ));
        }
        if end.names.missing_stacks > 0 {
            let missing = end.names.missing_stacks;
            remarks.notices.push(format!(
                "stacks: {missing} calls and handles have one that the recording lost, which is unknown"
            ));
        }
        let loops = manifest.map_or(&[][..], |manifest| &manifest.loops);
        Ok(Ended {
            origin: Origin {
                packages: self.recording.last().map_or(Ok(None), Bundle::packages)?,
                manifest: manifest.cloned().map(Box::new),
                loops: Loops::new(loops),
                clock: self.clock().or(end.completions.wall_clock().map(moment)),
                span: seen.span,
                base,
                ..Origin::default()
            },
            names: end.names,
            databases,
            causes: end.causes.unwrap_or_default(),
            requests: seen.requests,
        })
    }

    /// Reads for whom the daemons of FUSE worked, and says what there was no room for.
    fn served(&self, remarks: &mut Remarks) -> Result<Served> {
        let Some(mut table) = self.recording.table(layout::SERVED)? else {
            return Ok(Served::default());
        };
        let served = Served::read(&mut table)?;
        if served.left_out() > 0 {
            remarks.notices.push(format!(
                "requests of FUSE: no room for {}; what was done for them is said to be the daemon's",
                served.left_out()
            ));
        }
        Ok(served)
    }

    /// Sets up an attributor with all that the recording has beside the tables `of_bios`, and FUSE's.
    fn attributor<'t>(
        &self,
        of_bios: Vec<&'t mut Table>,
        map: Option<&'t Map>,
        journal: Option<&'t Journal>,
    ) -> Result<Attributor<'t, Joined>> {
        let manifest = self.recording.manifest();
        let mut attributor = Attributor::new(of_bios, map);
        if let Some(s_dev) = manifest.and_then(|manifest| manifest.filesystem_dev()) {
            attributor = attributor.of_filesystem(s_dev);
        }
        if let Some(filesystem) = manifest.and_then(|manifest| manifest.filesystem.as_ref()) {
            attributor = attributor.of_kind(&filesystem.kind);
        }
        if let Some(manifest) = manifest {
            attributor = attributor.with_losses(&manifest.losses);
        }
        if let Some(table) = self.recording.table(layout::NAMES)?.as_mut() {
            attributor = attributor.with_tree(table)?;
        }
        if let Some(table) = self.recording.table(layout::CALLED)?.as_mut() {
            attributor = attributor.with_called(table)?;
        }
        if let Some(family) = self.family()? {
            attributor = attributor.with_family(family);
        }
        if let Some(table) = self.recording.table(layout::CGROUP)?.as_mut() {
            attributor.learn_cgroups(table)?;
        }
        if let Some(table) = self.recording.table(layout::COMM)?.as_mut() {
            attributor.learn_process_names(table)?;
        }
        if self.options.causes.is_some()
            && let Some(table) = self.recording.table(layout::STACK)?.as_mut()
        {
            attributor = attributor.with_stacks(table)?;
        }
        if let Some(journal) = journal {
            attributor = attributor.with_journal(journal);
        }
        if let Some((mono_ns, unix_ns)) = self.clock() {
            attributor = attributor.with_clock(mono_ns, unix_ns);
        }
        // Other recorders leave this table empty, whatever was freed.
        let tells = manifest.is_some_and(|manifest| manifest.sources.entries == "bpf");
        if tells && let Some(table) = self.recording.table(layout::FREED)?.as_mut() {
            attributor = attributor.with_freed(table)?;
        }
        Ok(attributor)
    }

    /// Returns what finds the causes, if they are wanted.
    fn causer<'t>(
        &self,
        tables: &'t mut [Option<Table>; layout::CAUSES.len()],
        all_calls: &'t mut Option<Table>,
    ) -> Option<Causer<'t, Joined>> {
        let sharing = self.options.causes?;
        let [handles, dirtied, calls, f2fs] = tables;
        let tables = causes::Tables {
            handles: handles.as_mut(),
            dirtied: dirtied.as_mut(),
            calls: calls.as_mut().zip(all_calls.as_mut()),
            f2fs: f2fs.as_mut(),
        };
        let manifest = self.recording.manifest();
        let functions = manifest.map_or(&[][..], |manifest| &manifest.functions);
        let is_whole = manifest.is_some_and(causes::are_whole);
        let commit_ns = manifest.and_then(causes::commit_ns);
        Some(Causer::new(tables, functions, sharing, is_whole).commits_after(commit_ns))
    }

    /// Reads the calls once all names are known: which files were renamed, and what processes asked of their files.
    fn asked(&self, names: &mut Names, map: Option<&Map>) -> Result<Vec<Database>> {
        // The calls of other filesystems do not tell which file is renamed.
        let manifest = self.recording.manifest();
        let is_ext = manifest
            .and_then(|manifest| manifest.filesystem.as_ref())
            .is_some_and(|filesystem| filesystem.kind.starts_with("ext"));
        let lost = manifest.and_then(|manifest| manifest.losses.get(FORKS_LOST));
        let calls = self.recording.table(layout::CALL)?;
        let mut renames = Renames::new(calls.is_some() && is_ext && lost == Some(&0));
        let databases = match calls {
            Some(mut calls) => databases(&mut calls, names, |raw| renames.see(raw))?,
            None => Vec::new(),
        };
        renames.fill_in(&mut names.files, map);
        Ok(databases)
    }

    /// Returns one moment in the trace's clock and as Unix time, ns each, if the manifest knows one.
    fn clock(&self) -> Option<(u64, u64)> {
        let clock = self.recording.manifest()?.clock;
        (clock.start_unix_ns != 0).then_some((clock.start_mono_ns, clock.start_unix_ns))
    }

    /// Returns the command's process tree if causes are asked for and the recording has it.
    fn family(&self) -> Result<Option<Family>> {
        let manifest = self.recording.manifest();
        let manifest = manifest.filter(|_| self.options.causes.is_some());
        let Some(losses) = manifest.map(|manifest| &manifest.losses) else {
            return Ok(None);
        };
        // A recorder that was killed leaves no counts of losses.
        let is_whole = losses.get(FORKS_LOST) == Some(&0) && causes::is_without_misses(losses);
        let mut table = self.recording.table(layout::FORK)?;
        let family = table.as_mut().map(|table| Family::read(table, is_whole));
        Ok(family.transpose()?)
    }

    /// Opens those tables of causes that the bundle has, if causes are asked for.
    fn tables_of_causes(&self) -> Result<[Option<Table>; layout::CAUSES.len()]> {
        let mut tables = [const { None }; layout::CAUSES.len()];
        if self.options.causes.is_some() {
            for (table, name) in tables.iter_mut().zip(layout::CAUSES) {
                *table = self.recording.table(name)?;
            }
        }
        Ok(tables)
    }

    /// Returns the map and the journal of the image that the user named.
    fn map_of_image(&self, path: &Path, notices: &mut Vec<String>) -> Result<(Map, Journal)> {
        let begins = self.recording.manifest().map(|m| m.device.start_sector);
        let source = Source {
            image: path,
            wanted: Wanted {
                partition: self.options.partition,
                start_sector: self.options.start_sector.or(begins),
            },
            how: self.options.state.into(),
        };
        let (image, start) = opened(&source, notices)?;
        notices.extend(self.differs(&image));
        let map = map_of(&image, start, source.how, self.watcher)?;
        let journal = journal_of(&image, start, &map, notices);
        Ok((map, journal))
    }

    /// Says what shows that an image is not of the filesystem that was recorded.
    fn differs(&self, image: &Image) -> Option<String> {
        let bundle = self.recording.last()?;
        let snapshot = bundle.snapshot().ok().flatten();
        let recorded = snapshot.and_then(|snapshot| Image::open(snapshot.path()).ok());
        let shown = image.path().display();
        let recorded = recorded.as_ref();
        let (was, is) = (recorded.and_then(fs::identity)?, fs::identity(image)?);
        if was != is {
            return Some(format!(
                "{shown}: this is another filesystem than the recorded one ({is} instead of {was}): names may be wrong"
            ));
        }
        let (was, is) = (recorded.and_then(fs::length)?, fs::length(image)?);
        (was != is).then(|| {
            format!("{shown}: the filesystem has {is} bytes, and had {was} in the recording: names may be wrong")
        })
    }

    /// Returns the map and the journal of the image given, or else of the bundle's snapshot.
    pub fn map(&self, notices: &mut Vec<String>) -> Result<Option<(Map, Journal)>> {
        if self.options.no_map {
            return Ok(None);
        }
        if let Some(image) = &self.options.image {
            return self.map_of_image(image, notices).map(Some);
        }
        let Some(bundle) = self.recording.last() else {
            return Ok(None);
        };
        let image = match bundle.snapshot() {
            Ok(Some(image)) => image,
            Ok(None) => return Ok(None),
            Err(error) if self.recording.is_cut() => {
                notices.push(error.to_string());
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let start = bundle.manifest().snapshot.as_ref();
        let start = start.map_or(0, |s| s.start_sector);
        let how = How::from(State::Mounted);
        let opened = Image::open(image.path())?;
        match map_of(&opened, start, how, self.watcher) {
            Ok(map) => {
                let journal = journal_of(&opened, start, &map, notices);
                let map = on_the_disk(map, bundle.manifest());
                let journal = journal.through(&map);
                Ok(Some((map, journal)))
            }
            Err(error) => {
                // The user does not know the path of the restored image.
                let snapshot = bundle.path().join(layout::SNAPSHOT).display().to_string();
                let temporary = image.path().display().to_string();
                let text = error.to_string().replace(&temporary, &snapshot);
                if matches!(error, fs::Error::Unsupported { .. }) {
                    notices.push(text);
                    return Ok(None);
                }
                Err(Error::Snapshot(text))
            }
        }
    }
}

/// Says that a trace has several disks, whose rows are added up.
fn several_disks(disks: &BTreeSet<u32>) -> String {
    let numbers = disks.iter().map(|&disk| DeviceNumber::of(disk).to_string());
    let names: Vec<String> = numbers.collect();
    let names = names.join(", ");
    format!(
        "the trace has several disks, which are added up ({names}): --by device tells them apart"
    )
}

/// Returns the moment of blktrace's own note of the time.
fn moment(clock: WallClock) -> (u64, u64) {
    let unix_ns = u64::from(clock.seconds) * 1_000_000_000 + u64::from(clock.nanoseconds);
    (clock.time_ns, unix_ns)
}
