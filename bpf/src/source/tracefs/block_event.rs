// SPDX-License-Identifier: MIT OR Apache-2.0
//! A block event, as a plain tracepoint shows it.

use mostrace_bundle::blk_io_trace::rwbs::{categories, categories_of_bio};

use super::format::{Field, Format};
use crate::error::Result;
use crate::machine::device::Device;

/// The places of the fields that are used in an event.
#[derive(Debug)]
pub(super) struct Fields {
    action: u64,
    categories: fn(&[u8], u64) -> u64,
    pid: Field,
    dev: Field,
    sector: Field,
    rwbs: Field,
    nr_sector: Option<Field>,
    bytes: Option<Field>,
    new_sector: Option<Field>,
    error: Option<Field>,
    comm: Option<Field>,
}

impl Fields {
    /// Finds the fields in the format of a tracepoint of requests, or of bios.
    ///
    /// # Errors
    /// Returns an error if a field is missing.
    pub fn of(action: u64, is_of_bios: bool, format: &Format) -> Result<Fields> {
        Ok(Fields {
            action,
            categories: if is_of_bios {
                categories_of_bio
            } else {
                categories
            },
            pid: format.field("common_pid")?,
            dev: format.field("dev")?,
            sector: format.field("sector")?,
            rwbs: format.field("rwbs")?,
            nr_sector: format.find("nr_sector"),
            bytes: format.find("bytes"),
            new_sector: format.find("new_sector"),
            error: format.find("error"),
            comm: format.find("comm"),
        })
    }
}

/// The part of an event that goes into the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub action: u64,
    pub pid: u32,
    pub dev: u32,
    pub sector: u64,
    pub bytes: u32,
    pub error: u16,
    /// The sector at which a bio was split.
    pub new_sector: Option<u64>,
    pub comm: Option<Vec<u8>>,
}

impl Fields {
    /// Parses a record; None if it is shorter than its format.
    pub fn read(&self, record: &[u8]) -> Option<Seen> {
        let number = |field: Option<Field>| field?.number(record);
        let sector = self.sector.number(record)?;
        let new_sector = number(self.new_sector);
        let sectors = match new_sector {
            // The event describes the part in front of the split.
            Some(new) => new.saturating_sub(sector),
            None => number(self.nr_sector).unwrap_or(0),
        };
        let bytes = number(self.bytes).unwrap_or(sectors << 9);
        let error = self.error.and_then(|error| error.signed(record));
        Some(Seen {
            action: self.action | (self.categories)(self.rwbs.text(record)?, sectors),
            pid: self.pid.number(record)? as u32,
            dev: self.dev.number(record)? as u32,
            // A flush has no sector, and neither has a command of another kind.
            sector: if sector == u64::MAX { 0 } else { sector },
            bytes: bytes as u32,
            error: error.unwrap_or(0).unsigned_abs() as u16,
            new_sector,
            comm: self
                .comm
                .and_then(|comm| comm.text(record))
                .map(<[u8]>::to_vec),
        })
    }
}

/// The device whose events are kept.
#[derive(Debug)]
pub(super) struct TracedDevice {
    pub dev: u32,
    disk_dev: u32,
    start: u64,
    end: u64,
}

impl TracedDevice {
    /// Selects the events of a device.
    pub fn of(device: &Device) -> TracedDevice {
        TracedDevice {
            dev: device.dev,
            disk_dev: device.disk_dev,
            start: device.info.start_sector,
            end: device.end_sector(),
        }
    }

    /// Returns true for an event of the device. Requests name the disk; bios, from 5.12 on, name the partition. An event without
    /// sectors may belong to any partition.
    pub fn has(&self, seen: &Seen) -> bool {
        let is_device = seen.dev == self.dev || seen.dev == self.disk_dev;
        let end = seen
            .sector
            .saturating_add(u64::from(seen.bytes).div_ceil(512));
        let whole = self.dev == self.disk_dev;
        is_device && (whole || seen.bytes == 0 || seen.sector < self.end && end > self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(dev: u32, sector: u64, bytes: u32) -> Seen {
        Seen {
            action: 0,
            pid: 1,
            dev,
            sector,
            bytes,
            error: 0,
            new_sector: None,
            comm: None,
        }
    }

    #[test]
    fn a_partition_has_its_own_sectors_alone() {
        let disk = TracedDevice {
            dev: 16,
            disk_dev: 16,
            start: 0,
            end: 1000,
        };
        let partition = TracedDevice {
            dev: 17,
            start: 100,
            end: 200,
            ..disk
        };
        for (dev, sector, bytes, of_disk, of_partition) in [
            (16, 0, 512, true, false),
            (16, 99, 1024, true, true),
            (17, 100, 512, false, true),
            (16, 200, 512, true, false),
            (16, 0, 0, true, true),
            (32, 100, 512, false, false),
        ] {
            let seen = seen(dev, sector, bytes);
            assert_eq!(
                (disk.has(&seen), partition.has(&seen)),
                (of_disk, of_partition),
                "{seen:?}"
            );
        }
    }
}
