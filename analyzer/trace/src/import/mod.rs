// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a bundle of what other tools traced. A format has a reader of its own; the rest of the program knows none of them.
//!
//! ```text
//! lines ──→ Reader ──→ Survey: which devices, what is told of them ──→ the target
//! lines ──→ Reader ──→ Making: events, names, entries of the target ──→ bundle
//! ```
//!
//! What a format cannot tell is unknown, and a note says so. If it has no completions, the last event that it has of a request
//! stands for its completion, without any time that a request could have taken.
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used
    )
)]

mod beneath;
mod biosnoop;
mod blkformat;
mod blkparse;
mod csv;
mod devices;
mod ftrace;
mod iolog;
mod kind;
mod lines;
mod making;
mod most;
mod perfetto;
mod processes;
mod requests;
mod sched;
mod seen;
mod survey;
#[cfg(test)]
mod tests;
mod told;
mod tracedat;
mod words;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use mostrace_bundle::blk_io_trace::action::ta;
use mostrace_bundle::manifest::{Clock, Device, SCHEMA, Sources, State};
use mostrace_bundle::{Counters, DeviceNumber, Manifest, Writer, layout};

pub use blkformat::Format;
pub use kind::Kind;
use making::{Made, Making};
use seen::{Reader, Taker};
use survey::{Survey, Target};

/// A foreign trace cannot be imported; the message is one line with the file and the place.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is of no known kind.
    #[error("{}: no trace of a kind that can be imported (docs/IMPORT.md lists them)", .0.display())]
    Unknown(PathBuf),
    /// The files are of several kinds.
    #[error("{} is {kind}, but {} is {other_kind}: import files of one kind at a time", path.display(), other.display())]
    Kinds {
        /// The one file.
        path: PathBuf,
        /// Its kind.
        kind: Kind,
        /// The other file.
        other: PathBuf,
        /// Its kind.
        other_kind: Kind,
    },
    /// A line is damaged.
    #[error("{}, line {line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// A file that is no text is damaged.
    #[error("{}, byte {at}: {what}", path.display())]
    Byte {
        /// The file.
        path: PathBuf,
        /// Where the packet begins.
        at: u64,
        /// What is wrong.
        what: String,
    },
    /// The traces have no device to import, or several.
    #[error("{}: {what}", path.display())]
    Device {
        /// The first file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The bundle cannot be written.
    #[error(transparent)]
    Bundle(#[from] mostrace_bundle::Error),
}

/// What was imported.
#[derive(Debug)]
pub struct Imported {
    /// The files' kind.
    pub kind: Kind,
    /// The device's name, or major:minor.
    pub device: String,
    /// Number of events.
    pub events: u64,
    /// Number of requests that completed, or stand for these.
    pub completed: u64,
    /// What the trace lacks, a line each; the bundle has these too.
    pub notes: Vec<String>,
}

/// What reading the texts showed beside the events.
#[derive(Default)]
struct Rest {
    /// Lines that are not of the format.
    strange: u64,
    /// The files that end within a line or a packet.
    cut: Vec<PathBuf>,
    /// Events that are too far out of order.
    late: u64,
    /// Packets that are too long to be read.
    long_packets: u64,
}

/// What the user chooses.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The device, if the traces have several: its name or major:minor.
    pub device: Option<String>,
    /// The format in which blkparse printed the texts, which is then not seen from the bytes.
    pub format: Option<Format>,
}

/// Reads the traces one after the other, all of one kind, and writes a bundle.
///
/// # Errors
/// Returns an error if a text is damaged or of another kind, if it has several devices and none is chosen, or if the bundle
/// cannot be written.
pub fn import(paths: &[PathBuf], choice: &Choice, to: &Writer) -> Result<Imported, Error> {
    let format = choice.format.as_ref();
    let kind = match format {
        Some(_) => Kind::Formatted,
        None => kind_of(paths)?,
    };
    let first = paths.first().cloned().unwrap_or_default();
    let mut survey = Survey::default();
    read(paths, kind.reader(format), &mut survey)?;
    let target = survey
        .target(choice.device.as_deref())
        .map_err(|what| Error::Device {
            path: first.clone(),
            what,
        })?;
    let failed = |source| Error::Io {
        path: to.dir().to_owned(),
        source,
    };
    let mut making =
        Making::begin(to, &target, &survey.processes, kind.is_unordered()).map_err(failed)?;
    let rest = read(paths, kind.reader(format), &mut making)?;
    if let Some(packages) = survey.processes.packages() {
        let mut file = to.folder().create(layout::PACKAGES)?;
        file.write_all(packages).map_err(failed)?;
    }
    let made = making.end().map_err(failed)?;
    let notes = notes(kind, &target, &made, &rest);
    let mut manifest = manifest(kind, &target, &made);
    manifest.notes.clone_from(&notes);
    manifest.device.path = first.display().to_string();
    manifest.files = to.sizes()?;
    to.put_manifest(&manifest)?;
    Ok(Imported {
        kind,
        device: target.name,
        events: made.events,
        completed: made.completed,
        notes,
    })
}

