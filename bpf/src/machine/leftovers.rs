// SPDX-License-Identifier: MIT OR Apache-2.0
//! Undoes what is left of a killed recorder whose guard was killed too: a lowered setting, and instances of tracefs, each of which has
//! a lock of its own that nobody holds then.

use std::fs;
use std::path::Path;

use crate::machine::kallsyms;
use crate::machine::lock::Lock;
use crate::machine::mounts::TRACEFS;

/// Undoes what is left. Returns what a reader of the recording should know.
pub(crate) fn sweep() -> Vec<String> {
    let gone = remove_instances(&Path::new(TRACEFS).join("instances"));
    let removed = (gone > 0).then(|| {
        format!(
            "instances of tracefs that killed recorders had left were removed before this recording: {gone}"
        )
    });
    [kallsyms::put_back(), removed]
        .into_iter()
        .flatten()
        .collect()
}

/// Removes the instances that nobody uses. Returns their number.
fn remove_instances(folder: &Path) -> usize {
    let instances = fs::read_dir(folder).into_iter().flatten().flatten();
    let ours = instances.filter(|i| i.file_name().to_str().is_some_and(is_instance));
    ours.filter(|instance| {
        let lock = Lock::of_folder(&instance.path());
        // An instance of an older recorder is not locked, but its pipes are open, so it stays.
        matches!(lock, Ok(Some(_))) && fs::remove_dir(instance.path()).is_ok()
    })
    .count()
}

/// Returns true for a name of the form `mostrace-PID-N-purpose`.
fn is_instance(name: &str) -> bool {
    let rest = name.strip_prefix("mostrace-");
    let pid = rest.and_then(|rest| rest.split_once('-'));
    pid.is_some_and(|(pid, _)| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_instances_of_recorders_that_are_gone_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = dir.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let (left, held) = (make("mostrace-17-0-events"), make("mostrace-1-entries"));
        for name in [
            "mostrace-x-events",
            "mostrace-",
            "mostrace-17",
            "other-17-events",
        ] {
            make(name);
        }
        let _lock = Lock::of_own_folder(&held).unwrap();
        assert_eq!(remove_instances(dir.path()), 1);
        assert!(!left.exists() && held.exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 5);
    }
}
