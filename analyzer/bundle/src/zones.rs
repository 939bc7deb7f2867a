// SPDX-License-Identifier: MIT OR Apache-2.0
//! The zones of a disk.

use crate::manifest::Device;

/// The zones of a disk, which are all of one length; by default there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    sectors: u64,
}

impl Zones {
    /// Returns the zones of the disk that a manifest describes.
    #[must_use]
    pub fn of(device: &Device) -> Zones {
        Zones {
            sectors: device.zone_sectors.map_or(0, u64::from),
        }
    }

    /// Returns the sector for which an append to a zone (`REQ_OP_ZONE_APPEND`) is queued and issued, if it was written at `sector`:
    /// that of the zone's beginning. The disk decides where in the zone it writes, and its completion has that sector. None if the
    /// disk has no zones, or if `sector` is the first of its zone.
    ///
    /// Source: `include/linux/blk_types.h`, `block/blk-zoned.c`.
    #[must_use]
    pub fn append_sector(self, sector: u64) -> Option<u64> {
        let behind = sector.checked_rem(self.sectors)?;
        (behind > 0).then(|| sector.saturating_sub(behind))
    }

    /// Returns true for the first sector of a zone: every zone append is queued and issued with that sector.
    #[must_use]
    pub fn begin_at(self, sector: u64) -> bool {
        sector.checked_rem(self.sectors) == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_append_is_queued_for_the_beginning_of_its_zone() {
        let disk = Device {
            zone_sectors: Some(32768),
            ..Device::default()
        };
        let zones = Zones::of(&disk);
        for (sector, queued) in [
            (0, None),
            (8, Some(0)),
            (32767, Some(0)),
            (32768, None),
            (5 * 32768 + 248, Some(5 * 32768)),
        ] {
            assert_eq!(zones.append_sector(sector), queued, "{sector}");
            assert_eq!(zones.begin_at(sector), queued.is_none(), "{sector}");
        }
        let none = Zones::of(&Device::default());
        assert_eq!((none.append_sector(8), none.begin_at(0)), (None, false));
    }
}
