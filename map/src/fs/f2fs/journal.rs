// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct f2fs_journal`: entries newer than those in the NAT and the SIT, kept in the spare bytes of the hot and cold
//! data logs' summaries.

use super::block::{self, part, u16_of, u32_of};
use super::checkpoint::{Checkpoint, flag};
use super::numbers::BlkAddr;
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::notices::Notices;

/// Length in bytes of the 512 summary entries ahead of the journal; and of the journal.
const SUM_ENTRIES_SIZE: usize = 3584;
const SUM_JOURNAL_SIZE: usize = 507;

/// Length in bytes of `nat_journal_entry` and `sit_journal_entry`, each with the number in front of it.
const NAT_ENTRY: usize = 4 + 9;
const SIT_ENTRY: usize = 4 + 74;

/// The positions of these logs' summaries among the three of data logs and the three of node logs.
const HOT_DATA: u32 = 0;
const COLD_DATA: u32 = 2;

/// The two journals: each entry is a number (nid or segment) and the raw entry as in the table.
#[derive(Debug, Default)]
pub struct Journals {
    pub nat: Vec<(u32, Vec<u8>)>,
    pub sit: Vec<(u32, Vec<u8>)>,
}

impl Journals {
    /// Reads the journals from the checkpoint pack.
    pub fn read(image: &Image, cp: &Checkpoint, notices: &mut Notices) -> Result<Journals> {
        let [nat, sit] = if cp.has(flag::COMPACT_SUM) {
            let blkaddr = cp.start.plus(cp.cp_pack_start_sum);
            let buf = block::read(image, blkaddr, 1, "compact summary")?;
            [0, SUM_JOURNAL_SIZE].map(|at| part(&buf, at, SUM_JOURNAL_SIZE).to_vec())
        } else {
            let journal = |log| {
                let buf = block::read(image, data_summary(cp, log), 1, "summary")?;
                Ok(part(&buf, SUM_ENTRIES_SIZE, SUM_JOURNAL_SIZE).to_vec())
            };
            [journal(HOT_DATA)?, journal(COLD_DATA)?]
        };
        Ok(Journals {
            nat: entries(&nat, NAT_ENTRY, "NAT", notices),
            sit: entries(&sit, SIT_ENTRY, "SIT", notices),
        })
    }
}

/// Returns the block of a data log's summary (`sum_blk_addr`). The summaries lie ahead of the pack's last block; those
/// of node logs are there only if the filesystem was unmounted with this checkpoint.
fn data_summary(cp: &Checkpoint, log: u32) -> BlkAddr {
    let logs = if cp.has(flag::UMOUNT | flag::FASTBOOT) {
        6
    } else {
        3
    };
    let before_last = cp.cp_pack_total_block_count.saturating_sub(1);
    cp.start
        .plus(before_last.saturating_sub(logs).saturating_add(log))
}

fn entries(journal: &[u8], size: usize, of: &str, notices: &mut Notices) -> Vec<(u32, Vec<u8>)> {
    let count = usize::from(u16_of(journal, 0));
    let room = journal.get(2..).unwrap_or_default().chunks_exact(size);
    if count > room.len() {
        notices.push(format!(
            "{of} journal: it has {count} entries, but room for {}",
            room.len()
        ));
        return Vec::new();
    }
    room.take(count)
        .map(|entry| {
            (
                u32_of(entry, 0),
                entry.get(4..).unwrap_or_default().to_vec(),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_has_room_for_38_or_6_entries() {
        for (size, most) in [(NAT_ENTRY, 38u16), (SIT_ENTRY, 6)] {
            let mut journal = vec![3; SUM_JOURNAL_SIZE];
            journal[..2].copy_from_slice(&most.to_le_bytes());
            let mut notices = Notices::default();
            let all = entries(&journal, size, "", &mut notices);
            assert_eq!(all.len(), usize::from(most));
            assert!(
                all.iter()
                    .all(|(number, entry)| { *number == 0x0303_0303 && entry.len() == size - 4 })
            );
            journal[0] += 1;
            assert!(entries(&journal, size, "", &mut notices).is_empty());
            assert_eq!(notices.into_lines().len(), 1);
        }
    }
}
