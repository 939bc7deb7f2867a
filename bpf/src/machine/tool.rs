// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds other programs that a recorder starts. The recorder is root, so they are taken from the system's own folders, whatever the
//! caller's PATH and environment say.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};

/// The system's folders; the last one is Android's. Only root can write to them.
pub(crate) const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin:/system/bin";

/// Finds a program in the system's folders.
///
/// # Errors
/// Returns an error if none of them has the program.
pub(crate) fn find(name: &'static str) -> Result<PathBuf> {
    let at = |folder| Path::new(folder).join(name);
    let is_program = |path: &PathBuf| {
        let meta = path.metadata();
        meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    PATH.split(':')
        .map(at)
        .find(is_program)
        .ok_or(Error::ToolNotFound {
            tool: name,
            path: PATH,
        })
}

/// Returns a command for a program, with nothing but this PATH in its environment.
///
/// # Errors
/// Returns an error in the same cases as [`find`].
pub(crate) fn command(name: &'static str) -> Result<Command> {
    let mut command = Command::new(find(name)?);
    command.env_clear().env("PATH", PATH).env("LC_ALL", "C");
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_in_full_and_its_environment_is_bare() {
        let command = command("sh").unwrap();
        assert!(Path::new(command.get_program()).is_absolute());
        let names: Vec<_> = command
            .get_envs()
            .map(|(name, _)| name.to_owned())
            .collect();
        assert_eq!(names, ["LC_ALL", "PATH"]);
        let error = find("no-such-tool").unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("no-such-tool: not found in {PATH}")
        );
    }
}
