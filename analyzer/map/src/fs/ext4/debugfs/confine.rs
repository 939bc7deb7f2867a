// SPDX-License-Identifier: MIT OR Apache-2.0
//! Confines debugfs on Linux, because it reads images that may come from strangers.
//!
//! debugfs ends with the thread that started it, writes no file and no core dump, and has limited memory and limited processor
//! time; the time depends on how much it may print. A root user's debugfs runs as nobody if everybody may read the image, which is
//! so for images taken from a bundle. It runs as root for a disk, and for an image that only root may read.

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

/// The usual value of the kernel's overflowuid.
const NOBODY: u32 = 65534;
/// The limit on memory, bytes. The descriptors of the largest filesystems take a quarter of it.
const MEMORY: u64 = 512 << 20;
const READ_BY_ALL: u32 = 0o004;

/// Returns the path under which the child process finds the image that it inherits.
pub fn path_of(image: &File) -> PathBuf {
    format!("/proc/self/fd/{}", image.as_raw_fd()).into()
}

/// Returns true if this process is root and debugfs does not need to be.
pub fn can_be_nobody(image: &File) -> bool {
    let everybodys = |mode: u32| mode & READ_BY_ALL != 0;
    rustix::process::geteuid().is_root()
        && image
            .metadata()
            .is_ok_and(|meta| everybodys(meta.permissions().mode()))
}

/// Makes a command run as nobody.
pub fn step_down(command: &mut Command) {
    command.uid(NOBODY).gid(NOBODY);
}

/// Hands the image down to a command and limits the command: it may use `seconds` of processor time.
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
    // SAFETY: the closure runs between fork and exec and only makes system calls.
    unsafe { command.pre_exec(limits) };
}

fn end_with(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    match getppid() {
        Some(now) if now == parent => Ok(()),
        // The parent ended before the signal was set.
        _ => Err(Errno::SRCH.into()),
    }
}

/// Returns true if the process was ended because it used too much time.
pub fn took_too_long(status: std::process::ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(Signal::XCPU.as_raw()) || status.signal() == Some(Signal::KILL.as_raw())
}
