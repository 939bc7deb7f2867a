// SPDX-License-Identifier: MIT OR Apache-2.0
//! Revoke records: blocks whose older copies are not replayed, because the block was freed and may hold a file's data now.

use std::collections::HashMap;

use super::be::u32_at;
use super::descriptor::TAIL_LEN;
use super::superblock::Superblock;

/// Length in bytes of `struct jbd2_journal_revoke_header_s`, and the place of `r_count` in it.
const HEADER_LEN: usize = 16;
const R_COUNT: usize = 12;

/// Returns the blocks that a revoke block names; None if it is damaged.
pub fn blocks(sb: &Superblock, block: &[u8]) -> Option<Vec<u64>> {
    let tail = if sb.has_tail() { TAIL_LEN } else { 0 };
    let end = usize::try_from(u32_at(block, R_COUNT)?).ok()?;
    let room = block.len().checked_sub(tail)?;
    let records = block.get(HEADER_LEN..end).filter(|_| end <= room)?;
    let len = if sb.is_64bit() { 8 } else { 4 };
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |n, &byte| n << 8 | u64::from(byte));
    Some(records.chunks_exact(len).map(number).collect())
}

/// For each revoked block the last transaction that did so.
#[derive(Debug, Default)]
pub struct Revoked(HashMap<u64, u32>);

impl Revoked {
    /// Adds what a transaction revokes.
    pub fn add(&mut self, tid: u32, blocks: &[u64]) {
        // Transactions come in their order.
        self.0.extend(blocks.iter().map(|&block| (block, tid)));
    }

    /// Returns true if a transaction's copy of a block must not be replayed.
    pub fn holds(&self, tid: u32, block: u64) -> bool {
        let by = self.0.get(&block);
        by.is_some_and(|&by| !is_after(tid, by))
    }
}

/// Compares numbers of transactions, which wrap around: `tid_gt`.
fn is_after(tid: u32, other: u32) -> bool {
    tid.wrapping_sub(other).cast_signed() > 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn later_copies_are_replayed() {
        let mut revoked = Revoked::default();
        revoked.add(u32::MAX, &[5]);
        revoked.add(1, &[7]);
        assert!(revoked.holds(u32::MAX, 5) && revoked.holds(u32::MAX - 1, 5));
        assert!(!revoked.holds(0, 5) && !revoked.holds(0, 6));
        assert!(revoked.holds(1, 7) && !revoked.holds(2, 7));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(block in prop::collection::vec(any::<u8>(), 0..300), is_64bit: bool, count: u8) {
            let mut head = vec![0; 1024];
            for (at, value) in [(0x0, 0xc03b_3998_u32), (0x4, 4), (0xc, 4096), (0x10, 1024), (0x14, 1), (0x28, u32::from(is_64bit) << 1)] {
                head[at..at + 4].copy_from_slice(&value.to_be_bytes());
            }
            let mut block = block;
            if let Some(field) = block.get_mut(R_COUNT..R_COUNT + 4) {
                field.copy_from_slice(&u32::from(count).to_be_bytes());
            }
            let read = blocks(&Superblock::read(&head).unwrap(), &block);
            let len = if is_64bit { 8 } else { 4 };
            let fits = block.len() >= 16 && (16..=block.len()).contains(&usize::from(count));
            prop_assert_eq!(read.map(|blocks| blocks.len()), fits.then(|| (usize::from(count) - 16) / len));
        }
    }
}
