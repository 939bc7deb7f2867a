// SPDX-License-Identifier: MIT OR Apache-2.0
//! The format of a MobiGen script.
//!
//! ```text
//! script = { line "\n" }
//! line   = thread " " microseconds " " call { " " argument } [ " " result ]      (microseconds: since the script's begin)
//! call   = "open"      path flags                 its result is the descriptor, as it was called in the application
//!        | "write" | "read"      descriptor       their results are the bytes
//!        | "pwrite" | "pread"    descriptor offset
//!        | "close" | "fsync" | "fdatasync" | "fstat" | "fstat64"    descriptor
//!        | "access" | "stat" | "stat64" | "lstat" | "lstat64" | "unlink"    path in quotes
//! ```
//! Flags are written as in `O_RDWR|O_CREAT`. The path of an open is in quotes, or is a word that stands for a file that only this
//! open uses. A result of −1 means that the call failed in the application. MobiGen writes the result of every call; it may be left
//! out where it is 0. Further arguments are ignored.

use std::path::Path;
use std::time::Duration;

use crate::words::{self, OPEN};
use crate::{Error, Result};

/// The most bytes that a call may read or write; no application on a phone makes longer ones.
const MOST_BYTES: i64 = 1 << 26;

/// One line of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The thread's number.
    pub thread: u32,
    /// The time of the call, from the script's start.
    pub at: Duration,
    /// The name of the call in the script.
    pub name: String,
    /// The call and its arguments.
    pub call: ScriptCall,
    /// Its result in the application; None if the script does not give one.
    pub result: Option<i64>,
}

/// A call and its arguments: descriptors as they were in the application, paths as in the script. The length of a read or
/// write is the line's result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are the calls' arguments
pub enum ScriptCall {
    /// A word without quotes stands for a file that only this open uses.
    Open {
        path: String,
        flags: Flags,
    },
    Close(i64),
    Write {
        descriptor: i64,
        offset: Option<u64>,
    },
    Read {
        descriptor: i64,
        offset: Option<u64>,
    },
    Fsync(i64),
    Fdatasync(i64),
    Fstat(i64),
    Access(String),
    Stat(String),
    Lstat(String),
    Unlink(String),
}

/// The flags of an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    /// The file is opened for writing.
    pub writes: bool,
    /// `O_CREAT`.
    pub creates: bool,
    /// `O_EXCL`.
    pub exclusive: bool,
    /// `O_DIRECTORY`.
    pub directory: bool,
    /// All flags, as in asm-generic/fcntl.h.
    pub all: u32,
}

impl Flags {
    fn parse(word: &str) -> Flags {
        let has = |flag| word.split('|').any(|given| given == flag);
        Flags {
            writes: !has("O_RDONLY"),
            creates: has("O_CREAT"),
            exclusive: has("O_EXCL"),
            directory: has("O_DIRECTORY"),
            all: u32::try_from(words::of(word, OPEN)).unwrap_or_default(),
        }
    }
}

impl Line {
    fn parse(line: &str) -> std::result::Result<Self, String> {
        let mut words = line.split_whitespace();
        let mut word = |what: &str| words.next().ok_or_else(|| format!("{what} is missing"));
        let thread = number(word("the thread's number")?)?;
        let at = Duration::from_micros(number(word("the time")?)?);
        let name = word("the call's name")?.to_owned();
        let positioned = name.starts_with('p');
        let call = match name.as_str() {
            "open" => ScriptCall::Open {
                path: word("the path")?.to_owned(),
                flags: Flags::parse(word("the word of flags")?),
            },
            "write" | "pwrite" => ScriptCall::Write {
                descriptor: number(word("the descriptor")?)?,
                offset: offset(&mut word, positioned)?,
            },
            "read" | "pread" => ScriptCall::Read {
                descriptor: number(word("the descriptor")?)?,
                offset: offset(&mut word, positioned)?,
            },
            "close" => ScriptCall::Close(number(word("the descriptor")?)?),
            "fsync" => ScriptCall::Fsync(number(word("the descriptor")?)?),
            "fdatasync" => ScriptCall::Fdatasync(number(word("the descriptor")?)?),
            "fstat" | "fstat64" => ScriptCall::Fstat(number(word("the descriptor")?)?),
            "access" => ScriptCall::Access(word("the path")?.to_owned()),
            "stat" | "stat64" => ScriptCall::Stat(word("the path")?.to_owned()),
            "lstat" | "lstat64" => ScriptCall::Lstat(word("the path")?.to_owned()),
            "unlink" => ScriptCall::Unlink(word("the path")?.to_owned()),
            other => return Err(format!("`{other}` is not a call that can be replayed")),
        };
        let result = match &call {
            ScriptCall::Open { .. } => Some(number(word("the descriptor")?)?),
            ScriptCall::Write { .. } | ScriptCall::Read { .. } => {
                Some(bytes(word("the number of bytes")?)?)
            }
            _ => words.next().map(number).transpose()?,
        };
        Ok(Self {
            thread,
            at,
            name,
            call,
            result,
        })
    }

