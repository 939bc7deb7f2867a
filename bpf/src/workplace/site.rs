// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fresh filesystem, on a loop device, that no other process sees and that goes with this one, however that ends.
//!
//! It is mounted in a mount namespace of this process's own, its image has no name any more, and the loop device lets go of
//! the image by itself once nothing is mounted from it (autoclear): so even a killed process leaves an empty folder alone,
//! which the next one removes.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::process::Command;

use mostrace_bundle::folder::Owner;
use mostrace_bundle::temporary::TempFolder;

use crate::error::{At, Error, Result};
use crate::machine::device::Device;
use crate::machine::tool;
use crate::machine::user::User;

/// The type of filesystem that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum FreshKind {
    /// ext4, made by mke2fs.
    Ext4,
    /// f2fs, made by mkfs.f2fs.
    F2fs,
    /// FAT, made by mkfs.vfat.
    Vfat,
}

impl FreshKind {
    /// The name of the type, as mount(8) has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The tool that makes it, and what that always gets: nothing is left for a kernel thread to do during a measurement.
    fn maker(self) -> (&'static str, &'static [&'static str]) {
        match self {
            FreshKind::Ext4 => (
                "mke2fs",
                &[
                    "-q",
                    "-F",
                    "-t",
                    "ext4",
                    "-E",
                    "lazy_itable_init=0,lazy_journal_init=0",
                ],
            ),
            FreshKind::F2fs => ("mkfs.f2fs", &["-q", "-f"]),
            FreshKind::Vfat => ("mkfs.vfat", &[]),
        }
    }
}

/// The options of the filesystem that is made.
#[derive(Clone, Debug)]
pub struct FreshOptions {
    /// Which.
    pub kind: FreshKind,
    /// Further arguments of the program that makes it.
    pub mkfs: Vec<String>,
    /// The options of `mount -o`; empty for the defaults.
    pub mount_options: String,
    /// Bytes.
    pub size: u64,
    /// `queue/scheduler`; None leaves what is there.
    pub scheduler: Option<String>,
    /// `queue/max_sectors_kb`; None is the kernel's own default, whatever somebody left there.
    pub max_sectors_kb: Option<u32>,
}

/// The filesystem, mounted.
#[derive(Debug)]
pub struct Site {
    // Dropped in this order.
    _largest: LargestRequest,
    mount: Mount,
    device: Device,
    size: u64,
    _folder: TempFolder,
}

impl Site {
    /// Makes it; its root folder is the user's who is to write there, or root's. Only for a process with one thread as yet.
    ///
    /// # Errors
    /// The caller is not root, the kernel lacks the filesystem, a tool is missing or refuses, there is no loop device,
    /// or others can change the folder of temporary files.
    pub fn new(options: &FreshOptions, user: Option<&User>) -> Result<Site> {
        Site::of(options, user, None)
    }

    /// Mounts a copy of the ext4 image `image`, whose filesystem may be a stranger's: e2fsck must find nothing wrong with it after
    /// its repair, and no program on it is executed. Of the options, those for mkfs do not count.
    ///
    /// # Errors
    /// As [`Site::new`]; or the filesystem is not whole.
    pub fn of_image(options: &FreshOptions, image: &Path) -> Result<Site> {
        Site::of(options, None, Some(image))
    }

