// SPDX-License-Identifier: MIT OR Apache-2.0
//! Context switches of a thread, as the kernel counts them.

use serde::{Deserialize, Serialize};

use super::kernel_counts::kernel_counts;

/// Numbers of context switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switches {
    /// Switches because the thread waited: `voluntary_ctxt_switches` in `/proc/PID/status`.
    pub voluntary: u64,
    /// Switches by the scheduler: `nonvoluntary_ctxt_switches`.
    pub involuntary: u64,
}

kernel_counts!(
    Switches { voluntary: "voluntary_ctxt_switches:", involuntary: "nonvoluntary_ctxt_switches:" } in "status"
);

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
