// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace as it is stored: a bundle, the segments of a recording, or the bare files of blktrace.

mod joined;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use mostrace_bundle::table::{HEADER_LEN, TableReader};
use mostrace_bundle::{Bundle, Manifest, Zones, layout, segments};

use crate::blktrace::{self, Notice, Partial, Trace};
use crate::import::Kind;
pub use joined::Joined;

/// A trace cannot be read; the message is one line with the file and the place.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bundle's manifest, tables or snapshot cannot be read.
    #[error(transparent)]
    Bundle(#[from] mostrace_bundle::Error),
    /// The event files cannot be read.
    #[error(transparent)]
    Events(#[from] blktrace::Error),
    /// A bundle has no event files.
    #[error("{}: no block events in it (events.N, trace.blktrace.N){missing}", path.display())]
    NoEvents {
        /// The bundle.
        path: PathBuf,
        /// The bundle's other shortfalls.
        missing: String,
    },
    /// The file is another tool's trace, which has to be imported first.
    #[error("{0}: {kind}: mostrace import {0} -o x.most makes a recording of it", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its kind.
        kind: Kind,
    },
    /// What was made of it could not be kept.
    #[error("temporary files: {0}")]
    Rows(#[from] io::Error),
    /// The same recording was named twice, for example as a folder and as an archive: its bytes would be counted twice.
    #[error("{}: the same recording as {}", path.display(), other.display())]
    Twice {
        /// The one path.
        path: PathBuf,
        /// The other path.
        other: PathBuf,
    },
}

/// An opened trace, of which only the manifest was read.
pub struct Recording {
    path: PathBuf,
    /// One bundle, or consecutive segments in their order; empty for bare files.
    bundles: Vec<Bundle>,
    manifest: Option<Manifest>,
    cut: bool,
    /// The tables of a single bundle that were asked for: each is opened once, whoever reads it.
    opened: Mutex<HashMap<PathBuf, Arc<File>>>,
}

/// A table of entries over all segments.
pub type Table = TableReader<Joined>;

impl Recording {
    /// Opens bundles (folders or .tar.zst) and bare blktraces (`x` for `x.blktrace.N`, or one file). Bare files that end
    /// within a record are read up to there; with `partial`, damaged files too are read up to their last whole record.
    ///
    /// A path that does not exist stands for the segments of a recording with that name. Segments that follow one another
    /// become one recording, in whatever order they are named; a path that is named twice is opened once.
    ///
    /// # Errors
    /// Returns an error if a path is a bundle whose manifest cannot be read.
    pub fn open_all(paths: &[PathBuf], partial: bool) -> Result<Vec<Recording>, Error> {
        let mut all: Vec<Recording> = Vec::new();
        let mut known: Vec<PathBuf> = Vec::new();
        for path in paths {
            for path in present(path) {
                // All files of a bare trace stand for the trace.
                let real = blktrace::stem(&path.canonicalize().unwrap_or_else(|_| absolute(&path)));
                if !known.contains(&real) {
                    known.push(real);
                    all.push(Recording::one(&path, partial)?);
                }
            }
        }
        Ok(united(all))
    }

    /// Returns true if there are segments of a recording with this name.
    pub fn has_segments(path: &Path) -> bool {
        segments::find(path).is_ok_and(|found| !found.is_empty())
    }

    fn one(path: &Path, partial: bool) -> Result<Recording, Error> {
        let bundle = match Bundle::is_bundle(path) {
            true => Some(Bundle::open(path)?),
            false => None,
        };
        if bundle.is_none()
            && let Ok(Some(kind)) = Kind::of(path)
        {
            return Err(Error::Foreign {
                path: path.to_owned(),
                kind,
            });
        }
        Ok(Recording {
            path: path.to_owned(),
            cut: partial || bundle.as_ref().is_some_and(Bundle::is_cut),
            manifest: bundle.as_ref().map(|bundle| bundle.manifest().clone()),
            bundles: bundle.into_iter().collect(),
            opened: Mutex::default(),
        })
    }

    /// Returns the path as it was named; for several segments, the recording's name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the bundles: none for a bare trace, consecutive segments in their order.
    pub fn bundles(&self) -> &[Bundle] {
        &self.bundles
    }

    /// Returns the last bundle, which has the snapshot; None for a bare trace.
    pub fn last(&self) -> Option<&Bundle> {
        self.bundles.last()
    }

    /// Returns the manifest: None for a bare trace, a combined one for several segments.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// Returns true if files may end within a record.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Returns the block events from the first one on, each once even over several segments.
    ///
    /// # Errors
    /// Returns an error if there are no event files or one cannot be opened.
    pub fn events(&self) -> Result<Trace, Error> {
        if let [_, _, ..] = &self.bundles[..] {
            return self.events_of_segments();
        }
        let files = match self.last() {
            Some(bundle) => bundle.event_files().to_vec(),
            None => blktrace::find(&self.path)?,
        };
        // A recording without events has no event file.
        let counted = |manifest: &Manifest| manifest.counts.get("events").copied();
        let nothing = self.manifest().and_then(counted) == Some(0);
        if files.is_empty() && !nothing {
            let shortfalls = self.last().map(Bundle::shortfalls).unwrap_or_default();
            return Err(Error::NoEvents {
                path: self.path.clone(),
                missing: shortfalls
                    .iter()
                    .map(|lacks| format!("; {lacks}"))
                    .collect(),
            });
        }
        let partial = match (self.cut, self.last()) {
            (true, _) => Partial::Allowed,
            // A bundle records whether its recorder ended properly; bare files do not.
            (false, None) => Partial::CutAtEnd,
            (false, Some(_)) => Partial::Refused,
        };
        Ok(Trace::open_with(&files, partial)?.of_zones(self.zones()))
    }

    /// Joins each CPU's files of all segments.
    fn events_of_segments(&self) -> Result<Trace, Error> {
        let mut of_cpu: BTreeMap<(u32, String), Vec<(PathBuf, u64)>> = BTreeMap::new();
        for (nth, bundle) in self.bundles.iter().enumerate() {
            for path in bundle.event_files() {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if let (Some(cpu), Some((path, own))) = (layout::cpu_of(&name), bundle.place(&name))
                {
                    let from = if nth == 0 { 0 } else { own };
                    let files = of_cpu.entry((cpu, name.into_owned())).or_default();
                    files.push((path, from));
                }
            }
        }
        let mut total: u64 = 0;
        let mut sources: Vec<(PathBuf, Box<dyn Read + Send>)> = Vec::new();
        for ((_, name), files) in of_cpu {
            for (path, from) in &files {
                let length = path.metadata().map_or(0, |metadata| metadata.len());
                total = total.saturating_add(length.saturating_sub(*from));
            }
            let shown = self.path.join(name);
            let source = Joined::open(files).map_err(|e| blktrace::Error::io(&shown, e))?;
            sources.push((shown, Box::new(source)));
        }
        let partial = match self.cut {
            true => Partial::Allowed,
            false => Partial::Refused,
        };
        let trace = Trace::from_sources(sources, partial);
        Ok(trace.of_length(total).of_zones(self.zones()))
    }

    fn zones(&self) -> Zones {
        let of_device = |manifest: &Manifest| Zones::of(&manifest.device);
        self.manifest().map(of_device).unwrap_or_default()
    }

    /// Returns a table of entries, each entry once even over several segments. None if the trace has no table of that name.
    pub fn table(&self, name: &str) -> Result<Option<Table>, Error> {
        self.table_with(name, self.cut)
    }

    /// Returns the table of calls, even if it is cut off.
    pub fn calls(&self) -> Result<Option<Table>, Error> {
        self.table_with(layout::CALL, true)
    }

    fn table_with(&self, name: &str, allow_cut: bool) -> Result<Option<Table>, Error> {
        // Each segment's table of names includes those of the segment before.
        let skipped = match name {
            layout::NAMES => self.bundles.len().saturating_sub(1),
            _ => 0,
        };
        let mut files: Vec<(PathBuf, u64)> = Vec::new();
        let places = self.bundles.iter().skip(skipped);
        for (path, own) in places.filter_map(|bundle| bundle.place(name)) {
            let from = match files.is_empty() {
                true => 0,
                false => own.max(HEADER_LEN as u64),
            };
            files.push((path, from));
        }
        let Some((first, _)) = files.first() else {
            return Ok(None);
        };
        let shown = match files.len() {
            1 => first.clone(),
            _ => self.path.join(name),
        };
        let failed = |source| mostrace_bundle::Error::Io {
            path: shown.clone(),
            source,
        };
        // Of segments there may be more than files can be open.
        let joined = match &files[..] {
            [(path, 0)] => self.opened(path).map(Joined::from),
            _ => Joined::open(files),
        };
        let joined = joined.map_err(failed)?;
        Ok(Some(TableReader::new(joined, &shown, allow_cut)?))
    }

    fn opened(&self, path: &Path) -> io::Result<Arc<File>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = opened.get(path) {
            return Ok(file.clone());
        }
        log::debug!("{}: opened", path.display());
        let file = Arc::new(File::open(path)?);
        opened.insert(path.to_owned(), file.clone());
        Ok(file)
    }

    /// Returns true if the recorder was killed in its last segment.
    fn is_unended(&self) -> bool {
        self.last().is_some_and(Bundle::is_cut)
    }

    /// Returns a line for each end at which the series of segments is incomplete.
    pub fn gaps(&self) -> Vec<String> {
        let segment = |bundle: Option<&Bundle>| bundle.and_then(|b| b.manifest().segment.clone());
        let (Some(first), Some(last)) = (segment(self.bundles.first()), segment(self.last()))
        else {
            return Vec::new();
        };
        if self.bundles.len() < 2 {
            return Vec::new();
        }
        let mut gaps = Vec::new();
        if first.number > 1 {
            let number = first.number;
            gaps.push(format!(
                "the recording began earlier: segment {number} is the first one that is read"
            ));
        }
        if !last.last && !self.is_unended() {
            let number = last.number;
            gaps.push(format!(
                "the recording did not end there: segment {number} is the last one that is read"
            ));
        }
        gaps
    }

    /// Sorts the readers' notices about its event files into lines that say what makes the figures incomplete, and other
    /// lines. A bundle's manifest has the former.
    pub fn told(&self, notices: &[Notice]) -> [Vec<String>; 2] {
        let is_bare = self.bundles.is_empty();
        let (missing, others): (Vec<&Notice>, Vec<&Notice>) = notices
            .iter()
            .partition(|notice| is_bare && matches!(notice, Notice::LeftOut { .. }));
        let others = others
            .iter()
            .map(|notice| self.in_the_users_words(&notice.to_string()));
        let missing = missing.iter().map(|notice| format!("INCOMPLETE: {notice}"));
        [missing.collect(), others.collect()]
    }

    /// Replaces paths in a message by the path that the user gave: the user does not know the folder that an archive is
    /// unpacked into.
    pub fn in_the_users_words(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for bundle in &self.bundles {
            let file = bundle.event_files().first();
            if let Some(folder) = file.and_then(|file| file.parent()) {
                let shown = bundle.path().to_string_lossy();
                text = text.replace(&*folder.to_string_lossy(), &shown);
            }
        }
        text
    }
}

