// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tags of fast commits (fs/ext4/fast_commit.h), little-endian.
//!
//! ```text
//! │ fc_tag u16 │ fc_len u16 │ fc_len bytes │ …
//! HEAD │ fc_features u32 │ fc_tid u32 │            TAIL │ fc_tid u32 │ fc_crc u32 │ … to the end of the block
//! ADD_RANGE │ fc_ino u32 │ extent, 12 bytes │      DEL_RANGE │ fc_ino u32 │ fc_lblk u32 │ fc_len u32 │
//! CREAT, LINK, UNLINK │ fc_parent_ino u32 │ fc_ino u32 │ name │          INODE │ fc_ino u32 │ the raw inode │
//! ```

use super::super::extents;
use super::super::numbers::{FileBlock, FsBlock, Ino};
use crate::fs::crc::crc32c;
use crate::fs::le::{u16_at, u32_at};

/// Length in bytes of `struct ext4_fc_tl`.
const HEAD_LEN: usize = 4;
const EXT4_NAME_LEN: usize = 255;

/// A change that is replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tag {
    Add {
        inode: Ino,
        logical: FileBlock,
        block: FsBlock,
        blocks: u64,
    },
    Delete {
        inode: Ino,
        logical: FileBlock,
        blocks: u64,
    },
    Create(DentryInfo),
    Link(DentryInfo),
    Unlink(DentryInfo),
    /// The inode's bytes; those behind are not changed.
    Inode {
        inode: Ino,
        raw: Vec<u8>,
    },
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DentryInfo {
    pub parent: Ino,
    pub inode: Ino,
    pub name: Box<[u8]>,
}

/// The tags of a row of fast commits, read block by block (`ext4_fc_replay_scan`).
pub struct Scan {
    /// The number of the transaction that they belong to.
    tid: u32,
    inode_size: u16,
    crc: u32,
    has_begun: bool,
    /// The tags up to the last tail whose checksum is right.
    whole: Vec<Tag>,
    /// The tags behind it.
    open: Vec<Tag>,
}

