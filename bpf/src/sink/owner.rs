// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user of a process that an entry names, by `/proc`.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

/// Returns the user as which the process acts on files that had this number at `time_ns`, a recent time of CLOCK_MONOTONIC; None if it
/// has ended, even if another one has the number now.
pub(super) fn uid_at(tgid: u32, time_ns: u64) -> Option<u32> {
    let of = |file: &str| fs::read(format!("/proc/{tgid}/{file}")).ok();
    let (stat, status) = (of("stat")?, of("status")?);
    (began_ns(&stat)? <= boot_ns(time_ns)).then_some(())?;
    uid_in(&status)
}

/// Parses `Uid:`, the real, effective, saved and filesystem users in `/proc/PID/status`.
fn uid_in(status: &[u8]) -> Option<u32> {
    let mut lines = status.split(|&byte| byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(b"Uid:"))?;
    let users = std::str::from_utf8(line).ok()?;
    users.split_ascii_whitespace().nth(3)?.parse().ok()
}

/// Returns the time at which a process began, CLOCK_BOOTTIME, ns, rounded down.
fn began_ns(stat: &[u8]) -> Option<u64> {
    // `17 (name) S 1 …`; the name may hold any bytes.
    let behind_name = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(behind_name..)?).ok()?;
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
        assert_eq!(uid_in(status), Some(99_001));
        assert_eq!(uid_in(b"Pid:\t17\n"), None);
        let stat = b"18 (a) R (\n) S 1 17 17 0 -1 4194560 60 0 0 0 0 0 0 0 20 0 1 0 500 9 9";
        assert_eq!(began_ns(stat), Some(5_000_000_000));
    }

    #[test]
    fn a_number_is_that_process_from_its_beginning_on() {
        let now = clock_gettime(ClockId::Monotonic);
        let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        let own = std::process::id();
        let uid = rustix::process::geteuid().as_raw();
        assert_eq!(uid_at(own, now), Some(uid));
        // Boot precedes this process.
        assert_eq!(uid_at(own, 0), None);
        assert_eq!(uid_at(1 << 30, now), None);
    }
}
