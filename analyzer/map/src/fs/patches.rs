// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blocks of an image that a replayed journal changes.

use std::collections::BTreeMap;
use std::io;

use crate::fs::read_at::ReadAt;

/// The first bytes of an escaped block, which are zeros in its copy.
const JBD2_MAGIC_NUMBER: [u8; 4] = 0xc03b_3998_u32.to_be_bytes();

/// A block's new contents.
#[derive(Clone, Debug)]
pub enum Patch {
    /// They lie elsewhere in the image.
    Copy {
        /// Their first byte.
        at: u64,
        /// True if the first four bytes are jbd2's magic number, and zeros in the copy.
        is_escaped: bool,
    },
    /// They are in memory.
    Bytes(Box<[u8]>),
}

/// The changed blocks, by number.
#[derive(Clone, Debug, Default)]
pub struct Patches {
    /// The length of a block in bytes; 0 if there is none.
    block_bytes: u32,
    blocks: BTreeMap<u64, Patch>,
}

impl Patches {
    /// Starts without changes, in blocks of this length.
    pub fn new(block_bytes: u32) -> Patches {
        Patches {
            block_bytes,
            blocks: BTreeMap::new(),
        }
    }

    /// Changes a block.
    pub fn insert(&mut self, block: u64, patch: Patch) {
        self.blocks.insert(block, patch);
    }

    /// Returns true if no block is changed.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the number of changed blocks.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the first byte from `offset` on that lies in a changed block.
    pub fn next(&self, offset: u64) -> Option<u64> {
        let first = offset.checked_div(self.block_bytes.into())?;
        let (block, _) = self.blocks.range(first..).next()?;
        Some(self.byte_of(*block).max(offset))
    }

    /// Replaces what `buf` has of changed blocks. It was read from byte `offset` of the image; `from` reads that without changes.
    pub fn apply(&self, buf: &mut [u8], offset: u64, from: &dyn ReadAt) -> io::Result<()> {
        let len = u64::try_from(buf.len()).unwrap_or(u64::MAX);
        let end = offset.saturating_add(len);
        let Some(first) = offset.checked_div(self.block_bytes.into()) else {
            return Ok(());
        };
        for (&block, patch) in self.blocks.range(first..) {
            let start = self.byte_of(block);
            if start >= end {
                break;
            }
            // The part of the block that lies in the buffer, counted in each.
            let within = offset.saturating_sub(start);
            let at = start.saturating_sub(offset);
            let some = u64::from(self.block_bytes)
                .saturating_sub(within)
                .min(len.saturating_sub(at));
            let place = index(at)..index(at.saturating_add(some));
            if let Some(to) = buf.get_mut(place) {
                patch.copy_to(to, within, from)?;
            }
        }
        Ok(())
    }

    fn byte_of(&self, block: u64) -> u64 {
        block.saturating_mul(self.block_bytes.into())
    }
}

impl Patch {
    /// Fills `to` from the byte `within` of the block on.
    fn copy_to(&self, to: &mut [u8], within: u64, from: &dyn ReadAt) -> io::Result<()> {
        let skip = index(within);
        match self {
            Patch::Bytes(bytes) => {
                let part = bytes.get(skip..).and_then(|rest| rest.get(..to.len()));
                if let Some(part) = part {
                    to.copy_from_slice(part);
                }
            }
            Patch::Copy { at, is_escaped } => {
                from.read_exact_at(to, at.saturating_add(within))?;
                if *is_escaped {
                    let magic = JBD2_MAGIC_NUMBER.get(skip..).unwrap_or_default();
                    to.iter_mut().zip(magic).for_each(|(to, from)| *to = *from);
                }
            }
        }
        Ok(())
    }
}

fn index(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fs::image::Image;

    proptest! {
        #[test]
        fn a_read_shows_the_changed_blocks(
            copies in prop::collection::btree_map(0u64..8, (0u64..8, any::<bool>()), 0..5),
            bytes in prop::collection::btree_map(0u64..8, any::<u8>(), 0..3),
            offset in 0usize..64,
            len in 0usize..64,
        ) {
            let plain: Vec<u8> = (0..64).collect();
            let mut expected = plain.clone();
            let mut patches = Patches::new(8);
            for (block, (from, is_escaped)) in copies {
                patches.insert(block, Patch::Copy { at: from * 8, is_escaped });
                let (to, from) = (block as usize * 8, from as usize * 8);
                expected[to..to + 8].copy_from_slice(&plain[from..from + 8]);
                if is_escaped {
                    expected[to..to + 4].copy_from_slice(&JBD2_MAGIC_NUMBER);
                }
            }
            for (block, byte) in bytes {
                patches.insert(block, Patch::Bytes([byte; 8].into()));
                expected[block as usize * 8..][..8].fill(byte);
            }
            let image = Image::new("x".as_ref(), 64, plain).with(patches);
            let end = (offset + len).min(64);
            let read = image.read(offset as u64, end - offset, "x").unwrap();
            prop_assert_eq!(&read, &expected[offset..end]);
        }
    }

    #[test]
    fn the_next_byte_is_that_of_a_changed_block() {
        let mut patches = Patches::new(8);
        assert_eq!(patches.next(3), None);
        patches.insert(2, Patch::Bytes([0; 8].into()));
        assert_eq!(
            [0, 16, 20, 24].map(|at| patches.next(at)),
            [Some(16), Some(16), Some(20), None]
        );
        assert_eq!(Patches::default().next(0), None);
    }
}
