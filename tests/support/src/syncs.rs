// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who calls sync() while a test runs.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::tracefs::Instance;

const EVENT: &str = "events/syscalls/sys_enter_sync/enable";

/// Begins to watch. Returns what tells the first call since, as ftrace prints it. Where the kernel does not tell, no call is seen.
pub(crate) fn watch() -> impl FnOnce() -> Option<String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let instance = Path::new("/sys/kernel/tracing")
        .join(EVENT)
        .exists()
        .then(|| {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let instance = Instance::of(&format!("syncs-{number}"));
            instance.put(EVENT, "1");
            instance
        });
    move || {
        let text = instance?.text();
        let call = text.lines().find(|line| line.ends_with("sys_sync()"))?;
        Some(call.trim().to_owned())
    }
}
