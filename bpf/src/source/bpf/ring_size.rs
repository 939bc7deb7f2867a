// SPDX-License-Identifier: MIT OR Apache-2.0
//! The size of a BPF ring buffer.

use std::str::FromStr;

use mostrace_bundle::units;

/// The size in bytes of one ring of the probes: a power of 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSize(u32);

impl RingSize {
    /// The smallest size; it holds several of the largest record.
    const LEAST: u32 = 1 << 16;
    const MOST: u32 = 1 << 28;
    /// The largest size that is chosen automatically, as on a desktop.
    const MOST_BY_ITSELF: u64 = 1 << 24;
    const LEAST_BY_ITSELF: u64 = 1 << 20;
    /// The divisor for the machine's memory: each ring takes at most one part in this many.
    const PART: u64 = 2048;

    /// Returns the size for this machine, by its memory.
    pub fn of_this_machine() -> RingSize {
        let info = rustix::system::sysinfo();
        #[allow(clippy::useless_conversion)] // 32 bits on some machines
        let total = u64::from(info.totalram).saturating_mul(info.mem_unit.into());
        RingSize::for_memory(total)
    }

    fn for_memory(total: u64) -> RingSize {
        let part =
            (total / RingSize::PART).clamp(RingSize::LEAST_BY_ITSELF, RingSize::MOST_BY_ITSELF);
        let log2 = part.ilog2();
        RingSize(1 << log2)
    }

    /// Returns the size in bytes.
    pub fn bytes(self) -> u32 {
        self.0
    }
}

/// Returns the number of entries for a table of the probes, which the kernel keeps in memory whether they are used or not: `most`
/// on a machine of 16 GiB or more, proportionally fewer on a smaller one, but at least `least`. All are powers of 2.
pub(super) fn table_entries(most: u32, least: u32) -> u32 {
    entries_for(RingSize::of_this_machine(), most, least)
}

fn entries_for(machine: RingSize, most: u32, least: u32) -> u32 {
    let smaller = FULL_TABLES.checked_div(machine.bytes()).unwrap_or(1).max(1);
    (most / smaller).max(least)
}

/// The size of the rings on a machine whose tables have their full size.
const FULL_TABLES: u32 = 1 << 23;

impl FromStr for RingSize {
    type Err = String;

    fn from_str(text: &str) -> Result<RingSize, String> {
        let bytes = units::size(text).ok();
        let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
        let allowed = RingSize::LEAST..=RingSize::MOST;
        bytes
            .filter(|bytes| bytes.is_power_of_two() && allowed.contains(bytes))
            .map(RingSize)
            .ok_or_else(|| format!("`{text}` is no power of 2 between 64K and 256M (1M, 2M, 4M)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    #[test]
    fn a_ring_has_a_small_part_of_the_memory() {
        for (total, ring) in [
            (0, MIB),
            (GIB, MIB),
            (2 * GIB - 1, MIB),
            (4 * GIB, 2 * MIB),
            // This is what the kernel of a phone with 12 GiB reports.
            (11 * GIB + GIB / 4, 4 * MIB),
            (16 * GIB - 1, 4 * MIB),
            (64 * GIB, 16 * MIB),
            (u64::MAX, 16 * MIB),
        ] {
            let size = RingSize::for_memory(total);
            assert_eq!(u64::from(size.bytes()), ring, "{total}");
        }
    }

    #[test]
    fn a_table_is_smaller_on_a_smaller_machine() {
        for (total, entries) in [
            (2 * GIB, 1 << 14),
            (4 * GIB, 1 << 15),
            (11 * GIB, 1 << 16),
            (16 * GIB, 1 << 17),
            (64 * GIB, 1 << 17),
        ] {
            let machine = RingSize::for_memory(total);
            assert_eq!(entries_for(machine, 1 << 17, 1 << 12), entries, "{total}");
            assert_eq!(entries_for(machine, 1 << 17, 1 << 17), 1 << 17, "{total}");
        }
    }

    #[test]
    fn a_size_is_a_power_of_2() {
        for (text, size) in [("64K", 1 << 16), ("4M", 1 << 22), ("256M", 1 << 28)] {
            assert_eq!(text.parse(), Ok(RingSize(size)), "{text}");
        }
        for text in ["", "4", "3M", "32K", "512M", "1G", "60s", "-1M", "5000000G"] {
            let said = text.parse::<RingSize>().unwrap_err();
            assert!(
                said.starts_with(&format!("`{text}` is no power of 2")),
                "{said}"
            );
        }
    }
}
