// SPDX-License-Identifier: MIT OR Apache-2.0
//! What debugfs may do on Linux: it reads what a stranger may have made.
//!
//! It ends with the thread that started it, writes no file, leaves no core, and has memory and time of a processor by what
//! it is asked. As root it runs as nobody, where everybody may read the image, as those are that come of a bundle; a
//! disk, or an image that is root's alone, it reads as root.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getpid, getppid, set_parent_process_death_signal, setrlimit,
};

/// The kernel's overflowuid, by tradition.
const NOBODY: u32 = 65534;
/// The descriptors of the largest filesystems take a quarter of it.
const MEMORY: u64 = 512 << 20;
const READ_BY_ALL: u32 = 0o004;

/// Under which path the child finds the image that it is given.
pub fn path_of(image: &File) -> PathBuf {
    format!("/proc/self/fd/{}", image.as_raw_fd()).into()
}

/// Whether debugfs can do without root.
pub fn can_be_nobody(image: &File) -> bool {
    let everybodys = |mode: u32| mode & READ_BY_ALL != 0;
    rustix::process::geteuid().is_root()
        && image
            .metadata()
            .is_ok_and(|meta| everybodys(meta.permissions().mode()))
}

/// Has a command run as nobody.
pub fn step_down(command: &mut Command) {
    command.uid(NOBODY).gid(NOBODY);
}

/// Gives a command the image, and no more than it needs: `seconds` of a processor.
#[allow(unsafe_code)]
pub fn confine(command: &mut Command, image: File, seconds: u64) {
    let parent = getpid();
    let limits = move || {
        end_with(parent)?;
        for (resource, most) in [
            (Resource::As, MEMORY),
            (Resource::Cpu, seconds),
            (Resource::Fsize, 0),
            (Resource::Core, 0),
        ] {
            let most = Some(most);
            let limit = Rlimit {
                current: most,
                maximum: most,
            };
            setrlimit(resource, limit)?;
        }
        Ok(fcntl_setfd(&image, FdFlags::empty())?)
    };
    // SAFETY: between fork and exec it makes system calls, and nothing else.
    unsafe { command.pre_exec(limits) };
}

fn end_with(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    match getppid() {
        Some(now) if now == parent => Ok(()),
        // It ended before that was set.
        _ => Err(Errno::SRCH.into()),
    }
}

/// Whether it was ended for its time.
pub fn took_too_long(status: std::process::ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(Signal::XCPU.as_raw()) || status.signal() == Some(Signal::KILL.as_raw())
}
