// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads operations from the output of strace, which needs no privilege:
//!
//! ```text
//! strace -f -y -ttt -T -o app.strace app
//! ```
//!
//! strace needs the options `-f` and `-ttt`. `-y` shows the paths of files that were opened before, and `-T` the times at which
//! calls returned. strace does not see stores to mapped files; mappings that allow stores are counted.

mod args;
mod calls;
mod errno;
mod line;
mod tasks;

use std::collections::HashMap;
use std::path::Path;

use calls::{Asked, Reader};
use line::{Line, What};

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

/// A call whose end is in a later line.
struct Begun<'t> {
    name: &'t str,
    arguments: &'t str,
    time_ns: u64,
}

/// Reads the operations on files below `settings.root`; `path` is named in errors.
///
/// # Errors
/// Returns an error that names the line if one is not strace's or has no time.
pub fn read_strace(path: &Path, text: &str, settings: &StraceSettings) -> Result<Recorded> {
    let mut reader = Reader::new(settings);
    let mut begun: HashMap<u32, Begun<'_>> = HashMap::new();
    for (number, text) in (1_u64..).zip(text.lines()) {
        let malformed = |why| Error::Line {
            path: path.to_owned(),
            line: number,
            why,
        };
        let Some(line) = Line::parse(text).map_err(malformed)? else {
            continue;
        };
        let whole;
        let (name, arguments, returned, begin_ns) = match line.what {
            What::Exited => {
                begun.remove(&line.pid);
                reader.exited(line.pid);
                continue;
            }
            What::Nothing => continue,
            What::Unfinished { name, arguments } => {
                let time_ns = line.time_ns;
                begun.insert(
                    line.pid,
                    Begun {
                        name,
                        arguments,
                        time_ns,
                    },
                );
                continue;
            }
            What::Call {
                name,
                arguments,
                returned,
            } => (name, arguments, returned, line.time_ns),
            What::Resumed {
                name,
                arguments,
                returned,
            } => {
                let Some(first) = begun.remove(&line.pid).filter(|first| first.name == name) else {
                    return Err(malformed(format!("{name} resumes, but did not begin")));
                };
                whole = format!("{}{arguments}", first.arguments);
                (name, &whole[..], returned, first.time_ns)
            }
        };
        let end_ns = match returned.duration_ns {
            Some(duration) => begin_ns.saturating_add(duration),
            None => line.time_ns,
        };
        reader.call(&Asked {
            thread: line.pid,
            name,
            args: args::Args::split(arguments),
            value: returned.value,
            begin_ns,
            end_ns,
        });
    }
    Ok(reader.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Call, Target};

    fn calls(lines: &[&str]) -> Vec<Call> {
        let settings = StraceSettings {
            root: Name::new(b"/r").unwrap(),
            folder: Name::new(b"/r/in"),
        };
        let line = |(at, line): (usize, &&str)| format!("7 {at}.000000 {line} = 0 <0.000001>\n");
        let text: String = lines.iter().enumerate().map(line).collect();
        let recorded = read_strace(Path::new("x"), &text, &settings).unwrap();
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
                Call::Chown {
                    target: Target::Path(name("c")),
                    uid: 5,
                    gid: 6
                },
                Call::Chmod {
                    target: Target::File(crate::operation::FileId(1)),
                    mode: 0o600
                },
                Call::Utimes {
                    target: Target::File(crate::operation::FileId(1))
                },
            ]
        );
    }
}
