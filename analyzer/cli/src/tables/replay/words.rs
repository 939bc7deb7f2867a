// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words of `workload replay`'s command line, which `replay` runs once for each filesystem.

use std::ffi::OsString;
use std::path::PathBuf;

use mostrace_bundle::Bundle;
use mostrace_replay::Contents;

use crate::workload::replay::{How, Source};

impl Source {
    /// Returns true if the recording says what reached the device too.
    pub fn has_events(&self) -> anyhow::Result<bool> {
        Ok(self.is_bundle()? && Bundle::open(self.first())?.manifest().sources.events != "none")
    }

    /// Returns the absolute paths of the recordings.
    ///
    /// # Errors
    /// Returns an error if the present folder is unknown.
    pub fn absolute(&self) -> anyhow::Result<Vec<PathBuf>> {
        let paths = self.recordings.iter().map(std::path::absolute);
        Ok(paths.collect::<std::io::Result<_>>()?)
    }

    /// Returns the words for recordings of the same kind at `paths`.
    ///
    /// # Errors
    /// Returns an error if the present folder is unknown.
    pub fn words_for(&self, paths: &[PathBuf]) -> anyhow::Result<Vec<OsString>> {
        let mut words: Vec<OsString> = paths.iter().map(|path| path.clone().into()).collect();
        if let Some(root) = &self.root {
            words.extend(["--root".into(), std::path::absolute(root)?.into_os_string()]);
        }
        Ok(words)
    }
}

impl How {
    /// Returns the words for these options.
    pub fn words(&self) -> Vec<OsString> {
        let contents = match self.contents {
            Contents::Random => "random".to_owned(),
            Contents::Zeros => "zeros".to_owned(),
            Contents::Ratio(part) => part.to_string(),
        };
        let mut words = vec![format!("--contents={contents}").into()];
        words.extend(self.fast.then(|| "--fast".into()));
        words
    }
}
