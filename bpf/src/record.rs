// SPDX-License-Identifier: MIT OR Apache-2.0
//! One capture, from the first probe to the packed bundle.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use libbpf_rs::OpenObject;
use mostrace_bundle::manifest::{self, Manifest, SCHEMA, State};
use mostrace_bundle::{Writer, archive};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::clock;
use crate::command::{self, Command};
use crate::device::Device;
use crate::entries::kernel::{KernelEntries, KernelPaths};
use crate::entries::{Entries, EntrySource};
use crate::error::{At, Error, Result};
use crate::events::blktrace::Blktrace;
use crate::events::ftrace::Ftrace;
use crate::events::{Choice, EventSource};
use crate::filesystem;
use crate::kernel;
use crate::names::NameFilter;
use crate::probes::Loader;
use crate::progress::Progress;
use crate::snapshot;

const TICK: Duration = Duration::from_millis(5);
/// How long a command may take to end after SIGTERM before it is left alone.
const PATIENCE: Duration = Duration::from_secs(10);

/// What to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whole disk or partition.
    pub device: PathBuf,
    /// `NAME.most`, or `NAME.most.tar.zst`.
    pub output: PathBuf,
    /// `--source`.
    pub source: Choice,
    /// `--entries`.
    pub entries: Entries,
    /// The kernel's own recorder.
    pub kernel: KernelPaths,
    /// `--files`.
    pub files: String,
    /// `-w`.
    pub limit: Option<Duration>,
    /// `--sync`: write back what the command left in memory, under tracing.
    pub sync: bool,
    /// Save the filesystem's metadata.
    pub snapshot: bool,
    /// The command, possibly empty.
    pub argv: Vec<OsString>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Exit status of the command; 0 without one.
    pub exit_status: i32,
    /// The manifest as written.
    pub manifest: Manifest,
}

/// Records until the command ends, the time is up, or SIGINT.
///
/// # Errors
/// Anything that keeps the capture from being made; what was written before stays, as a
/// bundle whose state is `recording`.
pub fn record(options: &Options) -> Result<Outcome> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::unfit("record needs root"));
    }
    let names = NameFilter::parse(&options.files)?;
    let device = Device::open(&options.device)?;
    command::check(&options.argv)?;
    let filesystem = filesystem::find(&device)?;
    if options.snapshot && filesystem.is_none() {
        return Err(Error::unfit(format!(
            "{}: no filesystem recognised; --no-snapshot records the block IO alone",
            options.device.display()
        )));
    }
    if options.snapshot
        && filesystem
            .as_ref()
            .is_some_and(|f| snapshot::is_ext4(&f.kind))
    {
        command::check(&["e2image".into()])
            .map_err(|e| Error::unfit(format!("{e}: install e2fsprogs, or give --no-snapshot")))?;
    }
    let (folder, packed) = split_output(&options.output);
    if packed && options.output.exists() {
        return Err(Error::unfit(format!(
            "{}: exists already",
            options.output.display()
        )));
    }
    let bundle = Writer::create(&folder)?;
    let mut manifest = first_manifest(options, &device, filesystem);
    let outcome = capture(options, &device, names, &bundle, &mut manifest);
    if outcome.is_err() && bundle_is_empty(&folder) {
        // Nothing was recorded: leave nothing behind.
        let _ = fs::remove_dir_all(&folder);
    }
    let exit_status = outcome?;
    if packed {
        archive::pack(&folder, &options.output)?;
        fs::remove_dir_all(&folder).at(&folder)?;
    }
    Ok(Outcome {
        exit_status,
        manifest,
    })
}

/// The folder to record into, and whether it is packed afterwards.
fn split_output(output: &Path) -> (PathBuf, bool) {
    let text = output.to_string_lossy();
    match text.strip_suffix(".tar.zst") {
        Some(folder) => (PathBuf::from(folder), true),
        None => (output.to_owned(), false),
    }
}

/// Whether the capture failed before a source was running.
fn bundle_is_empty(folder: &Path) -> bool {
    !folder.join(mostrace_bundle::layout::MANIFEST).exists()
}

fn first_manifest(
    options: &Options,
    device: &Device,
    filesystem: Option<manifest::Filesystem>,
) -> Manifest {
    Manifest {
        schema: SCHEMA,
        tool: concat!("mostrace ", env!("CARGO_PKG_VERSION")).into(),
        state: State::Recording,
        kernel: kernel::describe(),
        device: device.info.clone(),
        filesystem,
        command: (!options.argv.is_empty()).then(|| manifest::Command {
            argv: options
                .argv
                .iter()
                .map(|a| a.to_string_lossy().into_owned())
                .collect(),
            exit_status: None,
        }),
        ..Manifest::default()
    }
}

