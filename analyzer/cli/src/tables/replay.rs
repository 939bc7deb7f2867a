// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace replay`: what a recorded application would write on other filesystems.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use mostrace_bundle::Bundle;
use mostrace_bundle::temporary::{TempFile, TempFolder};
use mostrace_capture::{FreshKind, Options, settle};
use mostrace_replay::{Recorded, Start, refuse_unless_empty};
use mostrace_tables::export::{Output, sections_to_text, to_value};
use mostrace_tables::tables::diff::{Diff as Differences, Side, letter};
use mostrace_trace::budget::{Judgement, Runs, report};
use serde_json::{Map, Value, json};

use crate::budget::{self, BudgetArgs, Form, OneRun};
use crate::ground::{FreshArgs, Ground, GroundKind, Held, kind};
use crate::workload::replay::{How, Source};

mod blocks;
mod guest;
mod requests;
mod words;

/// Replay a recorded application on fresh filesystems, and compare what it writes there with what it wrote
///
/// RECORDING is a bundle that was recorded with --operations, or the output of strace. The files that the
/// application found are made first, then each of its threads makes its calls again, in the recorded order
/// and with the recorded pauses. Contents are not recorded, so other bytes are written. The exit status is 3
/// if a limit was exceeded.
///
/// Examples:
///   sudo mostrace measure --operations -o app.most -- ./app
///   sudo mostrace replay app.most
///   sudo mostrace replay app.most --fs ext4,f2fs,vfat -o replays
///   mostrace replay app.most --fs f2fs --guest 6.12
///   sudo mostrace replay app.most --mkfs "-O fast_commit" --mount-options commit=30
///   strace -f -y -ttt -T -o app.strace ./app; sudo mostrace replay app.strace --root .
///   sudo mostrace replay app.most --blocks /dev/sdx --yes /dev/sdx
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Replay {
    #[command(flatten)]
    source: Source,
    /// The filesystems to make, one after the other
    #[arg(long, value_name = "ext4|f2fs|vfat", default_value = "ext4", value_delimiter = ',', value_parser = kind)]
    fs: Vec<FreshKind>,
    #[command(flatten)]
    fresh: FreshArgs,
    /// Replay in the empty folder DIR, on its filesystem, instead of a fresh one
    #[arg(long = "in", value_name = "DIR", conflicts_with_all = ["fs", "mkfs", "mount_options", "size", "scheduler", "max_sectors_kb"])]
    within: Option<PathBuf>,
    /// Replay on a copy of the recorded ext4, made from the bundle's snapshot: files lie where they lay, and the free space
    /// is as large and as fragmented. Their contents are zeros. This kernel mounts the filesystem, which may be a
    /// stranger's: see docs/SECURITY.md
    #[arg(long, conflicts_with_all = ["within", "guest", "mkfs", "size"])]
    image: bool,
    /// Replay in an emulated machine with this Debian kernel, such as 6.12: it has f2fs and FAT, and needs no root here
    #[arg(long, value_name = "KERNEL", value_parser = crate::guest::kernel, conflicts_with = "within")]
    guest: Option<String>,
    #[command(flatten)]
    how: How,
    /// Keep the recordings of the replays in the folder OUT, as ext4.most.tar.zst and so on
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    blocks: blocks::BlocksArgs,
    #[command(flatten)]
    budget: BudgetArgs,
}

/// A replay that was recorded.
struct Replayed {
    name: String,
    path: PathBuf,
    /// The results of the calls.
    told: Told,
}

/// The report of the replay's process about its calls.
#[derive(serde::Deserialize)]
struct Told {
    text: String,
    outcome: Value,
}

