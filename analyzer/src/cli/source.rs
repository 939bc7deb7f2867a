// SPDX-License-Identifier: MIT OR Apache-2.0
//! From what the user named to attributed rows.

use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use anyhow::{anyhow, bail};
use mostrace::attribute::{Attributed, Attributor, EntryTable};
use mostrace::blktrace::{self, Completions, Partial, Trace};
use mostrace::map::Map;
use mostrace::tables::summary::Summary;
use mostrace_bundle::table::TableReader;
use mostrace_bundle::{Bundle, layout};

use super::mapping;

/// The trace, and how to read it.
#[derive(clap::Args)]
pub struct SourceArgs {
    /// A bundle (a folder or a .tar.zst), or a bare blktrace: x for x.blktrace.N, or one file
    bundle: PathBuf,
    /// Map the blocks by this image or device instead of the bundle's snapshot
    #[arg(long, value_name = "FILE-OR-DEVICE", conflicts_with = "no_map")]
    image: Option<PathBuf>,
    /// First sector of the image's filesystem on the traced disk
    #[arg(long, value_name = "N", default_value_t = 0, requires = "image")]
    start_sector: u64,
    /// Do without a map of the filesystem: what no probe saw stays unmapped
    #[arg(long)]
    no_map: bool,
    /// Read files that were cut short up to their last whole record
    #[arg(long)]
    partial: bool,
}

/// A trace, read to its end.
pub struct Source {
    /// The rows.
    pub attributed: Attributed,
    /// None for a bare trace.
    pub bundle: Option<Bundle>,
    /// What the reader should be told, beside what the manifest says.
    pub notices: Vec<String>,
    /// Whether there was a map.
    pub mapped: bool,
}

impl SourceArgs {
    /// As the user named it.
    pub fn path(&self) -> &Path {
        &self.bundle
    }

    /// Reads the trace and attributes it.
    pub fn read(&self) -> anyhow::Result<Source> {
        let bundle = match Bundle::is_bundle(&self.bundle) {
            true => Some(Bundle::open(&self.bundle)?),
            false => None,
        };
        // First of all, as a table has no place for what makes it incomplete.
        for warning in Summary::warnings(bundle.as_ref().map(Bundle::manifest)) {
            log::warn!("{}: {warning}", self.bundle.display());
        }
        self.read_opened(bundle.as_ref())
            .map(|(attributed, notices, mapped)| Source {
                attributed,
                bundle,
                notices,
                mapped,
            })
    }

    fn read_opened(
        &self,
        bundle: Option<&Bundle>,
    ) -> anyhow::Result<(Attributed, Vec<String>, bool)> {
        let mut notices = Vec::new();
        let cut = self.partial || bundle.is_some_and(Bundle::is_cut);
        let map = self.map(bundle, &mut notices)?;
        if let Some(map) = &map {
            notices.extend(map.notices().iter().cloned());
        }
        let trace = self.open_events(bundle, cut)?;
        let (mut processes, mut files) = match bundle {
            Some(b) => (b.table(layout::PROCESS, cut)?, b.table(layout::FILE, cut)?),
            None => (None, None),
        };
        let mut completions = Completions::new(trace);
        let mut attributor =
            Attributor::new(table(&mut processes), table(&mut files), map.as_ref());
        push_all(&mut completions, &mut attributor)?;
        let attributed = attributor.finish(Some(completions.names()))?;
        notices.extend(completions.notices().iter().map(ToString::to_string));
        for (name, table) in [(layout::PROCESS, &processes), (layout::FILE, &files)] {
            if let Some(at) = table.as_ref().and_then(TableReader::cut_at) {
                notices.push(format!(
                    "{name}: cut short at byte {at}; what follows is left out"
                ));
            }
        }
        if cut {
            for notice in &notices {
                log::warn!("{}: {notice}", self.bundle.display());
            }
        }
        Ok((attributed, notices, map.is_some()))
    }

    fn open_events(&self, bundle: Option<&Bundle>, cut: bool) -> anyhow::Result<Trace> {
        let files = match bundle {
            Some(bundle) => bundle.event_files().to_vec(),
            None => blktrace::find(&self.bundle)?,
        };
        if files.is_empty() {
            bail!(
                "{}: no block events in it (trace.blktrace.N)",
                self.bundle.display()
            );
        }
        let partial = if cut {
            Partial::Allowed
        } else {
            Partial::Refused
        };
        Ok(Trace::open_with(&files, partial)?)
    }

    /// The map, of the image given, or of the bundle's snapshot.
    fn map(
        &self,
        bundle: Option<&Bundle>,
        notices: &mut Vec<String>,
    ) -> anyhow::Result<Option<Map>> {
        if self.no_map {
            return Ok(None);
        }
        if let Some(image) = &self.image {
            return mapping::build(image, self.start_sector).map(Some);
        }
        let Some(bundle) = bundle else {
            return Ok(None);
        };
        let Some(image) = bundle.snapshot()? else {
            return Ok(None);
        };
        let start = bundle
            .manifest()
            .snapshot
            .as_ref()
            .map_or(0, |s| s.start_sector);
        match mapping::build(image.path(), start) {
            Ok(map) => Ok(Some(map)),
            Err(error) => {
                // The restored image is nothing the user knows of.
                let snapshot = self.bundle.join(layout::SNAPSHOT).display().to_string();
                let temporary = image.path().display().to_string();
                let text = super::one_line(&error).replace(&temporary, &snapshot);
                if mapping::is_unsupported(&error) {
                    notices.push(text);
                    return Ok(None);
                }
                Err(anyhow!("{text} (--no-map does without)"))
            }
        }
    }
}

/// Completions that go from one thread to the other at a time, and how many such lots may wait.
const LOT: usize = 1024;
const LOTS: usize = 4;

/// Reads events in a thread of their own, as that is about half of the work.
fn push_all(completions: &mut Completions, attributor: &mut Attributor<'_>) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(LOTS);
        scope.spawn(move || {
            loop {
                let lot: Vec<_> = completions.by_ref().take(LOT).collect();
                // Nobody listens any more after an error.
                if lot.is_empty() || sender.send(lot).is_err() {
                    break;
                }
            }
        });
        for completion in receiver.into_iter().flatten() {
            attributor.push(&completion?)?;
        }
        Ok(())
    })
}

fn table<R: std::io::Read>(reader: &mut Option<TableReader<R>>) -> EntryTable<'_> {
    match reader {
        Some(reader) => Box::new(reader),
        None => Box::new(std::iter::empty()),
    }
}
