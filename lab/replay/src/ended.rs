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

/// Returns the name of an errno that calls on files return (errno(3)).
fn name(errno: i32) -> Option<&'static str> {
    Some(match self::errno(i64::from(errno).saturating_neg())? {
        Errno::PERM => "EPERM",
        Errno::NOENT => "ENOENT",
        Errno::INTR => "EINTR",
        Errno::IO => "EIO",
        Errno::NXIO => "ENXIO",
        Errno::TOOBIG => "E2BIG",
        Errno::BADF => "EBADF",
        Errno::AGAIN => "EAGAIN",
        Errno::NOMEM => "ENOMEM",
        Errno::ACCESS => "EACCES",
        Errno::FAULT => "EFAULT",
        Errno::BUSY => "EBUSY",
        Errno::EXIST => "EEXIST",
        Errno::XDEV => "EXDEV",
        Errno::NODEV => "ENODEV",
        Errno::NOTDIR => "ENOTDIR",
        Errno::ISDIR => "EISDIR",
        Errno::INVAL => "EINVAL",
        Errno::NFILE => "ENFILE",
        Errno::MFILE => "EMFILE",
        Errno::NOTTY => "ENOTTY",
        Errno::TXTBSY => "ETXTBSY",
        Errno::FBIG => "EFBIG",
        Errno::NOSPC => "ENOSPC",
        Errno::SPIPE => "ESPIPE",
        Errno::ROFS => "EROFS",
        Errno::MLINK => "EMLINK",
        Errno::RANGE => "ERANGE",
        Errno::NAMETOOLONG => "ENAMETOOLONG",
        Errno::NOSYS => "ENOSYS",
        Errno::NOTEMPTY => "ENOTEMPTY",
        Errno::LOOP => "ELOOP",
        Errno::NODATA => "ENODATA",
        Errno::OVERFLOW => "EOVERFLOW",
        Errno::OPNOTSUPP => "EOPNOTSUPP",
        Errno::DQUOT => "EDQUOT",
        Errno::STALE => "ESTALE",
        Errno::TIMEDOUT => "ETIMEDOUT",
        _ => return None,
    })
}
