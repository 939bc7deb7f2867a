// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the counters of an NVMe drive with `NVME_IOCTL_ADMIN_CMD`: its SMART log, and the extended log of the Open Compute
//! Project.
//!
//! Sources: NVM Express Base Specification 2.0, "SMART / Health Information", "Identify Controller", "Supported Log Pages"; OCP
//! Datacenter NVMe SSD Specification 2.0, "SMART Cloud Health Log".

use std::fs::File;
use std::io;

use mostrace_bundle::health::{
    AVAILABLE_SPARE, CRITICAL_WARNING, DATA_UNITS_READ, DATA_UNITS_WRITTEN, Gauge, Gauges,
    HOST_READ_COMMANDS, HOST_WRITE_COMMANDS, MEDIA_BYTES_WRITTEN, MEDIA_ERRORS, PERCENTAGE_USED,
};
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use zerocopy::{FromZeros, Immutable, IntoBytes};

use crate::machine::device::Device;

const ADMIN_CMD: Opcode = opcode::read_write::<AdminCommand>(b'N', 0x41);
const GET_LOG_PAGE: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const IDENTIFY_CONTROLLER: u32 = 1;
/// Stands for all namespaces of the controller.
const ALL_NAMESPACES: u32 = !0;
const SUPPORTED_PAGES: u8 = 0x00;
const SMART: u8 = 0x02;
const CLOUD: u8 = 0xc0;
/// The offset of `LPA` in Identify Controller; its bit 5 says that there is a page that lists the supported pages.
const LPA: usize = 261;
const LPA_SUPPORTED_PAGES: u8 = 1 << 5;
/// The last bytes of the OCP's page.
const CLOUD_GUID: [u8; 16] = 0xafd5_14c9_7c6f_4f9c_a4f2_bfea_2810_afc5_u128.to_le_bytes();
const CLOUD_GUID_AT: usize = 496;
/// The time in which a drive must answer.
const TIMEOUT_MS: u32 = 2_000;

/// `struct nvme_admin_cmd` of `include/uapi/linux/nvme_ioctl.h`.
#[derive(FromZeros, IntoBytes, Immutable)]
#[repr(C)]
struct AdminCommand {
    opcode: u8,
    flags: u8,
    reserved1: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

const _: () = assert!(size_of::<AdminCommand>() == 72);

/// A drive, and the pages that it has.
#[derive(Clone, Debug)]
pub struct Drive {
    disk: Device,
    has_cloud: bool,
}

impl Drive {
    /// Returns the drive of a disk; None if it is not an NVMe drive.
    pub fn find(disk: &Device) -> Option<Drive> {
        if !disk.info.disk.starts_with("nvme") {
            return None;
        }
        let file = File::open(disk.node()).ok()?;
        let has_cloud = has_cloud(|command| ask(&file, command));
        Some(Drive {
            disk: disk.clone(),
            has_cloud,
        })
    }

