// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--guest KERNEL`: runs a command of ours in a machine emulated by qemu with a Debian kernel, which has filesystems that
//! the kernel here may lack. The scripts are those of the tests, `tests/guest/run.sh`, and are part of the program.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use mostrace_bundle::temporary::TempFolder;

mod needs;

/// The files of the guest's scripts.
const RIG: [(&str, &str); 13] = [
    ("run.sh", include_str!("../../../../tests/guest/run.sh")),
    ("add.sh", include_str!("../../../../tests/guest/add.sh")),
    ("apt.sh", include_str!("../../../../tests/guest/apt.sh")),
    (
        "kernel.sh",
        include_str!("../../../../tests/guest/kernel.sh"),
    ),
    (
        "packages.sh",
        include_str!("../../../../tests/guest/packages.sh"),
    ),
    ("tree.sh", include_str!("../../../../tests/guest/tree.sh")),
    ("init", include_str!("../../../../tests/guest/init")),
    ("kernels", include_str!("../../../../tests/guest/kernels")),
    ("lib.sh", include_str!("../../../../tests/guest/lib.sh")),
    (
        "lib-age.sh",
        include_str!("../../../../tests/guest/lib-age.sh"),
    ),
    (
        "lib-causes.sh",
        include_str!("../../../../tests/guest/lib-causes.sh"),
    ),
    (
        "lib-check.sh",
        include_str!("../../../../tests/guest/lib-check.sh"),
    ),
    (
        "lib-map.sh",
        include_str!("../../../../tests/guest/lib-map.sh"),
    ),
];
/// The preparation that only a job's guest needs; it lies beside the directory of tests.
const PREPARE: &str = include_str!("prepare.sh");
/// The directory of a job's files in the guest.
#[cfg_attr(not(feature = "tables"), expect(dead_code))]
pub const FILES: &str = "/job/files";
/// The directory in the guest whose contents are returned.
pub const OUT: &str = "/tmp/out";
/// The job's name in the guest's scripts.
const JOB: &str = "job";

/// Parses the name of a kernel, such as `6.12`.
///
/// # Errors
/// Returns an error if there is no kernel of that name.
pub fn kernel(text: &str) -> Result<String, String> {
    let mut all = kernels();
    match all.clone().any(|known| known == text) {
        true => Ok(text.to_owned()),
        false => {
            let known: Vec<&str> = all.by_ref().collect();
            Err(format!("`{text}` is not one of {}", known.join(", ")))
        }
    }
}

/// Returns the names of Debian's kernels for this architecture.
fn kernels() -> impl Iterator<Item = &'static str> + Clone {
    let lines = RIG.iter().filter(|(name, _)| *name == "kernels");
    let lines = lines.flat_map(|(_, text)| text.lines());
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    words.filter_map(|words| match words[..] {
        [name, suite, _] if !name.starts_with('#') && suite != "series" => Some(name),
        _ => None,
    })
}

/// A job for a guest.
#[derive(Debug)]
pub struct Job<'j> {
    /// The kernel's name.
    pub kernel: &'j str,
    /// A script for the guest's shell; files that it leaves in [`OUT`] are returned.
    pub script: String,
    /// Programs of this machine that it needs; their libraries are added.
    pub programs: Vec<PathBuf>,
    /// Files that it needs, with their names in [`FILES`].
    pub files: Vec<(String, PathBuf)>,
}

impl Job<'_> {
    /// Boots the guest, runs the script, and returns the directory with the files that it left.
    ///
    /// # Errors
    /// Returns an error if something that a guest needs is missing, the guest does not boot, or the script fails.
    pub fn run(&self) -> anyhow::Result<PathBuf> {
        needs::check()?;
        let folder = TempFolder::new()?;
        self.write(folder.path())?;
        let output = Command::new("sh")
            .arg(folder.path().join("tests/guest/run.sh"))
            .arg(std::env::current_exe()?)
            .arg(self.kernel)
            .env("GUEST_SCRIPTS", folder.path().join(JOB).join("tests"))
            .env("GUEST_TESTS", JOB)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("sh")?;
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            bail!("in the guest: {}", reason(&said));
        }
        log::info!("{}", said.trim_end());
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let home = || Some(Path::new(&std::env::var_os("HOME")?).join(".cache"));
        let cache = cache.or_else(home).context("HOME is not set")?;
        let guest = cache.join("mostrace/guest").join(self.kernel);
        Ok(guest.join(JOB).join("tests/out"))
    }

    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let [rig, job] = ["tests/guest", JOB].map(|name| folder.join(name));
        for (name, text) in RIG {
            write(&rig.join(name), text)?;
        }
        write(&job.join("prepare.sh"), PREPARE)?;
        write(&job.join("tests").join(format!("{JOB}.sh")), &self.script)?;
        let programs = self.programs.iter();
        let programs: String = programs.map(|p| format!("{}\n", p.display())).collect();
        write(&job.join("programs"), &programs)?;
        let files = job.join("files");
        fs::create_dir_all(&files)?;
        for (name, path) in &self.files {
            fs::copy(path, files.join(name)).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }
}

/// Writes an executable file, creating the directories above it.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o700)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(())
}

/// Returns the most informative line of the guest's report.
fn reason(report: &str) -> &str {
    let lines = || {
        report
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    let failed =
        lines().find(|line| line.starts_with("failed: ") || line.starts_with("mostrace: "));
    failed
        .or_else(|| lines().next_back())
        .unwrap_or("it printed nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_those_of_this_architecture() {
        assert_eq!(kernel("6.12").as_deref(), Ok("6.12"));
        let said = kernel("4.4").unwrap_err();
        assert!(
            said.starts_with("`4.4` is not one of 6.12, 6.1, "),
            "{said}"
        );
        assert!(!said.contains("arm64") && !said.contains("plain"), "{said}");
    }

    #[test]
    fn the_rig_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let job = Job {
            kernel: "6.12",
            script: "true\n".into(),
            programs: Vec::new(),
            files: Vec::new(),
        };
        job.write(folder.path()).unwrap();
        // All files that the scripts call by their own directory are present.
        for (_, text) in RIG {
            let calls = text
                .match_indices("\"$here/")
                .map(|(at, mark)| &text[at + mark.len()..]);
            for call in calls {
                let name: &str = call.split(['"', '$', '*', '/']).next().unwrap();
                let is_there = folder.path().join("tests/guest").join(name).exists();
                assert!(is_there || name.is_empty() || name == "..", "{name}");
            }
        }
    }
}
