// SPDX-License-Identifier: MIT OR Apache-2.0
//! `trace.dat`, which trace-cmd records. trace-cmd itself makes the text of ftrace of it.
//!
//! <https://man7.org/linux/man-pages/man5/trace-cmd.dat.v7.5.html>: the file begins with 0x17 0x08 0x44 and `tracing`.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::ftrace::Ftrace;
use super::lines::Lines;
use super::seen::{Reader, Taker};
use super::{Error, Rest};
use crate::text::escape;

/// The first bytes of a file.
pub(super) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// The most bytes of the names of clocks that are read.
const LONGEST_CLOCKS: u64 = 4096;

#[derive(Default)]
pub(super) struct TraceDat(Ftrace);

impl Reader for TraceDat {
    fn file(&mut self, path: &Path, to: &mut dyn Taker, rest: &mut Rest) -> Result<(), Error> {
        let failed = |what: String| Error::Device {
            path: path.to_owned(),
            what,
        };
        self.0.has_whole_ns = match clock(path).as_deref() {
            Some("boot" | "tai") => true,
            None | Some("local" | "global" | "uptime" | "perf" | "mono" | "mono_raw") => false,
            Some(other) => {
                return Err(failed(format!(
                    "its clock is {}, which counts no seconds",
                    escape(other.as_bytes())
                )));
            }
        };
        // The times are in ns, and no plugin is loaded.
        let mut child = trace_cmd(&["report", "-t", "-N"], path).map_err(|error| {
            failed(match error.kind() {
                io::ErrorKind::NotFound => format!(
                    "trace-cmd, which reads it, is not installed: import the text that `trace-cmd report -t {}` makes of it",
                    path.display()
                ),
                _ => format!("trace-cmd cannot be started: {error}"),
            })
        })?;
        let read = match child.stdout.take() {
            Some(text) => Lines::of(text).read(path, &mut self.0, to, rest),
            None => Ok(()),
        };
        // The pipe is closed: it ends even if not everything was read.
        let status = child.wait();
        read?;
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(failed(format!("trace-cmd report cannot read it: {status}"))),
            Err(error) => Err(failed(format!("trace-cmd report: {error}"))),
        }
    }
}

/// Starts trace-cmd on a file.
fn trace_cmd(arguments: &[&str], path: &Path) -> io::Result<Child> {
    Command::new("trace-cmd")
        .args(arguments)
        .arg("-i")
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

/// Returns the clock of a trace, if trace-cmd tells it: `local global [boot] tai`. trace-cmd prints times of `boot` and `tai` as whole ns,
/// and those of the clocks that are older as seconds.
fn clock(path: &Path) -> Option<String> {
    let mut child = trace_cmd(&["dump", "--clock"], path).ok()?;
    let mut clocks = String::new();
    let read = child
        .stdout
        .take()
        .map(|text| text.take(LONGEST_CLOCKS).read_to_string(&mut clocks));
    // The pipe is closed: it ends even if not everything was read.
    let _ = child.wait();
    read?.ok()?;
    let (_, behind) = clocks.split_once('[')?;
    Some(behind.split_once(']')?.0.to_owned())
}
