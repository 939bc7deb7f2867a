// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who stands in for a cause that is not known: the one that handed the bytes to the block layer, marked as such. A loop device's
//! worker writes for the device's backing file, and is called as the device is.

use mostrace_bundle::manifest::Loop;

use super::{File, HashMap, Process};
use crate::text::escape;

/// Marks who submitted what nobody is known to have caused.
pub const SUBMITTER: &str = " (submitter)";

/// Loop devices by the inodes of their backing files, under names that harm no terminal.
#[derive(Clone, Debug, Default)]
pub struct Loops(HashMap<u64, String>);

impl Loops {
    /// As a manifest names them.
    pub fn new(loops: &[Loop]) -> Loops {
        let name = |device: &Loop| (device.inode, escape(device.name.as_bytes()));
        Loops(loops.iter().map(name).collect())
    }

    /// The device that a file is the backing file of.
    pub fn of(&self, file: &File) -> Option<&str> {
        self.0.get(&file.inode?).map(String::as_str)
    }
}

/// Who submitted it, marked; `name` is what processes are called there. None: nobody is known. Of the kernel's threads the name
/// is enough.
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

/// Of `comm:tgid`, the name; a submitter stands for itself.
pub fn program(process: &str) -> &str {
    match process.ends_with(SUBMITTER) {
        true => process,
        false => process.rsplit_once(':').map_or(process, |(comm, _)| comm),
    }
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
        // Whoever else writes the backing file does so for itself.
        assert_eq!(
            said(&process("app", 1000), 12).unwrap(),
            "app:17 (submitter)"
        );
        assert_eq!(said(&Process::default(), 12), None);
        assert_eq!(["app:17", "a:b:17"].map(program), ["app", "a:b"]);
        assert_eq!(
            program("kworker/u8:1 (submitter)"),
            "kworker/u8:1 (submitter)"
        );
    }
}