    /// Returns true if the call failed in the application.
    pub fn failed(&self) -> bool {
        self.result.is_some_and(|result| result < 0)
    }

    /// Returns the number of bytes of a read or write; 0 if it failed.
    pub fn bytes(&self) -> usize {
        let bytes = self.result.unwrap_or_default();
        usize::try_from(bytes).unwrap_or_default()
    }
}

fn offset<'w>(
    word: &mut impl FnMut(&str) -> std::result::Result<&'w str, String>,
    positioned: bool,
) -> std::result::Result<Option<u64>, String> {
    match positioned {
        true => Ok(Some(number(word("the offset")?)?)),
        false => Ok(None),
    }
}

fn bytes(word: &str) -> std::result::Result<i64, String> {
    match number(word)? {
        many if many > MOST_BYTES => Err(format!("{many} bytes are more than one call may have")),
        bytes => Ok(bytes),
    }
}

fn number<T: std::str::FromStr>(word: &str) -> std::result::Result<T, String> {
    word.parse()
        .map_err(|_| format!("`{word}` is not a valid number"))
}

/// Parses a script. Returns its lines in their order, which is thread after thread in what MobiGen writes.
///
/// # Errors
/// Returns an error if a line is malformed; it names the line and the reason.
pub fn parse(script: &Path, text: &str) -> Result<Vec<Line>> {
    let lines = (1_u64..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    let parsed = lines.map(|(at, line)| {
        Line::parse(line).map_err(|why| Error::Line {
            path: script.to_owned(),
            line: at,
            why,
        })
    });
    parsed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(text: &str) -> Line {
        Line::parse(text).unwrap()
    }

    #[test]
    fn a_line_of_each_kind() {
        let flags = Flags {
            writes: true,
            creates: true,
            exclusive: false,
            directory: false,
            all: 0o102,
        };
        let open = line("1 0 open \"/a/b\" O_RDWR|O_CREAT 36");
        let path = "\"/a/b\"".to_owned();
        assert_eq!(open.call, ScriptCall::Open { path, flags });
        assert_eq!(open.result, Some(36));
        let pread = line("2 1000 pread 7 24 16");
        let call = ScriptCall::Read {
            descriptor: 7,
            offset: Some(24),
        };
        assert_eq!((pread.call.clone(), pread.bytes()), (call, 16));
        let fstat = line("2 1000 fstat64 72 0");
        assert_eq!(
            (fstat.call, fstat.name.as_str(), fstat.result),
            (ScriptCall::Fstat(72), "fstat64", Some(0))
        );
        let fsync = line("3 1500 fsync 9");
        assert_eq!((fsync.thread, fsync.at), (3, Duration::from_micros(1500)));
        assert_eq!(fsync.result, None);
    }

    /// Such a line comes from a read of an empty pipe; Mobibench's own scripts have hundreds of them.
    #[test]
    fn a_call_that_failed_is_a_line() {
        let read = line("12 209437 read 173 -1");
        assert!(read.failed());
        assert_eq!((read.bytes(), read.result), (0, Some(-1)));
        assert!(line("1 5 access \"/data/x\" -1").failed());
        assert!(line("1 5 open \"/data/x\" O_RDONLY|O_LARGEFILE -1").failed());
    }

    #[test]
    fn what_is_no_line_is_named() {
        let wrong = |text: &str| parse(Path::new("s"), text).unwrap_err().to_string();
        assert_eq!(
            wrong("1 0 fsync 3\n1 0 rename \"/a\" \"/b\"\n"),
            "s:2: `rename` is not a call that can be replayed"
        );
        assert_eq!(
            wrong("1 0 write 3\n"),
            "s:1: the number of bytes is missing"
        );
        assert_eq!(wrong("1 x"), "s:1: `x` is not a valid number");
        assert_eq!(
            wrong("1 0 pwrite 3 0 67108865"),
            "s:1: 67108865 bytes are more than one call may have"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "([0-9]{1,3} [0-9]{1,5} (open|pwrite|close|stat) [ -~]{0,20}\n){0,4}|[ -~\n]{0,60}") {
            let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
            if let Ok(parsed) = parse(Path::new("s"), &text) {
                prop_assert_eq!(parsed.len(), lines);
            }
        }
    }
}
