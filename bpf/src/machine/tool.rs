// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other programs that a recorder starts. It is root: they come from the system's own folders,
//! whatever the caller's PATH and environment say.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};

/// The last one is Android's; nobody but root can write to any of them.
pub(crate) const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin:/system/bin";

/// Finds a program in the system's folders.
///
/// # Errors
/// The program is in none of them.
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

/// A program, to be started in an environment of nothing but that PATH.
///
/// # Errors
/// As [`find`].
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
