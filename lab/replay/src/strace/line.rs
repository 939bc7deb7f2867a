// SPDX-License-Identifier: MIT OR Apache-2.0
//! One line of strace's output.
//!
//! ```text
//! line   = [ pid " " | "[pid " pid "] " ] [ time " " ] what
//! pid    = number [ "<" command ">" ]                                      (strace -Y)
//! time   = stamp [ " (+ " seconds ")" ]                                    (two kinds of time: strace -r -ttt)
//! stamp  = seconds [ "." part ] | hours ":" minutes ":" seconds [ "." part ]
//! what   = [ "[" pointer or number "]" ] call                              (strace -i, -n)
//! call   = name "(" arguments ")" " = " result [ " <" seconds ">" ]         (-T adds the duration)
//!        | name "(" arguments " <unfinished ...>"                         another thread's line comes in between
//!        | name "(" arguments " <detached ...>"                           strace -p has ended
//!        | "<... " name " resumed>" arguments ")" " = " result …
//!        | "+++ exited with " … | "+++ killed by " … | "--- SIG" …
//! ```

use super::args;

/// A line, borrowed from the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'t> {
    /// The thread; None if the line names none.
    pub pid: Option<u32>,
    pub stamp: Option<Stamp>,
    pub what: What<'t>,
}

/// The time of a line, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    /// Since the epoch (`-ttt`), or since the line before (`-r`).
    Seconds(u64),
    /// Of the day (`-tt`).
    OfDay(u64),
    /// Whole seconds, of the day or since the epoch (`-t`).
    Whole(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What<'t> {
    /// A call with the text behind the parenthesis that opens.
    Call {
        name: &'t str,
        text: &'t str,
    },
    Unfinished {
        name: &'t str,
        text: &'t str,
    },
    Resumed {
        name: &'t str,
        text: &'t str,
    },
    /// The rest of the call that is unfinished in the line before (`-z`).
    Continued {
        text: &'t str,
    },
    /// strace left the thread within the call.
    Detached {
        name: &'t str,
    },
    /// The thread has ended.
    Exited,
    /// Another thread of the process, with this number, executed a program and has the process's number now.
    Superseded(u32),
    /// strace follows this process too.
    Attached(u32),
    /// A signal, or what strace says of itself.
    Nothing,
    /// The table of `-C` begins, and is the rest of the text.
    Summary,
}

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Returned<'t> {
    pub arguments: &'t str,
    /// The value and what strace says of it, for example `-1 ENOENT (No such file or directory)`.
    pub value: &'t str,
    /// The duration, ns, if strace was asked for it.
    pub duration_ns: Option<u64>,
}

/// The greatest number of a process (`PID_MAX_LIMIT`).
const PID_MAX: u32 = 1 << 22;

impl<'t> Line<'t> {
    /// Parses a line; None if it is not one of strace's.
    pub fn parse(line: &'t str) -> Option<Line<'t>> {
        let line = line.trim();
        let only = |what| Line {
            pid: None,
            stamp: None,
            what,
        };
        if let Some(said) = line.strip_prefix("strace: ") {
            return Some(only(said_by_strace(said)));
        }
        if line.starts_with(')') && returned(line).is_some() {
            return Some(only(What::Continued { text: line }));
        }
        if line.starts_with("% time") {
            return Some(only(What::Summary));
        }
        // Stacks of -k, dumps of -e read and -e write, and the mode of a process that strace did not expect.
        if line.is_empty()
            || ["> /", "> [", "> (", "| ", "[ Process"]
                .iter()
                .any(|p| line.starts_with(p))
        {
            return Some(only(What::Nothing));
        }
        let (pid, rest) = pid(line);
        let (stamp, rest) = stamp(rest);
        let what = what(skip_brackets(rest))?;
        Some(Line { pid, stamp, what })
    }
}

fn said_by_strace(said: &str) -> What<'_> {
    let number = said
        .strip_prefix("Process ")
        .and_then(|rest| rest.strip_suffix(" attached"));
    match number.and_then(|number| number.parse().ok()) {
        Some(pid) => What::Attached(pid),
        None => What::Nothing,
    }
}

