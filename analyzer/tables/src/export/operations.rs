// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a bundle that holds only a recording's operations, so that an application's calls can be replayed by somebody
//! who must not see the rest of the recording, nor, with a key, its names.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use mostrace_bundle::entry::EntryRef;
use mostrace_bundle::operation::{OperationKind, OperationRef};
use mostrace_bundle::table::TableWriter;
use mostrace_bundle::{Bundle, Counters, Manifest, Writer, layout, manifest::Sources};

use crate::analysis::hidden_manifest;
use crate::facts::{Key, Texts};

/// A recording's operations could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The recording has no table of operations.
    #[error("{}: has no operations: record them with --operations", .0.display())]
    None(PathBuf),
    /// The bundle cannot be read, or the new one cannot be written.
    #[error(transparent)]
    Bundle(#[from] mostrace_bundle::Error),
    /// A table cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The table.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The hashed names of an operation are longer than a record may be.
    #[error("{}: {why}", path.display())]
    Names {
        /// The table.
        path: PathBuf,
        /// What is too long.
        why: String,
    },
}

/// Writes the operations of `bundle` into the new folder `to`, with hashed names if there is a key.
///
/// Each component of a path is hashed on its own, and keeps a known extension and a suffix that SQLite appends, so that a
/// replay finds the same tree, and files keep their roles. Times, sizes, numbers of users, processes and inodes stay.
///
/// # Errors
/// Returns an error if the bundle has no operations or is damaged, or the folder cannot be written.
pub fn write(bundle: &Bundle, to: &Path, key: Option<&Key>) -> Result<(), Error> {
    let table = bundle.table(layout::OPERATION, false)?;
    let mut table = table.ok_or_else(|| Error::None(bundle.path().to_owned()))?;
    let writer = Writer::create(to)?;
    let path = writer.path(layout::OPERATION);
    let failed = |source| Error::Write {
        path: path.clone(),
        source,
    };
    let file = writer.folder().create(OsStr::new(layout::OPERATION))?;
    let mut copy = TableWriter::new(file).map_err(failed)?;
    while let Some(entry) = table.next_if(|_| true)? {
        let EntryRef::Operation(operation) = entry else {
            continue;
        };
        let record = match key {
            Some(key) => hidden(&operation, &Texts::new(key)),
            None => operation.encode(),
        };
        let named = |why| Error::Names {
            path: path.clone(),
            why,
        };
        copy.push(&record.map_err(named)?).map_err(failed)?;
    }
    copy.flush().map_err(failed)?;
    let files = writer.sizes()?;
    let manifest = manifest(bundle.manifest(), key);
    writer.put_manifest(&Manifest { files, ..manifest })?;
    Ok(())
}

/// Returns the record of an operation with hashed names.
fn hidden(of: &OperationRef<'_>, texts: &Texts<'_>) -> Result<Vec<u8>, String> {
    let other = match OperationKind::of(of.raw.kind.get()) {
        OperationKind::Setxattr | OperationKind::Removexattr => texts.attribute(of.other),
        _ => texts.path(of.other),
    };
    let path = texts.path(of.path);
    let (path, other) = (&path, &other);
    OperationRef { path, other, ..*of }.encode()
}

/// Returns the manifest of a bundle that holds only operations.
fn manifest(of: &Manifest, key: Option<&Key>) -> Manifest {
    let of = match key {
        Some(key) => hidden_manifest(of, key),
        None => of.clone(),
    };
    let none = || "none".to_owned();
    let counters = Counters::NotCompared("the recording was reduced to its operations".into());
    let [mut losses, mut counts] = [of.losses, of.counts];
    losses.retain(|name, _| name.starts_with("operations"));
    counts.retain(|name, _| name.starts_with("operation"));
    Manifest {
        tool: concat!("mostrace ", env!("CARGO_PKG_VERSION")).into(),
        sources: Sources {
            events: none(),
            entries: none(),
            causes: none(),
            ..of.sources
        },
        losses,
        counts,
        counters: Some(counters),
        totals: None,
        health: None,
        causes: None,
        functions: Vec::new(),
        loops: Vec::new(),
        mapping: Vec::new(),
        snapshot: None,
        ..of
    }
}
