// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace ledger start`: records, sums up, and forgets.

use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use chrono::{DateTime, SecondsFormat};
use mostrace_bundle::segments::segment;
use mostrace_bundle::temporary::TempFolder;
use mostrace_bundle::{Packages, layout, units};
use mostrace_capture::{
    Device, Drive, Options, Progress, Segments, Size, check, give_back, record, share_heap,
};
use mostrace_tables::ledger::{self, Days, Hour, Keeper, Reading, Running, UidIo};
use mostrace_trace::live::follow;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level::raise;

use super::lock::Lock;
use super::running::offer;
use crate::segments::Arriving;
use crate::{say, shell, usage};

/// Android's list of apps.
const PACKAGES: &str = "/data/system/packages.list";
const DAY: u64 = 86_400;
/// The most hours that wait to be written.
const MOST_WAITING: usize = 24;
/// The bytes of a segment that ends it before its time, so that little waits to be summed up when much is recorded.
const SEGMENT: u64 = 32 << 20;
/// The number of checks, in the time of a segment, whether one has ended.
const LOOKS: u32 = 10;

/// Record until a signal ends it (SIGTERM, SIGINT), and add an hour to the ledger whenever one is over
///
/// Needs root. An hour is added when it is over, or as far as it has come when the recording ends; until then `ledger
/// show` asks for it. `ledger show --hours` shows what a crash took away. Only one ledger can be kept in a folder at a time.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Start {
    /// The folder of the ledger; it is created if it is missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The whole disk or partition to watch, or a mount point or a file for the device that it is on
    #[arg(short, long, value_name = "DEV|PATH")]
    device: PathBuf,
    /// The length of an hour of the ledger, such as 1h, 10m
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = units::time)]
    every: Duration,
    /// Remove days that are older
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    keep: Option<Duration>,
    /// The longest time of a segment of the recording, which is held in memory until it is summed up
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::time)]
    segment: Duration,
    /// Stop after this time, such as 60, 10m, 1h
    #[arg(short = 'w', long = "wait", value_name = "TIME", value_parser = units::time)]
    wait: Option<Duration>,
    /// How the progress is shown, for a program
    #[arg(long, hide = true, default_value = "never")]
    progress: Progress,
}

