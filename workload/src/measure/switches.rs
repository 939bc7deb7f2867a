// SPDX-License-Identifier: MIT OR Apache-2.0
//! Context switches of a thread, as the kernel counts them.

use serde::{Deserialize, Serialize};

/// Numbers of context switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switches {
    /// Switches because the thread waited: `voluntary_ctxt_switches` in `/proc/PID/status`.
    pub voluntary: u64,
    /// Switches by the scheduler: `nonvoluntary_ctxt_switches`.
    pub involuntary: u64,
}

impl Switches {
    /// Returns the switches of this thread since it began; None if there is no such file.
    pub(super) fn of_this_thread() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/thread-self/status").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        };
        Some(Self {
            voluntary: field("voluntary_ctxt_switches:")?,
            involuntary: field("nonvoluntary_ctxt_switches:")?,
        })
    }

    /// Returns the switches of this thread since `before`.
    pub(super) fn since(before: Option<Self>) -> Option<Self> {
        let (now, before) = (Self::of_this_thread()?, before?);
        Some(Self {
            voluntary: now.voluntary.saturating_sub(before.voluntary),
            involuntary: now.involuntary.saturating_sub(before.involuntary),
        })
    }

    /// Returns the sums of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            voluntary: self.voluntary.saturating_add(other.voluntary),
            involuntary: self.involuntary.saturating_add(other.involuntary),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_text() {
        let text = "Threads:\t1\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        let switches = Switches {
            voluntary: 12,
            involuntary: 3,
        };
        assert_eq!(Switches::parse(text), Some(switches));
        assert_eq!(Switches::parse("Threads:\t1\n"), None);
    }
}
