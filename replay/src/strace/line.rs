// SPDX-License-Identifier: MIT OR Apache-2.0
//! One line of strace's output.
//!
//! ```text
//! line   = [ pid " " | "[pid " pid "] " ] time " " what
//! time   = seconds "." microseconds                                       (strace -ttt)
//! what   = name "(" arguments ")" " = " result [ " <" seconds ">" ]         (-T adds the duration)
//!        | name "(" arguments " <unfinished ...>"                         another thread's line comes in between
//!        | "<... " name " resumed>" arguments ")" " = " result …
//!        | "+++ exited with " … | "+++ killed by " … | "--- SIG" …
//! ```

/// A line, borrowed from the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'t> {
    /// The thread; 0 if strace followed one process only and names none.
    pub pid: u32,
    /// Time, ns.
    pub time_ns: u64,
    pub what: What<'t>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What<'t> {
    Call {
        name: &'t str,
        arguments: &'t str,
        returned: Returned<'t>,
    },
    Unfinished {
        name: &'t str,
        arguments: &'t str,
    },
    Resumed {
        name: &'t str,
        arguments: &'t str,
        returned: Returned<'t>,
    },
    /// The thread has ended.
    Exited,
    /// A signal, or a call that did not return.
    Nothing,
}

/// The text behind the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Returned<'t> {
    /// The value and what strace says of it, for example `-1 ENOENT (No such file or directory)`.
    pub value: &'t str,
    /// The duration, ns, if strace was asked for it.
    pub duration_ns: Option<u64>,
}

impl<'t> Line<'t> {
    /// Parses a line; None for a line that tells nothing about a call, such as those that strace prints on a terminal.
    pub fn parse(line: &'t str) -> Result<Option<Line<'t>>, String> {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with("strace: ") {
            return Ok(None);
        }
        let (pid, rest) = pid(line)?;
        let (time, rest) = rest.split_once(' ').ok_or("a call is missing")?;
        let time_ns = seconds(time)
            .ok_or_else(|| format!("`{time}` is no time in seconds; strace gives it with -ttt"))?;
        let what = what(rest.trim_start())?;
        Ok(Some(Line { pid, time_ns, what }))
    }
}

/// Splits the thread off.
fn pid(line: &str) -> Result<(u32, &str), String> {
    let (number, rest) = match line.strip_prefix("[pid") {
        Some(rest) => rest.split_once(']').ok_or("`[pid` has no end")?,
        None => match line.split_once(' ') {
            Some((number, rest)) if !number.contains('.') => (number, rest),
            _ => return Ok((0, line)),
        },
    };
    let pid = number.trim().parse();
    let pid = pid.map_err(|_| format!("`{}` is no thread's number", number.trim()))?;
    Ok((pid, rest.trim_start()))
}

/// Returns seconds with up to nine decimal places as ns.
fn seconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    if part.is_empty() || part.len() > 9 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = 10_u64.checked_pow(9_u32.checked_sub(u32::try_from(part.len()).ok()?)?)?;
    let part = part.parse::<u64>().ok()?.checked_mul(scale)?;
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(1_000_000_000)?.checked_add(part)
}

fn what(text: &str) -> Result<What<'_>, String> {
    if text.starts_with("+++ exited") || text.starts_with("+++ killed") {
        return Ok(What::Exited);
    }
    if text.starts_with("---") || text.starts_with("+++") {
        return Ok(What::Nothing);
    }
    if let Some(rest) = text.strip_prefix("<... ") {
        let (name, rest) = rest
            .split_once(" resumed>")
            .ok_or("`resumed>` is missing")?;
        // The thread ended within the call.
        if rest.trim().is_empty() {
            return Ok(What::Nothing);
        }
        let (arguments, returned) = returned(rest)?;
        return Ok(What::Resumed {
            name,
            arguments,
            returned,
        });
    }
    let (name, rest) = text.split_once('(').ok_or("it is not a call")?;
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err("it is not a call".to_owned());
    }
    if let Some(arguments) = rest.strip_suffix("<unfinished ...>") {
        let arguments = arguments.trim_end();
        return Ok(What::Unfinished { name, arguments });
    }
    let (arguments, returned) = returned(rest)?;
    Ok(What::Call {
        name,
        arguments,
        returned,
    })
}

/// Splits the text behind the opening parenthesis at the last `) = `. No value contains this, but a string may.
fn returned(text: &str) -> Result<(&str, Returned<'_>), String> {
    let equals = text.rfind(" = ").ok_or("its result is missing")?;
    let (arguments, value) = text.split_at(equals);
    let arguments = arguments.trim_end().strip_suffix(')');
    let arguments = arguments.ok_or("its arguments have no end")?;
    let value = value.trim_start_matches(" = ").trim();
    let (value, duration_ns) = match value.rsplit_once(" <") {
        Some((before, duration)) => match duration.strip_suffix('>').and_then(seconds) {
            Some(ns) => (before, Some(ns)),
            None => (value, None),
        },
        None => (value, None),
    };
    Ok((arguments, Returned { value, duration_ns }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(line: &str) -> Line<'_> {
        Line::parse(line).unwrap().unwrap()
    }

    #[test]
    fn a_line_of_each_kind() {
        let line = parse("4711  17.000250 write(3, \"a) = 1\", 6) = 6 <0.000020>");
        assert_eq!((line.pid, line.time_ns), (4711, 17_000_250_000));
        let What::Call {
            name,
            arguments,
            returned,
        } = line.what
        else {
            panic!("{line:?}");
        };
        assert_eq!((name, arguments), ("write", "3, \"a) = 1\", 6"));
        assert_eq!((returned.value, returned.duration_ns), ("6", Some(20_000)));
        let line = parse("[pid    12] 1.5 fsync(3 <unfinished ...>");
        let (name, arguments) = ("fsync", "3");
        assert_eq!(line.what, What::Unfinished { name, arguments });
        assert_eq!(line.pid, 12);
        let line = parse("12 1.6 <... fsync resumed>)             = -1 EIO (Input/output error)");
        let What::Resumed { returned, .. } = line.what else {
            panic!("{line:?}");
        };
        assert_eq!(returned.value, "-1 EIO (Input/output error)");
        assert_eq!(parse("12 1.7 +++ exited with 0 +++").what, What::Exited);
        assert_eq!(parse("1.7 --- SIGCHLD {} ---").what, What::Nothing);
        assert_eq!(Line::parse("strace: Process 5 attached"), Ok(None));
    }

    #[test]
    fn what_is_no_line_is_named() {
        for (line, why) in [
            ("write(3) = 0", "`write(3)` is no thread's number"),
            (
                "5 12:00:01 write(3) = 0",
                "`12:00:01` is no time in seconds",
            ),
            ("5 1.2 write(3", "its result is missing"),
            ("5 1.2 hello", "it is not a call"),
        ] {
            let error = Line::parse(line).unwrap_err();
            assert!(error.starts_with(why), "{line}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(line in "(\\[pid )?[0-9]{0,3}\\]? ?[0-9.]{0,5} ?(<\\.\\.\\. )?[a-z(]{0,6}[(\\PC]{0,20}( = [-0-9<>.]{0,9})?") {
            let _ = Line::parse(&line);
        }
    }
}
