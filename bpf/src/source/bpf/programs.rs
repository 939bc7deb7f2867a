// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attached programs.

use std::ffi::{OsStr, OsString};

use libbpf_rs::Link;

use crate::machine::kernel;

/// Programs that are attached as long as this lives.
#[derive(Default)]
pub(crate) struct Programs {
    /// The links, by the programs' names.
    links: Vec<(OsString, Link)>,
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
        let is_kept = |name: &OsStr| kept.iter().any(|kept| name == *kept);
        self.links.retain(|(name, _)| is_kept(name));
        kernel::wait_for_programs();
    }
}
