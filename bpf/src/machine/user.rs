// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user as whom a command runs, and the user who called sudo.

use std::env::VarError;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use mostrace_bundle::folder::Owner;
use uzers::os::unix::UserExt;

use crate::error::{Error, Result};
use crate::machine::session;

/// The variables of root's environment that sudo keeps for a command of another user, in addition to those that begin with `LC_`.
const KEPT: [&str; 9] = [
    "PATH",
    "TERM",
    "COLORTERM",
    "LS_COLORS",
    "LANG",
    "LANGUAGE",
    "TZ",
    "DISPLAY",
    "HOSTNAME",
];
/// The folders that are searched for a command if the caller has no PATH.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: String,
    pub(crate) owner: Owner,
    groups: Vec<u32>,
    home: PathBuf,
    shell: PathBuf,
}

impl User {
    /// Looks up a user by name or number.
    ///
    /// # Errors
    /// Returns an error if there is no such user.
    pub fn find(name: &str) -> Result<User> {
        let by_number = || uzers::get_user_by_uid(name.parse().ok()?);
        let user = uzers::get_user_by_name(name).or_else(by_number);
        user.map(User::known)
            .ok_or_else(|| Error::NoUser(name.into()))
    }

    /// Returns the user who called sudo, if somebody did. A command that is not meant for root runs as that user.
    ///
    /// # Errors
    /// Returns an error if the environment names the user only in part, or not by a number.
    pub fn caller() -> Result<Option<User>> {
        let of = |owner: Owner| {
            let known = uzers::get_user_by_uid(owner.uid);
            known.map_or_else(|| User::unknown(owner), User::known)
        };
        Ok(of_sudo()?.map(of))
    }

    fn known(user: uzers::User) -> User {
        let gid = user.primary_group_id();
        let groups = uzers::get_user_groups(user.name(), gid).unwrap_or_default();
        User {
            name: user.name().to_string_lossy().into_owned(),
            owner: Owner {
                uid: user.uid(),
                gid,
            },
            groups: groups.iter().map(uzers::Group::gid).collect(),
            home: user.home_dir().to_owned(),
            shell: user.shell().to_owned(),
        }
    }

    /// Makes a user of which only the number is known.
    fn unknown(owner: Owner) -> User {
        User {
            name: owner.uid.to_string(),
            owner,
            groups: vec![owner.gid],
            home: "/".into(),
            shell: "/bin/sh".into(),
        }
    }

    /// Makes a command run as this user. If this is not the caller's user, the command inherits only its arguments, standard
    /// streams and folder from the caller: it gets a session without the caller's terminal, and only those environment variables
    /// that sudo keeps. Set further variables after this call.
    #[allow(unsafe_code)]
    pub(crate) fn take_over(&self, command: &mut Command) {
        if self.is_another() {
            command.env_clear().envs(kept());
            session::leave(command);
        }
        command
            .env("HOME", &self.home)
            .env("SHELL", &self.shell)
            .env("USER", &self.name)
            .env("LOGNAME", &self.name);
        let (Owner { uid, gid }, groups) = (self.owner, self.groups.clone());
        // std's own `uid` leaves the user only one group.
        let step_down = move || {
            let done = |result: i32| match result {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            };
            // SAFETY: `groups` has this many numbers.
            done(unsafe { libc::setgroups(groups.len(), groups.as_ptr()) })?;
            // SAFETY: these calls take only numbers.
            done(unsafe { libc::setgid(gid) })?;
            // SAFETY: this call takes only a number.
            done(unsafe { libc::setuid(uid) })
        };
        // SAFETY: between fork and exec, the closure makes only these system calls.
        unsafe { command.pre_exec(step_down) };
    }

    /// Returns true if this user is not the user of this process.
    pub(crate) fn is_another(&self) -> bool {
        self.owner.uid != rustix::process::geteuid().as_raw()
    }
}

/// Returns the part of this process's environment that is kept.
fn kept() -> impl Iterator<Item = (OsString, OsString)> {
    let is_kept = |name: &str| KEPT.contains(&name) || name.starts_with("LC_");
    let path = [("PATH".into(), PATH.into())].into_iter();
    // The last value counts.
    path.chain(std::env::vars_os().filter(move |(name, _)| name.to_str().is_some_and(is_kept)))
}

/// Returns the user who called sudo, if somebody did.
///
/// # Errors
/// Returns an error if the environment names the user only in part, or not by a number: the user is unknown then, and is not taken
/// for root.
pub(crate) fn of_sudo() -> Result<Option<Owner>> {
    let [uid, gid] = ["SUDO_UID", "SUDO_GID"].map(|name| (name, std::env::var(name)));
    match (uid, gid) {
        ((_, Err(VarError::NotPresent)), (_, Err(VarError::NotPresent))) => Ok(None),
        (uid, gid) => Ok(Some(Owner {
            uid: number(uid)?,
            gid: number(gid)?,
        })),
    }
}

/// Parses the number of a user or group, as sudo writes it. The highest number stands for none.
fn number((name, value): (&'static str, std::result::Result<String, VarError>)) -> Result<u32> {
    let wrong = |what: String| Error::SudoCaller { name, what };
    let text = match value {
        Ok(text) => text,
        Err(VarError::NotPresent) => return Err(wrong("is not set, but the other is".into())),
        Err(VarError::NotUnicode(text)) => text.to_string_lossy().into_owned(),
    };
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|n| is_decimal && *n != u32::MAX);
    number.ok_or_else(|| wrong(format!("is `{text}`, and no number")))
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

    #[test]
    fn who_called_sudo_is_a_number_or_an_error() {
        let read = |text: &str| number(("SUDO_UID", Ok(text.into())));
        assert_eq!(read("1000").unwrap(), 1000);
        assert_eq!(read("0").unwrap(), 0);
        for text in [
            "",
            "-1",
            "+5",
            "me",
            "1 ",
            "0x0",
            "4294967295",
            "4294967296",
        ] {
            let said = read(text).unwrap_err().to_string();
            let wanted = format!(
                "SUDO_UID is `{text}`, and no number: who called sudo is not known (unset SUDO_UID and SUDO_GID to be root)"
            );
            assert_eq!(said, wanted);
        }
        let said = number(("SUDO_GID", Err(VarError::NotPresent))).unwrap_err();
        assert!(
            said.to_string()
                .starts_with("SUDO_GID is not set, but the other is: ")
        );
    }

    #[test]
    fn a_number_that_nobody_has_stays_that_number() {
        let (uid, gid) = (99_999, 99_998);
        let user = User::unknown(Owner { uid, gid });
        assert_eq!((user.owner.uid, &user.groups[..]), (uid, &[gid][..]));
        assert!(user.is_another());
    }
}
