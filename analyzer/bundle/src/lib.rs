// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading and writing of bundles, mostrace's saved traces. Capture writes them and the analyser reads them; this crate is
//! all that the two share. It knows the files and the records in them, and draws no conclusions from them.
//!
//! These are the main types, in the order in which one meets them. For writing:
//!
//! - [`Writer`] makes a bundle's folder and its files. [`layout`] has the files' names.
//! - [`blk_io_trace::encode`] makes a block event's record from an [`blk_io_trace::Event`].
//! - [`table::TableWriter`] writes a table of [`entry`] records.
//! - [`sparse::SparseWriter`] writes the snapshot of the filesystem's metadata.
//! - [`Manifest`] describes the capture: what was recorded, how, and what was lost. It is written when a capture begins and
//!   again when it ends.
//! - [`archive::pack`] packs the folder into one file.
//!
//! For reading:
//!
//! - [`Bundle`] opens a folder or an archive, checks the version and reads the manifest. [`Bundle::shortfalls`] lists what is
//!   missing.
//! - [`Bundle::event_files`] are the files of block events, one for each CPU, which [`blk_io_trace::decode`] reads.
//! - [`Bundle::table`] reads a table, one [`Entry`] after the other.
//! - [`Bundle::snapshot`] restores the snapshot to a temporary sparse file.
//! - [`segments`] orders the bundles of a recording that was cut, and combines their manifests.
//!
//! A bundle may come from anybody: damaged or hostile files are an [`Error`] that names the file and the place, never a panic,
//! and take bounded memory and disk space.
//!
//! ```
//! use std::io::Write;
//!
//! use mostrace_bundle::blk_io_trace::action::{BLK_TC_WRITE, ta};
//! use mostrace_bundle::blk_io_trace::{Decoded, Event, Layout, Version, decode, encode};
//! use mostrace_bundle::manifest::{SCHEMA, State};
//! use mostrace_bundle::temporary::TempFolder;
//! use mostrace_bundle::{Bundle, Manifest, Writer, archive, layout};
//!
//! // A bundle with one event: the completion of a write of 4 KiB at sector 2048.
//! let folder = TempFolder::new()?;
//! let writer = Writer::create(&folder.path().join("x.most"))?;
//! let event = Event {
//!     action: BLK_TC_WRITE | ta::COMPLETE,
//!     sector: 2048,
//!     bytes: 4096,
//!     ..Event::default()
//! };
//! let v7 = Layout {
//!     version: Version::V7,
//!     big_endian: false,
//! };
//! let mut record = Vec::new();
//! encode(&event, v7, &mut record)?;
//! let mut file = writer.folder().create(layout::trace_of_cpu(0))?;
//! file.write_all(&record)?;
//! writer.put_manifest(&Manifest {
//!     schema: SCHEMA,
//!     state: State::Complete,
//!     files: writer.sizes()?,
//!     ..Manifest::default()
//! })?;
//! let packed = folder.path().join("x.most.tar.zst");
//! archive::pack(writer.dir(), &packed)?;
//!
//! // The archive has it all; the tables were never written.
//! let bundle = Bundle::open(&packed)?;
//! assert!(bundle.shortfalls().is_empty());
//! assert_eq!(bundle.event_files().len(), 1);
//! let bytes = std::fs::read(&bundle.event_files()[0])?;
//! let Decoded::Record(event, length) = decode(&bytes) else {
//!     panic!("not a record");
//! };
//! assert_eq!((event.sector, event.bytes, length), (2048, 4096, 48));
//! assert!(bundle.table(layout::PROCESS, false)?.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
#![doc = include_str!("../FORMAT.md")]
#![forbid(unsafe_code)]
// A bundle may come from anybody: no byte of one may make a reader panic.
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::indexing_slicing
    )
)]

mod allowance;
pub mod archive;
pub mod blk_io_trace;
pub mod counters;
mod device_number;
pub mod entry;
mod error;
pub mod folder;
pub mod health;
pub mod layout;
mod length;
pub mod likes;
pub mod made;
pub mod manifest;
pub mod outfile;
pub mod packages;
mod reader;
pub mod segments;
mod shortfall;
pub mod sparse;
pub mod table;
pub mod temporary;
pub mod tracepoints;
pub mod units;
mod writer;
mod zones;

pub use counters::{Counter, Counters, Total, Totals};
pub use device_number::DeviceNumber;
pub use entry::{Entry, operation};
pub use error::Error;
pub use folder::Folder;
pub use health::Health;
pub use manifest::Manifest;
pub use packages::Packages;
pub use reader::Bundle;
pub use shortfall::Shortfall;
pub use writer::Writer;
pub use zones::Zones;
