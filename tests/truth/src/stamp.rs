// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stamp in a sector, by which the sector describes itself.
//!
//! ```text
//!  0  magic     "MOSTRUTH"
//!  8  u64 ino   of the file
//! 16  u64 offset in the file, bytes
//! 24  u64 time_ns CLOCK_MONOTONIC, when the bytes were made
//! 32  u32 generation of the inode, 0 where it has none
//! 36  u32 pid   process
//! 40  u32 tid   thread
//! 44  u32 how   see How
//! 48  u32 crc   of the 48 bytes before
//! 52  zeroes up to 512
//! ```
//! Little-endian.

use crate::names::Inode;

/// Size of a sector, bytes.
pub const SECTOR: usize = 512;
const MAGIC: &[u8; 8] = b"MOSTRUTH";

/// The way in which a sector was written, which decides whom its row must name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum How {
    /// Direct IO: the writer submits.
    Direct = 1,
    /// The page cache, by the only writer of its page: the writer dirtied it.
    Buffered = 2,
    /// The page cache, by one of several writers: the writer is not checked.
    Shared = 3,
    /// The page cache, into a clean page: this writer dirtied it, at the time in the stamp.
    Fresh = 4,
}

impl How {
    /// Returns the variant with this number.
    pub fn of(number: u32) -> Option<How> {
        let all = [How::Direct, How::Buffered, How::Shared, How::Fresh];
        all.into_iter().find(|&how| how as u32 == number)
    }
}

/// The fields of a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub ino: u64,
    pub generation: u32,
    pub offset: u64,
    pub time_ns: u64,
    pub pid: u32,
    pub tid: u32,
    pub how: How,
}

impl Stamp {
    /// Makes the stamp of what this thread writes at the file's beginning.
    pub fn new((ino, generation): Inode, time_ns: u64, how: How) -> Stamp {
        Stamp {
            ino,
            generation,
            offset: 0,
            time_ns,
            pid: std::process::id(),
            tid: rustix::thread::gettid().as_raw_nonzero().get() as u32,
            how,
        }
    }

    /// Fills a sector with the stamp.
    pub fn put(&self, sector: &mut [u8]) {
        sector.fill(0);
        sector[..8].copy_from_slice(MAGIC);
        sector[8..16].copy_from_slice(&self.ino.to_le_bytes());
        sector[16..24].copy_from_slice(&self.offset.to_le_bytes());
        sector[24..32].copy_from_slice(&self.time_ns.to_le_bytes());
        sector[32..36].copy_from_slice(&self.generation.to_le_bytes());
        sector[36..40].copy_from_slice(&self.pid.to_le_bytes());
        sector[40..44].copy_from_slice(&self.tid.to_le_bytes());
        sector[44..48].copy_from_slice(&(self.how as u32).to_le_bytes());
        let crc = crc32fast::hash(&sector[..48]);
        sector[48..52].copy_from_slice(&crc.to_le_bytes());
    }

    /// Parses a sector's stamp; None if it has no valid one.
    pub fn read(sector: &[u8]) -> Option<Stamp> {
        let u64_at = |at: usize| Some(u64::from_le_bytes(*sector.get(at..)?.first_chunk()?));
        let u32_at = |at: usize| Some(u32::from_le_bytes(*sector.get(at..)?.first_chunk()?));
        if sector.get(..8)? != MAGIC || u32_at(48)? != crc32fast::hash(sector.get(..48)?) {
            return None;
        }
        Some(Stamp {
            ino: u64_at(8)?,
            offset: u64_at(16)?,
            time_ns: u64_at(24)?,
            generation: u32_at(32)?,
            pid: u32_at(36)?,
            tid: u32_at(40)?,
            how: How::of(u32_at(44)?)?,
        })
    }
}

/// Returns CLOCK_MONOTONIC in ns, the clock of entries and events.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_as_it_was_put() {
        let stamp = Stamp {
            ino: 12,
            generation: 7,
            offset: 4096,
            time_ns: 1 << 40,
            pid: 3,
            tid: 4,
            how: How::Direct,
        };
        let mut sector = [9; SECTOR];
        stamp.put(&mut sector);
        assert_eq!(Stamp::read(&sector), Some(stamp));
        sector[16] ^= 1;
        assert_eq!(Stamp::read(&sector), None);
        assert_eq!(Stamp::read(&[0; SECTOR]), None);
    }
}
