// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes that the process passed to write(), as the kernel counts them.

use serde::{Deserialize, Serialize};

/// What the process wrote, by all of its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// `wchar` of `/proc/self/io`: bytes passed to write(), pwrite() and their kin, to any file. Stores into mapped
    /// memory (the -shm file) and ftruncate() are not in it.
    pub bytes: u64,
    /// `syscw`: how many such calls.
    pub calls: u64,
}

impl Written {
    /// Since the process began. None where there is no `/proc/self/io`: not Linux, or no CONFIG_TASK_IO_ACCOUNTING.
    pub fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/self/io").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        };
        Some(Self {
            bytes: field("wchar:")?,
            calls: field("syscw:")?,
        })
    }

    /// What was written since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(earlier.bytes),
            calls: self.calls.saturating_sub(earlier.calls),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_text() {
        let text = "rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 0\nwrite_bytes: 4096\n";
        assert_eq!(
            Written::parse(text),
            Some(Written {
                bytes: 20,
                calls: 4
            })
        );
        assert_eq!(Written::parse("rchar: 10\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn counts_what_another_thread_wrote() {
        use std::io::Write;
        let before = Written::now().unwrap();
        let writer = || {
            tempfile::tempfile()
                .unwrap()
                .write_all(&[7; 12345])
                .unwrap()
        };
        std::thread::spawn(writer).join().unwrap();
        // Other tests of this process may write at the same time.
        assert!(Written::now().unwrap().since(before).bytes >= 12345);
    }
}
