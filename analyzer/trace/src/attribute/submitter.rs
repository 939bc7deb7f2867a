// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names the submitter in place of an unknown cause, marked as such. A loop device's worker thread writes to the device's
//! backing file, and is shown under the device's name.

use std::borrow::Cow;

use mostrace_bundle::manifest::Loop;

use super::{File, HashMap, Process};
use crate::text::escape;

/// Marks a submitter that stands in for an unknown cause.
pub const SUBMITTER: &str = " (submitter)";

/// Loop devices by the inodes of their backing files; the names are escaped for a terminal.
#[derive(Clone, Debug, Default)]
pub struct Loops(HashMap<u64, String>);

impl Loops {
    /// Takes the loop devices of a manifest.
    pub fn new(loops: &[Loop]) -> Loops {
        let name = |device: &Loop| (device.inode, escape(device.name.as_bytes()));
        Loops(loops.iter().map(name).collect())
    }

    /// Returns the loop device whose backing file this is.
    pub fn of(&self, file: &File) -> Option<&str> {
        self.0.get(&file.inode?).map(String::as_str)
    }
}

/// Returns the marked name of the submitter; None if it is unknown. `name` makes the name that processes have in this table;
/// a kernel thread is shown by its comm, or as the loop `device` that it serves.
pub fn submitter(
    process: &Process,
    device: Option<&str>,
    name: impl FnOnce() -> String,
) -> Option<String> {
    process.tgid.or(process.pid)?;
    let comm = || escape(process.comm.as_deref().unwrap_or_default());
    let name = match (process.is_called_like_the_kernels(), device) {
        (true, Some(device)) => device.to_owned(),
        (true, None) => comm(),
        (false, _) => name(),
    };
    Some(name + SUBMITTER)
}

/// Returns the name in `name:tgid`. A submitter stays marked, and a kernel thread whole if its name does not look like that.
pub fn program(process: &str) -> Cow<'_, str> {
    let Some(process) = process.strip_suffix(SUBMITTER) else {
        return Cow::Borrowed(process.rsplit_once(':').map_or(process, |(comm, _)| comm));
    };
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let name = process.rsplit_once(':').filter(|(_, tgid)| is_number(tgid));
    Cow::Owned(format!(
        "{}{SUBMITTER}",
        name.map_or(process, |(comm, _)| comm)
    ))
}

#[cfg(test)]
mod tests {
    use mostrace_map::class::{Kind, Provenance};

    use super::*;

    #[test]
    fn a_submitter_is_marked_and_a_loops_worker_is_its_device() {
        let process = |comm: &str, uid| Process {
            pid: Some(17),
            tgid: Some(17),
            uid: Some(uid),
            comm: Some(comm.as_bytes().into()),
            ..Process::default()
        };
        let loops = Loops::new(&[Loop {
            name: "loop\x1b0".into(),
            inode: 12,
        }]);
        let file = |inode| {
            let image = File {
                inode: Some(inode),
                generation: None,
                kind: Kind::Regular,
                path: Some(Box::from(&b"/a.img"[..])),
                name_withheld: false,
                provenance: Provenance::Live,
                role: None,
                final_path: None,
            };
            loops.of(&image).map(str::to_owned)
        };
        let said = |process: &Process, inode| {
            let name = || "app:17".to_owned();
            submitter(process, file(inode).as_deref(), name)
        };
        let worker = process("kworker/u8:1", 0);
        assert_eq!(said(&worker, 12).unwrap(), "loop\\x1b0 (submitter)");
        assert_eq!(said(&worker, 13).unwrap(), "kworker/u8:1 (submitter)");
        // Other tasks that write the backing file do so for themselves.
        assert_eq!(
            said(&process("app", 1000), 12).unwrap(),
            "app:17 (submitter)"
        );
        assert_eq!(said(&Process::default(), 12), None);
        assert_eq!(["app:17", "a:b:17"].map(program), ["app", "a:b"]);
        let marked = [
            "app:17 (submitter)",
            "jbd2/sda1-8 (submitter)",
            "kworker/0:1H (submitter)",
            "kworker/u8:1 (submitter)",
        ];
        assert_eq!(
            marked.map(program),
            [
                "app (submitter)",
                "jbd2/sda1-8 (submitter)",
                "kworker/0:1H (submitter)",
                "kworker/u8 (submitter)"
            ]
        );
    }
}