impl Replay {
    /// Runs the command; returns the exit status.
    ///
    /// # Errors
    /// Returns an error if the recording has no operations, or a replay could not be recorded.
    pub fn run(&self) -> anyhow::Result<u8> {
        if let Some(target) = &self.blocks.blocks {
            let (recording, as_json) = (self.source.first(), self.budget.form() == Form::Json);
            let (fast, contents) = (self.how.fast, self.how.contents);
            self.blocks
                .run(recording, target, fast, contents, as_json)?;
            return Ok(0);
        }
        let limits = self.budget.limits()?;
        let recorded = self.source.read()?;
        let kept = TempFolder::new()?;
        let folder = self.folder(kept.path())?;
        let replays = match &self.guest {
            Some(kernel) => guest::replay(self, kernel, &folder)?,
            None => self.here(&recorded, &folder, kept.path())?,
        };
        let mut judgements = Vec::new();
        if self.budget.is_given() {
            for replay in &replays {
                let measured = OneRun::path(&replay.path)?.measured(&replay.path)?;
                if let Some(runs) = Runs::new(vec![measured]) {
                    judgements.extend(self.budget.judge(&replay.name, &runs, &limits)?);
                }
            }
        }
        self.print(&replays, &judgements)?;
        Ok(budget::status(&judgements))
    }

    /// Replays on this machine, in one place after the other.
    fn here(
        &self,
        recorded: &Recorded,
        folder: &Path,
        aside: &Path,
    ) -> anyhow::Result<Vec<Replayed>> {
        let image = self.snapshot()?;
        let replayed = self
            .places(image.as_ref())
            .into_iter()
            .map(|(name, place)| {
                let path = folder.join(format!("{name}.most.tar.zst"));
                let told = self.record(&place, recorded, &path, aside);
                let told = told.with_context(|| format!("on {name}"))?;
                Ok(Replayed { name, path, told })
            });
        replayed.collect()
    }

    /// Returns the folder for the replays' recordings.
    fn folder(&self, aside: &Path) -> anyhow::Result<PathBuf> {
        let Some(folder) = &self.output else {
            return Ok(aside.to_owned());
        };
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let folder = std::path::absolute(folder)?;
        for (name, _) in self.places(None) {
            let path = folder.join(format!("{name}.most.tar.zst"));
            if path.exists() {
                return Err(mostrace_capture::Error::OutputExists(path).into());
            }
        }
        Ok(folder)
    }

    /// Returns the recorded filesystem's image, if that is asked for.
    fn snapshot(&self) -> anyhow::Result<Option<TempFile>> {
        if !self.image {
            return Ok(None);
        }
        let path = self.source.first();
        if self.fs.iter().any(|kind| *kind != FreshKind::Ext4) {
            bail!("--image: is for ext4 alone");
        }
        if !self.source.is_bundle()? {
            bail!("{}: has no snapshot, which --image needs", path.display());
        }
        let image = Bundle::open(path)?.snapshot()?;
        image
            .with_context(|| format!("{}: has no snapshot, which --image needs", path.display()))
            .map(Some)
    }

    /// Returns the places in which to replay, each with a name.
    fn places(&self, image: Option<&TempFile>) -> Vec<(String, GroundKind)> {
        if let Some(image) = image {
            let place = GroundKind::Image {
                options: self.fresh.options(FreshKind::Ext4),
                image: image.path().to_owned(),
            };
            return vec![("ext4".to_owned(), place)];
        }
        if let Some(dir) = &self.within {
            return vec![("replayed".to_owned(), GroundKind::Folder(dir.clone()))];
        }
        let fresh = |kind: &FreshKind| {
            let options = self.fresh.options(*kind);
            (
                kind.name().to_owned(),
                GroundKind::Fresh {
                    options,
                    empty: true,
                },
            )
        };
        self.fs.iter().map(fresh).collect()
    }

