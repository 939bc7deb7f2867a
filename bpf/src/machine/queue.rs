// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block tracer of a queue, in sysfs: `/sys/block/X/trace`.
//!
//! A queue has only one block tracer, which the disk, its partitions and all who trace them share. Whoever sets it up a second
//! time, or turns it off, ends the first user's trace.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, read_line};
use crate::machine::device::Device;
use crate::machine::lock;
use crate::machine::openers;

/// The folder of blktrace's files, with a folder for each traced device.
const RELAYS: &str = "/sys/kernel/debug/block";

/// Returns the switch of the device's tracer.
fn enable(device: &Device) -> PathBuf {
    device.sysfs.join("trace/enable")
}

/// Opens the device if its tracer's attributes cannot be read otherwise: those of a disk that nobody has open can be neither read nor
/// written on 5.10. None if that is not so, or if it cannot be opened.
fn hold(device: &Device) -> Option<File> {
    match read_line(enable(device)) {
        Ok(_) => None,
        Err(_) => File::open(device.node()).ok(),
    }
}

/// Checks that nobody traces the device. Reading the files disturbs no trace.
///
/// # Errors
/// Returns an error if somebody traces it (named as far as known), or if the kernel has no block tracer.
pub(crate) fn check_free(device: &Device) -> Result<()> {
    let _open = hold(device);
    if read_line(enable(device))? == "0" {
        return Ok(());
    }
    Err(Error::Busy {
        what: format!("{} is being traced", device.info.disk),
        by: tracer_of(device),
    })
}

/// Returns a description of who traces the device.
fn tracer_of(device: &Device) -> String {
    let names = [&device.info.name, &device.info.disk];
    known_tracer(&device.info.disk_dev, &names).unwrap_or_else(|| {
        let enable = enable(device);
        format!(
            "by whom is not known (to end it: echo 0 > {})",
            enable.display()
        )
    })
}

/// Returns the recorder that has the lock of the disk `dev`, or the process that has the relay files of one of `names` open.
fn known_tracer(dev: &str, names: &[&String]) -> Option<String> {
    let relays: Vec<_> = names
        .iter()
        .map(|name| Path::new(RELAYS).join(name))
        .collect();
    lock::recorder_of(dev)
        .or_else(|| openers::named(|open| relays.iter().any(|folder| open.starts_with(folder))))
}

/// Returns the disks that are being traced, each with its tracer if that is known.
pub(crate) fn traced() -> Vec<String> {
    let disks = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    disks
        .map(|disk| disk.path())
        .filter(|disk| read_line(disk.join("trace/enable")).is_ok_and(|on| on != "0"))
        .map(|disk| {
            let name = disk
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let dev = read_line(disk.join("dev")).unwrap_or_default();
            match known_tracer(&dev, &[&name]) {
                Some(who) => format!("{name} ({who})"),
                None => name,
            }
        })
        .collect()
}
