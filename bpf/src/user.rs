// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user that a command runs as, and the one who called sudo.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use mostrace_bundle::folder::Owner;
use uzers::os::unix::UserExt;

use crate::error::{Error, Result};

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub name: String,
    pub owner: Owner,
    groups: Vec<u32>,
    home: PathBuf,
}

impl User {
    /// Looks a user up by name or number.
    ///
    /// # Errors
    /// There is none.
    pub fn find(name: &str) -> Result<User> {
        let by_number = || uzers::get_user_by_uid(name.parse().ok()?);
        let user = uzers::get_user_by_name(name).or_else(by_number);
        let user = user.ok_or_else(|| Error::NoUser { name: name.into() })?;
        let gid = user.primary_group_id();
        let groups = uzers::get_user_groups(user.name(), gid).unwrap_or_default();
        Ok(User {
            name: user.name().to_string_lossy().into_owned(),
            owner: Owner {
                uid: user.uid(),
                gid,
            },
            groups: groups.iter().map(uzers::Group::gid).collect(),
            home: user.home_dir().to_owned(),
        })
    }

    /// Has a command run as this user.
    #[allow(unsafe_code)]
    pub fn take_over(&self, command: &mut Command) {
        command
            .env("HOME", &self.home)
            .env("USER", &self.name)
            .env("LOGNAME", &self.name);
        let (Owner { uid, gid }, groups) = (self.owner, self.groups.clone());
        // std's own `uid` leaves the user no groups but one.
        let step_down = move || {
            let done = |result: i32| match result {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            };
            // SAFETY: `groups` has that many numbers.
            done(unsafe { libc::setgroups(groups.len(), groups.as_ptr()) })?;
            // SAFETY: these take numbers alone.
            done(unsafe { libc::setgid(gid) })?;
            // SAFETY: the same.
            done(unsafe { libc::setuid(uid) })
        };
        // SAFETY: between fork and exec it makes these system calls, and nothing else.
        unsafe { command.pre_exec(step_down) };
    }
}

/// Who called sudo, if somebody did.
pub(crate) fn of_sudo() -> Option<Owner> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    Some(Owner {
        uid: number("SUDO_UID")?,
        gid: number("SUDO_GID")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_number() {
        let root = User::find("root").unwrap();
        assert_eq!(root.owner, Owner { uid: 0, gid: 0 });
        assert!(root.groups.contains(&0), "{root:?}");
        assert_eq!(User::find("0").unwrap(), root);
        let error = User::find("no-such-user").unwrap_err();
        assert_eq!(error.to_string(), "no-such-user: no such user");
    }
}