impl Start {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        if self.every.as_secs() == 0 || !DAY.is_multiple_of(self.every.as_secs()) {
            usage!("--every: an hour must be whole seconds of which a day is a multiple");
        }
        refuse_others(&self.folder)?;
        share_heap();
        // What cannot be recorded leaves no folder.
        check(&Options {
            device: self.device.clone(),
            no_snapshot: true,
            ..Options::default()
        })?;
        let days = Days::create(&self.folder, super::TRIAL)?;
        let Some(_lock) = Lock::take(days.folder())? else {
            bail!(
                "{}: another process keeps a ledger here",
                self.folder.display()
            );
        };
        let before = days.sound_ends(&mut |line| say(&line))?;
        let running = Running::default();
        let socket = offer(days.folder(), running.clone());
        if let Err(why) = &socket {
            log::warn!("{why:#}: ledger show will not tell the running hour");
        }
        // The recording is kept in memory if possible, because writes to the device itself would be recorded.
        let temporary = TempFolder::in_memory()?;
        let output = temporary.path().join("ledger.most");
        let options = Options {
            device: self.device.clone(),
            output: output.clone(),
            limit: self.wait,
            segments: Some(Segments {
                each: Size::TimeOrBytes(self.segment, SEGMENT),
                keep: None,
                memory: false,
            }),
            no_snapshot: true,
            progress: self.progress,
            ..Options::default()
        };
        // The last hour is written after the recorder no longer takes signals.
        let ended = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::clone(&ended))?;
        }
        let recorder = thread::spawn(move || record(&options));
        let kept = self.follow(&days, before, running, output, &recorder);
        let recorded = recorder.join().unwrap_or_else(|panic| resume_unwind(panic));
        recorded.map_err(anyhow::Error::from).and(kept)
    }

    /// Says what will happen when.
    fn plan(&self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs();
        let every = self.every.as_secs();
        let end = now.saturating_sub(now % every).saturating_add(every);
        let end = DateTime::from_timestamp(i64::try_from(end).unwrap_or(0), 0).unwrap_or_default();
        let end = end.to_rfc3339_opts(SecondsFormat::Secs, true);
        let folder = shell::plain(&self.folder.display().to_string());
        format!(
            "{} is watched; the first hour is in {folder} soon after {end}, or when this ends; to look, also before: mostrace ledger show \
             {folder}; to end: Ctrl-C, or mostrace ledger stop {folder}",
            self.device.display()
        )
    }

    fn follow<T: Send>(
        &self,
        days: &Days,
        before: Vec<Reading>,
        running: Running,
        output: PathBuf,
        recorder: &JoinHandle<T>,
    ) -> anyhow::Result<()> {
        let (tell, hours) = channel();
        thread::scope(|scope| {
            let follower = scope.spawn(move || {
                let tell = move |hour| drop(tell.send(hour));
                let mut keeper = Keeper::new(
                    self.every.as_secs(),
                    packages(),
                    UidIo::default(),
                    drive(&self.device),
                    before,
                    running,
                    tell,
                );
                let first = segment(&output, 1).join(layout::MANIFEST);
                let mut arriving = Arriving::new(output, false, recorder, self.segment / LOOKS);
                // The manifest is written when the kernel is traced.
                while !first.exists() && !recorder.is_finished() {
                    thread::sleep(self.segment / LOOKS);
                }
                if !recorder.is_finished() {
                    say(&self.plan());
                }
                // The next segment is asked for when the one before is summed up.
                let segments = std::iter::from_fn(|| {
                    give_back();
                    arriving.next()
                });
                let followed = follow(segments, &mut keeper);
                keeper.finish();
                if followed.is_err() {
                    // The recorder must end too.
                    raise(SIGINT)?;
                }
                Ok(followed?)
            });
            let kept = self.add(days, &hours);
            let followed = follower.join().unwrap_or_else(|panic| resume_unwind(panic));
            followed.and(kept)
        })
    }

    /// Adds the hours as they come. An hour that cannot be added, for example because the disk is full, is tried again with the
    /// next one.
    fn add(&self, days: &Days, hours: &Receiver<Hour>) -> anyhow::Result<()> {
        let mut waiting: Vec<Hour> = Vec::new();
        let mut failed = None;
        for hour in hours {
            let is_full = waiting.len() >= MOST_WAITING;
            match waiting.last_mut().filter(|_| is_full) {
                // It lasts longer then.
                Some(last) => last.absorb(hour),
                None => waiting.push(hour),
            }
            failed = None;
            while let (Some(hour), None) = (waiting.first(), &failed) {
                match days.add(hour, &mut |line| say(&line)) {
                    Ok(()) => drop(waiting.remove(0)),
                    Err(why) => failed = Some(why),
                }
            }
            if let Some(why) = &failed {
                say(&format!(
                    "{why}; {} hours wait to be written",
                    waiting.len()
                ));
            }
            if let Some(keep) = self.keep {
                let now = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default();
                days.forget(keep.as_secs() / DAY, now.as_secs())?;
            }
        }
        failed.map_or(Ok(()), |why| Err(why).context("hours are lost"))
    }
}

/// Refuses a folder in which something else than a ledger is.
fn refuse_others(folder: &Path) -> anyhow::Result<()> {
    let is_empty = |folder: &Path| match fs::read_dir(folder) {
        Ok(names) => names.flatten().all(|name| name.file_name() == "lost+found"),
        // What cannot be read is refused with the reason when it is opened.
        Err(_) => true,
    };
    match Days::open(folder, super::TRIAL) {
        Err(ledger::Error::NoLedger(_)) if !is_empty(folder) => bail!(
            "{}: is no ledger, and has other files: name a new or an empty folder",
            folder.display()
        ),
        _ => Ok(()),
    }
}

fn packages() -> Packages {
    let list = fs::read(Path::new(PACKAGES)).unwrap_or_default();
    Packages::parse(&list)
}

/// Returns a reader of the counters of the drive below a device.
fn drive(device: &Path) -> ledger::Drive {
    let drive = Device::open(device).ok().as_ref().and_then(Drive::below);
    Box::new(move || drive.as_ref().and_then(Drive::read).unwrap_or_default())
}
