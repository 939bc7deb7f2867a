// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of the format.

mod common;

mod archives;
mod blk_io_trace;
mod compact;
mod declaration;
mod folders;
mod opening;
mod shortfalls;
mod tables;
mod tracepoints;
