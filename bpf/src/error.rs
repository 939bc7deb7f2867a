// SPDX-License-Identifier: MIT OR Apache-2.0
//! The errors of capturing, one line each.

use std::fmt::{self, Display};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An error of capturing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused an operation.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The bundle cannot be written.
    #[error(transparent)]
    Bundle(#[from] mostrace_bundle::Error),
    /// The filesystem cannot be mapped.
    #[error(transparent)]
    Map(#[from] mostrace_map::fs::Error),
    /// The caller lacks a privilege.
    #[error("{0}")]
    NoPrivilege(String),
    /// The device does not exist.
    #[error("{}: {source}{}", path.display(), and_node(path))]
    NoDevice {
        /// The path that the caller named.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The named file is not a block device.
    #[error("{}: not a block device", .0.display())]
    NotBlockDevice(PathBuf),
    /// The named path is neither a device nor on a device.
    #[error("{}: on {filesystem}, which has no block device of its own: name one", path.display())]
    NotOnDevice {
        /// The path that the caller named.
        path: PathBuf,
        /// Type of the filesystem.
        filesystem: String,
    },
    /// A target of the device mapper scatters its sectors.
    #[error("{device}: its sectors are not followed through a target {target}")]
    NotMappable {
        /// Kernel name of the mapped device.
        device: String,
        /// Type of the target.
        target: String,
    },
    /// A mapped device lies on several disks.
    #[error("{device} lies on several devices ({disks}): trace one of them")]
    SeveralDisks {
        /// The mapped device.
        device: String,
        /// The disks below it.
        disks: String,
    },
    /// The bundle's disk is full.
    #[error("{}: No space left on device: the recording ends here; what came before is in {}", path.display(), kept.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
        /// The bundle.
        kept: PathBuf,
    },
    /// A source failed; everything before the failure is kept.
    #[error("{why}: the recording ends here; what came before is in {}", kept.display())]
    EndedEarly {
        /// The failure.
        why: Box<Error>,
        /// The bundle, which is complete except for what is missing behind its end.
        kept: PathBuf,
    },
    /// The metadata of this filesystem cannot be saved.
    #[error("{}", without_map(.0))]
    NoSnapshotOf(String),
    /// The output exists already; nothing is overwritten.
    #[error("{}: exists already (-o NAME.most names another)", .0.display())]
    OutputExists(PathBuf),
    /// The output's name does not end as a bundle's must.
    #[error("{}: a bundle is NAME.most, a folder, or NAME.most.tar.zst, one file", .0.display())]
    OutputName(PathBuf),
    /// The text of `--files` is not a glob.
    #[error("--files {glob}: {source}")]
    Files {
        /// The text that the user gave.
        glob: String,
        /// The place of the mistake.
        source: glob::PatternError,
    },
    /// The command does not exist.
    #[error("{0}: command not found")]
    CommandNotFound(String),
    /// The kernel refuses an instance of tracefs.
    #[error("{}: no instance of tracefs: {source}", path.display())]
    NoInstance {
        /// The instance that was requested.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// A tool is not in the system's folders.
    #[error("{tool}: not found in {path}")]
    ToolNotFound {
        /// The program.
        tool: &'static str,
        /// The folders, separated by colons.
        path: &'static str,
    },
    /// The kernel does not have this filesystem.
    #[error("{0}: this kernel has no such filesystem")]
    NoSuchFilesystem(&'static str),
    /// The command's user is not known.
    #[error("{0}: no such user")]
    NoUser(String),
    /// The environment does not say who called sudo.
    #[error("{name} {what}: who called sudo is not known (unset SUDO_UID and SUDO_GID to be root)")]
    SudoCaller {
        /// SUDO_UID or SUDO_GID.
        name: &'static str,
        /// The mistake.
        what: String,
    },
    /// Others can change the contents of the folder for temporary files.
    #[error(
        "{}: others can put something else in the place of what is made there; TMPDIR names another folder for temporary files",
        .0.display()
    )]
    UnsafeFolder(PathBuf),
    /// The command could not be started.
    #[error("{command}: {source}")]
    Command {
        /// The command's name, `argv[0]`.
        command: String,
        /// The reason.
        source: io::Error,
    },
    /// The folder for temporary files cannot hold a file as large as the requested filesystem.
    #[error("--size: no image of {} MiB can be made: {source}", size >> 20)]
    ImageSize {
        /// Its size in bytes.
        size: u64,
        /// The reason.
        source: io::Error,
    },
    /// A copy of the caller's folder would leave too little room on the filesystem for what a command writes.
    #[error(
        "{} holds more than {} MiB: a copy of it, in which CMD would run, may have that much (half of --size); --empty runs CMD in an empty folder",
        path.display(), most >> 20
    )]
    TooLarge {
        /// The folder.
        path: PathBuf,
        /// The bytes that it may hold.
        most: u64,
    },
    /// A copy of the caller's folder would hide the copy itself.
    #[error(
        "{}: CMD runs in a copy of this folder, which holds the folder of temporary files; go to another one, or run CMD in an empty folder (--empty)",
        .0.display()
    )]
    HoldsTemporaries(PathBuf),
    /// Somebody moved the caller's folder while it was copied.
    #[error("{}: was moved while it was copied", .0.display())]
    Moved(PathBuf),
    /// The script that was to be run ahead of a recording failed.
    #[error("`{script}` ended with {status}: {said}")]
    Prepare {
        /// The script.
        script: String,
        /// The exit status, such as `exit status: 1`.
        status: String,
        /// Its messages.
        said: String,
    },
    /// A tool that mostrace runs could not be started, or refused.
    #[error("{tool}: {why}")]
    ToolFailed {
        /// The program.
        tool: &'static str,
        /// Its message.
        why: String,
    },
    /// A tool that mostrace runs failed before it was done.
    #[error("{tool} {how}")]
    ToolEnded {
        /// The program.
        tool: &'static str,
        /// The way in which it ended.
        how: String,
    },
    /// One of the kernel's own filesystems is not available.
    #[error("{}: {kind} cannot be mounted", path.display())]
    NotMounted {
        /// The folder at which it should be mounted.
        path: &'static Path,
        /// debugfs or tracefs.
        kind: &'static str,
    },
    /// Somebody else uses a thing that can have only one user.
    #[error("{what}: {by}")]
    Busy {
        /// The thing.
        what: String,
        /// Its user, as far as known, and how to free it.
        by: String,
    },
    /// The source cannot record to segments.
    #[error("{0} writes its files itself: a recording by it cannot be cut into segments")]
    NoSegments(&'static str),
    /// The device's requests are made on other disks.
    #[error(
        "{0} passes its bios on to the disks of its paths (NVMe multipath), whose requests only our probes follow"
    )]
    RequestsOfPaths(String),
    /// The kernel has no type information, which the probes need.
    #[error(
        "this kernel has no BTF ({0} is missing): \
         BPF entries need 5.8 or later with CONFIG_DEBUG_INFO_BTF, or a file of the kernel's BTF (--btf)"
    )]
    NoBtf(&'static str),
    /// The kernel runs no probe while process 1 is current.
    #[error(
        "this kernel runs no BPF program while process 1 is current, so that its probes miss what completes then"
    )]
    BlindInProcess1,
    /// The kernel may skip runs of the probes.
    #[error(
        "from 7.0 on, a task may be preempted within a probe, and the kernel skips the runs of the same probe on that CPU meanwhile"
    )]
    ProbesPreempted,
    /// It is not known whether the kernel runs probes while process 1 is current.
    #[error(
        "process 1 did not run, so that it is not known whether this kernel's probes see what completes in its time"
    )]
    Process1Idle,
    /// The probes do not know the kernel's functions.
    #[error(
        "the kernel hides its symbols (kernel.kptr_restrict, or no CAP_SYSLOG): which file a bio belongs to is not known, but for copies in a journal"
    )]
    FunctionsUnknown,
    /// The kernel refused the probes.
    #[error("BPF probes: {0}")]
    Bpf(String),
    /// The probes were requested again after they had been refused.
    #[error(transparent)]
    ProbesRefused(Arc<Error>),
    /// The kernel's own recorder is not loaded.
    #[error("no {}: the kernel's recorder is not loaded ({help})", device.display())]
    NoRecorder {
        /// Its device.
        device: PathBuf,
        /// How to get it.
        help: &'static str,
    },
    /// The kernel's own recorder is loaded, but has no device node.
    #[error(
        "no {}, though the kernel's recorder is there: mknod it ({} has its number)",
        device.display(), number.display()
    )]
    NoRecorderNode {
        /// Its device.
        device: PathBuf,
        /// The file with the device's number.
        number: PathBuf,
    },
    /// The kernel's own recorder does not find the device that it should record.
    #[error("{}: the kernel's recorder finds no device to record", .0.display())]
    RecorderFindsNoDevice(PathBuf),
    /// `--causes kernel` was given, but the recorder cannot record causes.
    #[error(
        "no causes from the kernel's recorder: it is older, or not the source of entries (--entries kernel)"
    )]
    RecorderHasNoCauses,
    /// `--causes bpf` was given together with `--entries none`.
    #[error("causes are found by way of entries: not with --entries none")]
    CausesWithoutEntries,
    /// `--stacks` was given, and there are no causes by the probes.
    #[error("--stacks: stacks come with the causes that our probes find (--causes bpf){}", because(.0.as_deref()))]
    NoStacks(Option<Box<Error>>),
    /// `--source auto` found no source.
    #[error("no source of block events: {}", joined(.0))]
    NoEvents(Vec<Refused>),
    /// `--entries auto` found no source.
    #[error(
        "no source of entries: {}; --entries none does without",
        reasons(.0)
    )]
    NoEntries(Vec<Refused>),
    /// Data from the kernel, a source or the workload are malformed.
    #[error("{from}: {what}")]
    Malformed {
        /// The origin of the data.
        from: String,
        /// The mistake.
        what: String,
    },
}

