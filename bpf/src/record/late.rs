// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collects errors that occur after something has been recorded. The recording is worth keeping, so each error becomes a note. Only
//! a bundle that cannot be written ends the recording.

use std::path::{Path, PathBuf};

use crate::error::Result;

/// The notes of one bundle.
pub(super) struct Late {
    bundle: PathBuf,
    notes: Vec<String>,
}

impl Late {
    /// Starts without notes, for the bundle in this folder.
    pub fn new(bundle: &Path) -> Late {
        Late {
            bundle: bundle.to_owned(),
            notes: Vec::new(),
        }
    }

    /// Turns an error into a note that also says `what` it leaves undone, and returns None then.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn note<T>(&mut self, what: &str, result: Result<T>) -> Result<Option<T>> {
        match result {
            Err(e) if e.is_of(&self.bundle) => Err(e),
            other => Ok(self.read(what, other)),
        }
    }

    /// Does the same for an operation that only reads the bundle.
    pub fn read<T>(&mut self, what: &str, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(e) => {
                self.notes.push(format!("{what}: {e}"));
                None
            }
        }
    }

    /// Returns the notes.
    pub fn into_notes(self) -> Vec<String> {
        self.notes
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::error::Error;

    fn at(path: &str) -> Error {
        Error::Io {
            path: path.into(),
            source: io::ErrorKind::StorageFull.into(),
        }
    }

    #[test]
    fn what_is_not_of_the_bundle_is_a_note() {
        let mut late = Late::new(Path::new("/x/t.most"));
        assert_eq!(late.note("a", Ok(1)).unwrap(), Some(1));
        assert_eq!(
            late.note("not synced", Err::<(), _>(at("/mnt"))).unwrap(),
            None
        );
        assert!(late.note("b", Err::<(), _>(at("/x/t.most/f"))).is_err());
        let inner = mostrace_bundle::Error::Io {
            path: "/x/t.most/manifest.json".into(),
            source: io::ErrorKind::StorageFull.into(),
        };
        assert!(late.note("c", Err::<(), _>(inner.into())).is_err());
        assert_eq!(late.read("d", Err::<(), _>(at("/x/t.most/f"))), None);
        let notes = late.into_notes();
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].starts_with("not synced: /mnt: "), "{notes:?}");
    }
}
