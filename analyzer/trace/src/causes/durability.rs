// SPDX-License-Identifier: MIT OR Apache-2.0
//! What asks for durability: everything in the kernel that returns only when something is on the disk. docs/GLOSSARY.md has the
//! same list for users.
//!
//! | what asks | in the kernel | how it is seen |
//! | --- | --- | --- |
//! | fsync, fdatasync | `vfs_fsync` | the call |
//! | msync(MS_SYNC) | `vfs_fsync_range` | the call, if the filesystem reports the sync (ext4, f2fs) |
//! | sync, syncfs | `ksys_sync`, `sync_filesystem` | the call; sync counts wherever it is made, as it is for all filesystems |
//! | sync_file_range | `sync_file_range` | the call; it asks the device for nothing |
//! | FIFREEZE, EXT4_IOC_CHECKPOINT | `freeze_super`, `jbd2_journal_flush` | the call, a sync |
//! | f2fs's ioctls | `f2fs_sync_fs`, `f2fs_do_sync_file` | the call: write a checkpoint, commit an atomic write |
//! | a write with O_SYNC, O_DSYNC, RWF_SYNC, RWF_DSYNC, `chattr +S` or a `sync` mount | `iocb_is_dsync` | the call, flag `THROUGH` |
//! | a fallocate with O_SYNC or O_DSYNC, on ext4 | `ext4_fc_commit` | the call, flag `THROUGH` |
//! | io_uring's requests for all these | `io_fsync`, `io_write` … | the request, like the call |
//! | a handle that waits for its commit (`dirsync`, `chattr +D`, `chattr +S`) | `ext4_handle_sync` | flag `THROUGH` of the call; flags `PART` and `THROUGH` if the call is none that is recorded (open, chmod …) |
//! | io_submit: FSYNC, FDSYNC | `aio_fsync_work` | the filesystem's report (ext4, f2fs), with the thread that submitted the request |
//! | a sync that is part of no recorded call: a write by io_submit, a 32-bit program, swapon, a copy-up, a loop device | `vfs_fsync_range` | the filesystem's report (ext4, f2fs), flag `PART` |
//! | umount, remount | `sync_filesystem` | not as a call: its flushes have the operation `mount` or `umount` |
//! | a direct write by io_submit that overwrites with FUA | `iomap_dio_bio_iter` | not: nothing reports the write |
//! | quotactl(Q_SYNC), FS_IOC_SHUTDOWN, emergency sync | `ext4_sync_fs`, `ext4_force_commit` | not |

use mostrace_bundle::entry::{CallKind, RawCall, call_flags};

use super::operation::is_sync;

/// Returns true if a call asks for durability. Every number of such calls comes from here.
pub fn asks(raw: &RawCall) -> bool {
    is_sync(CallKind::of(raw.kind.get())) || raw.head.flags.has(call_flags::THROUGH)
}