fn capture(
    options: &Options,
    device: &Device,
    names: NameFilter,
    bundle: &Writer,
    manifest: &mut Manifest,
) -> Result<i32> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).at("signal handler")?;
    }
    let mut storage = MaybeUninit::uninit();
    let mut tracing = Tracing::start(
        options,
        device,
        names.clone(),
        bundle,
        &mut storage,
        manifest,
    )?;
    manifest.clock = clock::now();
    manifest.sources = manifest::Sources {
        events: tracing.source.name().into(),
        entries: tracing.entries.as_ref().map_or("none", |e| e.name()).into(),
        files: names.spelling().into(),
    };
    note_own_disk(device, bundle, manifest)?;
    note_mapped(device, manifest);
    bundle.put_manifest(manifest)?;
    log::info!(
        "events: {}, entries: {}",
        manifest.sources.events,
        manifest.sources.entries
    );

    let payload =
        tempfile::NamedTempFile::with_prefix("mostrace-payload-").at(std::env::temp_dir())?;
    let status = run(options, &mut tracing, payload.path(), &stop);
    if options.sync
        && let Some(mount) = manifest
            .filesystem
            .as_ref()
            .and_then(|f| f.mount_point.as_ref())
    {
        sync_filesystem(Path::new(mount), &mut tracing)?;
    }
    tracing.stop(manifest)?;
    let status = status?;

    if let Some(command) = &mut manifest.command {
        command.exit_status = status;
    }
    manifest.payload = read_payload(payload.path())?;
    if options.snapshot {
        take_snapshot(device, bundle, manifest);
    }
    manifest.state = State::Complete;
    bundle.put_manifest(manifest)?;
    Ok(status.unwrap_or(0))
}

/// The sources, running.
struct Tracing<'o> {
    source: Box<dyn EventSource>,
    entries: Option<Box<dyn EntrySource>>,
    probes: Loader<'o>,
    progress: Progress,
}

impl<'o> Tracing<'o> {
    fn start(
        options: &Options,
        device: &Device,
        names: NameFilter,
        bundle: &Writer,
        storage: &'o mut MaybeUninit<OpenObject>,
        manifest: &mut Manifest,
    ) -> Result<Tracing<'o>> {
        let (dir, notes) = (bundle.dir(), &mut manifest.notes);
        let mut probes = Loader::new(storage);
        // The entries first: then no event is without its own.
        let entries = entry_source(options, device, dir, names, &mut probes, notes)?;
        let source = event_source(options.source, device, dir, &mut probes, notes)?;
        let progress = Progress::new();
        Ok(Tracing {
            source,
            entries,
            probes,
            progress,
        })
    }

    fn poll(&mut self) -> Result<()> {
        self.source.poll()?;
        if let Some(entries) = &mut self.entries {
            entries.poll()?;
        }
        if self.progress.is_due() {
            let entries = self.entries.as_ref().map(|e| e.counts());
            let lost = self.losses()?.values().sum();
            let events = self.source.events();
            self.progress
                .show(events, &entries.unwrap_or_default(), lost);
        }
        Ok(())
    }

    /// Of probes that make events alone, no counter stands in for one of the entries' source.
    fn losses(&self) -> Result<BTreeMap<String, u64>> {
        let mut losses = self.probes.losses()?;
        losses.extend(self.source.losses());
        if let Some(entries) = &self.entries {
            losses.extend(entries.losses()?);
        }
        Ok(losses)
    }

    /// Stops both, drains both, and writes the counts down.
    fn stop(&mut self, manifest: &mut Manifest) -> Result<()> {
        self.progress.finish();
        self.source.stop()?;
        manifest.clock.stop_mono_ns = clock::now().start_mono_ns;
        let counts = &mut manifest.counts;
        counts.insert("events".into(), self.source.events());
        if let Some(entries) = &mut self.entries {
            entries.stop()?;
            let kept = entries.counts().into_iter();
            counts.extend(kept.map(|(name, kept)| (name.to_owned(), kept)));
        }
        manifest.losses = self.losses()?;
        Ok(())
    }
}

