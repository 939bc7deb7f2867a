// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blktrace utility, through debugfs.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use mostrace_bundle::blk_io_trace::BlkIoTrace;
use mostrace_bundle::{Folder, layout};
use rustix::process::{Pid, Signal, kill_process};
use zerocopy::LE;

use super::EventSource;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::guard::{Guard, Undo};
use crate::tool;

const TOOL: &str = "blktrace";
const DEBUGFS: &str = "/sys/kernel/debug";
/// How long blktrace may take to set its files up.
const START_LIMIT: Duration = Duration::from_secs(10);

/// The running utility.
#[derive(Debug)]
pub(crate) struct Blktrace {
    child: Child,
    folder: Folder,
    dropped: u64,
    guard: Option<Guard>,
}

impl Blktrace {
    /// Starts `blktrace -d DEVICE` into per-CPU files in `folder`.
    ///
    /// # Errors
    /// Not installed, no debugfs, or the kernel refuses (lockdown).
    pub fn start(device: &Device, folder: &Folder) -> Result<Blktrace> {
        let mut tool = tool::command(TOOL)?;
        mount_debugfs()?;
        let mut child = tool
            .arg("-d")
            .arg(device.node())
            .arg("-D")
            .arg(folder.handle())
            .args(["-o", layout::TRACE])
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| failed(e.to_string()))?;
        let guard = Guard::arm(&[Undo::Interrupt(child.id())])?;
        if let Err(e) = wait_until_set_up(&mut child, device, &folder.handle()) {
            remove_files(folder);
            return Err(e);
        }
        Ok(Blktrace {
            child,
            folder: folder.clone(),
            dropped: 0,
            guard: Some(guard),
        })
    }
}

impl EventSource for Blktrace {
    fn name(&self) -> &'static str {
        "blktrace"
    }

    fn poll(&mut self) -> Result<()> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(ended(format!("ended: {}", complaint(&mut self.child)))),
        }
    }

    /// From the files' sizes: plain records have no more than a head.
    fn events(&self) -> u64 {
        let names = self.folder.names().unwrap_or_default();
        names
            .iter()
            .filter(|name| layout::cpu_of(name).is_some())
            .filter_map(|name| self.folder.len_of(name).ok())
            .map(|len| len / size_of::<BlkIoTrace<LE>>() as u64)
            .sum()
    }

    fn stop(&mut self) -> Result<()> {
        interrupt(&self.child);
        let mut summary = String::new();
        if let Some(mut out) = self.child.stdout.take() {
            // Without the summary only the number of drops is not known: no error.
            let _ = out.read_to_string(&mut summary);
        }
        let status = self.child.wait().map_err(|e| failed(e.to_string()))?;
        drop(self.guard.take());
        if !status.success() {
            return Err(ended(format!("failed ({status})")));
        }
        self.dropped = dropped(&summary);
        Ok(())
    }

    fn losses(&self) -> BTreeMap<String, u64> {
        BTreeMap::from([("events_tracer".to_owned(), self.dropped)])
    }
}

/// It could not be started, or says why not.
fn failed(why: String) -> Error {
    Error::ToolFailed { tool: TOOL, why }
}

/// It ran, but not to its end.
fn ended(how: String) -> Error {
    Error::ToolEnded { tool: TOOL, how }
}

/// Mounts debugfs if it is not.
///
/// # Errors
/// The kernel has none.
pub(crate) fn mount_debugfs() -> Result<()> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    if mounts
        .lines()
        .any(|l| l.split(' ').nth(2) == Some("debugfs"))
    {
        return Ok(());
    }
    let mounted = tool::command("mount")?
        .args(["-t", "debugfs", "nodev", DEBUGFS])
        .output();
    if mounted.is_ok_and(|o| o.status.success()) {
        Ok(())
    } else {
        Err(Error::NotMounted {
            path: Path::new(DEBUGFS),
            kind: "debugfs",
        })
    }
}

/// blktrace prints nothing when it is ready; its files show it.
fn wait_until_set_up(child: &mut Child, device: &Device, dir: &Path) -> Result<()> {
    let relays = Path::new(DEBUGFS).join("block").join(&device.info.name);
    let deadline = Instant::now() + START_LIMIT;
    loop {
        if !matches!(child.try_wait(), Ok(None)) {
            return Err(failed(complaint(child)));
        }
        if is_set_up(&relays, dir) {
            // The files are there a moment before BLKTRACESTART.
            std::thread::sleep(Duration::from_millis(200));
            return match child.try_wait() {
                Ok(None) => Ok(()),
                _ => Err(failed(complaint(child))),
            };
        }
        if Instant::now() > deadline {
            interrupt(child);
            let _ = child.wait();
            return Err(ended("did not start within 10 s".into()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The kernel makes a relay file for each CPU; blktrace makes its own one only once it has opened that. It
/// may be refused (lockdown) a good while after the kernel made it.
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

/// First line of what an ended blktrace wrote to stderr.
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

fn interrupt(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process(pid, Signal::INT);
    }
}

fn remove_files(folder: &Folder) {
    let names = folder.names().unwrap_or_default();
    for name in names.iter().filter(|name| layout::cpu_of(name).is_some()) {
        // Of a source that did not start; what is left of them the next one replaces.
        let _ = folder.remove(name);
    }
}

/// `  Total:  12345 events (dropped 7),  578 KiB data`
fn dropped(summary: &str) -> u64 {
    let parse = |line: &str| {
        line.split_once("(dropped ")?
            .1
            .split_once(')')?
            .0
            .parse()
            .ok()
    };
    summary.lines().rev().find_map(parse).unwrap_or(0)
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
            7
        );
        assert_eq!(dropped(""), 0);
    }
}
