// SPDX-License-Identifier: MIT OR Apache-2.0
//! This machine: its kernel, devices, mounts, users and tools, and the changes that tracing makes to it.
//!
//! Nothing here knows about recordings, sources or bundles' tables.

pub(crate) mod clock;
pub(crate) mod dev;
pub(crate) mod device;
pub(crate) mod filesystem;
pub(crate) mod first_page;
pub(crate) mod guard;
pub(crate) mod health;
pub(crate) mod kallsyms;
pub(crate) mod kernel;
pub(crate) mod leftovers;
pub(crate) mod lock;
pub(crate) mod loops;
pub(crate) mod mapper;
pub(crate) mod medium;
pub(crate) mod members;
pub(crate) mod memory;
pub(crate) mod mountinfo;
pub(crate) mod mounts;
pub(crate) mod openers;
mod paths;
pub(crate) mod processes;
pub(crate) mod queue;
mod session;
pub(crate) mod spare_time;
pub(crate) mod tool;
pub(crate) mod tracefs;
pub(crate) mod user;
pub(crate) mod wait;