/// A source that was passed over.
#[derive(Debug)]
pub struct Refused {
    /// The option that names the source: `source` or `entries`.
    pub option: &'static str,
    /// The name of the source.
    pub name: String,
    /// The reason.
    pub why: Error,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} not taken: {}", self.option, self.name, self.why)
    }
}

/// Returns the hint that a device called `vda` is /dev/vda.
fn and_node(path: &Path) -> String {
    let node = Path::new("/dev").join(path);
    match path.components().count() == 1 && node.exists() {
        true => format!("; there is {}", node.display()),
        false => String::new(),
    }
}

/// Returns what is known about a filesystem of which no map can be built.
fn without_map(kind: &str) -> String {
    match kind {
        "xfs" => "the probes name the files of xfs's data; xfs's log and its metadata are not told apart".into(),
        "btrfs" => "the probes name the files of btrfs's data and know the blocks of its trees, but not which tree one is of".into(),
        _ => format!("the probes name the files of {kind}'s data; what is no file's is not told apart"),
    }
}

/// A reason, behind what it is a reason for.
fn because(why: Option<&Error>) -> String {
    why.map_or_else(String::new, |why| format!(": {why}"))
}

fn joined(refused: &[Refused]) -> String {
    let each: Vec<_> = refused.iter().map(Refused::to_string).collect();
    each.join("; ")
}

