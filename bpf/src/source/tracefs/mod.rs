// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plain tracepoints, read through the recorder's own instance of tracefs. Nothing is loaded into the kernel, and nobody else's
//! tracing is changed. They are for kernels without BTF, such as a phone's stock kernel, and for events where probes do not run at all
//! times.
//!
//! The places of an event's fields are always read from its `format`, and never assumed from the kernel's version.

mod block_event;
mod entries;
mod events;
mod format;
mod instance;
mod names;
mod task;
mod tracepoints;

pub(crate) use entries::TracefsEntries;
pub(crate) use events::{NAMES as BLOCK_EVENTS, TracefsEvents};
pub(crate) use instance::check;
pub(crate) use names::ProcessNames;
