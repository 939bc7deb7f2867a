// SPDX-License-Identifier: MIT OR Apache-2.0
//! The places of the kernel's recorder, and the reasons why it cannot be used.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::io::Errno;

use super::parameters::Parameters;
use crate::error::{Error, Result};
use crate::machine::tool;

/// The places where the recorder is found.
#[derive(Clone, Debug)]
pub struct KernelPaths {
    /// Its device, from which the entries are read.
    pub device: PathBuf,
    /// The folder of its settings.
    pub parameters: PathBuf,
    /// The folder of its class device, with the counters.
    pub class: PathBuf,
}

impl Default for KernelPaths {
    fn default() -> Self {
        KernelPaths {
            device: "/dev/mostrace".into(),
            parameters: "/sys/module/mostrace/parameters".into(),
            class: "/sys/class/misc/mostrace".into(),
        }
    }
}

/// Describes the recorder in a few words, if it can be used.
///
/// # Errors
/// Returns an error that says why it cannot.
pub(crate) fn describe(paths: &KernelPaths) -> Result<String> {
    let now = free(paths)?;
    let causes = match now.filesystems {
        Some(_) => "with causes",
        None => "without causes: an older one",
    };
    Ok(format!(
        "{}, free, {causes}; set to dev={} names={} ring_kb={}",
        paths.device.display(),
        now.dev,
        now.names,
        now.ring_kb
    ))
}

/// Returns true if there is a recorder that records causes.
pub(crate) fn has_causes(paths: &KernelPaths) -> bool {
    Parameters::read(&paths.parameters).is_ok_and(|now| now.filesystems.is_some())
}

/// Returns the settings of a recorder that nobody uses.
///
/// # Errors
/// Returns an error if there is no recorder, or if somebody uses it.
pub(super) fn free(paths: &KernelPaths) -> Result<Parameters> {
    if !paths.device.exists() {
        return Err(absent(paths));
    }
    let parameters = Parameters::read(&paths.parameters)?;
    parameters
        .check_free()
        .map_err(|e| explain(e, &paths.device))?;
    Ok(parameters)
}

/// Returns the error for a missing device, with what helps. Loading a module is left to its owner.
fn absent(paths: &KernelPaths) -> Error {
    let device = paths.device.clone();
    if paths.class.exists() {
        let number = paths.class.join("dev");
        return Error::NoRecorderNode { device, number };
    }
    let installed = tool::command("modprobe").is_ok_and(|mut modprobe| {
        modprobe
            .args(["--dry-run", "--quiet", "mostrace"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    });
    let help = if installed {
        "load it: modprobe mostrace"
    } else {
        "build and load kernel-patches/module"
    };
    Error::NoRecorder { device, help }
}

/// Explains the recorder's refusals.
pub(super) fn explain(error: Error, device: &Path) -> Error {
    let Error::Io { source, .. } = &error else {
        return error;
    };
    match Errno::from_io_error(source) {
        Some(Errno::BUSY) => Error::Busy {
            what: device.display().to_string(),
            by: "somebody else reads it; the kernel's recorder has one reader".into(),
        },
        Some(Errno::PERM) => Error::NoPrivilege(format!(
            "{}: opening it takes CAP_SYS_ADMIN",
            device.display()
        )),
        Some(Errno::NODEV | Errno::NXIO) => Error::RecorderFindsNoDevice(device.to_owned()),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::At;

    #[test]
    fn refusals_are_explained() {
        let refused = |errno: Errno| {
            let io = Err::<(), _>(std::io::Error::from_raw_os_error(errno.raw_os_error()));
            let error = io.at("/parameters/dev").unwrap_err();
            explain(error, Path::new("/dev/x")).to_string()
        };
        for (errno, says) in [
            (Errno::BUSY, "/dev/x: somebody else reads it"),
            (Errno::PERM, "/dev/x: opening it takes CAP_SYS_ADMIN"),
            (
                Errno::NODEV,
                "/dev/x: the kernel's recorder finds no device",
            ),
            (Errno::NOMEM, "/parameters/dev: Cannot allocate memory"),
        ] {
            let said = refused(errno);
            assert!(said.starts_with(says), "{said}");
        }
    }
}
