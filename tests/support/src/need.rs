// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requirements of tests on the machine, and the rule for those that are not met:
//!
//! | missing | by default | under `MOSTRACE_NO_SKIP=1` |
//! | --- | --- | --- |
//! | can be had on this machine: root, mounts, a program | ignored, with the reason | **fails** |
//! | another kernel would have it | ignored, with the reason | ignored: the guests run the tests left out here |
//! | quiet: another program calls sync() all the time, and the test fails beside it | ignored, with the call | ignored |
//! | was not asked for: root under `MOSTRACE_ROOTLESS=1`, minutes without `MOSTRACE_LONG=1` | ignored | ignored |

use std::env;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::loopdev;
use crate::tool;

/// One requirement of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A program, and the Debian package that provides it.
    Tool(&'static str, &'static str),
    /// One process may trace another, as strace does.
    Ptrace,
    /// The caller is root and may attach loop devices and mount ext4 on them.
    Loop,
    /// The kernel has BTF, by which the probes find their fields.
    Btf,
    /// ext4 can encrypt files.
    Encryption,
    /// The kernel counts the bytes that a process wrote.
    IoCounters,
    /// The kernel has this filesystem, for example `xfs`, built in or loaded.
    Filesystem(&'static str),
    /// The kernel has this scheduler for block queues, for example `bfq`.
    Scheduler(&'static str),
    /// Nobody else calls sync() while the test runs: it writes back what the test's own files have dirty, at another time in each run.
    /// The test begins anew if it fails and somebody did, and is ignored if somebody does all the time.
    NoSync,
    /// The test takes minutes instead of seconds.
    Minutes,
}

/// The reason why a requirement is not met, one variant for each row of the table above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It can be had on this machine.
    Here(String),
    /// Another kernel would have it.
    Kernel(String),
    /// The person who started the tests left it out.
    Unasked(String),
}

impl Missing {
    /// Returns true if the test fails under `MOSTRACE_NO_SKIP=1`.
    pub fn is_mendable(&self) -> bool {
        matches!(self, Self::Here(_))
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Here(why) | Self::Kernel(why) | Self::Unasked(why)) = self;
        // The reason is printed within a test's one line.
        f.write_str(&why.replace('\n', " "))
    }
}

impl Need {
    /// Checks whether this machine meets the requirement.
    pub fn check(self) -> Result<(), Missing> {
        match self {
            Self::Tool(name, package) => tool::find(name).map(drop).ok_or_else(|| {
                Missing::Here(format!("no program {name}: install package {package}"))
            }),
            Self::Ptrace => ptrace(),
            Self::Loop => loop_devices(),
            Self::Btf => kernel_has(
                "/sys/kernel/btf/vmlinux",
                "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)",
            ),
            Self::Encryption => kernel_has(
                "/sys/fs/ext4/features/encryption",
                "this kernel's ext4 does not encrypt (CONFIG_FS_ENCRYPTION)",
            ),
            Self::IoCounters => kernel_has(
                "/proc/self/io",
                "this kernel does not count a process's bytes (CONFIG_TASK_IO_ACCOUNTING)",
            ),
            Self::Filesystem(name) => filesystem(name),
            Self::Scheduler(name) => scheduler(name),
            // Known only when the test has run.
            Self::NoSync => Ok(()),
            Self::Minutes if is_set("MOSTRACE_LONG") => Ok(()),
            Self::Minutes => Err(Missing::Unasked(
                "takes minutes: MOSTRACE_LONG=1, or make test-all".into(),
            )),
        }
    }
}

/// Returns true if an environment variable is set, and neither empty nor 0.
pub(crate) fn is_set(variable: &str) -> bool {
    env::var(variable).is_ok_and(|value| !value.is_empty() && value != "0")
}

fn ptrace() -> Result<(), Missing> {
    let output = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .output()
        .map_err(|error| Missing::Here(format!("strace: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Missing::Here(format!("strace: {}", said.trim())))
}

fn loop_devices() -> Result<(), Missing> {
    if is_set("MOSTRACE_ROOTLESS") {
        return Err(Missing::Unasked(
            "needs root: left out by MOSTRACE_ROOTLESS".into(),
        ));
    }
    let is_root = loopdev::is_root().map_err(Missing::Here)?;
    if is_root {
        kernel_has("/dev/loop-control", "this kernel has no loop devices")?;
    }
    loopdev::privileged().map_err(Missing::Here)
}

fn filesystem(name: &str) -> Result<(), Missing> {
    let all = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let mut names = all.lines().filter_map(|line| line.split('\t').next_back());
    match names.any(|known| known == name) {
        true => Ok(()),
        false => Err(Missing::Kernel(format!("this kernel has no {name}"))),
    }
}

fn scheduler(name: &str) -> Result<(), Missing> {
    let offered = fs::read_to_string("/sys/block/loop0/queue/scheduler").unwrap_or_default();
    if offered
        .split_whitespace()
        .any(|other| other.trim_matches(['[', ']']) == name)
    {
        return Ok(());
    }
    Err(Missing::Kernel(format!(
        "this kernel has no scheduler {name}"
    )))
}

fn kernel_has(path: &str, otherwise: &str) -> Result<(), Missing> {
    if Path::new(path).exists() {
        Ok(())
    } else {
        Err(Missing::Kernel(otherwise.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_nobody_has_can_be_installed() {
        let missing = Need::Tool("no-such-program", "no-such-package")
            .check()
            .unwrap_err();
        assert!(missing.is_mendable());
        assert_eq!(
            missing.to_string(),
            "no program no-such-program: install package no-such-package"
        );
        assert_eq!(Need::Tool("sh", "dash").check(), Ok(()));
    }

    #[test]
    fn a_scheduler_that_no_kernel_has_cannot() {
        let missing = Need::Scheduler("no-such").check().unwrap_err();
        assert!(!missing.is_mendable());
        assert_eq!(missing.to_string(), "this kernel has no scheduler no-such");
    }
}
