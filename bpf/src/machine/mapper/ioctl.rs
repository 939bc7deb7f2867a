// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the device mapper's tables with its ioctl (`include/uapi/linux/dm-ioctl.h`).

use std::fs::File;
use std::path::Path;

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use zerocopy::byteorder::native_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::table::{MappedTarget, parse};
use crate::error::{At, Error, Result};

const CONTROLS: [&str; 2] = ["/dev/mapper/control", "/dev/device-mapper"];
const TABLE_STATUS: Opcode = opcode::read_write::<DmIoctl>(0xfd, 12);
/// Requests the table instead of the state.
const DM_STATUS_TABLE_FLAG: u32 = 1 << 4;
const DM_BUFFER_FULL_FLAG: u32 = 1 << 8;
/// Makes the kernel wipe its copy, because the line of a crypt target contains its key.
const DM_SECURE_DATA_FLAG: u32 = 1 << 15;
/// The size of the buffer, which is enough for some thousand targets.
const ROOM: usize = 1 << 18;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct DmIoctl {
    version: [U32; 3],
    data_size: U32,
    data_start: U32,
    target_count: U32,
    open_count: U32,
    flags: U32,
    event_nr: U32,
    padding: U32,
    dev: U64,
    name: [u8; 128],
    uuid: [u8; 129],
    data: [u8; 7],
}

const _: () = assert!(size_of::<DmIoctl>() == 312);

/// Returns the active table of the device `major:minor`.
///
/// # Errors
/// Returns an error if there is no such mapped device, or if its table is too long.
#[allow(unsafe_code)]
pub fn table(major: u32, minor: u32) -> Result<Vec<MappedTarget>> {
    let control = CONTROLS.map(Path::new).into_iter().find(|p| p.exists());
    let control = control.unwrap_or(Path::new(CONTROLS[0]));
    let mut head = DmIoctl::new_zeroed();
    head.version[0] = 4.into();
    head.data_size = u32::try_from(ROOM).unwrap_or(u32::MAX).into();
    head.data_start = u32::try_from(size_of::<DmIoctl>()).unwrap_or(0).into();
    head.flags = (DM_STATUS_TABLE_FLAG | DM_SECURE_DATA_FLAG).into();
    // This is the form of the kernel's new_encode_dev().
    head.dev = u64::from(minor & 0xff | major << 8 | (minor & !0xff) << 12).into();
    let mut buffer = Box::new([0; ROOM]);
    buffer[..size_of::<DmIoctl>()].copy_from_slice(head.as_bytes());
    let file = File::options()
        .read(true)
        .write(true)
        .open(control)
        .at(control)?;
    // SAFETY: the kernel reads and writes no more than `data_size` bytes, which is the buffer's size.
    let asked = unsafe { ioctl(&file, Updater::<TABLE_STATUS, _>::new(&mut *buffer)) };
    asked.at(control)?;
    let malformed = |what| Error::malformed(control.display(), what);
    let (head, _) = DmIoctl::read_from_prefix(&*buffer).map_err(|_| malformed("no head"))?;
    if head.flags.get() & DM_BUFFER_FULL_FLAG != 0 {
        return Err(malformed("the table is too long"));
    }
    let start = usize::try_from(head.data_start.get()).unwrap_or(usize::MAX);
    let targets = buffer
        .get(start..)
        .and_then(|data| parse(data, head.target_count.get()));
    // The buffer may contain a key.
    buffer.fill(0);
    targets.ok_or_else(|| malformed("a table that makes no sense"))
}
