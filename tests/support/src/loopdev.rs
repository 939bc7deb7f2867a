// SPDX-License-Identifier: MIT OR Apache-2.0
//! A mounted ext4 on a loop device, for tests with [`Need::Loop`](crate::Need::Loop). Dropping it undoes everything,
//! also after a panic.
//!
//! ```no_run
//! use test_support::loopdev::{LoopExt4, LoopOptions};
//!
//! let disk = LoopExt4::new(&LoopOptions { partitioned: true, ..LoopOptions::default() }).unwrap();
//! std::fs::write(disk.mount_point().join("x"), "…").unwrap();
//! ```

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

/// Options for making the disk.
#[derive(Clone, Debug)]
pub struct LoopOptions {
    /// Size of the whole disk, MiB. The file is sparse.
    pub size_mib: u64,
    /// Further arguments of `mke2fs -t ext4`, for example `-b`, `1024`, `-O`, `fast_commit`.
    pub mkfs: Vec<String>,
    /// Options for `mount -o`; empty for the defaults.
    pub mount_options: String,
    /// `queue/scheduler`, for example `mq-deadline`; None leaves it as it is.
    pub scheduler: Option<String>,
    /// True to make two partitions, one of 8 MiB and one of the rest; the filesystem is then on the second.
    pub partitioned: bool,
}

impl Default for LoopOptions {
    fn default() -> Self {
        Self {
            size_mib: 64,
            mkfs: Vec::new(),
            mount_options: String::new(),
            // An earlier user of the loop device may have left its own scheduler set.
            scheduler: Some("none".into()),
            partitioned: false,
        }
    }
}

/// A mounted ext4 on a loop device.
pub struct LoopExt4 {
    // The fields are dropped in this order.
    mount: Option<Mount>,
    disk: Attached,
    folder: TempDir,
    device: PathBuf,
    mount_options: String,
}

impl LoopExt4 {
    /// Makes the disk. An error names the command that failed and its message; nothing is left behind then.
    pub fn new(options: &LoopOptions) -> Result<Self, String> {
        let folder = tempfile::Builder::new()
            .prefix("mostrace-loop")
            .tempdir()
            .map_err(|e| e.to_string())?;
        let image = folder.path().join("disk.img");
        let size = options
            .size_mib
            .checked_mul(1 << 20)
            .ok_or("a size beyond 64 bits")?;
        let file = fs::File::create(&image).map_err(|e| format!("{}: {e}", image.display()))?;
        file.set_len(size)
            .map_err(|e| format!("{}: {e}", image.display()))?;
        if options.partitioned {
            feed(
                Command::new("sfdisk").arg("--quiet").arg(&image),
                "label: dos\nsize=8MiB\n-\n",
            )?;
        }
        let disk = Attached::new(&image, options.scheduler.as_deref())?;
        if options.partitioned {
            // Kernels without a partition parser get the table from partx; for others it changes nothing.
            run(Command::new("partx").arg("--update").arg(&disk.path))?;
        }
        let device = if options.partitioned {
            disk.partition(2)
        } else {
            disk.path.clone()
        };
        run(Command::new("mke2fs")
            .args(["-q", "-F", "-t", "ext4"])
            .args(&options.mkfs)
            .arg(&device))?;
        let mount_options = options.mount_options.clone();
        let mut made = Self {
            mount: None,
            disk,
            folder,
            device,
            mount_options,
        };
        made.mount()?;
        Ok(made)
    }

    /// Returns the path of the image file behind the loop device.
    pub fn image(&self) -> PathBuf {
        self.folder.path().join("disk.img")
    }

    /// Returns the path of the whole disk, for example `/dev/loop0`.
    pub fn disk(&self) -> &Path {
        &self.disk.path
    }

    /// Returns the device with the filesystem: the disk, or its second partition.
    pub fn device(&self) -> &Path {
        &self.device
    }

    /// Returns the mount point.
    pub fn mount_point(&self) -> PathBuf {
        self.folder.path().join("mnt")
    }

    /// Returns the filesystem's first sector (512 bytes) on the disk, as the kernel reports it.
    pub fn start_sector(&self) -> u64 {
        let start = sys(&self.device).join("start");
        fs::read_to_string(start)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(0)
    }

    /// Unmounts the filesystem; the device stays.
    pub fn unmount(&mut self) -> Result<(), String> {
        self.mount.take().map_or(Ok(()), Mount::end)
    }

    /// Mounts the filesystem again after [`LoopExt4::unmount`]; does nothing if it is mounted.
    pub fn mount(&mut self) -> Result<(), String> {
        if self.mount.is_none() {
            self.mount = Some(Mount::new(
                &self.device,
                &self.mount_point(),
                &self.mount_options,
            )?);
        }
        Ok(())
    }
}

/// A mounted filesystem.
struct Mount {
    point: PathBuf,
}

impl Mount {
    fn new(device: &Path, point: &Path, options: &str) -> Result<Self, String> {
        fs::create_dir_all(point).map_err(|e| format!("{}: {e}", point.display()))?;
        let mut command = Command::new("mount");
        command.args(["-t", "ext4"]);
        if !options.is_empty() {
            command.args(["-o", options]);
        }
        run(command.arg(device).arg(point))?;
        Ok(Self {
            point: point.to_owned(),
        })
    }

