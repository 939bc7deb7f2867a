// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several processes write into one large folio, into one page, and all over one file.

use std::io;

use super::{Changed, another, processes};
use crate::patterns::Pattern;
use crate::site::{Random, Site};

pub const PATTERN: Pattern = Pattern {
    name: "pages",
    parts: &["folio", "page", "all"],
    work,
};

const ROUNDS: u64 = 20;

fn work(site: &Site, part: &str) -> io::Result<()> {
    let path = format!("/pages-{part}");
    let file = Changed::synced(site, &path, 2 << 20)?;
    for round in 0..ROUNDS {
        match part {
            // Three writes that are far apart.
            "folio" => {
                for at in [0, 64 << 10, 128 << 10] {
                    let at = at + (round % 8) * 8192;
                    another(|| file.write(at..at + 4096))?;
                }
            }
            // One byte, and then most of the page.
            "page" => {
                let page = round * 4096;
                another(|| file.write(page + 4000..page + 4001))?;
                another(|| file.write(page..page + 4000))?;
            }
            // Sixteen processes at once, each with writes of chance, some of which fall on others'.
            _ => processes(16, |_| {
                let mut random = Random::new()?;
                for _ in 0..8 {
                    let at = random.below((2 << 20) - 9000)?;
                    file.write(at..at + 1 + random.below(9000)?)?;
                }
                Ok(())
            })?,
        }
        file.file.sync_data()?;
    }
    Ok(())
}
