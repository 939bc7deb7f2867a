// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads operations from a MobiGen [script](script), which lists the system calls of an Android application.
//!
//! A script does not say when calls ended: each call counts as ended when it began.

mod script;

use std::collections::HashMap;
use std::path::Path;

pub use script::{Flags, Line, ScriptCall, parse};

use crate::operation::{Call, FileCall, FileId, Opened, Operation};
use crate::table::Recorded;
use crate::{Name, Result};

const O_TRUNC: u32 = 0o1000;
const O_APPEND: u32 = 0o2000;

const LOOKS: &str = "it only reads or looks a file up";
const NO_FILE: &str = "its descriptor was not opened in the script";
const NO_PATH: &str = "its path leads nowhere";

/// An open file.
struct Open {
    id: FileId,
    opened_by: usize,
    position: u64,
    append: bool,
    changed: bool,
}

/// Reads the operations of a script.
///
/// # Errors
/// Returns an error that names the line if one is malformed.
pub fn read_mobigen(path: &Path, text: &str) -> Result<Recorded> {
    let mut lines = parse(path, text)?;
    lines.sort_by_key(|line| line.at);
    let mut reader = Reader::default();
    for line in &lines {
        match reader.call(line) {
            Ok(call) => reader.push(line, call),
            Err(why) => {
                reader.recorded.leave_out(why, 1);
            }
        }
    }
    reader.recorded.unknown.durations = true;
    Ok(reader.recorded)
}

#[derive(Default)]
struct Reader {
    recorded: Recorded,
    /// The open files by descriptor; all threads share one table of descriptors.
    open: HashMap<i64, Open>,
    files: u64,
}

impl Reader {
    fn push(&mut self, line: &Line, call: Call) {
        let at = u64::try_from(line.at.as_nanos()).unwrap_or(u64::MAX);
        let result = match call {
            Call::Of(_, FileCall::Write { .. }) => line.result.unwrap_or(0),
            // -1 stands for any error.
            _ => line.result.unwrap_or(0).min(0),
        };
        self.recorded.operations.push(Operation {
            thread: line.thread,
            process: 1,
            begin_ns: at,
            end_ns: at,
            call,
            result,
        });
    }

    fn call(&mut self, line: &Line) -> std::result::Result<Call, &'static str> {
        let bytes = u64::try_from(line.bytes()).unwrap_or_default();
        Ok(match &line.call {
            ScriptCall::Open { path, flags } => self.opened(line, path, flags)?,
            ScriptCall::Close(number) => {
                Call::Of(self.open.remove(number).ok_or(NO_FILE)?.id, FileCall::Close)
            }
            ScriptCall::Write { descriptor, offset } => {
                let file = self.file(*descriptor)?;
                let at = offset.unwrap_or(file.position);
                if offset.is_none() {
                    file.position = at.saturating_add(bytes);
                }
                file.changed = true;
                let offset = (!file.append).then_some(at);
                Call::Of(file.id, FileCall::Write { offset, bytes })
            }
            ScriptCall::Read { descriptor, offset } => {
                let file = self.file(*descriptor)?;
                let end = offset.unwrap_or(file.position).saturating_add(bytes);
                if offset.is_none() {
                    file.position = end;
                }
                let (opened_by, changed) = (file.opened_by, file.changed);
                self.had(opened_by, changed, end);
                return Err(LOOKS);
            }
            ScriptCall::Fsync(number) => Call::Of(self.file(*number)?.id, FileCall::Fsync),
            ScriptCall::Fdatasync(number) => Call::Of(self.file(*number)?.id, FileCall::Fdatasync),
            ScriptCall::Unlink(path) => Call::Unlink(name(path)?),
            ScriptCall::Fstat(_)
            | ScriptCall::Access(_)
            | ScriptCall::Stat(_)
            | ScriptCall::Lstat(_) => return Err(LOOKS),
        })
    }

    fn file(&mut self, number: i64) -> std::result::Result<&mut Open, &'static str> {
        self.open.get_mut(&number).ok_or(NO_FILE)
    }

    fn opened(
        &mut self,
        line: &Line,
        path: &str,
        flags: &Flags,
    ) -> std::result::Result<Call, &'static str> {
        let path = match path.starts_with('"') {
            true => name(path)?,
            // A word without quotes stands for a file that only this open uses.
            false => name(&format!("temp_{}_{}.dat", line.thread, self.files))?,
        };
        let descriptor = line.result.filter(|number| *number >= 0);
        self.files = self.files.saturating_add(1);
        let id = FileId(self.files);
        if let Some(number) = descriptor {
            let open = Open {
                id,
                opened_by: self.recorded.operations.len(),
                position: 0,
                append: flags.all & O_APPEND != 0,
                changed: flags.all & O_TRUNC != 0,
            };
            self.open.insert(number, open);
        }
        Ok(Call::Open(Opened {
            file: descriptor.map(|_| id),
            path: Some(path),
            flags: flags.all,
            mode: 0o666,
            ..Opened::default()
        }))
    }

    /// Notes that what was read existed when the file was opened, unless it was changed since.
    fn had(&mut self, opened_by: usize, changed: bool, end: u64) {
        let operation = self.recorded.operations.get_mut(opened_by);
        if let Some(Call::Open(opened)) = operation.map(|operation| &mut operation.call)
            && !changed
        {
            opened.size = Some(opened.size.unwrap_or(0).max(end));
        }
    }
}

