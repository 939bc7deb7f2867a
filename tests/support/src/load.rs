// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads that go on as long as a test needs them.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A fio that ends with this, also where a test fails.
pub struct Load(Child);

impl Load {
    /// Lets fio read and write blocks of 4 KiB of `device` at random, with `options` such as `--rw=randwrite`.
    pub fn on(device: &Path, options: &[&str]) -> Load {
        let child = Command::new("fio")
            .args(["--name=load", "--thread", "--bs=4k", "--direct=1"])
            .args(["--ioengine=libaio", "--time_based", "--runtime=1d"])
            .arg(format!("--filename={}", device.display()))
            .args(options)
            .stdout(Stdio::null())
            .spawn();
        Load(child.expect("fio starts"))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