/// Returns a path that does not exist, which cannot be canonicalised, with its folder as it really is.
fn absolute(path: &Path) -> PathBuf {
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// Returns the paths that a named path stands for: itself, or the segments of a recording with that name. If neither exists,
/// it returns the path, and opening it reports the error.
fn present(path: &Path) -> Vec<PathBuf> {
    if path.exists() {
        return vec![path.to_owned()];
    }
    match segments::find(path) {
        Ok(found) if !found.is_empty() => found,
        _ => vec![path.to_owned()],
    }
}

/// Checks that no two bundles began at the same moment on the same device: they would be the same recording, whose bytes
/// would be counted twice.
///
/// # Errors
/// Returns an error if two bundles did.
pub fn check_distinct(all: &[Recording]) -> Result<(), Error> {
    let moment = |manifest: &Manifest| {
        let clock = manifest.clock;
        let moment = (clock.start_mono_ns, clock.start_unix_ns);
        (clock.start_unix_ns != 0).then(|| (moment, manifest.device.dev.clone()))
    };
    let mut known = HashMap::new();
    for bundle in all.iter().flat_map(Recording::bundles) {
        let Some(moment) = moment(bundle.manifest()) else {
            continue;
        };
        if let Some(other) = known.insert(moment, bundle.path()) {
            return Err(Error::Twice {
                path: bundle.path().to_owned(),
                other: other.to_owned(),
            });
        }
    }
    Ok(())
}

/// Joins segments that follow one another into one recording, in the place of the one that was named first.
fn united(mut all: Vec<Recording>) -> Vec<Recording> {
    let mut numbered: Vec<usize> = (0..all.len()).collect();
    let number = |one: &Recording| one.manifest()?.segment.as_ref().map(|s| s.number);
    numbered.retain(|&at| number(&all[at]).is_some());
    numbered.sort_by_key(|&at| number(&all[at]));
    let mut series: Vec<Vec<usize>> = Vec::new();
    for at in numbered {
        let ahead = series.iter().position(|series| {
            let last = series.last().and_then(|&last| all[last].last());
            last.zip(all[at].last()).is_some_and(|(last, next)| {
                // A segment with missing files would separate requests from their beginnings.
                let is_whole = last.shortfalls().is_empty();
                is_whole && segments::is_next(last.manifest(), next.manifest())
            })
        });
        match ahead {
            Some(ahead) => series[ahead].push(at),
            None => series.push(vec![at]),
        }
    }
    let mut places: Vec<Option<Recording>> = all.drain(..).map(Some).collect();
    for series in series {
        let first = series.iter().copied().min();
        let members: Vec<Recording> = series
            .into_iter()
            .filter_map(|at| places[at].take())
            .collect();
        if let (Some(first), Some(one)) = (first, joined(members)) {
            places[first] = Some(one);
        }
    }
    places.into_iter().flatten().collect()
}

/// Joins consecutive segments into one recording.
fn joined(mut members: Vec<Recording>) -> Option<Recording> {
    if members.len() < 2 {
        return members.pop();
    }
    let cut = members.iter().any(Recording::is_cut);
    let manifests: Vec<&Manifest> = members.iter().filter_map(Recording::manifest).collect();
    let manifest = segments::together(&manifests);
    let path = members.first().map(|first| {
        let number = first.manifest().and_then(|m| m.segment.as_ref());
        let number = number.map_or(0, |segment| segment.number);
        segments::recording(&first.path, number).unwrap_or_else(|| first.path.clone())
    })?;
    Some(Recording {
        path,
        manifest,
        cut,
        bundles: members.into_iter().flat_map(|one| one.bundles).collect(),
        opened: Mutex::default(),
    })
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    #[test]
    fn a_name_stands_for_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let of = |name: &str| dir.path().join(name);
        let output = of("x.most");
        assert_eq!(present(&output), slice::from_ref(&output));
        let parts = [1, 2].map(|number| segments::segment(&output, number));
        for part in parts.iter().rev() {
            std::fs::create_dir(part).unwrap();
        }
        assert_eq!(present(&output), parts);
        assert_eq!(present(&of("y.most")), [of("y.most")]);
        std::fs::create_dir(&output).unwrap();
        assert_eq!(present(&output), slice::from_ref(&output));
    }
}
