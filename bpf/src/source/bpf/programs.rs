// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attached programs.

use std::ffi::{OsStr, OsString};
use std::thread;

use libbpf_rs::Link;
use libbpf_rs::query::LinkTypeInfo;

use crate::machine::kernel;

/// Programs that are attached as long as this lives.
#[derive(Default)]
pub(crate) struct Programs {
    /// The links, by the programs' names.
    links: Vec<(OsString, Link)>,
    /// The number of runs that detached programs missed.
    missed: u64,
}

impl Programs {
    /// Keeps a program attached.
    pub fn keep(&mut self, program: &OsStr, link: Link) {
        self.links.push((program.to_owned(), link));
    }

    /// Returns true if a program whose name begins like this is attached.
    pub fn has(&self, prefix: &[u8]) -> bool {
        let mut names = self.links.iter().map(|(name, _)| name.as_encoded_bytes());
        names.any(|name| name.starts_with(prefix))
    }

    /// Detaches the programs that are not `kept`, and waits until none of them runs any more. A run may have reserved a record of a
    /// ring that it has not yet submitted.
    pub fn detach_but(&mut self, kept: &[&str]) {
        let is_kept = |(name, _): &mut (OsString, Link)| kept.iter().any(|kept| name == *kept);
        let ended: Vec<_> = self.links.extract_if(.., |link| !is_kept(link)).collect();
        // The kernel waits at the end of some, 80 ms for each: these waits pass at the same time. A program is asked just before its
        // end, so that no run is missed in between.
        self.missed += thread::scope(|scope| {
            let end = |(name, link): (OsString, Link)| scope.spawn(move || missed(&name, &link));
            let ending: Vec<_> = ended.into_iter().map(end).collect();
            let missed = ending.into_iter().map(|thread| thread.join());
            missed
                .map(|missed| missed.expect("it only asks"))
                .sum::<u64>()
        });
        kernel::wait_for_programs();
    }

    /// Returns the number of calls of functions that the programs at these missed, because the kernel could not follow more of
    /// them to their end; it reports this from 6.7 on.
    pub fn missed(&self) -> u64 {
        let links = self.links.iter();
        self.missed + links.map(|(name, link)| missed(name, link)).sum::<u64>()
    }
}

fn missed(program: &OsStr, link: &Link) -> u64 {
    let missed = match link.info().map(|link| link.info) {
        Ok(LinkTypeInfo::KprobeMulti(functions)) => functions.missed,
        _ => 0,
    };
    if missed > 0 {
        let program = program.to_string_lossy();
        log::debug!("{program}: {missed} calls missed");
    }
    missed
}
