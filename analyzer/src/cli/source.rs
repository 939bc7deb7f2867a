// SPDX-License-Identifier: MIT OR Apache-2.0
//! From what the user named to attributed rows.

use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::thread::{Scope, ScopedJoinHandle};

use anyhow::{anyhow, bail};
use mostrace::attribute::{Attributed, Attributor, EntryTable};
use mostrace::blktrace::{self, Completions, Partial, Trace};
use mostrace::tables::summary::Summary;
use mostrace_bundle::{Bundle, layout};
use mostrace_map::Map;

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
        let mut tables = Vec::new();
        for name in layout::TABLES {
            if let Some(table) = bundle.map_or(Ok(None), |b| b.table(name, cut))? {
                tables.push((name, table));
            }
        }
        let (attributed, completions) = std::thread::scope(|scope| {
            let mut completions = Completions::new(trace);
            let entries = tables
                .iter_mut()
                .map(|(_, table)| -> EntryTable<'_> { Box::new(lots(scope, table).1) });
            let mut attributor = Attributor::new(entries.collect(), map.as_ref());
            while let Some(completion) = completions.next()? {
                attributor.push(&completion)?;
            }
            let attributed = attributor.finish(Some(completions.names()))?;
            anyhow::Ok((attributed, completions))
        })?;
        notices.extend(completions.notices().iter().map(ToString::to_string));
        for (name, table) in &tables {
            if let Some(at) = table.cut_at() {
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

/// Items that go from one thread to the other at a time, and how many such lots may wait.
const LOT: usize = 4096;
const LOTS: usize = 4;

/// Runs an iterator in a thread of its own, as reading is more than half of the work. The handle
/// gives the iterator back at its end.
fn lots<'scope, I>(
    scope: &'scope Scope<'scope, '_>,
    mut items: I,
) -> (
    ScopedJoinHandle<'scope, I>,
    impl Iterator<Item = I::Item> + use<I>,
)
where
    I: Iterator + Send + 'scope,
    I::Item: Send + 'scope,
{
    let (sender, receiver) = sync_channel(LOTS);
    let handle = scope.spawn(move || {
        loop {
            let lot: Vec<_> = items.by_ref().take(LOT).collect();
            // Nobody listens any more after an error.
            if lot.is_empty() || sender.send(lot).is_err() {
                return items;
            }
        }
    });
    (handle, receiver.into_iter().flatten())
}
