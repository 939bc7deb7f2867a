// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs that a guest needs on this machine.

use std::path::Path;

use anyhow::bail;

/// The programs, and the Debian packages that have them.
const PROGRAMS: [(&str, &str); 18] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("cpio", "cpio"),
    ("modprobe", "kmod"),
    ("xz", "xz-utils"),
    ("zstd", "zstd"),
    ("setfattr", "attr"),
    ("mke2fs", "e2fsprogs"),
    ("debugfs", "e2fsprogs"),
    ("e2image", "e2fsprogs"),
    ("mkfs.f2fs", "f2fs-tools"),
    ("mkfs.vfat", "dosfstools"),
    ("blktrace", "blktrace"),
    ("dmsetup", "dmsetup"),
    ("lvm", "lvm2"),
    ("fallocate", "util-linux"),
    ("flock", "util-linux"),
    ("apt-get", "apt"),
];
const FOLDERS: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Checks that everything is present.
///
/// # Errors
/// Returns an error that names the packages that are missing.
pub fn check() -> anyhow::Result<()> {
    if std::env::consts::ARCH != "x86_64" {
        bail!(
            "--guest: the guests are x86-64, this is {}",
            std::env::consts::ARCH
        );
    }
    let is_there = |name: &str| {
        FOLDERS
            .iter()
            .any(|folder| Path::new(folder).join(name).exists())
    };
    let missing = PROGRAMS.iter().filter(|(program, _)| !is_there(program));
    let mut packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if !Path::new(KEYRING).exists() {
        packages.push("debian-archive-keyring");
    }
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    bail!("--guest needs Debian's packages {}", packages.join(", "));
}
