// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses what debugfs prints about an inode's blocks.

use super::super::block_list::{BlockList, Run};
use super::super::numbers::{FileBlock, FsBlock};

/// Parses the answer to `ex`, including preallocated extents:
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
        if extent_line(&mut list, line).is_none() {
            complain(&mut list, line);
        }
    }
    list
}

fn extent_line(list: &mut BlockList, line: &str) -> Option<()> {
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
        [level, depth, _, _, _, _, child, _] if level < depth => list.tree.push(FsBlock(child)),
        [level, depth, _, _, logical, last, block, last_block, blocks] if level == depth => {
            let sound = blocks > 0
                && logical.checked_add(blocks)? == last.checked_add(1)?
                && block.checked_add(blocks)? == last_block.checked_add(1)?;
            sound.then(|| list.push(run(logical, block, blocks)))?;
        }
        _ => return None,
    }
    Some(())
}

/// Parses the answer to `stat` about an inode without extents. Its last part is
///
/// ```text
/// BLOCKS:
/// (0-11):1234-1245, (IND):1246, (12):1247, (DIND):…
/// TOTAL: 14
/// ```
/// and the text before it may hold names of attributes, which can contain anything.
pub fn from_stat(answer: &[u8]) -> BlockList {
    const TITLE: &str = "\nBLOCKS:\n";
    let answer = String::from_utf8_lossy(answer);
    let mut list = BlockList::default();
    let Some((_, blocks)) = answer.rsplit_once(TITLE) else {
        complain(&mut list, answer.lines().next().unwrap_or("no answer"));
        return list;
    };
    let mut total = None;
    for line in blocks.lines() {
        match line.strip_prefix("TOTAL: ") {
            Some(number) => total = number.trim().parse().ok(),
            None => stat_line(&mut list, line),
        }
    }
    let found = count(&list);
    if total != Some(found) {
        let told = total.unwrap_or(0);
        complain(&mut list, &format!("{found} blocks listed, {told} counted"));
    }
    list
}

fn stat_line(list: &mut BlockList, line: &str) {
    for item in line
        .split(", ")
        .map(str::trim)
        .filter(|item| !item.is_empty())
    {
        if stat_item(list, item).is_none() {
            complain(list, item);
        }
    }
}

fn stat_item(list: &mut BlockList, item: &str) -> Option<()> {
    let (what, place) = item.strip_prefix('(')?.split_once("):")?;
    let (block, end) = range(place)?;
    match what {
        "IND" => list.tree.push(FsBlock(block)),
        "DIND" | "TIND" => list.upper_tree.push(FsBlock(block)),
        _ => {
            let (logical, logical_end) = range(what)?;
            let blocks = end.checked_sub(block)?;
            let sound = blocks > 0 && logical_end.checked_sub(logical)? == blocks;
            sound.then(|| list.push(run(logical, block, blocks)))?;
        }
    }
    Some(())
}

/// Parses `7` or `7-9`. Returns the first number and the one behind the last.
fn range(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((
        first.parse().ok()?,
        last.parse::<u64>().ok()?.checked_add(1)?,
    ))
}

fn run(logical: u64, block: u64, blocks: u64) -> Run {
    Run {
        logical: FileBlock(logical),
        block: FsBlock(block),
        blocks,
    }
}

/// Returns the number of blocks in the list.
fn count(list: &BlockList) -> u64 {
    let tree = list.tree.len().saturating_add(list.upper_tree.len());
    let runs = list
        .runs
        .iter()
        .fold(0u64, |sum, run| sum.saturating_add(run.blocks));
    u64::try_from(tree).unwrap_or(u64::MAX).saturating_add(runs)
}

fn complain(list: &mut BlockList, line: &str) {
    list.complain(format!("debugfs: {}", line.trim()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_name_cannot_pose_as_the_list() {
        let answer = "Inode: 12\nExtended attributes:\n  user.\nBLOCKS:\n(0):5\nTOTAL: 1\n (1) = \"x\"\n\
                      BLOCKS:\n(0-1):70-71, (IND):80, (12):81\nTOTAL: 4\n\n";
        let list = from_stat(answer.as_bytes());
        assert_eq!(list.runs, [run(0, 70, 2), run(12, 81, 1)]);
        assert_eq!(list.tree, [FsBlock(80)]);
        assert!(list.complaints.is_empty());
    }

    #[test]
    fn what_does_not_add_up_is_a_complaint() {
        for answer in [
            "",
            "x",
            "\nBLOCKS:\n(0):5\n",
            "\nBLOCKS:\n(0-2):5-6\nTOTAL: 2\n",
        ] {
            assert!(
                !from_stat(answer.as_bytes()).complaints.is_empty(),
                "{answer}"
            );
        }
        for answer in [
            " 0/ 0   1/  1     0 -     1   4247 -   4247      1 ",
            " 0/ 0   1/  1     1 -     0   4247 -   4246      0 ",
            "12: Corrupt extent header while reading extent header",
            " 0/ 0   1/  1     0 -     0   4247 -   99999999999999999999      1 ",
        ] {
            let list = from_extents(answer.as_bytes());
            let complaints = list.complaints.into_lines().len();
            assert_eq!((list.runs.len(), complaints), (0, 1), "{answer}");
        }
    }
}
