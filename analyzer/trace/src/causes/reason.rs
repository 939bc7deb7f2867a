// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why f2fs wrote a checkpoint.

use mostrace_bundle::entry::{CallKind, cp};
use strum::{FromRepr, IntoStaticStr, VariantArray};

/// Why f2fs wrote a checkpoint. The first values are those of `enum cp_reason_type` in fs/f2fs/f2fs.h: why an fsync needed
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[repr(u16)]
pub enum Reason {
    /// The synced inode is not a regular file.
    NonRegular = 1,
    /// The file is compressed.
    Compressed = 2,
    /// The file has several names.
    Hardlink = 3,
    /// Something was done that only a checkpoint makes durable.
    SbNeedCp = 4,
    /// The file's directory is unknown.
    WrongPino = 5,
    /// There is no room for the nodes that recovery would read.
    NoSpcRoll = 6,
    /// The file's directory was made since the last checkpoint.
    NodeNeedCp = 7,
    /// The filesystem is mounted with `fastboot`.
    FastbootMode = 8,
    /// The filesystem is mounted with two logs.
    SpecLogNum = 9,
    /// A name in its directory was changed (`fsync_mode=strict`).
    RecoverDir = 10,
    /// Attributes of its directory were changed.
    XattrDir = 11,
    /// A task made a call for durability: an fsync for which the kernel gave no reason, or another call.
    Fsync = 12,
    /// A task called sync or syncfs.
    Sync = 13,
    /// A task used f2fs's ioctl for it.
    Ioctl = 14,
    /// Garbage was collected.
    Gc = 15,
    /// Free blocks were discarded.
    Discard = 16,
    /// The filesystem was unmounted.
    Umount = 17,
    /// Files were recovered.
    Recovery = 18,
    /// Checkpoints were switched off.
    Pause = 19,
    /// The filesystem was resized.
    Resize = 20,
    /// A kernel thread asked for it: enough changes or enough time had accumulated.
    Background = 21,
    /// A task asked for it in another call.
    Other = 22,
}

impl Reason {
    /// Every value, in the order of their codes.
    pub const ALL: &[Reason] = Reason::VARIANTS;

    /// Decodes f2fs's flags of a checkpoint; None if a task asked for it.
    pub(super) fn of_bits(bits: u16) -> Option<Reason> {
        let by_bit = [
            (cp::UMOUNT | cp::FASTBOOT, Reason::Umount),
            (cp::RECOVERY, Reason::Recovery),
            (cp::DISCARD | cp::TRIMMED, Reason::Discard),
            (cp::PAUSE, Reason::Pause),
            (cp::RESIZE, Reason::Resize),
        ];
        let found = by_bit.iter().find(|(bit, _)| bits & bit != 0);
        found.map(|(_, reason)| *reason)
    }

    /// Derives the reason from the call of the task that asked for it and from f2fs's `cp_reason`.
    pub(super) fn of_call(call: CallKind, cp_reason: u16) -> Reason {
        let told =
            Reason::from_repr(cp_reason).filter(|&reason| (reason as u16) < Reason::Fsync as u16);
        told.unwrap_or(match call {
            CallKind::Sync => Reason::Sync,
            CallKind::Checkpoint => Reason::Ioctl,
            CallKind::Gc => Reason::Gc,
            CallKind::Fsync
            | CallKind::Fdatasync
            | CallKind::Msync
            | CallKind::SyncRange
            | CallKind::AtomicCommit => Reason::Fsync,
            _ => Reason::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_the_checkpoints_the_fsyncs_or_the_calls() {
        assert_eq!(
            Reason::of_bits(cp::UMOUNT | cp::TRIMMED),
            Some(Reason::Umount)
        );
        assert_eq!(Reason::of_bits(cp::DISCARD), Some(Reason::Discard));
        assert_eq!(Reason::of_bits(cp::SYNC), None);
        for (call, cp_reason, reason) in [
            (CallKind::Fsync, 7, Reason::NodeNeedCp),
            (CallKind::Fsync, 0, Reason::Fsync),
            // The reason is a newer kernel's.
            (CallKind::Fsync, 12, Reason::Fsync),
            (CallKind::Sync, 0, Reason::Sync),
            (CallKind::Write, 0, Reason::Other),
        ] {
            assert_eq!(
                Reason::of_call(call, cp_reason),
                reason,
                "{call:?} {cp_reason}"
            );
        }
    }

    #[test]
    fn codes_are_one_after_another() {
        for (at, reason) in (1..).zip(Reason::ALL) {
            assert_eq!(*reason as u16, at);
        }
    }
}