/// By choice, or the first that works; None if none is asked for.
fn entry_source(
    options: &Options,
    device: &Device,
    dir: &Path,
    names: NameFilter,
    probes: &mut Loader<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<Box<dyn EntrySource>>> {
    let mut bpf = |names| -> Result<Box<dyn EntrySource>> {
        Ok(Box::new(probes.load(device)?.entries(dir, names)?))
    };
    let kernel = |names| -> Result<Box<dyn EntrySource>> {
        let (paths, dev) = (&options.kernel, &device.info.dev);
        Ok(Box::new(KernelEntries::start(paths, dev, dir, names)?))
    };
    match options.entries {
        Entries::None => Ok(None),
        Entries::Bpf => bpf(names).map(Some),
        Entries::Kernel => kernel(names).map(Some),
        Entries::Auto => {
            let unfit = match bpf(names.clone()) {
                Ok(source) => return Ok(Some(source)),
                Err(e) => e,
            };
            let source = kernel(names).map_err(|e| {
                Error::unfit(format!(
                    "no source of entries: {unfit}; {e}; --entries none does without"
                ))
            })?;
            notes.push(format!("entries bpf not taken: {unfit}"));
            Ok(Some(source))
        }
    }
}

/// By choice, or the first that works.
fn event_source(
    choice: Choice,
    device: &Device,
    dir: &Path,
    probes: &mut Loader<'_>,
    notes: &mut Vec<String>,
) -> Result<Box<dyn EventSource>> {
    let mut others = Vec::new();
    if let Some(source) = kernel_source(choice, device, dir, &mut others)? {
        notes.append(&mut others);
        return Ok(source);
    }
    let source = probes.load(device).and_then(|probes| probes.events(dir));
    let source = source.map_err(|e| match choice {
        Choice::Auto => Error::unfit(format!(
            "no source of block events: {}; source bpf not taken: {e}",
            others.join("; ")
        )),
        _ => e,
    })?;
    notes.append(&mut others);
    Ok(Box::new(source))
}

/// The kernel's own tracer, by choice or the first that works; None for the probes.
fn kernel_source(
    choice: Choice,
    device: &Device,
    dir: &Path,
    notes: &mut Vec<String>,
) -> Result<Option<Box<dyn EventSource>>> {
    let blktrace = || Blktrace::start(device, dir).map(|s| Box::new(s) as Box<dyn EventSource>);
    let ftrace = || Ftrace::start(device, dir).map(|s| Box::new(s) as Box<dyn EventSource>);
    match choice {
        Choice::Bpf => Ok(None),
        Choice::Blktrace => blktrace().map(Some),
        Choice::Ftrace => ftrace().map(Some),
        Choice::Auto => {
            match blktrace() {
                Ok(source) => return Ok(Some(source)),
                Err(e) => notes.push(format!("source blktrace not taken: {e}")),
            }
            match ftrace() {
                Ok(source) => return Ok(Some(source)),
                Err(e) => notes.push(format!("source ftrace not taken: {e}")),
            }
            Ok(None)
        }
    }
}

/// Runs the command, or waits. Returns its status, None if there was none or it did not end.
fn run(
    options: &Options,
    tracing: &mut Tracing<'_>,
    payload: &Path,
    stop: &AtomicBool,
) -> Result<Option<i32>> {
    let mut command = match options.argv.as_slice() {
        [] => None,
        argv => Some(Command::start(argv, payload)?),
    };
    let watched = watch(options, tracing, command.as_mut(), stop);
    if let Some(command) = &mut command
        && watched.is_err()
    {
        command.terminate();
    }
    watched
}

fn watch(
    options: &Options,
    tracing: &mut Tracing<'_>,
    mut command: Option<&mut Command>,
    stop: &AtomicBool,
) -> Result<Option<i32>> {
    let start = Instant::now();
    let mut asked: Option<Instant> = None;
    loop {
        tracing.poll()?;
        if let Some(command) = &mut command
            && let Some(status) = command.ended()?
        {
            return Ok(Some(status));
        }
        let over =
            stop.load(Ordering::Relaxed) || options.limit.is_some_and(|l| start.elapsed() >= l);
        match (&command, over, asked) {
            (None, true, _) => return Ok(None),
            (Some(command), true, None) => {
                command.terminate();
                asked = Some(Instant::now());
            }
            (Some(_), true, Some(since)) if since.elapsed() > PATIENCE => return Ok(None),
            _ => {}
        }
        std::thread::sleep(TICK);
    }
}

/// syncfs in a thread of its own, so that the buffers are emptied meanwhile.
fn sync_filesystem(mount: &Path, tracing: &mut Tracing<'_>) -> Result<()> {
    let folder = fs::File::open(mount).at(mount)?;
    let sync = std::thread::spawn(move || rustix::fs::syncfs(&folder));
    while !sync.is_finished() {
        tracing.poll()?;
        std::thread::sleep(TICK);
    }
    match sync.join() {
        Ok(synced) => synced.at(mount),
        Err(_) => Err(Error::unfit("syncfs: its thread panicked")),
    }
}

/// A trace without a snapshot is worth keeping: what keeps it from being taken is a note.
fn take_snapshot(device: &Device, bundle: &Writer, manifest: &mut Manifest) {
    let Some(filesystem) = &manifest.filesystem else {
        return;
    };
    match snapshot::take(device, filesystem, bundle.dir()) {
        Ok(snapshot) => manifest.snapshot = Some(snapshot),
        Err(e) => manifest.notes.push(format!("no snapshot: {e}")),
    }
}

fn read_payload(path: &Path) -> Result<Option<manifest::Payload>> {
    let text = fs::read(path).at(path)?;
    if text.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|e| Error::unfit(format!("the workload's payload: {e}")))
}

/// Says so when the device has no requests of its own.
fn note_mapped(device: &Device, manifest: &mut Manifest) {
    let below = device.below();
    if !below.is_empty() {
        manifest.notes.push(format!(
            "{} is mapped onto {}: its bios become requests, and get entries, only there",
            device.info.name,
            below.join(", ")
        ));
    }
}

/// Says so when the tracer's own writes are part of the trace.
fn note_own_disk(device: &Device, bundle: &Writer, manifest: &mut Manifest) -> Result<()> {
    let dir = bundle.dir();
    if device.shares_disk_with(fs::metadata(dir).at(dir)?.dev()) {
        manifest.notes.push(format!(
            "the bundle is on the traced disk: its own writes ({}) are in the trace",
            dir.display()
        ));
    }
    Ok(())
}
