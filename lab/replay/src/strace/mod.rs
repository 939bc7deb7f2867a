// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads operations from the output of strace, which needs no privilege:
//!
//! ```text
//! strace -f -y -ttt -T -o app.strace app
//! ```
//!
//! Other options are read too, and what is missing then is counted or unknown: `-y` shows the paths of files that were opened
//! before, `-ttt` the times of calls, and `-T` how long they took. strace does not see stores to mapped files; mappings that allow
//! stores are counted. Each call of the text is either an operation or counted in [`Recorded::left_out`].

mod args;
mod calls;
mod clock;
mod contents;
mod descriptors;
mod errno;
mod line;
mod names;
mod other;
mod tasks;
mod text;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use calls::{Asked, Reader};
use text::{Event, Text, What};

use crate::operation::Unknown;
use crate::table::Recorded;
use crate::{Error, Name, Result};

/// The folder of the recorded machine that the replay's folder stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StraceSettings {
    /// The replayed folder; calls on files elsewhere are left out.
    pub root: Name,
    /// The folder in which the program was started; relative paths count from it unless strace names their folder.
    pub folder: Option<Name>,
}

/// Reads the operations on files below `settings.root` from the texts of one strace, which are several with `-ff`. Their paths are
/// named in errors, and the number at the end of a path is the thread of lines that name none.
///
/// # Errors
/// Returns an error if a text has no line of strace, or if several texts have no times by which to order their calls.
pub fn read_strace(texts: &[(PathBuf, String)], settings: &StraceSettings) -> Result<Recorded> {
    let mut read = Vec::new();
    let whole = texts.iter().map(|(path, text)| (path, text::whole(text)));
    let whole: Vec<(&PathBuf, Cow<'_, str>)> = whole.collect();
    for (path, text) in &whole {
        read.push((*path, Text::read(path, text)?));
    }
    read.retain(|(_, text)| !text.events.is_empty());
    refuse_without_order(&read)?;
    let mut reader = Reader::new(settings);
    reader.recorded.unknown = Unknown {
        times: read.iter().any(|(_, text)| text.kind.is_made_up()),
        durations: read.iter().any(|(_, text)| text.lacks_durations),
    };
    for (why, lines) in read.iter().flat_map(|(_, text)| &text.left_out) {
        reader.recorded.leave_out(why, *lines);
    }
    let mut events: Vec<Event<'_>> = read.into_iter().flat_map(|(_, text)| text.events).collect();
    events.sort_by_key(|event| event.at_ns);
    for event in &events {
        take(&mut reader, event);
    }
    Ok(reader.finish())
}

fn take(reader: &mut Reader<'_>, event: &Event<'_>) {
    match &event.what {
        What::Exited => reader.exited(event.thread),
        What::Superseded(by) => reader.superseded(event.thread, *by),
        What::Unreturned(name) => reader.unreturned(event.thread, name),
        What::Call(call) => {
            let Some(returned) = line::returned(&call.text) else {
                return;
            };
            reader.call(&Asked {
                thread: event.thread,
                name: names::plain(call.name),
                args: args::Args::split(returned.arguments),
                value: returned.value,
                begin_ns: call.begin_ns,
                end_ns: call.end_ns,
            });
        }
    }
}

/// Several texts can only be put in order by times that all of them have.
fn refuse_without_order(read: &[(&PathBuf, Text<'_>)]) -> Result<()> {
    let [(_, first), (path, second), ..] = read else {
        return Ok(());
    };
    let refused = |path: &Path, why: &str| {
        let (path, why) = (path.to_owned(), why.to_owned());
        Err(Error::Refused { path, why })
    };
    match read.iter().find(|(_, text)| text.kind != first.kind) {
        Some((path, _)) => refused(
            path,
            "its times are of another kind than those of the other files",
        ),
        None if !second.kind.is_common() => refused(
            path,
            "the calls of several files cannot be put in order; record with strace -ff -ttt, or without -ff",
        ),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Call, Change, Target};

    fn calls(lines: &[&str]) -> Vec<Call> {
        let settings = StraceSettings {
            root: Name::new(b"/r").unwrap(),
            folder: Name::new(b"/r/in"),
        };
        let line = |(at, line): (usize, &&str)| format!("7 {at}.000000 {line} = 0 <0.000001>\n");
        let text: String = lines.iter().enumerate().map(line).collect();
        let recorded = read_strace(&[("x".into(), text)], &settings).unwrap();
        assert!(recorded.left_out.is_empty(), "{:?}", recorded.left_out);
        let operations = recorded.operations.into_iter();
        let calls = operations.map(|operation| operation.call);
        calls
            .filter(|call| !matches!(call, Call::Opened(_)))
            .collect()
    }

    /// The paths of the second call count from the folders that it names, and lead to the same files.
    #[test]
    fn a_call_that_names_folders_is_like_the_one_that_does_not() {
        for [plain, at] in [
            [r#"mkdir("a", 0750)"#, r#"mkdirat(3</r/in>, "a", 0750)"#],
            [
                r#"mknod("a", S_IFIFO|0600)"#,
                r#"mknodat(3</r/in>, "a", S_IFIFO|0600)"#,
            ],
            [r#"unlink("a")"#, r#"unlinkat(AT_FDCWD, "a", 0)"#],
            [r#"rmdir("a")"#, r#"unlinkat(3</r/in>, "a", AT_REMOVEDIR)"#],
            [
                r#"rename("a", "b")"#,
                r#"renameat(AT_FDCWD, "a", 3</r/in>, "b")"#,
            ],
            [
                r#"rename("a", "b")"#,
                r#"renameat2(3</r/in>, "a", AT_FDCWD, "b", 0)"#,
            ],
            [
                r#"link("a", "b")"#,
                r#"linkat(3</r/in>, "a", AT_FDCWD, "b", 0)"#,
            ],
            [r#"symlink("a", "b")"#, r#"symlinkat("a", 3</r/in>, "b")"#],
            [r#"chmod("a", 0644)"#, r#"fchmodat(3</r/in>, "a", 0644)"#],
            [
                r#"chmod("a", 0644)"#,
                r#"fchmodat2(3</r/in>, "a", 0644, 0)"#,
            ],
            [
                r#"lchown("a", 5, -1)"#,
                r#"fchownat(3</r/in>, "a", 5, -1, 0)"#,
            ],
            [
                r#"utimes("a", NULL)"#,
                r#"utimensat(3</r/in>, "a", NULL, 0)"#,
            ],
        ] {
            let both = calls(&[plain, at]);
            assert_eq!(both.len(), 2, "{at}");
            assert_eq!(both[0], both[1], "{at}");
        }
        let name = |path: &str| Name::new(path.as_bytes()).unwrap();
        assert_eq!(
            calls(&[
                r#"renameat2(3</r/in>, "a", 4</r>, "b", RENAME_NOREPLACE)"#,
                r#"symlinkat("t", 4</r>, "l")"#,
                r#"fchownat(4</r>, "c", 5, 6, 0)"#,
                r#"fchmod(5</r/d>, 0600)"#,
                r#"utimensat(5</r/d>, NULL, NULL, 0)"#,
            ]),
            [
                Call::Rename {
                    from: name("in/a"),
                    to: name("b"),
                    flags: 1
                },
                Call::Symlink {
                    target: b"t".to_vec(),
                    path: name("l")
                },
                Call::Change(Target::Path(name("c")), Change::Chown { uid: 5, gid: 6 }),
                Call::Change(
                    Target::File(crate::operation::FileId(1)),
                    Change::Chmod(0o600)
                ),
                Call::Change(Target::File(crate::operation::FileId(1)), Change::Utimes),
            ]
        );
    }
}
