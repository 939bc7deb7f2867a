// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads operations from the output of strace, which needs no privilege:
//!
//! ```text
//! strace -f -y -ttt -T -o app.strace app
//! ```
//!
//! `-f` and `-ttt` are needed. With `-y` the paths of files that were open before are known, with `-T` the time at which
//! a call returned. strace sees no stores to mapped files; mappings that may be stored to are counted.

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
    /// Calls on files elsewhere are left out.
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
