// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries whether the kernel runs probes while process 1 is current (`process1.bpf.c`). If it does not, the probes miss what a
//! softirq completes at that time, while the kernel's block tracer sees it.

use std::mem::MaybeUninit;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};

use crate::error::{Error, Result};
use crate::machine::{kernel, tool};

mod skeleton {
    #![allow(missing_docs, unsafe_code, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/process1.skel.rs"));
}

/// How long process 1 is waited for after each wake-up.
const WAIT: Duration = Duration::from_millis(5);

/// The number of switches to process 1 after which at least one switch from it must have been seen: fewer could all be in progress,
/// one on each CPU.
const ENOUGH: u64 = 3;

/// The context switches that the program saw.
#[derive(Clone, Copy, Debug, Default)]
struct Switches {
    to: u64,
    from: u64,
}

impl Switches {
    /// Returns whether programs run while process 1 is current, as soon as the switches show it.
    fn verdict(self, cpus: u64) -> Option<Result<()>> {
        match self {
            Switches { from: 1.., .. } => Some(Ok(())),
            Switches { to, .. } if to >= ENOUGH + cpus => Some(Err(Error::BlindInProcess1)),
            _ => None,
        }
    }
}

/// Succeeds if the kernel runs every probe to its end, also while process 1 is current. This takes some milliseconds to see.
/// Process 1 is waited for `tries` times.
///
/// # Errors
/// Returns an error if the kernel does not, if it may preempt probes, if process 1 did not run so that the answer is unknown, or if
/// the kernel refuses the program.
pub(crate) fn check_runs_always(btf: Option<&Path>, tries: usize) -> Result<()> {
    if kernel::preempts_probes() {
        return Err(Error::ProbesPreempted);
    }
    let mut storage = MaybeUninit::uninit();
    let mut builder = skeleton::Process1SkelBuilder::default();
    if let Some(btf) = btf {
        let object = builder.object_builder_mut();
        object.btf_custom_path(btf).map_err(Error::bpf)?;
    }
    let open = builder.open(&mut storage).map_err(Error::bpf)?;
    let mut skel = open.load().map_err(Error::bpf)?;
    skel.attach().map_err(Error::bpf)?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    for _ in 0..tries {
        wake_process_1();
        sleep(WAIT);
        let seen = skel.maps.bss_data.as_deref();
        let seen = seen.ok_or_else(|| Error::bpf("skeleton without bss"))?;
        let seen = Switches {
            to: seen.to_process_1,
            from: seen.from_process_1,
        };
        if let Some(verdict) = seen.verdict(cpus) {
            return verdict;
        }
    }
    Err(Error::Process1Idle)
}

/// Leaves process 1 an orphan to reap.
fn wake_process_1() {
    let Ok(mut shell) = tool::command("sh") else {
        return;
    };
    shell.args(["-c", "sleep 0 &"]);
    let quiet = shell
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Without a shell, nothing wakes process 1, which is then found to be idle.
    let _ = quiet.status();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_to_process_1_alone_show_that_its_time_is_not_seen() {
        let verdict = |to, from| Switches { to, from }.verdict(2);
        assert!(verdict(4, 0).is_none());
        assert!(matches!(verdict(5, 0), Some(Err(Error::BlindInProcess1))));
        assert!(matches!(verdict(0, 1), Some(Ok(()))));
        assert!(matches!(verdict(9, 8), Some(Ok(()))));
    }
}
