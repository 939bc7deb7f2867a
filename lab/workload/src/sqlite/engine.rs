// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of the SQLite that does the work.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::bundled::Bundled;
use super::connection::Connection;
use super::library::{Library, Loaded};
use crate::{Error, Result, sqlite_version, sync_call};

/// The built-in SQLite, or one from a shared library.
pub(crate) enum Engine {
    BuiltIn,
    Library(Arc<Library>),
}

impl Engine {
    /// Loads the library if one is given; otherwise uses the built-in SQLite.
    pub(crate) fn new(library: Option<&Path>) -> Result<Self> {
        Ok(match library {
            None => Self::BuiltIn,
            Some(path) => Self::Library(Arc::new(Library::load(path)?)),
        })
    }

    /// Opens a database, and makes it if it does not exist.
    pub(crate) fn open(&self, path: &Path) -> Result<Box<dyn Connection>> {
        let opened: rusqlite::Result<Box<dyn Connection>> = match self {
            Self::BuiltIn => Bundled::open(path).map(|c| Box::new(c) as _),
            Self::Library(library) => Loaded::open(library, path).map(|c| Box::new(c) as _),
        };
        opened.map_err(Error::sqlite(path, "open"))
    }

    /// Returns the version, for example `3.54.1`.
    pub(crate) fn version(&self) -> String {
        match self {
            Self::BuiltIn => sqlite_version().to_owned(),
            Self::Library(library) => library.version(),
        }
    }

    /// Returns the call with which it syncs files; a library does not report it.
    pub(crate) fn sync_call(&self) -> &'static str {
        match self {
            Self::BuiltIn => sync_call(),
            Self::Library(_) => "sync call unknown",
        }
    }

    /// Adds a description of the SQLite in use to a payload's settings.
    pub(crate) fn describe(&self, settings: &mut BTreeMap<String, String>) {
        let mut put = |name: &str, value: String| settings.insert(name.to_owned(), value);
        put("sqlite_version", self.version());
        match self {
            Self::BuiltIn => {
                put("sync_call", sync_call().to_owned());
            }
            Self::Library(library) => {
                put("sqlite_library", library.path().display().to_string());
                put("sqlite_compile_options", library.options().join(" "));
            }
        }
    }
}
