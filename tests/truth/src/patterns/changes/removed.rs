// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are cut short while another process writes them, and files that are replaced by a rename while they are open.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use super::{Changed, another};
use crate::patterns::Pattern;
use crate::site::Site;

pub const PATTERN: Pattern = Pattern {
    name: "removed",
    parts: &["cut", "replaced"],
    work,
};

const ROUNDS: u64 = 16;

fn work(site: &Site, part: &str) -> io::Result<()> {
    match part {
        "cut" => cut(site),
        _ => replaced(site),
    }
}

/// One process writes, another cuts the file in the middle of a block, whose rest becomes zeroes; a third one extends it.
fn cut(site: &Site) -> io::Result<()> {
    let file = Changed::synced(site, "/cut", 256 << 10)?;
    const PAGE: u64 = 4096;
    let block = file.file.metadata()?.blksize();
    for round in (0..ROUNDS).rev() {
        let page = round * 4 * PAGE;
        another(|| file.write(page..page + 500))?;
        // A truncate makes the rest of the last block zero; the blocks after it are free.
        let end = page + 1000;
        let zeroes = end..end.next_multiple_of(block);
        another(|| file.change(zeroes.clone(), || file.file.set_len(end)))?;
        if round % 2 == 0 {
            another(|| file.write(page + 2000..page + 3000))?;
        }
        file.file.sync_data()?;
    }
    Ok(())
}

/// A file loses its name to another one while a process has it open, which goes on writing.
fn replaced(site: &Site) -> io::Result<()> {
    for round in 0..ROUNDS {
        let [old, new] = ["old", "new"].map(|word| format!("/replaced-{word}-{round}"));
        let file = Changed::synced(site, &old, 16384)?;
        another(|| Changed::open(site, &new)?.write(0..5000))?;
        another(|| file.write(0..4096))?;
        another(|| fs::rename(site.at(&new), site.at(&old)))?;
        another(|| file.write(4000..5000))?;
        file.file.sync_data()?;
        Changed::open(site, &old)?.file.sync_data()?;
    }
    Ok(())
}