/// Returns a path of the script.
fn name(path: &str) -> std::result::Result<Name, &'static str> {
    Name::new(path.trim_matches('"').as_bytes()).ok_or(NO_PATH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_without_quotes_is_a_file_of_its_own() {
        let text = "1 0 open /data/data O_RDWR|O_CREAT 5\n2 10 open /data/data O_RDWR|O_CREAT 6\n";
        let recorded = read_mobigen(Path::new("s"), text).unwrap();
        let paths = recorded.operations.iter().map(|o| match &o.call {
            Call::Open(opened) => opened.path.clone().unwrap(),
            other => panic!("{other:?}"),
        });
        let paths: std::collections::BTreeSet<Name> = paths.collect();
        assert_eq!(paths.len(), 2);
    }

    #[test]
    fn positions_and_sizes_are_followed() {
        let text = "1 0 open \"/data/a\" O_RDWR|O_CREAT 5\n1 10 read 5 100\n1 20 write 5 50\n\
                    1 30 pwrite 5 0 4096\n1 40 fsync 5 0\n1 50 stat \"/x\" -1\n1 60 close 5 0\n1 70 fsync 5 -1\n";
        let recorded = read_mobigen(Path::new("s"), text).unwrap();
        let kinds: Vec<&str> = recorded.operations.iter().map(|o| o.call.kind()).collect();
        assert_eq!(kinds, ["open", "write", "write", "fsync", "close"]);
        let Call::Open(opened) = &recorded.operations[0].call else {
            panic!("{:?}", recorded.operations[0]);
        };
        assert_eq!((opened.size, opened.flags), (Some(100), 0o102));
        let file = opened.file.unwrap();
        let of_file = |call: &Call| !matches!(call, Call::Of(of, _) if *of != file);
        assert!(recorded.operations.iter().all(|o| of_file(&o.call)));
        let writes = recorded.operations.iter().filter_map(|o| match o.call {
            Call::Of(_, FileCall::Write { offset, bytes }) => {
                Some((offset, bytes, o.begin_ns, o.result))
            }
            _ => None,
        });
        let writes: Vec<_> = writes.collect();
        assert_eq!(
            writes,
            [(Some(100), 50, 20_000, 50), (Some(0), 4096, 30_000, 4096)]
        );
        assert_eq!(
            recorded.left_out.values().copied().collect::<Vec<_>>(),
            [2, 1]
        );
    }
}