/// Splits the thread off.
fn pid(line: &str) -> (Option<u32>, &str) {
    let split = || {
        let (text, bracket) = match line.strip_prefix("[pid") {
            Some(rest) => (rest.trim_start(), true),
            None => (line, false),
        };
        let (number, rest) = digits(text);
        let pid: u32 = number.parse().ok().filter(|pid| *pid <= PID_MAX)?;
        let rest = match rest.strip_prefix('<') {
            Some(command) => command.split_once(if bracket { ">]" } else { "> " })?.1,
            None => rest.strip_prefix(if bracket { ']' } else { ' ' })?,
        };
        Some((Some(pid), rest.trim_start()))
    };
    split().unwrap_or((None, line))
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

/// Splits the time off.
fn stamp(line: &str) -> (Option<Stamp>, &str) {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let Some(stamp) = time(word) else {
        return (None, line);
    };
    let rest = rest.trim_start();
    let since = rest
        .strip_prefix("(+")
        .and_then(|rest| rest.split_once(')'));
    (
        Some(stamp),
        since.map_or(rest, |(_, rest)| rest).trim_start(),
    )
}

fn time(word: &str) -> Option<Stamp> {
    let Some((hours, rest)) = word.split_once(':') else {
        return match word.contains('.') {
            true => seconds(word).map(Stamp::Seconds),
            false => word.parse::<u64>().ok()?.checked_mul(NS).map(Stamp::Whole),
        };
    };
    let (minutes, rest) = rest.split_once(':')?;
    let (hours, minutes): (u64, u64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let before = hours
        .checked_mul(60)?
        .checked_add(minutes)?
        .checked_mul(60 * NS)?;
    match rest.contains('.') {
        true => before.checked_add(seconds(rest)?).map(Stamp::OfDay),
        false => {
            let whole: u64 = rest.parse().ok()?;
            before.checked_add(whole.checked_mul(NS)?).map(Stamp::Whole)
        }
    }
}

const NS: u64 = 1_000_000_000;

/// Returns seconds with up to nine decimal places as ns.
fn seconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    if part.is_empty() || part.len() > 9 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = 10_u64.checked_pow(9_u32.checked_sub(u32::try_from(part.len()).ok()?)?)?;
    let part = part.parse::<u64>().ok()?.checked_mul(scale)?;
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(NS)?.checked_add(part)
}

/// Drops the instruction pointer and the call's number in front of a call.
fn skip_brackets(mut text: &str) -> &str {
    while let Some((inside, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        if !inside
            .bytes()
            .all(|b| b.is_ascii_hexdigit() || b" ?".contains(&b))
        {
            break;
        }
        text = rest.trim_start();
    }
    text
}

fn what(text: &str) -> Option<What<'_>> {
    if let Some(rest) = text.strip_prefix("+++ superseded by execve in pid ") {
        let (number, _) = digits(rest);
        return number.parse().ok().map(What::Superseded);
    }
    if text.starts_with("+++ exited") || text.starts_with("+++ killed") {
        return Some(What::Exited);
    }
    if text.starts_with("---") || text.starts_with("+++") {
        return Some(What::Nothing);
    }
    if let Some(rest) = text.strip_prefix("<... ") {
        let (name, text) = rest.split_once(" resumed>")?;
        return Some(What::Resumed { name, text });
    }
    let (name, text) = text.split_once('(')?;
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return None;
    }
    if let Some(text) = text.strip_suffix("<unfinished ...>") {
        return Some(What::Unfinished {
            name,
            text: text.trim_end(),
        });
    }
    if text.ends_with("<detached ...>") {
        return Some(What::Detached { name });
    }
    Some(What::Call { name, text })
}

/// Splits the text behind the parenthesis that opens; None if it is cut off.
pub(super) fn returned(text: &str) -> Option<Returned<'_>> {
    let by_depth = args::end(text).and_then(|end| split(text, end));
    // An argument that strace shows in a form of its own may have unequal brackets.
    let by_last = || split(text, text.rfind(") = ").or_else(|| text.rfind(") "))?);
    let (arguments, value) = by_depth.or_else(by_last)?;
    let (value, duration_ns) = match value.rsplit_once(" <") {
        Some((before, duration)) => match duration.strip_suffix('>').and_then(seconds) {
            Some(ns) => (before, Some(ns)),
            None => (value, None),
        },
        None => (value, None),
    };
    Some(Returned {
        arguments,
        value,
        duration_ns,
    })
}

