// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folders and files that come and go, so that inode numbers and blocks change hands: SQLite's journals of an
//! application that is installed anew.

use std::fs;
use std::io;

use super::Pattern;
use crate::site::Site;
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "churn",
    parts: &["x", "y"],
    work,
};

const ROUNDS: u32 = 10;

fn work(site: &Site, part: &str) -> io::Result<()> {
    for round in 0..ROUNDS {
        let folder = format!("/{part}-app{round}");
        fs::create_dir(site.at(&folder))?;
        let database = format!("{folder}/data.db");
        let db = site.create(&database)?;
        for at in 0..3 {
            let path = format!("{database}-journal");
            let journal = site.create(&path)?;
            journal.write(0, 8192, How::Buffered)?;
            journal.sync()?;
            db.write(at * 4096, 4096, How::Buffered)?;
            db.sync()?;
            site.unlink(journal.inode, &path)?;
        }
        // The last one stays: its folder has the number of those before.
        if round < ROUNDS - 1 {
            site.unlink(db.inode, &database)?;
            fs::remove_dir(site.at(&folder))?;
        }
    }
    Ok(())
}
