// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads of one process, each with pages of its own in one file; half of them use direct IO.

use std::io;

use super::Pattern;
use crate::site::Site;
use crate::stamp::How;

pub const PATTERN: Pattern = Pattern {
    name: "threads",
    parts: &["all"],
    work,
};

fn work(site: &Site, _: &str) -> io::Result<()> {
    let (buffered, direct) = (site.create("/threads")?, site.direct("/threads-direct")?);
    // On a filesystem without holes, a thread would otherwise fill the places of others.
    buffered.file.set_len(32 * 8 * 8192)?;
    buffered.sync()?;
    std::thread::scope(|scope| {
        let write = |thread: u64| {
            let file = if thread.is_multiple_of(2) {
                &buffered
            } else {
                &direct
            };
            for at in 0..32 {
                file.write((at * 8 + thread) * 8192, 8192, How::Buffered)?;
                if at % 4 == 0 {
                    file.sync()?;
                }
            }
            Ok(())
        };
        let threads: Vec<_> = (0..8)
            .map(|thread| scope.spawn(move || write(thread)))
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("no thread panics"))
    })
}
