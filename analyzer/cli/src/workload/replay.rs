// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace workload replay`: makes an application's recorded calls again in a folder.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use mostrace_bundle::{Bundle, outfile};
use mostrace_replay::{
    Contents, Name, Recorded, Replay, Settings, Start, StraceSettings, Timing, read_bundle,
    read_mobigen, read_strace,
};
use serde_json::json;

/// Make the calls of a recorded application again, in a folder
///
/// RECORDING is a bundle that was recorded with --operations, the output of strace (with -ff, all its files),
/// or a MobiGen script. The files that the application found are made first. What is not made again is
/// counted, by reason; the exit status is 1 if nothing was. `mostrace replay` does this on fresh filesystems
/// and compares what is written.
///
///   mostrace workload replay run.most --path /mnt/test
///   strace -f -y -ttt -T -o app.strace ./app
///   mostrace workload replay app.strace --root "$PWD" --path /mnt/test --fast
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    how: How,
    /// The folder that stands for the recorded filesystem's root
    #[arg(long, value_name = "DIR", default_value = ".")]
    path: PathBuf,
    /// Only make the files that the application found
    #[arg(long)]
    prepare: bool,
    /// Use the files that --prepare made
    #[arg(long, conflicts_with = "prepare")]
    keep: bool,
    /// Write the result as JSON to this file instead of printing it
    #[arg(long, value_name = "FILE")]
    outcome: Option<PathBuf>,
}

/// The recording.
#[derive(clap::Args, Clone)]
pub struct Source {
    /// A bundle recorded with --operations, the output of `strace -f -y -ttt -T`, or a MobiGen script
    #[arg(value_name = "RECORDING", required = true)]
    pub recordings: Vec<PathBuf>,
    /// With strace's output: replay what was done below this folder; relative paths count from it, unless -y shows
    /// otherwise
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// How calls are made again.
#[derive(clap::Args, Clone)]
pub struct How {
    /// Leave out the application's pauses
    #[arg(long)]
    pub fast: bool,
    /// What is written: random bytes, zeros, or bytes that compress to a part of their length, such as 0.5
    #[arg(long, value_name = "random|zeros|PART", default_value = "random", value_parser = contents)]
    pub contents: Contents,
}

fn contents(text: &str) -> Result<Contents, String> {
    match text {
        "random" => Ok(Contents::Random),
        "zeros" => Ok(Contents::Zeros),
        part => match part.parse::<f64>() {
            Ok(part) if (0.0..=1.0).contains(&part) => Ok(Contents::Ratio(part)),
            _ => Err(format!(
                "`{text}` is not random, zeros, or a number from 0 to 1"
            )),
        },
    }
}

/// Returns true if a text is a MobiGen script: its first line has two whole numbers and then a word, while strace's time
/// has a point.
fn is_mobigen(text: &str) -> bool {
    let line = text.lines().find(|line| !line.trim().is_empty());
    let mut words = line.unwrap_or_default().split_whitespace();
    let mut is_number = || words.next().is_some_and(|word| word.parse::<u64>().is_ok());
    is_number() && is_number()
}

impl Source {
    /// Returns the first recording.
    pub fn first(&self) -> &Path {
        self.recordings
            .first()
            .map_or(Path::new(""), PathBuf::as_path)
    }

    /// Reads the operations.
    ///
    /// # Errors
    /// Returns an error if the recording cannot be read, or has none that can be replayed.
    pub fn read(&self) -> anyhow::Result<Recorded> {
        let recorded = self.operations()?;
        if recorded.is_empty() {
            let reasons = recorded.left_out.iter();
            let reasons = reasons.map(|(why, calls)| format!("{calls}: {why}"));
            bail!(
                "{}: has no call that can be replayed ({})",
                self.first().display(),
                match recorded.left_out.is_empty() {
                    true => "there is none".to_owned(),
                    false => reasons.collect::<Vec<String>>().join("; "),
                }
            );
        }
        Ok(recorded)
    }

    fn operations(&self) -> anyhow::Result<Recorded> {
        let path = self.first();
        let is_alone = self.recordings.len() == 1;
        if is_alone && self.is_bundle()? {
            return Ok(read_bundle(path, &Bundle::open(path)?)?);
        }
        let texts: Vec<(PathBuf, String)> = self.texts()?;
        if let ([(path, text)], true) = (&*texts, is_alone)
            && is_mobigen(text)
        {
            return Ok(read_mobigen(path, text)?);
        }
        let Some(root) = &self.root else {
            bail!(
                "{}: strace's output has the calls on all files; name the folder to replay with --root DIR",
                path.display()
            );
        };
        let root = std::path::absolute(root)?;
        let root = Name::new(root.as_os_str().as_bytes());
        let root = root.context("--root: leads nowhere")?;
        let settings = StraceSettings {
            folder: Some(root.clone()),
            root,
        };
        Ok(read_strace(&texts, &settings)?)
    }

    /// Returns the texts of the recordings.
    fn texts(&self) -> anyhow::Result<Vec<(PathBuf, String)>> {
        let texts = self.recordings.iter().map(|path| {
            let text = fs::read(path).with_context(|| path.display().to_string())?;
            if text.starts_with(&ZSTD) {
                bail!(
                    "{}: of several recordings, all must be files of strace -ff",
                    path.display()
                );
            }
            Ok((path.clone(), String::from_utf8_lossy(&text).into_owned()))
        });
        texts.collect()
    }

    /// Returns true if the recording is a bundle: a folder, or an archive, which begins with zstd's magic number.
    pub fn is_bundle(&self) -> anyhow::Result<bool> {
        let path = self.first();
        let named = || path.display().to_string();
        if fs::metadata(path).with_context(named)?.is_dir() {
            return Ok(true);
        }
        let mut magic = Vec::new();
        let file = File::open(path).with_context(named)?;
        file.take(4).read_to_end(&mut magic).with_context(named)?;
        Ok(magic == ZSTD)
    }
}

/// zstd's magic number, with which an archive of a bundle begins.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

impl Args {
    pub fn run(&self) -> anyhow::Result<()> {
        let recorded = self.source.read()?;
        if self.prepare {
            let start = Start::of(&recorded);
            return Ok(start.make(&self.path, self.how.contents, &recorded.operations)?);
        }
        let settings = Settings {
            root: self.path.clone(),
            timing: if self.how.fast {
                Timing::Fast
            } else {
                Timing::Kept
            },
            contents: self.how.contents,
        };
        let replay = match self.keep {
            true => Replay::prepared(&recorded, &settings)?,
            false => Replay::prepare(&recorded, &settings)?,
        };
        let outcome = replay.run(|_| {})?;
        if outcome.made_and_same().0 == 0 {
            bail!("{}: no call was made again", self.source.first().display());
        }
        let Some(path) = &self.outcome else {
            return Ok(writeln!(std::io::stdout(), "{outcome}")?);
        };
        let file = outfile::create(path).with_context(|| path.display().to_string())?;
        let told = json!({"text": outcome.to_string(), "outcome": outcome});
        Ok(serde_json::to_writer(file, &told)?)
    }
}
