// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bundles of one recording: a single one, or consecutive segments. One bundle is being written; a thread finishes the segments
//! that have ended, because that requires reading their events once more.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mostrace_bundle::manifest::{self, Manifest, State};
use mostrace_bundle::segments::{self, SNAPSHOT_IN_THE_LAST};

use super::counters::Readings;
use super::finisher::{Ended, Finisher};
use super::loops::Watch;
use super::naming;
use super::open::Open;
use super::options::{Options, Size};
use super::output::Output;
use super::packages;
use super::progress::Packing;
use super::subject::Subject;
use super::tracing::Tracing;
use crate::error::{Error, Result};
use crate::machine::clock;
use crate::trees;

/// The time after which the kernel has counted a completion; it does so right after the tracepoint, on the same CPU.
const ACCOUNTED: Duration = Duration::from_millis(2);
/// The interval at which the size of a segment is checked.
const LOOK: Duration = Duration::from_millis(100);

/// The bundles of a recording.
pub(super) struct Series<'o> {
    options: &'o Options,
    subject: &'o Subject,
    /// The bundle that is being written.
    pub current: Open,
    began: Instant,
    looked: Instant,
    loops: Watch,
    /// The thread that finishes segments, if the recording goes to segments.
    pub finisher: Option<Finisher>,
}

