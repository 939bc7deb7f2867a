// SPDX-License-Identifier: MIT OR Apache-2.0
//! Directories, attributes and extents that are made and removed, so that metadata blocks change their owner and kind.

use std::fs;
use std::io;

use rustix::fs::{XattrFlags, fsetxattr};

use super::Pattern;
use crate::mark;
use crate::site::Site;
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "handover",
    parts: &["folders", "attributes", "extents", "mixed"],
    work,
};

const ROUNDS: u32 = 16;

fn work(site: &Site, part: &str) -> io::Result<()> {
    for round in 0..ROUNDS {
        let path = format!("/{part}-{round}");
        let stays = round == ROUNDS - 1;
        match (part, round % 3) {
            ("folders", _) | ("mixed", 0) => folder(site, &path, stays)?,
            ("attributes", _) | ("mixed", 1) => attributes(site, &path, stays)?,
            _ => extents(site, &path, stays)?,
        }
        // After this commit the blocks may be reused.
        site.commit()?;
    }
    Ok(())
}

fn folder(site: &Site, path: &str, stays: bool) -> io::Result<()> {
    let inode = site.folder(path)?;
    let names = (0..60).map(|at| site.at(path).join(mark::name(inode, at)));
    for name in names.clone() {
        fs::write(name, "")?;
    }
    site.commit()?;
    if stays {
        return Ok(());
    }
    names.into_iter().try_for_each(fs::remove_file)?;
    fs::remove_dir(site.at(path))?;
    site.names.loses(inode, path)
}

fn attributes(site: &Site, path: &str, stays: bool) -> io::Result<()> {
    for at in 0..3 {
        let path = format!("{path}.{at}");
        let file = site.create(&path)?;
        let value = mark::value(file.inode, 700);
        fsetxattr(&file.file, "user.of", value.as_bytes(), XattrFlags::empty())?;
        file.file.sync_all()?;
        if !stays {
            site.unlink(file.inode, &path)?;
        }
    }
    Ok(())
}

/// Writes a file with more extents than fit into the inode.
fn extents(site: &Site, path: &str, stays: bool) -> io::Result<()> {
    let file = site.create(path)?;
    for at in 0..8 {
        file.write(at * 16384, 4096, How::Buffered)?;
    }
    file.file.sync_all()?;
    match stays {
        true => Ok(()),
        false => site.unlink(file.inode, path),
    }
}
