// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments that hide names.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use mostrace_tables::facts::Key;

/// `--anonymize`, `--key`.
#[derive(clap::Args)]
pub struct HideArgs {
    /// Replace names of processes, apps, files, folders, devices and of the recording by their keyed hash; known extensions
    /// are kept
    #[arg(long)]
    anonymize: bool,
    /// The key, any file of at least 32 bytes: the same key yields the same names in several outputs. Without it, a random
    /// key is used once
    #[arg(long, value_name = "FILE", requires = "anonymize")]
    key: Option<PathBuf>,
}

impl HideArgs {
    /// Returns the key if names are to be hidden.
    ///
    /// # Errors
    /// Returns an error if the key cannot be read.
    pub fn key(&self) -> anyhow::Result<Option<Key>> {
        let made = || read(self.key.as_deref());
        self.anonymize.then(made).transpose()
    }
}

/// Reads a key from a file, or makes a random one.
fn read(path: Option<&Path>) -> anyhow::Result<Key> {
    let from = path.unwrap_or(Path::new("/dev/urandom"));
    let name = || from.display().to_string();
    let mut file = fs::File::open(from).with_context(name)?;
    let mut key = [0; 32];
    file.read_exact(&mut key).with_context(name)?;
    Ok(key)
}