impl<'o> Series<'o> {
    /// Makes the place of the first bundle.
    ///
    /// # Errors
    /// Returns an error if the place is taken, or cannot be made.
    pub fn begin(
        options: &'o Options,
        subject: &'o Subject,
        mut manifest: Manifest,
    ) -> Result<Series<'o>> {
        let mut path = options.output.clone();
        let mut finisher = None;
        if let Some(segments) = &options.segments {
            naming::check_free(&path)?;
            path = segments::segment(&path, 1);
            manifest.segment = Some(manifest::Segment {
                number: 1,
                ..manifest::Segment::default()
            });
            finisher = Some(Finisher::start(segments.keep)?);
        }
        Ok(Series {
            options,
            subject,
            current: Open {
                output: place(&path, subject, options)?,
                manifest,
                readings: Readings::new(&subject.device),
            },
            began: Instant::now(),
            looked: Instant::now(),
            loops: Watch::new(options.segments.is_some()),
            finisher,
        })
    }

    /// Begins the time of the first segment; until then, the sources were started.
    pub fn tracing_began(&mut self) {
        self.began = Instant::now();
    }

    /// Returns the folder of the bundle that is being written.
    pub fn folder(&self) -> &Path {
        self.current.output.writer().dir()
    }

    /// Returns the time until [`Series::go_on`] has something to do.
    pub fn due_in(&self) -> Duration {
        let segment = match self.options.segments.map(|segments| segments.each) {
            // What is recorded wakes the recorder, so that the size is looked at when it grows.
            Some(Size::Time(each) | Size::TimeOrBytes(each, _)) => {
                each.saturating_sub(self.began.elapsed())
            }
            Some(Size::Bytes(_)) => LOOK,
            None => Duration::MAX,
        };
        segment.min(self.loops.due_in())
    }

    /// Looks for new loop devices and begins the next segment, each if it is due; this is called often.
    ///
    /// # Errors
    /// Returns an error if the next bundle cannot be made, or if one that ended could not be finished.
    pub fn go_on(&mut self, tracing: &mut Tracing<'_>) -> Result<()> {
        if let Some(finisher) = &mut self.finisher {
            finisher.check()?;
        }
        let seen = &mut self.current.manifest.loops;
        self.loops.look(self.subject, seen);
        match self.is_due()? {
            true => self.next_segment(tracing),
            false => Ok(()),
        }
    }

    fn is_due(&mut self) -> Result<bool> {
        Ok(match self.options.segments.map(|segments| segments.each) {
            Some(Size::Time(each)) => self.began.elapsed() >= each,
            Some(Size::Bytes(each)) => self.has_written(each)?,
            Some(Size::TimeOrBytes(time, bytes)) => {
                self.began.elapsed() >= time || self.has_written(bytes)?
            }
            None => false,
        })
    }

    /// Returns true if the bundle's files have this many bytes, as far as that was due to be looked at.
    fn has_written(&mut self, bytes: u64) -> Result<bool> {
        if self.looked.elapsed() < LOOK {
            return Ok(false);
        }
        self.looked = Instant::now();
        let written: u64 = self.current.output.writer().sizes()?.values().sum();
        Ok(written >= bytes)
    }

    fn next_segment(&mut self, tracing: &mut Tracing<'_>) -> Result<()> {
        let ended = &mut self.current.manifest;
        self.loops.look_now(self.subject, &mut ended.loops);
        let number = ended.segment.as_ref().map_or(1, |s| s.number) + 1;
        let path = segments::segment(&self.options.output, number);
        let output = place(&path, self.subject, self.options)?;
        trees::carry(
            self.current.output.writer().folder(),
            output.writer().folder(),
        )?;
        tracing.catch_up()?;
        self.current.readings.take();
        let at = clock::now();
        std::thread::sleep(ACCOUNTED);
        self.current.readings.take();
        let own_from = tracing.begin_segment(at, output.writer().folder(), ended)?;
        log::debug!("segment {number} after {:?}", since(at));
        let mut next = Open {
            output,
            manifest: next_manifest(ended, number),
            readings: self.current.readings.of_next(&self.subject.device),
        };
        next.manifest.clock = at;
        if let Some(segment) = &mut next.manifest.segment {
            segment.own_from = own_from;
        }
        next.output.writer().put_manifest(&next.manifest)?;
        ended.notes.push(SNAPSHOT_IN_THE_LAST.into());
        let ended = std::mem::replace(&mut self.current, next);
        self.began = Instant::now();
        match &mut self.finisher {
            Some(finisher) => finisher.take(Ended::new(ended)),
            None => Ok(()),
        }
    }

    /// Marks the last bundle as complete.
    ///
    /// # Errors
    /// Returns an error if the manifest cannot be written.
    pub fn complete(&mut self) -> Result<()> {
        let Open {
            output, manifest, ..
        } = &mut self.current;
        if let Some(segment) = &mut manifest.segment {
            segment.last = true;
        }
        manifest.files = output.writer().sizes()?;
        manifest.state = State::Complete;
        Ok(output.writer().put_manifest(manifest)?)
    }

    /// Finishes the bundles that are not yet finished. Returns their sums, and the place of the last one.
    ///
    /// # Errors
    /// Returns an error if a bundle cannot be packed.
    pub fn end(self) -> Result<(Manifest, PathBuf)> {
        let Open {
            output, manifest, ..
        } = self.current;
        let path = output.path();
        let packing = Packing::new(self.options.progress.of_packing());
        let last = output.finish(&manifest, packing)?;
        let Some(finisher) = self.finisher else {
            return Ok((manifest, path));
        };
        let mut totals = finisher.end(Some(last))?;
        totals.add(&manifest, &path);
        Ok((totals.into_manifest(manifest), path))
    }

    /// Ends the series after an error; what was recorded stays. Returns the error for the user.
    pub fn abandon(self, why: Error) -> Error {
        // What earlier segments lack would be reported for this one.
        let _ = self.finisher.map(|finisher| finisher.end(None));
        let output = self.current.output;
        let why = match output.is_begun() {
            true => why.or_disk_full(output.writer().dir()),
            false => why,
        };
        output.abandon(&why);
        why
    }
}

/// Makes the place of a bundle, with the files that each bundle has from its beginning.
fn place(path: &Path, subject: &Subject, options: &Options) -> Result<Output> {
    let output = Output::create(path, options.segments.is_some_and(|s| s.memory))?;
    if let Some(packages) = &subject.packages {
        packages::keep(packages, output.writer().folder())?;
    }
    Ok(output)
}

/// Returns the manifest of the next segment, given that of the one before.
fn next_manifest(before: &Manifest, number: u32) -> Manifest {
    Manifest {
        segment: Some(manifest::Segment {
            number,
            ..manifest::Segment::default()
        }),
        state: State::Recording,
        counts: BTreeMap::new(),
        losses: BTreeMap::new(),
        interference: Vec::new(),
        ..before.clone()
    }
}

fn since(at: manifest::Clock) -> Duration {
    let now = clock::now();
    Duration::from_nanos(now.start_mono_ns.saturating_sub(at.start_mono_ns))
}
