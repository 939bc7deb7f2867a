// SPDX-License-Identifier: MIT OR Apache-2.0
//! Here is what the kernel's tracepoints tell of files, whether as records of a running kernel or as lines of a text: who queues a bio, and
//! to which file it belongs.
//!
//! ```text
//! f2fs_write_begin ──→ regular files
//! f2fs_submit_page_write ────┐ inode, page → block
//! ext4_ext_map_blocks_exit ──┼─→ extents ──┐
//! ext4_free_blocks ──────────┘             ├─→ entries of a bio, when it is queued
//! f2fs_datawrite_start ──→ names ──────────┤
//! block_bio_queue ──→ thread ──────────────┘
//! ```
//! If the filesystem is on a mapped device (dm), bios are queued twice: on that device by the thread that wants them, and on the
//! disk below by any thread. The name of a file is known only if one of the filesystem's events has it: f2fs has one for files that
//! are written, ext4 has one in Android's kernels up to 5.10 alone.

mod bio;
mod builder;
mod extents;
mod follower;
mod owner;
mod paths;
mod tells;
mod volume;

pub use bio::{Bio, Moment};
pub use follower::Follower;
pub use owner::Thread;
pub use tells::{EVENTS, FOLLOWING, Fields, PATHS, Tells, placed};
pub use volume::Volume;
