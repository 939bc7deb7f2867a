// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fresh filesystem on a loop device. No other process sees it, and it vanishes with this process, in whatever way that ends.
//!
//! It is mounted in this process's own mount namespace, and its image no longer has a name. The loop device releases the image by
//! itself once nothing is mounted from it (autoclear). So even a killed process leaves only an empty folder, which the next one
//! removes.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::process::Command;

use mostrace_bundle::folder::Owner;
use mostrace_bundle::temporary::TempFolder;

use crate::error::{At, Error, Result};
use crate::machine::device::Device;
use crate::machine::filesystem;
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
    /// Returns the type's name in mount(8).
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the tool that makes it, and the tool's fixed arguments, which leave no work for a kernel thread during a
    /// measurement.
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
    /// The type.
    pub kind: FreshKind,
    /// Further arguments of the program that makes it.
    pub mkfs: Vec<String>,
    /// The options of `mount -o`; empty for the defaults.
    pub mount_options: String,
    /// Its size in bytes.
    pub size: u64,
    /// `queue/scheduler`; None keeps the present one.
    pub scheduler: Option<String>,
    /// `queue/max_sectors_kb`; None sets the kernel's own default, whatever somebody left there.
    pub max_sectors_kb: Option<u32>,
}

/// The mounted filesystem.
#[derive(Debug)]
pub struct Site {
    // The fields are dropped in this order.
    _largest: LargestRequest,
    mount: Mount,
    device: Device,
    size: u64,
    _folder: TempFolder,
}

impl Site {
    /// Makes a filesystem whose root folder belongs to `user`, or to root. This works only while the process has a single thread.
    ///
    /// # Errors
    /// Returns an error if the caller is not root, if the kernel lacks the filesystem, if a tool is missing or fails, if there is
    /// no loop device, or if others can change the folder for temporary files.
    pub fn new(options: &FreshOptions, user: Option<&User>) -> Result<Site> {
        Site::of(options, user, None)
    }

    /// Mounts a copy of the ext4 image `image`, whose filesystem may come from a stranger: e2fsck must find nothing wrong with it
    /// after its repair, and no program on it can be executed. The options for mkfs are ignored.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Site::new`], or if the filesystem is damaged.
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
        // It will contain what CMD writes.
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
        // CMD may run as another user, so others may pass through the folder, now that it contains only the filesystem.
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

    /// Returns the folder at which it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.mount.point
    }

    /// Returns the size of the device in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the loop device's node.
    #[must_use]
    pub fn device(&self) -> &Path {
        self.device.node()
    }
}

/// The limit on the size of a queue's requests, which is restored at the end. A loop device keeps this limit for its next user, so
/// a measurement must not depend on the limit that it finds.
#[derive(Debug)]
struct LargestRequest {
    setting: PathBuf,
    before: String,
}

impl LargestRequest {
    /// The default in KiB: the kernel's `BLK_DEF_MAX_SECTORS`, 2,560 sectors, unless the device accepts less.
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

/// A mount that is unmounted at the end.
#[derive(Debug)]
struct Mount {
    point: PathBuf,
}

impl Drop for Mount {
    fn drop(&mut self) {
        // If processes that a command left running are in there, it vanishes with the last of them.
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

/// Copies the image of an ext4, and lets e2fsck replay its journal and repair what was cut off when the image was taken from a
/// mounted filesystem.
fn copy_checked(from: &Path, to: &Path) -> Result<()> {
    run("cp", |cp| {
        cp.args(["--sparse=always", "--"]).arg(from).arg(to)
    })?;
    let mut repair = tool::command("e2fsck")?;
    // Whether everything was repaired is checked next.
    repair.args(["-f", "-y"]).arg(to).output().at("e2fsck")?;
    run("e2fsck", |check| check.args(["-f", "-n"]).arg(to))
}

/// Returns the mount options. FAT stores no owners. What CMD makes there gives no access to another user or a device, unless the
/// caller says so.
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

/// Checks that nobody else can change the folder, because mkfs and mount use paths. Whoever owns a folder above, or can write to
/// it, could.
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

/// Writes back what memory holds of the filesystem, so that it is not part of what is measured next.
///
/// # Errors
/// Returns an error if the filesystem cannot be written back.
pub fn settle(point: &Path) -> Result<()> {
    let folder = File::open(point).at(point)?;
    rustix::fs::syncfs(&folder)
        .map_err(io::Error::from)
        .at(point)
}

fn check_kernel_has(kind: FreshKind) -> Result<()> {
    let has = || filesystem::is_there(kind.name());
    if !has()
        && let Ok(mut modprobe) = tool::command("modprobe")
    {
        // The kernel may not need a module.
        let _ = modprobe.arg(kind.name()).output();
    }
    match has() {
        true => Ok(()),
        false => Err(Error::NoSuchFilesystem(kind.name())),
    }
}

/// Moves this process to a mount namespace of its own: from here on, only it and its children see what it mounts.
#[allow(unsafe_code)]
fn leave_mount_namespace() -> Result<()> {
    // SAFETY: the call takes only a number.
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
