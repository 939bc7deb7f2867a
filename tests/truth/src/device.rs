// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loop devices, filesystems on them, and their mounts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

/// A filesystem's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Type {
    Ext4,
    F2fs,
    Vfat,
}

impl Type {
    /// Returns the name that mount uses.
    fn name(self) -> &'static str {
        match self {
            Type::Ext4 => "ext4",
            Type::F2fs => "f2fs",
            Type::Vfat => "vfat",
        }
    }

    /// Makes a filesystem of this type.
    pub fn make(self, device: &Path, options: &str) -> Result<()> {
        let (program, own): (_, &[&str]) = match self {
            Type::Ext4 => (
                "mke2fs",
                &["-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0"],
            ),
            Type::F2fs => ("mkfs.f2fs", &["-q", "-f"]),
            Type::Vfat => ("mkfs.vfat", &[]),
        };
        let mut command = Command::new(program);
        command.args(own).args(options.split_whitespace());
        tell(command.arg(device))?;
        Ok(())
    }
}

/// A range of sectors of a device, counted from its disk's start.
#[derive(Clone, Debug)]
pub struct Part {
    pub path: PathBuf,
    pub first: u64,
    pub sectors: u64,
}

/// Runs a command, which must succeed. Returns its standard error.
pub fn tell(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("{:?}", command.get_program()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{:?}: {}",
        command.get_program(),
        said.trim()
    );
    Ok(said.into_owned())
}

/// A loop device. Dropping it detaches it and restores its settings.
pub struct Loop {
    pub path: PathBuf,
    /// Files in the queue's folder and their earlier contents: the settings stay when the image is detached.
    before: Vec<(PathBuf, String)>,
}

impl Loop {
    pub fn new(file: &Path) -> Result<Loop> {
        let output = Command::new("losetup")
            .args(["--find", "--show", "--partscan"])
            .arg(file)
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "losetup: {}", said.trim());
        Ok(Loop {
            path: String::from_utf8(output.stdout)?.trim().into(),
            before: Vec::new(),
        })
    }

    /// Returns its folder in sysfs.
    fn folder(&self) -> Result<PathBuf> {
        let name = self.path.file_name().context("no device")?;
        Ok(Path::new("/sys/block").join(name))
    }

    /// Returns the whole device.
    pub fn whole(&self) -> Result<Part> {
        let path = self.folder()?.join("size");
        let sectors = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(Part {
            path: self.path.clone(),
            first: 0,
            sectors: sectors.trim().parse()?,
        })
    }

    /// Makes two partitions of about the same size.
    pub fn halves(&self) -> Result<Vec<Part>> {
        const FIRST: u64 = 2048;
        let half = self.whole()?.sectors / 2;
        let part = |(number, first): (u64, u64)| {
            let sectors = half - FIRST;
            let place = [number, first, sectors].map(|n| n.to_string());
            tell(Command::new("addpart").arg(&self.path).args(place))?;
            let path = format!("{}p{number}", self.path.display()).into();
            Ok(Part {
                path,
                first,
                sectors,
            })
        };
        [(1, FIRST), (2, half)].into_iter().map(part).collect()
    }

    /// Changes a setting in the queue's folder, given as `KEY=VALUE`.
    pub fn set(&mut self, setting: &str) -> Result<()> {
        let (key, value) = setting.split_once('=').context("KEY=VALUE is missing")?;
        let path = self.folder()?.join("queue").join(key);
        let before = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        // If the file lists several values, the active one is in brackets.
        let active = before
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'));
        let active = active.map_or(before.trim(), |(active, _)| active);
        self.before.push((path.clone(), active.to_owned()));
        fs::write(&path, value).with_context(|| path.display().to_string())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // A failure is ignored: the device is gone, or nothing more can be done.
        for (path, before) in &self.before {
            let _ = fs::write(path, before);
        }
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
    }
}

/// A mount, which is unmounted when this is dropped.
pub struct Mount(pub PathBuf);

impl Mount {
    pub fn new(kind: Type, device: &Path, root: &Path, options: &str) -> Result<Mount> {
        fs::create_dir(root)?;
        tell(
            Command::new("mount")
                .args(["-t", kind.name(), "-o", options])
                .args([device, root]),
        )?;
        Ok(Mount(root.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