impl Scan {
    /// Starts before the first block.
    pub fn new(tid: u32, inode_size: u16) -> Scan {
        Scan {
            tid,
            inode_size,
            crc: 0,
            has_begun: false,
            whole: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Reads the next block. Returns false if what follows is no more of it.
    pub fn block(&mut self, block: &[u8]) -> bool {
        let mut rest = block;
        while let Some((tag, value)) = split(rest) {
            if self.tag(rest, tag, value).is_none() {
                return false;
            }
            let len = value.len().saturating_add(HEAD_LEN);
            rest = rest.get(len..).unwrap_or_default();
        }
        self.has_begun
    }

    /// Returns the tags of whole fast commits.
    pub fn into_tags(self) -> Vec<Tag> {
        self.whole
    }

    /// Reads one tag; None if it cannot be there.
    fn tag(&mut self, bytes: &[u8], tag: u16, value: &[u8]) -> Option<()> {
        if !self.has_begun && tag != HEAD {
            return None;
        }
        let covered = match tag {
            // The checksum covers the tail up to itself.
            TAIL => bytes.get(..HEAD_LEN.checked_add(4)?)?,
            _ => bytes.get(..HEAD_LEN.checked_add(value.len())?)?,
        };
        self.crc = crc32c(self.crc, covered);
        match tag {
            HEAD => {
                let features = u32_at(value, 0)?;
                let is_ours = value.len() == 8 && features == 0 && u32_at(value, 4)? == self.tid;
                self.has_begun = true;
                is_ours.then_some(())
            }
            TAIL => {
                let is_whole = u32_at(value, 0)? == self.tid && u32_at(value, 4)? == self.crc;
                self.crc = 0;
                is_whole.then(|| self.whole.append(&mut self.open))
            }
            PAD => Some(()),
            _ => {
                let change = change(tag, value, self.inode_size)?;
                self.open.push(change);
                Some(())
            }
        }
    }
}

const ADD_RANGE: u16 = 1;
const DEL_RANGE: u16 = 2;
const CREAT: u16 = 3;
const LINK: u16 = 4;
const UNLINK: u16 = 5;
const INODE: u16 = 6;
const PAD: u16 = 7;
const TAIL: u16 = 8;
const HEAD: u16 = 9;

/// Returns the first tag and its value; None if there is none.
fn split(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let len = usize::from(u16_at(bytes, 2)?);
    let value = bytes.get(HEAD_LEN..)?.get(..len)?;
    Some((u16_at(bytes, 0)?, value))
}

/// Parses the value of a tag that changes something (`ext4_fc_value_len_isvalid`).
fn change(tag: u16, value: &[u8], inode_size: u16) -> Option<Tag> {
    let number = |at| u32_at(value, at).map(Ino);
    match tag {
        ADD_RANGE if value.len() == 16 => {
            let node = extents::extent(value.get(4..)?)?;
            Some(Tag::Add {
                inode: number(0)?,
                logical: node.logical,
                block: node.block,
                blocks: node.blocks,
            })
        }
        DEL_RANGE if value.len() == 12 => Some(Tag::Delete {
            inode: number(0)?,
            logical: FileBlock(u32_at(value, 4)?.into()),
            blocks: u32_at(value, 8)?.into(),
        }),
        CREAT | LINK | UNLINK => {
            let name = value.get(8..)?;
            let entry = DentryInfo {
                parent: number(0)?,
                inode: number(4)?,
                name: name.into(),
            };
            let is_name = (1..=EXT4_NAME_LEN).contains(&name.len());
            is_name.then_some(match tag {
                CREAT => Tag::Create(entry),
                LINK => Tag::Link(entry),
                _ => Tag::Unlink(entry),
            })
        }
        INODE => {
            let raw = value.get(4..)?;
            let fits = (128..=usize::from(inode_size)).contains(&raw.len());
            fits.then_some(Tag::Inode {
                inode: number(0)?,
                raw: raw.to_vec(),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tag(tag: u16, value: &[u8]) -> Vec<u8> {
        let len = u16::try_from(value.len()).unwrap();
        [&tag.to_le_bytes()[..], &len.to_le_bytes(), value].concat()
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Ends a fast commit as the kernel does: the tail reaches to the end of the block.
    fn sealed(mut tags: Vec<u8>, tid: u32) -> Vec<u8> {
        let len = u16::try_from(1024 - tags.len() - 4).unwrap();
        tags.extend(TAIL.to_le_bytes());
        tags.extend(len.to_le_bytes());
        tags.extend(tid.to_le_bytes());
        let crc = crc32c(0, &tags);
        tags.extend(crc.to_le_bytes());
        tags.resize(1024, 0);
        tags
    }

    #[test]
    fn a_fast_commit_of_another_transaction_ends_the_row() {
        let head = tag(HEAD, &words(&[0, 7]));
        let cut = tag(DEL_RANGE, &words(&[12, 3, 4]));
        let first = sealed([head, cut.clone()].concat(), 7);
        let change = Tag::Delete {
            inode: Ino(12),
            logical: FileBlock(3),
            blocks: 4,
        };
        for (second, expected) in [(sealed(cut.clone(), 7), 2), (sealed(cut, 6), 1)] {
            let mut scan = Scan::new(7, 256);
            assert!(scan.block(&first));
            assert_eq!(scan.block(&second), expected == 2);
            assert_eq!(scan.into_tags(), vec![change.clone(); expected]);
        }
        assert!(!Scan::new(8, 256).block(&first));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(tags in prop::collection::vec((0u16..11, prop::collection::vec(any::<u8>(), 0..40)), 0..30)) {
            let mut scan = Scan::new(7, 256);
            let tags = tags.iter().flat_map(|(of, value)| tag(*of, value));
            scan.block(&[tag(HEAD, &words(&[0, 7])), tags.collect()].concat());
            // Without a tail whose checksum is right, nothing is whole.
            prop_assert!(scan.into_tags().is_empty());
        }
    }
}
