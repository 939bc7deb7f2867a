// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells who else calls sync() while a test runs.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::tracefs::{self, Instance};

const EVENT: &str = "events/syscalls/sys_enter_sync/enable";

/// Begins to watch. Returns what tells the first call of another program since, as ftrace prints it. Where the kernel does not tell, no
/// call is seen.
pub fn watch() -> impl FnOnce() -> Option<String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let instance = tracefs::folder().join(EVENT).exists().then(|| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let instance = Instance::of(&format!("syncs-{number}"));
        // With event-fork, the processes that these start are left out too.
        instance.put("options/event-fork", "1");
        instance.put("set_event_notrace_pid", &own_threads());
        instance.put(EVENT, "1");
        instance
    });
    move || {
        let text = instance?.text();
        let call = text.lines().find(|line| line.ends_with("sys_sync()"))?;
        Some(call.trim().to_owned())
    }
}

fn own_threads() -> String {
    let threads = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let threads = threads.filter_map(|thread| thread.file_name().into_string().ok());
    threads.collect::<Vec<_>>().join(" ")
}