    /// Replays in one place, and records that into `path`.
    fn record(
        &self,
        place: &GroundKind,
        recorded: &Recorded,
        path: &Path,
        aside: &Path,
    ) -> anyhow::Result<Told> {
        let output = Held::new(path)?;
        let ground = Ground::new(place, None)?;
        if let GroundKind::Folder(dir) = place {
            refuse_unless_empty(dir)?;
        }
        let contents = self.how.contents;
        Start::of(recorded).make(ground.folder(), contents, &recorded.operations)?;
        settle(ground.folder())?;
        let result = aside.join("outcome.json");
        let mut argv: Vec<OsString> = vec![std::env::current_exe()?.into()];
        argv.extend(["workload", "replay"].map(OsString::from));
        argv.extend(self.source.words_for(&self.source.absolute()?)?);
        argv.extend(self.how.words());
        argv.extend(["--keep".into(), "--outcome".into(), result.clone().into()]);
        let recorded = ground.record(
            &output,
            Options {
                argv,
                stdout_aside: true,
                ..Options::default()
            },
        )?;
        for note in &recorded.manifest.notes {
            crate::say(&format!("note: {note}"));
        }
        if recorded.exit_status != 0 {
            bail!("the replay ended with {}", recorded.exit_status);
        }
        let text = fs::read(&result).with_context(|| result.display().to_string())?;
        fs::remove_file(&result)?;
        Ok(serde_json::from_slice(&text)?)
    }

    /// Compares the replays with the recording, or with the first of them if that has no events.
    fn differences(&self, replays: &[Replayed]) -> anyhow::Result<(Vec<String>, Differences)> {
        let mut paths: Vec<(String, &Path)> = Vec::new();
        if self.source.has_events()? {
            paths.push(("recorded".to_owned(), self.source.first()));
        }
        paths.extend(
            replays
                .iter()
                .map(|replay| (replay.name.clone(), &*replay.path)),
        );
        let sides = paths.iter().map(|(name, path)| {
            let read = OneRun::path(path)?;
            // SQLite's transactions are known by contents, which a replay does not have.
            let manifest = read.reading.manifest.as_ref().map(|manifest| {
                let mut manifest = manifest.clone();
                manifest.payload = None;
                // What a command that failed wrote is compared all the same.
                if let Some(command) = &mut manifest.command {
                    command.exit_status = None;
                }
                manifest
            });
            let (origins, warnings) = (&read.reading.origins, &read.reading.warnings);
            let charged = read.charging.charged(origins, manifest.as_ref(), &[]);
            Ok(Side::new(name.clone(), &charged, warnings))
        });
        let sides: Vec<Side> = sides.collect::<anyhow::Result<_>>()?;
        let all: Vec<&Side> = sides.iter().collect();
        let diff = Differences::new(&all)?;
        Ok((paths.into_iter().map(|(name, _)| name).collect(), diff))
    }

    fn print(&self, replays: &[Replayed], judgements: &[Judgement]) -> anyhow::Result<()> {
        let mut out = Output::create(None)?;
        let (names, diff) = self.differences(replays)?;
        if self.budget.form() == Form::Json {
            let outcomes = replays
                .iter()
                .map(|replay| (replay.name.clone(), replay.told.outcome.clone()));
            let mut object = Map::new();
            object.insert("sentence".into(), json!(diff.sentence));
            object.insert("columns".into(), json!(names));
            object.insert("replays".into(), Value::Object(outcomes.collect()));
            for section in &diff.sections {
                object.insert(section.name.into(), to_value(&section.table));
            }
            object.insert("limits".into(), report::json(judgements));
            return Ok(out.json(&Value::Object(object))?);
        }
        let mut text = String::new();
        if names.len() > 1 {
            let said = [vec![diff.sentence], diff.notes].concat();
            writeln!(text, "{}\n", said.join("\n"))?;
        }
        for (nth, name) in names.iter().enumerate() {
            writeln!(text, "{}: {name}", letter(nth))?;
        }
        text += &sections_to_text(&diff.sections, out.width());
        for replay in replays {
            writeln!(text, "\n{}: {}", replay.name, replay.told.text)?;
        }
        match self.budget.form() {
            Form::Github => out.text(&report::github(judgements))?,
            _ => out.text(&(text + &report::text(judgements)))?,
        }
        Ok(())
    }
}
