// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a command of another user's does not inherit: the terminal that controls this process, into which it could type for
//! whoever sits there (TIOCSTI), and open files. Of its three standard streams it can still read and write a terminal.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Lets a command begin in a session of its own, which has no terminal, and with its three standard streams alone.
#[allow(unsafe_code)]
pub(crate) fn leave(command: &mut Command) {
    // Between fork and exec there is no reading of folders.
    let open = open_files();
    let begin = move || {
        for fd in &open {
            // SAFETY: it takes numbers alone. One that was closed meanwhile is none to be closed.
            unsafe { libc::fcntl(*fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
        // SAFETY: it takes nothing.
        match unsafe { libc::setsid() } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: between fork and exec it makes these system calls, and nothing else.
    unsafe { command.pre_exec(begin) };
}

/// All open descriptors but the standard streams.
fn open_files() -> Vec<i32> {
    let all = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let numbers = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter(|fd| *fd > libc::STDERR_FILENO).collect()
}
