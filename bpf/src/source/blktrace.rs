// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records with the blktrace utility, through debugfs.
//!
//! The utility ends its trace when it is interrupted. The kernel interrupts it if the recorder ends in any other way than by
//! [`Source::stop`]. If the utility itself was killed, the recorder ends the trace.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use mostrace_bundle::{Folder, layout};
use rustix::ioctl::{NoArg, Opcode, ioctl, opcode};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use super::{Losses, Provides, Remark, Source, remarks};
use crate::error::{At, Error, Result, read_line};
use crate::machine::device::Device;
use crate::machine::kernel;
use crate::machine::lock::Lock;
use crate::machine::mounts::Mount;
use crate::machine::queue;
use crate::machine::tool;
use crate::sink::{Sink, event_files_in};

/// The name of the source and of the tool.
pub(crate) const TOOL: &str = "blktrace";
const DEBUGFS: &str = "/sys/kernel/debug";
/// The places of tracefs: its own mount point, and its folder in debugfs.
const CURRENT_TRACER: [&str; 2] = [
    "/sys/kernel/tracing/current_tracer",
    "/sys/kernel/debug/tracing/current_tracer",
];
/// `BLKTRACESTOP` and `BLKTRACETEARDOWN` of `include/uapi/linux/fs.h`.
const STOP: Opcode = opcode::none(0x12, 117);
const TEARDOWN: Opcode = opcode::none(0x12, 118);
/// The time in which blktrace must have made its files.
const START_LIMIT: Duration = Duration::from_secs(10);

/// The running utility.
#[derive(Debug)]
pub(crate) struct Blktrace {
    tool: Tool,
    /// The number of dropped events; None if the tool did not say.
    dropped: Option<u64>,
    notes: Vec<String>,
    /// The lock, which is held while the queue is traced.
    _queue: Lock,
}

/// The process. It is interrupted when this is dropped.
#[derive(Debug)]
struct Tool {
    child: Child,
    /// The device, which is open so that its trace can be ended; on 5.10 a disk that nobody has open has no trace to look at either.
    device: File,
}

impl Blktrace {
    /// What the tool provides. It writes its files itself, so its recordings cannot go to segments.
    pub const PROVIDES: Provides = Provides::EVENTS;

    /// Starts `blktrace -d DEVICE`, which writes per-CPU files to the sink's folder.
    ///
    /// # Errors
    /// Returns an error if blktrace is not installed, if there is no debugfs, if the kernel refuses (lockdown), if somebody else
    /// traces the device, or if somebody has ftrace's blk tracer, which would take the events.
    pub fn start(device: &Device, sink: &mut Sink) -> Result<Blktrace> {
        let folder = sink.folder().clone();
        let mut command = tool::command(TOOL)?;
        let queue = Lock::of_queue(&device.info, TOOL)?;
        Mount::debugfs()?;
        let open = File::open(device.node()).at(device.node())?;
        queue::check_free(device)?;
        check_not_blk()?;

        command
            .arg("-d")
            .arg(device.node())
            .arg("-D")
            .arg(folder.handle())
            .args(["-o", layout::TRACE]);
        let mut tool = Tool::start(&mut command, open)?;
        if let Err(e) = wait_until_set_up(&mut tool.child, device, &folder.handle()) {
            drop(tool);
            remove_files(&folder);
            return Err(e);
        }
        sink.leave_events_to_tool();
        Ok(Blktrace {
            tool,
            dropped: None,
            notes: left_out(device).into_iter().collect(),
            _queue: queue,
        })
    }
}

impl Tool {
    /// Starts the process.
    ///
    /// # Errors
    /// Returns an error if it cannot be started.
    #[allow(unsafe_code)]
    fn start(command: &mut Command, device: File) -> Result<Tool> {
        let end_too = || Ok(set_parent_process_death_signal(Some(Signal::INT))?);
        // SAFETY: between fork and exec, this closure makes only this system call.
        unsafe { command.pre_exec(end_too) };
        // It gets a process group of its own: Ctrl-C must reach only the recorder.
        let child = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| failed(e.to_string()))?;
        Ok(Tool { child, device })
    }

    /// Interrupts the process, unless it has ended, and reads its standard output. A process that was killed has left its trace
    /// running; that is ended here.
    #[allow(unsafe_code)]
    fn end(&mut self) -> std::io::Result<(ExitStatus, String)> {
        if self.child.try_wait()?.is_none() {
            // Until it is waited for, its number is its own.
            kill_process(Pid::from_child(&self.child), Signal::INT)?;
        }
        let mut summary = String::new();
        let out = self.child.stdout.take();
        let is_first = out.is_some();
        if let Some(mut out) = out {
            // Without the summary, only the number of drops is unknown, which is not an error.
            let _ = out.read_to_string(&mut summary);
        }
        let status = self.child.wait()?;
        // A second time, the trace might be somebody else's.
        if is_first && status.signal().is_some() {
            // A trace that is torn down while it runs keeps its files on 5.10, so that the disk cannot be traced any more.
            // SAFETY: these ioctls take no argument. They fail if there is no trace any more.
            let _ = unsafe { ioctl(&self.device, NoArg::<STOP>::new()) };
            // SAFETY: as above.
            let _ = unsafe { ioctl(&self.device, NoArg::<TEARDOWN>::new()) };
        }
        Ok((status, summary))
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        // It has ended before, or cannot be ended.
        let _ = self.end();
    }
}

