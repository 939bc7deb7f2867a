// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prevents a command of another user from inheriting open files and the terminal that controls this process, into which it could
//! type in the place of its user (TIOCSTI). It can still read and write a terminal that is one of its three standard streams.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Lets a command begin in a new session, which has no terminal, and with no open files except its three standard streams.
#[allow(unsafe_code)]
pub(crate) fn leave(command: &mut Command) {
    // Folders cannot be read between fork and exec.
    let open = open_files();
    let begin = move || {
        for fd in &open {
            // SAFETY: the call takes only numbers. A descriptor that was closed meanwhile does no harm.
            unsafe { libc::fcntl(*fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
        // SAFETY: the call takes no arguments.
        match unsafe { libc::setsid() } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: between fork and exec, the closure makes only these system calls.
    unsafe { command.pre_exec(begin) };
}

/// Returns all open descriptors except the standard streams.
fn open_files() -> Vec<i32> {
    let all = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let numbers = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter(|fd| *fd > libc::STDERR_FILENO).collect()
}
