// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where an inode's blocks are, as debugfs prints it.

use super::numbers::{FileBlock, FsBlock};

/// Consecutive blocks of a file that lie together on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First block, counted in the file.
    pub logical: FileBlock,
    /// First block, counted in the filesystem.
    pub block: FsBlock,
    /// Length in blocks, at least 1.
    pub blocks: u64,
}

/// All blocks of one inode but those of its extended attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockList {
    /// The contents.
    pub runs: Vec<Run>,
    /// Extent tree nodes outside the inode, or indirect blocks.
    pub tree: Vec<FsBlock>,
    /// Double and triple indirect blocks.
    pub upper_tree: Vec<FsBlock>,
    /// Lines that are no block list: debugfs's complaints.
    pub complaints: Vec<String>,
}

impl BlockList {
    /// Reads the answer to `ex`, preallocated extents included:
    ///
    /// ```text
    /// Level Entries       Logical      Physical Length Flags
    ///  0/ 1   1/  1     0 -  9999  34305            10000
    ///  1/ 1   1/340     0 -     0   1172 -  1172        1 Uninit
    /// ```
    pub fn from_extents(answer: &[u8]) -> BlockList {
        let answer = String::from_utf8_lossy(answer);
        let mut list = BlockList::default();
        for line in answer
            .lines()
            .filter(|l| !l.trim().is_empty() && !l.starts_with("Level "))
        {
            if list.extent_line(line).is_none() {
                list.complaints.push(line.trim().to_owned());
            }
        }
        list
    }

    fn extent_line(&mut self, line: &str) -> Option<()> {
        let line = line.trim_end();
        let line = line.strip_suffix("Uninit").unwrap_or(line);
        let mut words = line.split([' ', '/', '-']).filter(|word| !word.is_empty());
        let mut numbers = [0u64; 9];
        let mut count = 0usize;
        for (number, word) in numbers.iter_mut().zip(&mut words) {
            *number = word.parse().ok()?;
            count = count.saturating_add(1);
        }
        if words.next().is_some() {
            return None;
        }
        match *numbers.get(..count)? {
            [level, depth, _, _, _, _, child, _] if level < depth => self.tree.push(FsBlock(child)),
            [level, depth, _, _, logical, last, block, last_block, blocks] if level == depth => {
                let sound = blocks > 0
                    && logical.checked_add(blocks)? == last.checked_add(1)?
                    && block.checked_add(blocks)? == last_block.checked_add(1)?;
                sound.then(|| {
                    self.runs.push(Run {
                        logical: FileBlock(logical),
                        block: FsBlock(block),
                        blocks,
                    })
                })?;
            }
            _ => return None,
        }
        Some(())
    }

    /// Reads the answer to `stat` of an inode without extents. Its last part is
    ///
    /// ```text
    /// BLOCKS:
    /// (0-11):1234-1245, (IND):1246, (12):1247, (DIND):…
    /// TOTAL: 14
    /// ```
    /// and what stands before it may hold attribute names with anything in them.
    pub fn from_stat(answer: &[u8]) -> BlockList {
        const TITLE: &str = "\nBLOCKS:\n";
        let answer = String::from_utf8_lossy(answer);
        let mut list = BlockList::default();
        let Some((_, blocks)) = answer.rsplit_once(TITLE) else {
            let line = answer.lines().next().unwrap_or("no answer");
            list.complaints.push(line.to_owned());
            return list;
        };
        let mut total = None;
        for line in blocks.lines() {
            match line.strip_prefix("TOTAL: ") {
                Some(number) => total = number.trim().parse().ok(),
                None => list.stat_line(line),
            }
        }
        if total != Some(list.total()) {
            let (found, told) = (list.total(), total.unwrap_or(0));
            list.complaints
                .push(format!("{found} blocks listed, {told} counted"));
        }
        list
    }

    fn stat_line(&mut self, line: &str) {
        for item in line
            .split(", ")
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            if self.stat_item(item).is_none() {
                self.complaints.push(item.to_owned());
            }
        }
    }

    fn stat_item(&mut self, item: &str) -> Option<()> {
        let (what, place) = item.strip_prefix('(')?.split_once("):")?;
        let (block, end) = range(place)?;
        match what {
            "IND" => self.tree.push(FsBlock(block)),
            "DIND" | "TIND" => self.upper_tree.push(FsBlock(block)),
            _ => {
                let (logical, logical_end) = range(what)?;
                let blocks = end.checked_sub(block)?;
                let sound = blocks > 0 && logical_end.checked_sub(logical)? == blocks;
                sound.then(|| {
                    self.runs.push(Run {
                        logical: FileBlock(logical),
                        block: FsBlock(block),
                        blocks,
                    })
                })?;
            }
        }
        Some(())
    }

    /// All blocks in the list.
    fn total(&self) -> u64 {
        let tree = self.tree.len().saturating_add(self.upper_tree.len());
        let runs = self
            .runs
            .iter()
            .fold(0u64, |sum, run| sum.saturating_add(run.blocks));
        u64::try_from(tree).unwrap_or(u64::MAX).saturating_add(runs)
    }
}

/// `7` or `7-9`, as first and one past last.
fn range(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((
        first.parse().ok()?,
        last.parse::<u64>().ok()?.checked_add(1)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_name_cannot_pose_as_the_list() {
        let answer = "Inode: 12\nExtended attributes:\n  user.\nBLOCKS:\n(0):5\nTOTAL: 1\n (1) = \"x\"\n\
                      BLOCKS:\n(0-1):70-71, (IND):80, (12):81\nTOTAL: 4\n\n";
        let list = BlockList::from_stat(answer.as_bytes());
        let run = |logical, block, blocks| Run {
            logical: FileBlock(logical),
            block: FsBlock(block),
            blocks,
        };
        assert_eq!(list.runs, [run(0, 70, 2), run(12, 81, 1)]);
        assert_eq!((list.tree, list.complaints), (vec![FsBlock(80)], vec![]));
    }

    #[test]
    fn what_does_not_add_up_is_a_complaint() {
        for answer in [
            "",
            "x",
            "\nBLOCKS:\n(0):5\n",
            "\nBLOCKS:\n(0-2):5-6\nTOTAL: 2\n",
        ] {
            assert_ne!(
                BlockList::from_stat(answer.as_bytes()).complaints,
                [""; 0],
                "{answer}"
            );
        }
        for answer in [
            " 0/ 0   1/  1     0 -     1   4247 -   4247      1 ",
            " 0/ 0   1/  1     1 -     0   4247 -   4246      0 ",
            "12: Corrupt extent header while reading extent header",
            " 0/ 0   1/  1     0 -     0   4247 -   99999999999999999999      1 ",
        ] {
            let list = BlockList::from_extents(answer.as_bytes());
            assert_eq!((list.runs.len(), list.complaints.len()), (0, 1), "{answer}");
        }
    }
}