/// Splits at the parenthesis that closes, behind which a value follows.
fn split(text: &str, end: usize) -> Option<(&str, &str)> {
    let value = text.get(end..)?.strip_prefix(')')?.trim_start();
    let value = value.strip_prefix("= ")?.trim();
    (!value.is_empty()).then_some((text.get(..end)?, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(line: &str) -> Line<'_> {
        Line::parse(line).unwrap()
    }

    fn ended(line: &str) -> Returned<'_> {
        match parse(line).what {
            What::Call { text, .. } | What::Resumed { text, .. } => returned(text).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_line_of_each_kind() {
        let line = parse("4711  17.000250 write(3, \"a) = 1\", 6) = 6 <0.000020>");
        let at = |ns| Some(Stamp::Seconds(ns));
        assert_eq!((line.pid, line.stamp), (Some(4711), at(17_000_250_000)));
        let returned = ended("4711  17.000250 write(3, \"a) = 1\", 6) = 6 <0.000020>");
        assert_eq!(returned.arguments, "3, \"a) = 1\", 6");
        assert_eq!((returned.value, returned.duration_ns), ("6", Some(20_000)));
        let line = parse("[pid    12] 1.5 fsync(3 <unfinished ...>");
        let (name, text) = ("fsync", "3");
        assert_eq!(line.what, What::Unfinished { name, text });
        assert_eq!(line.pid, Some(12));
        let returned =
            ended("12 1.6 <... fsync resumed>)             = -1 EIO (Input/output error)");
        assert_eq!(returned.value, "-1 EIO (Input/output error)");
        assert_eq!(parse("12 1.7 +++ exited with 0 +++").what, What::Exited);
        assert_eq!(parse("1.7 --- SIGCHLD {} ---").what, What::Nothing);
        assert_eq!(parse("strace: Process 5 attached").what, What::Attached(5));
        assert_eq!(
            parse("[ Process PID=5 runs in 32 bit mode. ]").what,
            What::Nothing
        );
        assert_eq!(
            parse("8 +++ superseded by execve in pid 9 +++").what,
            What::Superseded(9)
        );
        assert_eq!(
            parse("8 fsync(3 <detached ...>").what,
            What::Detached { name: "fsync" }
        );
        assert_eq!(parse("% time     seconds  usecs/call").what, What::Summary);
        assert_eq!(
            parse(" > /lib/libc.so.6(write+0x14) [0xf1234]").what,
            What::Nothing
        );
    }

    #[test]
    fn a_time_of_each_kind() {
        let stamp = |line| parse(line).stamp;
        assert_eq!(stamp("fsync(3) = 0"), None);
        assert_eq!(stamp("7 fsync(3) = 0"), None);
        assert_eq!(
            stamp("     0.000031 fsync(3) = 0"),
            Some(Stamp::Seconds(31_000))
        );
        assert_eq!(
            stamp("7 01:00:01.5 fsync(3) = 0"),
            Some(Stamp::OfDay(3_601_500_000_000))
        );
        assert_eq!(
            stamp("7 00:01:00 fsync(3) = 0"),
            Some(Stamp::Whole(60_000_000_000))
        );
        assert_eq!(
            stamp("1795744656 fsync(3) = 0"),
            Some(Stamp::Whole(1_795_744_656 * NS))
        );
        let both = parse("7 00:00:01.0 (+     0.000137) [ 257] [00007f8b] fsync(3) = 0");
        assert_eq!(both.stamp, Some(Stamp::OfDay(NS)));
        assert!(matches!(both.what, What::Call { name: "fsync", .. }));
    }

    #[test]
    fn a_thread_of_each_kind() {
        for (line, pid) in [
            ("fsync(3) = 0", None),
            ("7 fsync(3) = 0", Some(7)),
            ("7<a b> fsync(3) = 0", Some(7)),
            ("[pid 7] fsync(3) = 0", Some(7)),
            ("[pid     7<a]b>] 1.5 fsync(3) = 0", Some(7)),
        ] {
            let read = parse(line);
            assert_eq!(read.pid, pid, "{line}");
            assert!(
                matches!(read.what, What::Call { name: "fsync", .. }),
                "{line}"
            );
        }
    }

    #[test]
    fn a_value_is_behind_the_call_whatever_names_hold() {
        let value = |line| ended(line).value;
        assert_eq!(value(r#"open("a", O_RDWR) = 3</r/a) = 7>"#), "3</r/a) = 7>");
        assert_eq!(value(r#"read(3</r/a(b>, "x) = 9"..., 4)   = 4"#), "4");
        assert_eq!(
            value("capset({a, effective=1<<CAP_CHOWN|1<<CAP_FOWNER}) = 0"),
            "0"
        );
        assert_eq!(
            value("poll([{fd=3, events=POLLIN}], 1, 5) = 1 ([{fd=3, revents=POLLIN}])"),
            "1 ([{fd=3, revents=POLLIN}])"
        );
        assert_eq!(value("exit_group(0 <unfinished ...>) = ?"), "?");
        assert_eq!(
            value("ioctl(0, TCGETS, {c_cc[VMIN]=1, strange=(}) = 0"),
            "0"
        );
        assert_eq!(
            value("12 <... clone3 resumed> => {parent_tid=[13]}, 88) = 13"),
            "13"
        );
    }

    #[test]
    fn the_rest_of_a_line_is_taken() {
        let text = ")        = 5 <0.000001>";
        assert_eq!(parse(text).what, What::Continued { text });
    }

    #[test]
    fn what_is_no_line_is_not_taken_for_one() {
        for line in ["hello", "5 1.2 hello", ")", "done", "a b(c) = 1"] {
            assert_eq!(Line::parse(line), None, "{line}");
        }
        assert_eq!(returned("3, \"abc"), None);
        assert_eq!(returned("3) ="), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(line in "(\\[pid )?[0-9]{0,3}(<.>)?\\]? ?[0-9.:]{0,8} ?(<\\.\\.\\. )?[a-z(]{0,6}[(\\PC]{0,20}( = [-0-9<>.]{0,9})?") {
            if let Some(Line { what: What::Call { text, .. } | What::Resumed { text, .. }, .. }) = Line::parse(&line) {
                let _ = returned(text);
            }
        }
    }
}