    fn end(self) -> Result<(), String> {
        let result = run(Command::new("umount").arg(&self.point)).map(drop);
        if result.is_ok() {
            std::mem::forget(self);
        }
        result
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        complain(unmount(&self.point));
    }
}

/// Unmounts a filesystem. A program may still use it: one that a failed test left behind, or one that another thread is starting,
/// which has all files open until its exec. The mount then goes when that program is done.
///
/// # Errors
/// Returns umount's message, if nothing is mounted there.
pub fn unmount(point: &Path) -> Result<(), String> {
    let done = run(Command::new("umount").arg(point));
    let done = done.or_else(|_| run(Command::new("umount").arg("--lazy").arg(point)));
    done.map(drop)
}

/// A loop device.
struct Attached {
    path: PathBuf,
    /// The scheduler to restore: the loop device keeps its setting when the image is detached.
    scheduler: Option<String>,
}

impl Attached {
    fn new(image: &Path, scheduler: Option<&str>) -> Result<Self, String> {
        let path = run(Command::new("losetup")
            .args(["--find", "--show", "--partscan"])
            .arg(image))?;
        let mut made = Self {
            path: PathBuf::from(path.trim_end()),
            scheduler: None,
        };
        made.limit_requests()?;
        if let Some(scheduler) = scheduler {
            made.scheduler = made.active_scheduler();
            made.set_scheduler(scheduler)?;
        }
        Ok(made)
    }

    fn partition(&self, number: u32) -> PathBuf {
        PathBuf::from(format!("{}p{number}", self.path.display()))
    }

    /// Sets the largest request to that of a new loop device, because an earlier user may have left its own limit set:
    /// `BLK_DEF_MAX_SECTORS_CAP` in include/linux/blkdev.h, or the most that the device takes.
    fn limit_requests(&self) -> Result<(), String> {
        let file = |name| sys(&self.path).join("queue").join(name);
        let able = file("max_hw_sectors_kb");
        let able = fs::read_to_string(&able).map_err(|e| format!("{}: {e}", able.display()))?;
        let able: u32 = able
            .trim()
            .parse()
            .map_err(|_| format!("{able}: no number"))?;
        let limit = file("max_sectors_kb");
        fs::write(&limit, able.min(1280).to_string())
            .map_err(|e| format!("{}: {e}", limit.display()))
    }

    /// Returns the scheduler in brackets.
    fn active_scheduler(&self) -> Option<String> {
        let text = fs::read_to_string(self.scheduler_file()).ok()?;
        let (_, active) = text.split_once('[')?;
        Some(active.split_once(']')?.0.to_owned())
    }

    fn set_scheduler(&self, scheduler: &str) -> Result<(), String> {
        let file = self.scheduler_file();
        fs::write(&file, scheduler).map_err(|e| format!("{}: {scheduler}: {e}", file.display()))
    }

    fn scheduler_file(&self) -> PathBuf {
        sys(&self.path).join("queue/scheduler")
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(scheduler) = &self.scheduler {
            complain(self.set_scheduler(scheduler));
        }
        complain(run(Command::new("losetup").arg("--detach").arg(&self.path)));
    }
}

/// Returns the device's folder in sysfs.
fn sys(device: &Path) -> PathBuf {
    Path::new("/sys/class/block").join(device.file_name().unwrap_or_default())
}

fn complain<T>(result: Result<T, String>) {
    if let Err(error) = result {
        eprintln!("clean-up: {error}");
    }
}

/// Runs a command. Returns its standard output; the error is its message in one line.
fn run(command: &mut Command) -> Result<String, String> {
    feed(command, "")
}

/// Runs a command as [`run`] does, with `input` on its standard input.
fn feed(command: &mut Command, input: &str) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |why: String| format!("{program}: {}", why.trim().replace('\n', " "));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| failed(e.to_string()))?;
    // A command that does not read its input closes it; its exit status tells whether it succeeded.
    let _ = child
        .stdin
        .take()
        .map(|mut stdin| stdin.write_all(input.as_bytes()));
    let output = child
        .wait_with_output()
        .map_err(|e| failed(e.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(format!("{}: {said}", output.status)));
    }
    String::from_utf8(output.stdout).map_err(|e| failed(e.to_string()))
}

/// Returns true if this process is root. The owner of /proc/self is its effective user.
pub(crate) fn is_root() -> Result<bool, String> {
    let owner = fs::metadata("/proc/self").map_err(|e| format!("/proc/self: {e}"))?;
    Ok(owner.uid() == 0)
}

/// Checks that loop devices can be attached and mounted here; the error says why not.
///
/// It tries, once per process, because root in a container may not be allowed to mount.
pub(crate) fn privileged() -> Result<(), String> {
    static ANSWER: OnceLock<Result<(), String>> = OnceLock::new();
    ANSWER.get_or_init(try_it).clone()
}

fn try_it() -> Result<(), String> {
    if !is_root()? {
        return Err("needs root".into());
    }
    LoopExt4::new(&LoopOptions {
        size_mib: 16,
        ..LoopOptions::default()
    })
    .map(drop)
}