fn reasons(refused: &[Refused]) -> String {
    let each: Vec<_> = refused
        .iter()
        .map(|refused| refused.why.to_string())
        .collect();
    each.join("; ")
}

impl Error {
    /// Returns the recorder's own exit status: that of a shell that cannot run a command, otherwise 1.
    pub fn exit_status(&self) -> u8 {
        match self {
            Error::CommandNotFound(_) => 127,
            Error::Command { .. } => 126,
            _ => 1,
        }
    }

    /// Returns true for an error about a file in this folder.
    pub(crate) fn is_of(&self, folder: &Path) -> bool {
        match self {
            Error::Io { path, .. } => path.starts_with(folder),
            Error::Bundle(
                mostrace_bundle::Error::Io { path, .. }
                | mostrace_bundle::Error::Corrupt { path, .. }
                | mostrace_bundle::Error::Unsupported { path, .. },
            ) => path.starts_with(folder),
            _ => false,
        }
    }

    /// Converts the error of a full disk to one that names the bundle `kept`, if the bundle has contents.
    pub(crate) fn or_disk_full(self, kept: &Path) -> Error {
        let (Error::Io { path, source }
        | Error::Bundle(mostrace_bundle::Error::Io { path, source })) = &self
        else {
            return self;
        };
        match source.kind() {
            io::ErrorKind::StorageFull => Error::DiskFull {
                path: path.clone(),
                kept: kept.to_owned(),
            },
            _ => self,
        }
    }

    pub(crate) fn bpf(what: impl Display) -> Error {
        Error::Bpf(format!("{what:#}"))
    }

    pub(crate) fn malformed(from: impl Display, what: impl Display) -> Error {
        Error::Malformed {
            from: from.to_string(),
            what: what.to_string(),
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Attaches the file's path to an `io::Error`.
pub(crate) trait At<T> {
    fn at(self, path: impl AsRef<Path>) -> Result<T>;
}

impl<T, E: Into<io::Error>> At<T> for std::result::Result<T, E> {
    #[inline]
    fn at(self, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|e| Error::Io {
            path: path.as_ref().to_owned(),
            source: e.into(),
        })
    }
}

/// Reads a sysfs or tracefs file without the newline.
pub(crate) fn read_line(path: impl AsRef<Path>) -> Result<String> {
    let text = std::fs::read_to_string(&path).at(&path)?;
    Ok(text.trim_end().to_owned())
}

/// Writes a sysfs or tracefs file.
pub(crate) fn write_line(path: impl AsRef<Path>, text: &str) -> Result<()> {
    std::fs::write(&path, text).at(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_source_says_why_of_each() {
        let refused = |option, name: &str, why| Refused {
            option,
            name: name.into(),
            why,
        };
        let no_btf = Error::ProbesRefused(Arc::new(Error::NoBtf("/sys/kernel/btf/vmlinux")));
        let error = Error::NoEvents(vec![
            refused("source", "blktrace", Error::NoSegments("x")),
            refused("source", "bpf", no_btf),
        ]);
        assert_eq!(
            error.to_string(),
            "no source of block events: \
             source blktrace not taken: x writes its files itself: a recording by it cannot be cut into segments; \
             source bpf not taken: this kernel has no BTF (/sys/kernel/btf/vmlinux is missing): \
             BPF entries need 5.8 or later with CONFIG_DEBUG_INFO_BTF, or a file of the kernel's BTF (--btf)"
        );
        let error = Error::NoEntries(vec![
            refused("entries", "bpf", Error::bpf("x")),
            refused("entries", "kernel", Error::bpf("z")),
            refused("entries", "tracefs", Error::bpf("y")),
        ]);
        assert_eq!(
            error.to_string(),
            "no source of entries: BPF probes: x; \
             BPF probes: z; BPF probes: y; --entries none does without"
        );
    }
}
