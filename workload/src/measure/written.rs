// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes that a thread passed to write(), as the kernel counts them.
//!
//! They are counted per thread and not per process, because another thread may draw a progress bar.

use serde::{Deserialize, Serialize};

/// Numbers of bytes and of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// `wchar` in `/proc/PID/io`: bytes passed to write(), pwrite() and similar calls, to any file. Stores into mapped
    /// memory (the -shm file) and ftruncate() do not count.
    pub bytes: u64,
    /// `syscw`: the number of such calls.
    pub calls: u64,
}

impl Written {
    /// Returns what this thread wrote since it began. None if there is no such file: not Linux, or no
    /// CONFIG_TASK_IO_ACCOUNTING.
    pub(super) fn by_this_thread() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/thread-self/io").ok()?)
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

    /// Returns what this thread wrote since `before`.
    pub(super) fn since(before: Option<Self>) -> Option<Self> {
        let (now, before) = (Self::by_this_thread()?, before?);
        Some(Self {
            bytes: now.bytes.saturating_sub(before.bytes),
            calls: now.calls.saturating_sub(before.calls),
        })
    }

    /// Returns the sums of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            calls: self.calls.saturating_add(other.calls),
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
    fn counts_what_this_thread_wrote_alone() {
        use std::io::Write;
        let write = |bytes: usize| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&vec![7; bytes]).unwrap();
        };
        let before = Written::by_this_thread();
        std::thread::spawn(move || write(54321)).join().unwrap();
        write(12345);
        assert_eq!(Written::since(before).unwrap().bytes, 12345);
    }
}
