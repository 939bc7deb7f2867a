// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `/proc` says now of a thread that an entry names.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

/// A thread that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunningThread {
    /// Its process.
    pub tgid: u32,
    /// The user as which it acts on files.
    pub uid: u32,
    pub comm: [u8; 16],
}

/// Returns the thread that had this number at `time_ns`, a recent time of CLOCK_MONOTONIC; None if it has ended, even if another
/// one has the number now.
pub(super) fn of(pid: u32, time_ns: u64) -> Option<RunningThread> {
    let of = |file: &str| fs::read(format!("/proc/{pid}/{file}")).ok();
    let (stat, status) = (of("stat")?, of("status")?);
    (began_ns(&stat)? <= boot_ns(time_ns)).then_some(())?;
    Some(RunningThread {
        tgid: field(&status, b"Tgid:", 0)?,
        uid: field(&status, b"Uid:", 3)?,
        comm: comm_in(&stat)?,
    })
}

/// Parses the `nth` number of a field of `/proc/PID/status`.
fn field(status: &[u8], name: &[u8], nth: usize) -> Option<u32> {
    let mut lines = status.split(|&byte| byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(name))?;
    let mut numbers = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    numbers.nth(nth)?.parse().ok()
}

/// Returns the place of the last `)` in `17 (name) S 1 …`; the name may hold any bytes.
fn behind_name(stat: &[u8]) -> Option<usize> {
    stat.iter().rposition(|&byte| byte == b')')
}

fn comm_in(stat: &[u8]) -> Option<[u8; 16]> {
    let begin = stat.iter().position(|&byte| byte == b'(')?.checked_add(1)?;
    let name = stat.get(begin..behind_name(stat)?)?;
    let mut comm = [0; 16];
    for (to, from) in comm.iter_mut().take(15).zip(name) {
        *to = *from;
    }
    Some(comm)
}

/// Returns the time at which a thread began, CLOCK_BOOTTIME, ns, rounded down.
fn began_ns(stat: &[u8]) -> Option<u64> {
    let rest = std::str::from_utf8(stat.get(behind_name(stat)?..)?).ok()?;
    let ticks: u64 = rest.split_ascii_whitespace().nth(20)?.parse().ok()?;
    ticks.checked_mul(1_000_000_000 / rustix::param::clock_ticks_per_second())
}

/// Returns a recent time of CLOCK_MONOTONIC as one of CLOCK_BOOTTIME.
fn boot_ns(mono_ns: u64) -> u64 {
    // In this order, so that the difference is not negative.
    let [mono, boot] = [ClockId::Monotonic, ClockId::Boottime].map(now_ns);
    mono_ns.saturating_add(boot.saturating_sub(mono))
}

/// Returns the time of a clock that began with the system, ns.
pub(super) fn now_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_understood() {
        let status = b"Name:\tx\nTgid:\t17\nUid:\t1\t2\t3\t99001\n";
        assert_eq!(field(status, b"Uid:", 3), Some(99_001));
        assert_eq!(field(status, b"Tgid:", 0), Some(17));
        assert_eq!(field(status, b"Pid:", 0), None);
        let stat = b"18 (a) R (\n) S 1 17 17 0 -1 4194560 60 0 0 0 0 0 0 0 20 0 1 0 500 9 9";
        assert_eq!(began_ns(stat), Some(5_000_000_000));
        assert_eq!(comm_in(stat).unwrap()[..8], *b"a) R (\n\0");
    }

    #[test]
    fn a_number_is_a_threads_from_its_beginning_on() {
        let now = clock_gettime(ClockId::Monotonic);
        let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        let own = std::process::id();
        assert_eq!(of(own, now).unwrap().tgid, own);
        // Boot precedes this process.
        assert_eq!(of(own, 0), None);
        assert_eq!(of(1 << 30, now), None);
    }
}