/// Returns what this kernel leaves out of the events of the device, if it leaves something out. Kernels with version 8 of the events
/// (`BLKTRACESETUP2`) leave appends to zones out of version 7, for which the tool asks (`__blk_add_trace`).
fn left_out(device: &Device) -> Option<String> {
    device.info.zone_sectors?;
    let is_left_out = kernel::btf().is_ok_and(|btf| kernel::has_blk_io_trace2(&btf));
    is_left_out.then(|| {
        "blktrace: this kernel leaves appends to zones out of its events; --source bpf has them"
            .into()
    })
}

/// Checks that ftrace's blk tracer is off. While it is on, the kernel gives it the events of every queue, and blktrace gets none.
fn check_not_blk() -> Result<()> {
    let Some(file) = CURRENT_TRACER.into_iter().find(|f| Path::new(f).exists()) else {
        return Ok(());
    };
    match read_line(file)?.as_str() {
        "blk" => Err(Error::Busy {
            what: "ftrace's blk tracer takes the events of every disk".into(),
            by: format!("it is on, by whom is not known (to free it: echo nop > {file})"),
        }),
        _ => Ok(()),
    }
}

impl Source for Blktrace {
    fn name(&self) -> &'static str {
        TOOL
    }

    fn provides(&self) -> Provides {
        Blktrace::PROVIDES
    }

    /// The tool writes its files itself.
    fn poll_interval(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn poll(&mut self, _sink: &mut Sink) -> Result<()> {
        match self.tool.child.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(ended(format!("ended: {}", complaint(&mut self.tool.child)))),
        }
    }

    fn stop(&mut self, _what: Provides, _sink: &mut Sink) -> Result<()> {
        let (status, summary) = self.tool.end().map_err(|e| failed(e.to_string()))?;
        if !status.success() {
            return Err(ended(format!("failed ({status})")));
        }
        self.dropped = dropped(&summary);
        Ok(())
    }

    fn losses(&self) -> Result<Losses> {
        let dropped = self.dropped.map(|n| ("events_tracer".to_owned(), n));
        Ok(dropped.into_iter().collect())
    }

    fn remarks(&self) -> Vec<Remark> {
        remarks(&self.notes, Remark::Note).collect()
    }
}

/// Makes the error of a tool that could not be started, or that gave a reason for its end.
fn failed(why: String) -> Error {
    Error::ToolFailed { tool: TOOL, why }
}

/// Makes the error of a tool that ended too early.
fn ended(how: String) -> Error {
    Error::ToolEnded { tool: TOOL, how }
}

/// Waits until blktrace is ready. It prints nothing then, but its files show it.
fn wait_until_set_up(child: &mut Child, device: &Device, dir: &Path) -> Result<()> {
    let relays = Path::new(DEBUGFS).join("block").join(&device.info.name);
    let deadline = Instant::now() + START_LIMIT;
    loop {
        if !matches!(child.try_wait(), Ok(None)) {
            return Err(failed(complaint(child)));
        }
        if is_set_up(&relays, dir) {
            // The files exist shortly before BLKTRACESTART.
            std::thread::sleep(Duration::from_millis(200));
            return match child.try_wait() {
                Ok(None) => Ok(()),
                _ => Err(failed(complaint(child))),
            };
        }
        if Instant::now() > deadline {
            return Err(ended("did not start within 10 s".into()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns true once blktrace has opened every relay file: the kernel makes one for each CPU, and blktrace makes its own file only
/// after it has opened that one. The kernel may refuse this (lockdown) long after it made the file.
fn is_set_up(relays: &Path, dir: &Path) -> bool {
    let Ok(files) = fs::read_dir(relays) else {
        return false;
    };
    let mut outputs = files
        .flatten()
        .filter_map(|file| {
            file.file_name()
                .to_str()?
                .strip_prefix("trace")?
                .parse()
                .ok()
        })
        .map(|cpu| dir.join(layout::trace_of_cpu(cpu)))
        .peekable();
    outputs.peek().is_some() && outputs.all(|output| output.exists())
}

/// Returns the first line that an ended blktrace wrote to stderr.
fn complaint(child: &mut Child) -> String {
    let mut text = String::new();
    if let Some(err) = child.stderr.take() {
        let _ = err.take(64 << 10).read_to_string(&mut text);
    }
    text.lines()
        .find(|l| !l.trim().is_empty())
        .unwrap_or("no message")
        .trim()
        .to_owned()
}

fn remove_files(folder: &Folder) {
    for name in event_files_in(folder).unwrap_or_default() {
        // The source did not start, and the next one replaces what is left of its files.
        let _ = folder.remove(name);
    }
}

/// Parses a line such as `  Total:  12345 events (dropped 7),  578 KiB data`.
fn dropped(summary: &str) -> Option<u64> {
    let parse = |line: &str| {
        line.split_once("(dropped ")?
            .1
            .split_once(')')?
            .0
            .parse()
            .ok()
    };
    summary.lines().rev().find_map(parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_set_up_once_every_relay_file_is_open() {
        let (relays, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let is_ready = || is_set_up(relays.path(), dir.path());
        assert!(!is_set_up(&relays.path().join("none"), dir.path()));
        fs::write(relays.path().join("dropped"), "").unwrap();
        assert!(!is_ready());
        for cpu in [0, 1] {
            fs::write(relays.path().join(format!("trace{cpu}")), "").unwrap();
            assert!(!is_ready());
        }
        fs::write(dir.path().join("trace.blktrace.0"), "").unwrap();
        assert!(!is_ready());
        fs::write(dir.path().join("trace.blktrace.1"), "").unwrap();
        assert!(is_ready());
    }

    #[test]
    fn the_summary_tells_drops() {
        assert_eq!(
            dropped("=== sda ===\n  CPU  0: 5 events\n  Total: 5 events (dropped 7), 1 KiB data\n"),
            Some(7)
        );
        assert_eq!(dropped(""), None);
    }
}
