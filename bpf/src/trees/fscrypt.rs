// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of an encrypted folder's key (`include/uapi/linux/fscrypt.h`), and the generation of a file.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};
use rustix::io;
use rustix::ioctl::{Getter, Opcode, Updater, ioctl, opcode};
use zerocopy::byteorder::native_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// `FS_IOC_GETVERSION` is declared with a long, but the filesystems write 32 bits.
const GETVERSION: Opcode = opcode::read::<std::ffi::c_long>(b'v', 1);
const GET_ENCRYPTION_POLICY_EX: Opcode = opcode::read_write::<[u8; 9]>(b'f', 22);
const GET_ENCRYPTION_KEY_STATUS: Opcode = opcode::read_write::<KeyStatus>(b'f', 26);

const FSCRYPT_KEY_STATUS_PRESENT: u32 = 2;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct PolicyEx {
    policy_size: U64,
    /// The version and the fields that follow from it; v1, which is shorter, ends with its descriptor, v2 with its identifier.
    policy: [u8; 24],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct KeyStatus {
    kind: U32,
    reserved: U32,
    key: [u8; 32],
    more_reserved: [U32; 6],
    status: U32,
    status_flags: U32,
    user_count: U32,
    out_reserved: [U32; 13],
}

const _: () = assert!(size_of::<KeyStatus>() == 128);

/// Returns `i_generation`.
///
/// # Errors
/// Returns an error if the filesystem does not report it.
#[allow(unsafe_code)]
pub(super) fn generation(file: impl AsFd) -> io::Result<u32> {
    // SAFETY: the kernel writes at most a long. On a big-endian machine, the 32 bits come first too.
    let word: [u32; 2] = unsafe { ioctl(file, Getter::<GETVERSION, _>::new())? };
    Ok(word[0])
}

/// Returns true if a folder's names are encrypted on the disk.
pub(super) fn is_encrypted(folder: impl AsFd) -> bool {
    let asked = statx(folder, "", AtFlags::EMPTY_PATH, StatxFlags::empty());
    asked.is_ok_and(|statx| statx.stx_attributes.contains(StatxAttributes::ENCRYPTED))
}

/// Returns true if the filesystem has the key of an encrypted folder. A key in a process's keyring, which policies of version 1 may
/// use, is not reported.
pub(super) fn has_key(folder: impl AsFd) -> bool {
    let folder = folder.as_fd();
    let status = policy(folder).and_then(|policy| key_status(folder, &policy));
    status == Some(FSCRYPT_KEY_STATUS_PRESENT)
}

#[allow(unsafe_code)]
fn policy(folder: impl AsFd) -> Option<[u8; 24]> {
    let mut asked = PolicyEx::new_zeroed();
    asked.policy_size = 24.into();
    // SAFETY: the kernel writes at most `policy_size` bytes of the policy.
    unsafe {
        ioctl(
            folder,
            Updater::<GET_ENCRYPTION_POLICY_EX, _>::new(&mut asked),
        )
    }
    .ok()?;
    Some(asked.policy)
}

#[allow(unsafe_code)]
fn key_status(folder: impl AsFd, policy: &[u8; 24]) -> Option<u32> {
    let mut asked = KeyStatus::new_zeroed();
    // These are FSCRYPT_KEY_SPEC_TYPE_DESCRIPTOR for a policy of version 1, and …_IDENTIFIER for version 2.
    let (kind, key) = match policy[0] {
        0 => (1, policy.get(4..12)?),
        2 => (2, policy.get(8..24)?),
        _ => return None,
    };
    asked.kind = kind.into();
    asked.key.get_mut(..key.len())?.copy_from_slice(key);
    // SAFETY: the kernel reads and writes only this structure.
    unsafe {
        ioctl(
            folder,
            Updater::<GET_ENCRYPTION_KEY_STATUS, _>::new(&mut asked),
        )
    }
    .ok()?;
    Some(asked.status.get())
}