fn kind_of(paths: &[PathBuf]) -> Result<Kind, Error> {
    let mut known: Option<(&Path, Kind)> = None;
    for path in paths {
        let kind = Kind::of(path).map_err(|source| Error::Io {
            path: path.clone(),
            source,
        })?;
        let kind = kind.ok_or_else(|| Error::Unknown(path.clone()))?;
        match known {
            Some((other, other_kind)) if other_kind != kind => {
                return Err(Error::Kinds {
                    path: path.clone(),
                    kind,
                    other: other.to_owned(),
                    other_kind,
                });
            }
            _ => known = Some((path, kind)),
        }
    }
    match known {
        Some((_, kind)) => Ok(kind),
        None => Err(Error::Unknown(PathBuf::new())),
    }
}

fn read(paths: &[PathBuf], mut reader: Box<dyn Reader>, to: &mut dyn Taker) -> Result<Rest, Error> {
    let mut rest = Rest::default();
    for path in paths {
        reader.file(path, to, &mut rest)?;
    }
    Ok(rest)
}

fn manifest(kind: Kind, target: &Target, made: &Made) -> Manifest {
    let (start_ns, stop_ns) = made.span_ns.unwrap_or_default();
    let start_unix_ns = made.wall_clock.map_or(0, |(time_ns, unix_ns)| {
        let since = i128::from(start_ns).saturating_sub(time_ns.into());
        u64::try_from(since.saturating_add(unix_ns.into())).unwrap_or(0)
    });
    let dev = DeviceNumber::of(target.device).to_string();
    let counts = [
        ("events".to_owned(), made.events),
        (layout::count_of(layout::PROCESS), made.entries),
        (layout::count_of(layout::FILE), made.file_entries),
        (layout::count_of(layout::COMM), made.comms),
    ];
    let lost = made.lost.filter(|_| !made.lost_uncounted);
    let forgotten = (made.forgotten > 0).then_some(made.forgotten);
    let losses = [
        lost.map(|lost| ("events_tracefs".to_owned(), lost)),
        forgotten.map(|runs| ("extents_forgotten".to_owned(), runs)),
    ];
    Manifest {
        schema: SCHEMA,
        tool: format!("mostrace {}", env!("CARGO_PKG_VERSION")),
        state: State::Complete,
        device: Device {
            name: target.name.clone(),
            dev: dev.clone(),
            disk: target.name.clone(),
            disk_dev: dev,
            ..Device::default()
        },
        clock: Clock {
            start_mono_ns: start_ns,
            start_unix_ns,
            stop_mono_ns: stop_ns,
        },
        sources: Sources {
            events: format!("{kind}, imported"),
            entries: "none".into(),
            files: "none".into(),
            causes: "none".into(),
        },
        losses: losses.into_iter().flatten().collect(),
        counts: counts.into(),
        counters: Some(Counters::NotCompared("imported traces have none".into())),
        ..Manifest::default()
    }
}

/// Returns what the trace lacks.
fn notes(kind: Kind, target: &Target, made: &Made, rest: &Rest) -> Vec<String> {
    let mut notes = vec![format!("imported: {}", kind.cannot_tell())];
    let without = match target.completes_at {
        ta::ISSUE => Some("when requests were issued"),
        ta::QUEUE => Some("when bios were queued"),
        _ if made.completed == made.events && !kind.has_completions() => {
            Some("when requests arrived")
        }
        _ => None,
    };
    if let Some(times) = without {
        notes.push(format!(
            "no completions: latencies are unknown, and times are {times}"
        ));
    }
    if made.completed == made.events && without.is_none() {
        notes.push("completions alone: latencies are unknown".into());
    }
    if target.leaves_bios {
        notes.push("several disks: bios of partitions are left out, as it is not known of which disk they are".into());
    }
    if target.tells_files && target.volume.is_none() {
        notes.push(
            "events of a filesystem are in it, but no bio shows where it lies on the disk: files are not imported".into(),
        );
    }
    if made.lost_uncounted {
        notes.push(
            "INCOMPLETE: the tracer dropped events, and the text does not say how many".into(),
        );
    }
    let late = made.late.max(rest.late);
    if late > 0 {
        notes.push(format!("{late} events are far out of the order of time"));
    }
    if rest.long_packets > 0 {
        notes.push(format!(
            "{} packets are too long to have events and were skipped",
            rest.long_packets
        ));
    }
    if rest.strange > 0 {
        notes.push(format!(
            "{} lines are not of the format and were skipped",
            rest.strange
        ));
    }
    for path in &rest.cut {
        notes.push(format!(
            "{}: the file ends within a line or a packet, which was left out",
            path.display()
        ));
    }
    notes
}