    /// Reads the drive's pages. What cannot be read is left out.
    pub fn read(&self) -> Gauges {
        let Ok(file) = File::open(self.disk.node()) else {
            return Gauges::new();
        };
        let mut gauges = Gauges::new();
        if let Ok(page) = ask::<512>(&file, log_page(SMART, 512)) {
            gauges.extend(smart(&page));
        }
        if self.has_cloud
            && let Ok(page) = ask::<512>(&file, log_page(CLOUD, 512))
        {
            gauges.extend(cloud(&page));
        }
        gauges
    }
}

/// Returns true if the drive says that it has a page with the OCP's number. Other drives are not asked for the page, because older
/// ones count a request for a page that they do not have as an error. The number may also be another vendor's.
fn has_cloud(mut ask: impl FnMut(AdminCommand) -> io::Result<[u8; 4096]>) -> bool {
    let identify = AdminCommand {
        opcode: IDENTIFY,
        nsid: 0,
        cdw10: IDENTIFY_CONTROLLER,
        ..AdminCommand::new_zeroed()
    };
    let tells = |controller: [u8; 4096]| controller[LPA] & LPA_SUPPORTED_PAGES != 0;
    if !ask(identify).is_ok_and(tells) {
        return false;
    }
    let pages = AdminCommand {
        nsid: 0,
        ..log_page(SUPPORTED_PAGES, 1024)
    };
    // There are four bytes for each page; their first bit says that the page is supported.
    ask(pages).is_ok_and(|pages| pages[usize::from(CLOUD) * 4] & 1 != 0)
}

/// Returns the command Get Log Page for the first bytes of a page.
fn log_page(page: u8, bytes: u32) -> AdminCommand {
    AdminCommand {
        opcode: GET_LOG_PAGE,
        nsid: ALL_NAMESPACES,
        data_len: bytes,
        // This is the number of double words, less one.
        cdw10: u32::from(page) | (bytes / 4 - 1) << 16,
        ..AdminCommand::new_zeroed()
    }
}

/// Sends a command to the drive and returns its answer.
#[allow(unsafe_code)]
fn ask<const N: usize>(file: &File, mut command: AdminCommand) -> io::Result<[u8; N]> {
    let mut answer = [0; N];
    let room = u32::try_from(N).unwrap_or(0);
    if command.data_len == 0 || command.data_len > room {
        command.data_len = room;
    }
    command.addr = u64::try_from(answer.as_mut_ptr().addr()).unwrap_or(0);
    command.timeout_ms = TIMEOUT_MS;
    // SAFETY: the kernel writes no more than `data_len` bytes to `addr`, where `answer` has room for them until the ioctl returns.
    // The commands only read.
    let status = unsafe { ioctl(file, Updater::<ADMIN_CMD, _>::new(&mut command)) };
    status?;
    Ok(answer)
}

/// Returns a number of 16 bytes; None if it is not reported (0) or not plausible.
fn long(page: &[u8; 512], at: usize) -> Option<u64> {
    let bytes = page.get(at..at + 16)?.try_into().ok()?;
    u64::try_from(u128::from_le_bytes(bytes)).ok()
}

/// Returns the counters in the SMART log.
fn smart(page: &[u8; 512]) -> impl Iterator<Item = (String, u64)> {
    // According to the specification, 0 data units means that they are not reported.
    let reported = |at| long(page, at).filter(|&n| n != 0);
    let byte = |at: usize| Some(u64::from(page[at]));
    named([
        (CRITICAL_WARNING, byte(0)),
        (AVAILABLE_SPARE, byte(3)),
        (PERCENTAGE_USED, byte(5)),
        (DATA_UNITS_READ, reported(32)),
        (DATA_UNITS_WRITTEN, reported(48)),
        (HOST_READ_COMMANDS, long(page, 64)),
        (HOST_WRITE_COMMANDS, long(page, 80)),
        (MEDIA_ERRORS, long(page, 160)),
    ])
}

/// Returns the counters in the OCP's log; none if the page is another vendor's.
fn cloud(page: &[u8; 512]) -> impl Iterator<Item = (String, u64)> {
    let is_it = page[CLOUD_GUID_AT..] == CLOUD_GUID;
    let written = long(page, 0).filter(|&n| is_it && n != 0);
    named([(MEDIA_BYTES_WRITTEN, written)])
}

fn named<const N: usize>(gauges: [(Gauge, Option<u64>); N]) -> impl Iterator<Item = (String, u64)> {
    let has = |(gauge, value): (Gauge, Option<u64>)| Some((gauge.to_owned(), value?));
    gauges.into_iter().filter_map(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a page with these numbers of 16 bytes.
    fn page(numbers: &[(usize, u128)]) -> [u8; 512] {
        let mut page = [0; 512];
        for (at, number) in numbers {
            page[*at..at + 16].copy_from_slice(&number.to_le_bytes());
        }
        page
    }

    #[test]
    fn smart_has_the_numbers_of_the_specification() {
        let mut smart_log = page(&[(32, 7), (48, 11), (64, 13), (80, 17), (160, 2)]);
        [smart_log[0], smart_log[3], smart_log[5]] = [4, 100, 3];
        let gauges: Gauges = smart(&smart_log).collect();
        let expected = [
            ("critical_warning", 4),
            ("available_spare", 100),
            ("percentage_used", 3),
            ("data_units_read", 7),
            ("data_units_written", 11),
            ("host_read_commands", 13),
            ("host_write_commands", 17),
            ("media_errors", 2),
        ];
        let expected = expected.map(|(name, n)| (name.to_owned(), n));
        assert_eq!(gauges, expected.into());
    }

    #[test]
    fn what_is_not_reported_is_left_out() {
        let gauges: Gauges = smart(&page(&[(80, u128::MAX)])).collect();
        for name in [
            "data_units_read",
            "data_units_written",
            "host_write_commands",
        ] {
            assert!(!gauges.contains_key(name), "{name}");
        }
    }

    #[test]
    fn the_ocps_page_is_known_by_its_end() {
        // These bytes are from the specification's table, from byte 496 on.
        let end = [
            0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c, 0xc9, 0x14,
            0xd5, 0xaf,
        ];
        let mut theirs = page(&[(0, 123_456_789_000)]);
        assert_eq!(cloud(&theirs).count(), 0);
        theirs[496..].copy_from_slice(&end);
        let written = (MEDIA_BYTES_WRITTEN.to_owned(), 123_456_789_000);
        assert_eq!(cloud(&theirs).collect::<Vec<_>>(), [written]);
    }

    #[test]
    fn a_drive_is_asked_only_for_what_it_says_it_has() {
        let drive = |lpa: u8, supported: u8| {
            let mut asked = Vec::new();
            let has = has_cloud(|command| {
                asked.push((command.opcode, command.cdw10 & 0xff));
                let mut answer = [0; 4096];
                match command.opcode {
                    IDENTIFY => answer[LPA] = lpa,
                    _ => answer[0xc0 * 4] = supported,
                }
                Ok(answer)
            });
            (has, asked)
        };
        assert_eq!(drive(0x0f, 1), (false, vec![(6, 1)]));
        assert_eq!(drive(0x20, 0), (false, vec![(6, 1), (2, 0)]));
        assert_eq!(drive(0x20, 1), (true, vec![(6, 1), (2, 0)]));
        let deaf = has_cloud(|_| Err(io::ErrorKind::Unsupported.into()));
        assert!(!deaf);
    }
}