    fn of(options: &FreshOptions, user: Option<&User>, given_image: Option<&Path>) -> Result<Site> {
        if !rustix::process::geteuid().is_root() {
            return Err(Error::NoPrivilege("measuring needs root (sudo mostrace measure …); with --guest 6.12 it is done in an emulated machine, and needs none"
                    .into()));
        }
        check_kernel_has(options.kind)?;
        let owner = user.map(|user| user.owner);
        leave_mount_namespace()?;
        let folder = TempFolder::new()?;
        check_ours(folder.path())?;
        let image = folder.path().join("disk.img");
        // It comes to hold what CMD writes.
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&image)
            .at(&image)?
            .set_len(options.size)
            .map_err(|source| Error::ImageSize {
                size: options.size,
                source,
            })?;
        match given_image {
            Some(given) => copy_checked(given, &image)?,
            None => {
                let (maker, always) = options.kind.maker();
                run(maker, |mkfs| {
                    mkfs.args(always).args(&options.mkfs).arg(&image)
                })?;
            }
        }
        let point = folder.path().join(options.kind.name());
        DirBuilder::new().mode(0o700).create(&point).at(&point)?;
        let mut given = mount_options(options, owner);
        if given_image.is_some() {
            given.push_str(",noexec");
        }
        run("mount", |mount| {
            let mount = mount.args(["-t", options.kind.name(), "-o", &given]);
            mount.arg(&image).arg(&point)
        })?;
        let mount = Mount { point };
        fs::remove_file(&image).at(&image)?;
        // CMD may be another user's: others may go through it, now that there is nothing in it but the filesystem.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o711)).at(folder.path())?;
        let device = Device::open(&mount.point)?;
        if let Some(scheduler) = &options.scheduler {
            let setting = device.disk_sysfs().join("queue/scheduler");
            fs::write(&setting, scheduler).at(&setting)?;
        }
        let largest = LargestRequest::set(&device, options.max_sectors_kb)?;
        if let Some(Owner { uid, gid }) = owner.filter(|_| options.kind != FreshKind::Vfat) {
            let root = File::open(&mount.point).at(&mount.point)?;
            fchown(&root, Some(uid), Some(gid)).at(&mount.point)?;
        }
        settle(&mount.point)?;
        Ok(Site {
            _largest: largest,
            mount,
            device,
            size: given_image.map_or(Ok(options.size), size_of)?,
            _folder: folder,
        })
    }

    /// The folder at which it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.mount.point
    }

    /// The size of the device in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The loop device's node.
    #[must_use]
    pub fn device(&self) -> &Path {
        self.device.node()
    }
}

/// The limit of a queue's requests, put back in the end: a loop device keeps it for whoever has the device next. So what is
/// measured must not rest on what is found there.
#[derive(Debug)]
struct LargestRequest {
    setting: PathBuf,
    before: String,
}

impl LargestRequest {
    /// KiB; the kernel's `BLK_DEF_MAX_SECTORS`, 2,560 sectors, unless the device takes less.
    const DEFAULT: u32 = 1280;

    fn set(device: &Device, kib: Option<u32>) -> Result<LargestRequest> {
        let queue = device.disk_sysfs().join("queue");
        let setting = queue.join("max_sectors_kb");
        let before = fs::read_to_string(&setting).at(&setting)?;
        let hardware = queue.join("max_hw_sectors_kb");
        let most = fs::read_to_string(&hardware).at(&hardware)?;
        let most = most.trim().parse().unwrap_or(Self::DEFAULT);
        let kib = kib.unwrap_or_else(|| most.min(Self::DEFAULT));
        fs::write(&setting, kib.to_string()).at(&setting)?;
        Ok(LargestRequest { setting, before })
    }
}

impl Drop for LargestRequest {
    fn drop(&mut self) {
        if let Err(e) = fs::write(&self.setting, &self.before) {
            log::warn!("{}: not put back: {e}", self.setting.display());
        }
    }
}

/// A mount that is unmounted in the end.
#[derive(Debug)]
struct Mount {
    point: PathBuf,
}

impl Drop for Mount {
    fn drop(&mut self) {
        // What a command left running may be in there: then it is gone with the last of those.
        let lazily =
            |umount: &mut Command| umount.arg("--lazy").arg(&self.point).output().map(drop);
        let away = tool::command("umount").map(|mut umount| lazily(&mut umount));
        if let Err(e) = away {
            log::warn!("{}: not unmounted: {e}", self.point.display());
        }
    }
}

fn size_of(file: &Path) -> Result<u64> {
    Ok(fs::metadata(file).at(file)?.len())
}

