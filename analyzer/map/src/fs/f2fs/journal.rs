// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct f2fs_journal`: entries newer than those in the NAT and the SIT, kept in the spare bytes of the hot and cold
//! data logs' summaries.

use super::block::{Blocks, part, u16_of, u32_of};
use super::checkpoint::{Checkpoint, flag};
use super::numbers::BlkAddr;
use super::superblock::{SuperBlock, feature};
use crate::fs::error::Result;
use crate::fs::notices::Notices;

/// Length in bytes of a summary's footer.
const SUM_FOOTER_SIZE: usize = 5;

/// `struct f2fs_summary_block`: entries of 7 bytes, one for every 8 bytes of its own length, the journal, and a footer.
struct Summary {
    /// Length in bytes of the entries.
    entries: usize,
    /// Length in bytes of the journal.
    journal: usize,
}

impl Summary {
    /// A summary has the length of a block, or 4 KiB with packed_ssa (`sum_blocksize`).
    fn of(sb: &SuperBlock) -> Summary {
        let bytes = if sb.has(feature::PACKED_SSA) {
            4096
        } else {
            sb.block_size.len()
        };
        let entries = (bytes / 8).saturating_mul(7);
        Summary {
            entries,
            journal: bytes
                .saturating_sub(entries)
                .saturating_sub(SUM_FOOTER_SIZE),
        }
    }
}

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
    pub fn read(
        blocks: Blocks<'_>,
        sb: &SuperBlock,
        cp: &Checkpoint,
        notices: &mut Notices,
    ) -> Result<Journals> {
        let summary = Summary::of(sb);
        let [nat, sit] = if cp.has(flag::COMPACT_SUM) {
            let blkaddr = cp.start.plus(cp.cp_pack_start_sum);
            let buf = blocks.read(blkaddr, 1, "compact summary")?;
            [0, summary.journal].map(|at| part(&buf, at, summary.journal).to_vec())
        } else {
            let journal = |log| {
                let buf = blocks.read(data_summary(cp, log), 1, "summary")?;
                Ok(part(&buf, summary.entries, summary.journal).to_vec())
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
    use super::super::block::BlockSize;
    use super::*;

    /// The kernel's NAT_JOURNAL_ENTRIES and SIT_JOURNAL_ENTRIES.
    #[test]
    fn the_room_of_a_journal_follows_from_the_length_of_a_summary() {
        for (size, feature, nat, sit) in [
            (BlockSize::ALL[0], 0, 38, 6),
            (BlockSize::ALL[2], 0, 157, 26),
            (BlockSize::ALL[2], feature::PACKED_SSA, 38, 6),
        ] {
            let sb = SuperBlock {
                block_size: size,
                feature,
                ..SuperBlock::for_tests(0)
            };
            let room = Summary::of(&sb).journal;
            let (nat, sit): (u16, u16) = (nat, sit);
            for (entry, most) in [(NAT_ENTRY, nat), (SIT_ENTRY, sit)] {
                let mut journal = vec![3; room];
                journal[..2].copy_from_slice(&most.to_le_bytes());
                let mut notices = Notices::default();
                let all = entries(&journal, entry, "", &mut notices);
                assert_eq!(all.len(), usize::from(most));
                let is_whole = |(number, rest): &(u32, Vec<u8>)| {
                    *number == 0x0303_0303 && rest.len() == entry - 4
                };
                assert!(all.iter().all(is_whole));
                journal[0] += 1;
                assert!(entries(&journal, entry, "", &mut notices).is_empty());
                assert_eq!(notices.into_lines().len(), 1);
            }
        }
    }
}
