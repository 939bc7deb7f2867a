// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of calls, and why calls cannot be read.

use std::collections::HashMap;

use mostrace_bundle::entry::RawCall;
use mostrace_trace::attribute::File;
use polars::prelude::PolarsError;

/// The calls cannot be read, or their table cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The table in the bundle.
    #[error(transparent)]
    Bundle(#[from] mostrace_bundle::Error),
    /// The table of rows.
    #[error(transparent)]
    Rows(#[from] PolarsError),
}

/// The files with their final names, by inode and generation.
pub(super) struct Files<'n>(HashMap<(u64, u32), &'n File>);

impl<'n> Files<'n> {
    pub fn new(files: impl IntoIterator<Item = &'n File>) -> Files<'n> {
        let keyed = files.into_iter().filter_map(|file| {
            let key = file.inode.zip(file.generation)?;
            file.path.as_ref().map(|_| (key, file))
        });
        Files(keyed.collect())
    }

    pub fn of(&self, raw: &RawCall) -> Option<&'n File> {
        let key = (raw.ino.get(), raw.generation.get());
        self.0.get(&key).copied()
    }
}
