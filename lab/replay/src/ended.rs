// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares how a call ended in the recording and in the replay.

use std::fmt;

use rustix::io::Errno;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// It succeeded.
    Ok,
    /// It succeeded, and moved fewer bytes than in the other run.
    FewerBytes,
    /// It succeeded, and moved more bytes than in the other run.
    MoreBytes,
    /// It failed with this errno.
    Failed(i32),
}

impl Ended {
    /// Returns how a call ended, given its result and its result in the other run.
    pub(crate) fn of(result: i64, other: i64) -> Ended {
        match result {
            ..0 => Ended::Failed(i32::try_from(result.saturating_neg()).unwrap_or(i32::MAX)),
            _ if other < 0 => Ended::Ok,
            _ if result < other => Ended::FewerBytes,
            _ => Ended::MoreBytes,
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Ok => f.write_str("ok"),
            Ended::FewerBytes => f.write_str("fewer bytes"),
            Ended::MoreBytes => f.write_str("more bytes"),
            Ended::Failed(errno) => match name(*errno) {
                Some(name) => f.write_str(name),
                None => write!(f, "errno {errno}"),
            },
        }
    }
}

/// Returns the error in a recorded result. None if the call succeeded, or if the kernel never returns this number (`MAX_ERRNO`).
pub(crate) fn errno(result: i64) -> Option<Errno> {
    let errno = i32::try_from(result.checked_neg()?).ok()?;
    (1..4096)
        .contains(&errno)
        .then(|| Errno::from_raw_os_error(errno))
}

/// The errors that calls on files return (errno(3)).
const NAMES: &[(&str, Errno)] = &[
    ("EPERM", Errno::PERM),
    ("ENOENT", Errno::NOENT),
    ("EINTR", Errno::INTR),
    ("EIO", Errno::IO),
    ("ENXIO", Errno::NXIO),
    ("E2BIG", Errno::TOOBIG),
    ("EBADF", Errno::BADF),
    ("EAGAIN", Errno::AGAIN),
    ("ENOMEM", Errno::NOMEM),
    ("EACCES", Errno::ACCESS),
    ("EFAULT", Errno::FAULT),
    ("EBUSY", Errno::BUSY),
    ("EEXIST", Errno::EXIST),
    ("EXDEV", Errno::XDEV),
    ("ENODEV", Errno::NODEV),
    ("ENOTDIR", Errno::NOTDIR),
    ("EISDIR", Errno::ISDIR),
    ("EINVAL", Errno::INVAL),
    ("ENFILE", Errno::NFILE),
    ("EMFILE", Errno::MFILE),
    ("ENOTTY", Errno::NOTTY),
    ("ETXTBSY", Errno::TXTBSY),
    ("EFBIG", Errno::FBIG),
    ("ENOSPC", Errno::NOSPC),
    ("ESPIPE", Errno::SPIPE),
    ("EROFS", Errno::ROFS),
    ("EMLINK", Errno::MLINK),
    ("EPIPE", Errno::PIPE),
    ("ERANGE", Errno::RANGE),
    ("ENAMETOOLONG", Errno::NAMETOOLONG),
    ("ENOSYS", Errno::NOSYS),
    ("ENOTEMPTY", Errno::NOTEMPTY),
    ("ELOOP", Errno::LOOP),
    ("ENODATA", Errno::NODATA),
    ("EOVERFLOW", Errno::OVERFLOW),
    ("EOPNOTSUPP", Errno::OPNOTSUPP),
    ("EDQUOT", Errno::DQUOT),
    ("ESTALE", Errno::STALE),
    ("ETIMEDOUT", Errno::TIMEDOUT),
];

/// Returns the name of an errno that calls on files return.
fn name(errno: i32) -> Option<&'static str> {
    let mut names = NAMES.iter();
    let known = names.find(|(_, known)| known.raw_os_error() == errno);
    known.map(|(name, _)| *name)
}

/// Returns the errno of this name, if calls on files return it.
pub(crate) fn named(name: &str) -> Option<Errno> {
    let known = NAMES.iter().find(|(known, _)| *known == name);
    known.map(|(_, errno)| *errno)
}
