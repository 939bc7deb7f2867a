// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes that a thread passed to write(), as the kernel counts them.
//!
//! They are counted per thread and not per process, because another thread may draw a progress bar.

use serde::{Deserialize, Serialize};

use super::kernel_counts::kernel_counts;

/// Numbers of bytes and of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// `wchar` in `/proc/PID/io`: bytes passed to write(), pwrite() and similar calls, to any file. Stores into mapped
    /// memory (the -shm file) and ftruncate() do not count.
    pub bytes: u64,
    /// `syscw`: the number of such calls.
    pub calls: u64,
}

// Some kernels have no such file: it needs CONFIG_TASK_IO_ACCOUNTING.
kernel_counts!(Written { bytes: "wchar:", calls: "syscw:" } in "io");

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
        let before = Written::of_this_thread();
        std::thread::spawn(move || write(54321)).join().unwrap();
        write(12345);
        assert_eq!(Written::since(before).unwrap().bytes, 12345);
    }
}
