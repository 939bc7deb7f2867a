// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work for which there is only the time that nobody else wants: SCHED_IDLE (sched(7)).

use std::sync::OnceLock;

/// Runs `work` in spare time, if this thread can come back from there.
pub(crate) fn run<T>(work: impl FnOnce() -> T) -> T {
    if !comes_back() || !change(libc::SCHED_OTHER, libc::SCHED_IDLE) {
        return work();
    }
    // The kernel looks whose turn it is no earlier than at the next tick.
    std::thread::yield_now();
    let done = work();
    change(libc::SCHED_IDLE, libc::SCHED_OTHER);
    done
}

/// Returns true if a thread can leave SCHED_IDLE, which takes CAP_SYS_NICE or RLIMIT_NICE; a thread of its own tries.
fn comes_back() -> bool {
    static COMES_BACK: OnceLock<bool> = OnceLock::new();
    let try_it = || {
        change(libc::SCHED_OTHER, libc::SCHED_IDLE) && change(libc::SCHED_IDLE, libc::SCHED_OTHER)
    };
    *COMES_BACK.get_or_init(|| std::thread::spawn(try_it).join().unwrap_or(false))
}

/// Changes the thread's policy, if it is `from`. musl has no function for that.
#[allow(unsafe_code)]
fn change(from: i32, to: i32) -> bool {
    let none: libc::c_int = 0;
    // SAFETY: 0 is the calling thread, and the kernel reads a sched_param, which is an int.
    unsafe {
        libc::syscall(libc::SYS_sched_getscheduler, 0) == libc::c_long::from(from)
            && libc::syscall(libc::SYS_sched_setscheduler, 0, to, &raw const none) == 0
    }
}
