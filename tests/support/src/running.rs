// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that go on as long as a test needs them. One that outlived a test that failed would disturb the next.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process that ends with this, also where a test fails.
pub struct Running(pub Child);

impl Running {
    /// Lets fio read and write blocks of 4 KiB of `device` at random, with `options` such as `--rw=randwrite`.
    pub fn fio(device: &Path, options: &[&str]) -> Running {
        let child = Command::new("fio")
            .args(["--name=load", "--thread", "--bs=4k", "--direct=1"])
            .args(["--ioengine=libaio", "--time_based", "--runtime=1d"])
            .arg(format!("--filename={}", device.display()))
            .args(options)
            .stdout(Stdio::null())
            .spawn();
        Running(child.expect("fio starts"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
