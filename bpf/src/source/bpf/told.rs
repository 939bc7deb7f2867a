// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracepoints that decide which probes are used. What a kernel with the patches of `kernel-patches/upstream` reports is
//! preferred to probes in the kernel's functions, and to anything that is deduced from its private structs.

use std::fs;
use std::path::Path;

use crate::machine::kernel;
use crate::machine::mounts::Mount;

/// Tells which of these tracepoints the kernel has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Reports every modification of a journal's buffer (`jbd2_dirty_metadata`).
    pub modifications: bool,
    /// Reports the file of every bio of iomap's direct IO (`iomap_dio_submit_bio`).
    pub direct: bool,
    /// Reports the folio whose write begins (`writeback_start_folio`).
    pub writing: bool,
    /// Reports the inode for which a handle of ext4's begins (`ext4_journal_start_inode`, from 6.2 on). jbd2's functions have had
    /// their present arguments since then.
    pub started_inodes: bool,
}

impl Told {
    /// Looks for the tracepoints of this kernel. Without tracefs, there are none.
    pub fn read() -> Told {
        let Ok(mount) = Mount::tracefs() else {
            return Told::default();
        };
        let mut told = Told::of(mount.path());
        mount.undo();
        // If the kernel skipped a run, a page would keep the dirtier of the write before.
        told.writing &= !kernel::preempts_probes();
        told
    }

    /// Looks for the tracepoints below a folder like tracefs. An event of the same name that lacks the field is a different one.
    fn of(tracefs: &Path) -> Told {
        let has = |event: &str, field: &str| {
            let format = tracefs.join("events").join(event).join("format");
            fs::read_to_string(format).is_ok_and(|format| format.contains(field))
        };
        Told {
            modifications: has("jbd2/jbd2_dirty_metadata", "int credit;"),
            direct: has("iomap/iomap_dio_submit_bio", "loff_t pos;"),
            writing: has("writeback/writeback_start_folio", " index;"),
            started_inodes: has("ext4/ext4_journal_start_inode", " ino;"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_counts_if_it_has_the_field() {
        let tracefs = tempfile::tempdir().unwrap();
        assert_eq!(Told::of(tracefs.path()), Told::default());
        let write = |event: &str, field: &str| {
            let folder = tracefs.path().join("events").join(event);
            fs::create_dir_all(&folder).unwrap();
            fs::write(
                folder.join("format"),
                format!("\tfield:{field}\toffset:8;\n"),
            )
            .unwrap();
        };
        // This is another project's event of this name, which passes only the handle.
        write("jbd2/jbd2_dirty_metadata", "u64 block;");
        write("iomap/iomap_dio_submit_bio", "loff_t pos;");
        let told = Told::of(tracefs.path());
        assert!(told.direct && !told.modifications && !told.writing);
        write("jbd2/jbd2_dirty_metadata", "int credit;");
        write("writeback/writeback_start_folio", "unsigned long index;");
        let told = Told::of(tracefs.path());
        assert!(told.direct && told.modifications && told.writing);
    }
}
