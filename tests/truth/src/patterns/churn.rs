// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folders and files that are made and removed, so that inode numbers and blocks are reused, as when an application
//! with SQLite databases is installed again and again.

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
        // The last folder stays; it has the inode number of those before.
        if round < ROUNDS - 1 {
            site.unlink(db.inode, &database)?;
            fs::remove_dir(site.at(&folder))?;
        }
    }
    Ok(())
}