/// Copies the image of an ext4, and has e2fsck play its journal and repair what was cut off when it was taken from a mounted
/// filesystem.
fn copy_checked(from: &Path, to: &Path) -> Result<()> {
    run("cp", |cp| {
        cp.args(["--sparse=always", "--"]).arg(from).arg(to)
    })?;
    let mut repair = tool::command("e2fsck")?;
    // Whether it repaired all is asked next.
    repair.args(["-f", "-y"]).arg(to).output().at("e2fsck")?;
    run("e2fsck", |check| check.args(["-f", "-n"]).arg(to))
}

/// FAT keeps no owners. What CMD makes there is no way to another user or a device, unless the caller says so.
fn mount_options(options: &FreshOptions, owner: Option<Owner>) -> String {
    let mut given = "loop,nosuid,nodev".to_owned();
    if let Some(Owner { uid, gid }) = owner.filter(|_| options.kind == FreshKind::Vfat) {
        given.push_str(&format!(",uid={uid},gid={gid}"));
    }
    if !options.mount_options.is_empty() {
        given.push(',');
        given.push_str(&options.mount_options);
    }
    given
}

/// mkfs and mount go by paths: nobody else may put anything into their way, as those can who own a folder above, or write to it.
fn check_ours(folder: &Path) -> Result<()> {
    const STICKY: u32 = 0o1000;
    const OTHERS_WRITE: u32 = 0o022;
    let folder = fs::canonicalize(folder).at(folder)?;
    for above in folder.ancestors().skip(1) {
        let meta = fs::metadata(above).at(above)?;
        let others_write = meta.mode() & OTHERS_WRITE != 0 && meta.mode() & STICKY == 0;
        if meta.uid() != 0 || others_write {
            return Err(Error::UnsafeFolder(above.into()));
        }
    }
    Ok(())
}

/// Writes out what memory holds of the filesystem, so that it is no part of what is measured next.
///
/// # Errors
/// The filesystem cannot be written out.
pub fn settle(point: &Path) -> Result<()> {
    let folder = File::open(point).at(point)?;
    rustix::fs::syncfs(&folder)
        .map_err(io::Error::from)
        .at(point)
}

fn check_kernel_has(kind: FreshKind) -> Result<()> {
    let has = || {
        let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
        known.lines().any(|line| line.trim_start() == kind.name())
    };
    if !has()
        && let Ok(mut modprobe) = tool::command("modprobe")
    {
        // There need be no module.
        let _ = modprobe.arg(kind.name()).output();
    }
    match has() {
        true => Ok(()),
        false => Err(Error::NoSuchFilesystem(kind.name())),
    }
}

/// Lets only this process and its children see what it mounts from here on.
#[allow(unsafe_code)]
fn leave_mount_namespace() -> Result<()> {
    // SAFETY: it takes a number alone.
    let left = unsafe { libc::unshare(libc::CLONE_NEWNS) };
    if left != 0 {
        return Err(io::Error::last_os_error()).at("mount namespace");
    }
    run("mount", |mount| mount.args(["--make-rprivate", "/"]))
}

fn run(name: &'static str, arguments: impl FnOnce(&mut Command) -> &mut Command) -> Result<()> {
    let mut command = tool::command(name)?;
    let output = arguments(&mut command).output().at(name)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    Err(Error::ToolFailed {
        tool: name,
        why: said.join("; "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_mounting() {
        let mut options = FreshOptions {
            kind: FreshKind::Ext4,
            mkfs: Vec::new(),
            mount_options: String::new(),
            size: 1 << 30,
            scheduler: None,
            max_sectors_kb: None,
        };
        let owner = Some(Owner {
            uid: 1000,
            gid: 100,
        });
        assert_eq!(mount_options(&options, owner), "loop,nosuid,nodev");
        options.mount_options = "noatime,data=journal".into();
        let of_ext4 = "loop,nosuid,nodev,noatime,data=journal";
        assert_eq!(mount_options(&options, owner), of_ext4);
        options.kind = FreshKind::Vfat;
        let of_vfat = "loop,nosuid,nodev,uid=1000,gid=100,noatime,data=journal";
        assert_eq!(mount_options(&options, owner), of_vfat);
        assert_eq!(mount_options(&options, None), of_ext4);
    }
}
