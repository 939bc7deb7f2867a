// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of a bundle's files. Other files in the folder are not read.

use std::path::Path;

use crate::error::{At, Error};

/// The description of the capture: what was recorded, and how.
pub const MANIFEST: &str = "manifest.json";
/// Base name of the event files in blktrace's form, as passed to `blkparse -i`.
pub const TRACE: &str = "trace";
/// Base name of the event files in the [compact](crate::blk_io_trace::compact) form.
pub const EVENTS: &str = "events";
/// The process table.
pub const PROCESS: &str = "process.entries";
/// The file table.
pub const FILE: &str = "file.entries";
/// The dirtier table.
pub const DIRTIER: &str = "dirtier.entries";
/// The table of metadata blocks that were freed.
pub const FREED: &str = "freed.entries";
/// The table of file names from the mounted tree.
pub const NAMES: &str = "names.entries";
/// The tables with entries of bios.
pub const TABLES: [&str; 3] = [PROCESS, FILE, DIRTIER];
/// The table of a journal's handles.
pub const HANDLE: &str = "handle.entries";
/// The table of the blocks that handles dirtied.
pub const DIRTIED: &str = "dirtied.entries";
/// The table of system calls.
pub const CALL: &str = "call.entries";
/// The table with the names of the files to which calls refer.
pub const CALLED: &str = "called.entries";
/// The table of f2fs's checkpoints and garbage collection.
pub const F2FS: &str = "f2fs.entries";
/// The tables of causes.
pub const CAUSES: [&str; 4] = [HANDLE, DIRTIED, CALL, F2FS];
/// The table of the processes that the command and its descendants started.
pub const FORK: &str = "fork.entries";
/// The table of the FUSE requests that daemons served.
pub const SERVED: &str = "served.entries";
/// The table of the cgroups of processes.
pub const CGROUP: &str = "cgroup.entries";
/// The table of the names of processes.
pub const COMM: &str = "comm.entries";
/// The table of the stacks that calls were made and handles begun from.
pub const STACK: &str = "stack.entries";
/// The table of the operations that changed the filesystem, for a replay.
pub const OPERATION: &str = "operation.entries";
/// The apps of an Android device by user id.
pub const PACKAGES: &str = "packages.list";
/// The filesystem's metadata.
pub const SNAPSHOT: &str = "snapshot.sparse.zst";

/// Returns the name of the event file of one CPU in blktrace's form.
pub fn trace_of_cpu(cpu: u32) -> String {
    format!("{TRACE}.blktrace.{cpu}")
}

/// Returns the name of the event file of one CPU in the compact form.
pub fn events_of_cpu(cpu: u32) -> String {
    format!("{EVENTS}.{cpu}")
}

/// Returns the name under which `manifest.counts` has the number of a table's entries.
pub fn count_of(table: &str) -> String {
    table.replace('.', "_")
}

/// Returns true if a bundle may hold a file called `name`.
pub fn is_known(name: &str) -> bool {
    [MANIFEST, PACKAGES, SNAPSHOT].contains(&name) || is_table(name) || cpu_of(name).is_some()
}

fn is_table(name: &str) -> bool {
    TABLES.contains(&name)
        || CAUSES.contains(&name)
        || [
            FREED, NAMES, CALLED, FORK, SERVED, CGROUP, COMM, STACK, OPERATION,
        ]
        .contains(&name)
}

/// Returns the CPU in an event file's name, of either form; None if it is not the name of one.
pub fn cpu_of(name: &str) -> Option<u32> {
    let (_, digits) = name.rsplit_once('.')?;
    let cpu = digits.parse().ok()?;
    // Each CPU has one spelling: no sign, no leading zeros.
    [trace_of_cpu(cpu), events_of_cpu(cpu)]
        .contains(&name.to_owned())
        .then_some(cpu)
}

/// Returns true for the name of an event file in the compact form.
pub fn is_compact(name: &str) -> bool {
    cpu_of(name).is_some_and(|cpu| events_of_cpu(cpu) == name)
}

/// Returns the names of the bundle's files in `dir`, unordered.
pub fn files_in(dir: &Path) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).at(dir)? {
        if let Ok(name) = entry.at(dir)?.file_name().into_string()
            && is_known(&name)
        {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_their_counts() {
        assert_eq!(
            TABLES.map(count_of),
            ["process_entries", "file_entries", "dirtier_entries"]
        );
    }

    #[test]
    fn only_our_own_names_are_known() {
        for name in [
            MANIFEST,
            PROCESS,
            FILE,
            DIRTIER,
            HANDLE,
            DIRTIED,
            CALL,
            CALLED,
            F2FS,
            FORK,
            CGROUP,
            COMM,
            STACK,
            OPERATION,
            NAMES,
            PACKAGES,
            SNAPSHOT,
            "trace.blktrace.0",
            "trace.blktrace.17",
            "events.0",
            "events.17",
        ] {
            assert!(is_known(name), "{name}");
        }
        for name in [
            "",
            "x",
            "../manifest.json",
            "trace.blktrace.",
            "trace.blktrace.+1",
            "trace.blktrace.01",
            "events.",
            "events.01",
        ] {
            assert!(!is_known(name), "{name}");
        }
    }
}
