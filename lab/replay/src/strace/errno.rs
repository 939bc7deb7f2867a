// SPDX-License-Identifier: MIT OR Apache-2.0
//! The value that a call returned, as strace writes it.

use crate::ended::named;

/// The greatest errno (`MAX_ERRNO` of `<linux/err.h>`); it stands for an error with another name.
const OTHER: i64 = 4095;

/// Returns a call's result: bytes, a descriptor, 0, or a negative errno. None if the call did not return to its caller (`?`), or is
/// restarted.
pub(super) fn result(value: &str) -> Option<i64> {
    let mut words = value.split_whitespace();
    let number = words.next()?;
    if number.starts_with('-') {
        let name = words.next()?;
        return Some(named(name).map_or(-OTHER, |errno| -i64::from(errno.raw_os_error())));
    }
    let number = number.split('<').next()?;
    super::args::number(number).and_then(|value| i64::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results() {
        assert_eq!(result("-1 ENOENT (No such file or directory)"), Some(-2));
        assert_eq!(result("-1 EWHATEVER (what)"), Some(-4095));
        assert_eq!(result("3</tmp/a b>"), Some(3));
        assert_eq!(result("0x7f00"), Some(0x7f00));
        assert_eq!(result("? ERESTARTSYS (To be restarted)"), None);
    }
}
