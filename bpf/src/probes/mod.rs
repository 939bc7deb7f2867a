// SPDX-License-Identifier: MIT OR Apache-2.0
//! The BPF probes: loaded once, attached as those of entries and those of block events.
//!
//! A source of either kind asks for its stream; nothing here knows what a record says.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{ErrorKind, MapCore, MapFlags, OpenObject, PrintLevel};

use crate::device::Device;
use crate::error::{Error, Result};

mod configure;
mod loader;
mod stream;

mod skel {
    #![allow(missing_docs, unsafe_code, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/mostrace.skel.rs"));
}

pub(crate) use loader::Loader;
use skel::{MostraceSkel, MostraceSkelBuilder};
pub(crate) use stream::{Stream, Take};

/// `enum loss` of submitter.bpf.h, in its order; the manifest's names.
const LOSSES: [&str; 5] = [
    "entries_ring",
    "events_ring",
    "submitters",
    "bios_cut",
    "pages_cut",
];

/// The loaded probes.
pub(crate) struct Probes<'o> {
    skel: MostraceSkel<'o>,
}

impl<'o> Probes<'o> {
    fn load(storage: &'o mut MaybeUninit<OpenObject>, device: &Device) -> Result<Probes<'o>> {
        libbpf_rs::set_print(Some((PrintLevel::Warn, log_libbpf)));
        let mut open = MostraceSkelBuilder::default()
            .open(storage)
            .map_err(Error::bpf)?;
        configure::configure(&mut open, device)?;
        let skel = open.load().map_err(Error::bpf)?;
        Ok(Probes { skel })
    }

    /// Attaches the probes of entries.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn entries<T: 'static>(&self, to: T, take: Take<T>) -> Result<Stream<T>> {
        let stream = Stream::new(&self.skel.maps.entries, to, take)?;
        self.attach(stream, |program| !is_of_events(program))
    }

    /// Attaches the probes of block events.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn events<T: 'static>(&self, to: T, take: Take<T>) -> Result<Stream<T>> {
        let stream = Stream::new(&self.skel.maps.events, to, take)?;
        self.attach(stream, is_of_events)
    }

    /// Those that were attached before one was refused go with the stream.
    fn attach<T: 'static>(
        &self,
        mut stream: Stream<T>,
        is_asked_for: fn(&OsStr) -> bool,
    ) -> Result<Stream<T>> {
        let programs = self.skel.object().progs_mut();
        for program in programs.filter(|p| p.autoload() && is_asked_for(p.name())) {
            match program.attach() {
                Ok(link) => stream.keep(link),
                Err(e) if is_of_a_filesystem(program.name()) && e.kind() == ErrorKind::NotFound => {
                    log::debug!("{}: not there", program.name().to_string_lossy());
                }
                Err(e) => return Err(Error::bpf(e)),
            }
        }
        Ok(stream)
    }

    fn losses(&self) -> Result<BTreeMap<String, u64>> {
        let mut losses = BTreeMap::new();
        for (index, name) in (0u32..).zip(LOSSES) {
            let per_cpu = self
                .skel
                .maps
                .losses
                .lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY)
                .map_err(Error::bpf)?
                .unwrap_or_default();
            let count = |bytes: &Vec<u8>| {
                bytes
                    .get(..8)
                    .and_then(|b| b.try_into().ok())
                    .map_or(0, u64::from_ne_bytes)
            };
            losses.insert(name.to_owned(), per_cpu.iter().map(count).sum());
        }
        losses.insert("probe_misses".to_owned(), self.recursion_misses());
        Ok(losses)
    }

    /// Runs that the kernel skipped because a program was already running on the CPU (6.1 and later).
    fn recursion_misses(&self) -> u64 {
        let mine: Vec<u32> = self
            .skel
            .object()
            .progs()
            .filter_map(|p| program_id(&p))
            .collect();
        libbpf_rs::query::ProgInfoIter::default()
            .filter(|info| mine.contains(&info.id))
            .map(|info| info.recursion_misses)
            .sum()
    }
}

fn program_id(program: &libbpf_rs::Program<'_>) -> Option<u32> {
    use std::os::fd::AsFd;
    libbpf_rs::Program::id_from_fd(program.as_fd()).ok()
}

fn log_libbpf(level: PrintLevel, text: String) {
    match level {
        PrintLevel::Warn => log::debug!("libbpf: {}", text.trim_end()),
        _ => log::trace!("libbpf: {}", text.trim_end()),
    }
}

/// By their names in flush.bpf.h: their tracepoints are there only once the filesystem is.
fn is_of_a_filesystem(program: &OsStr) -> bool {
    let name = program.as_encoded_bytes();
    name.starts_with(b"mostrace_ext4_") || name.starts_with(b"mostrace_f2fs_")
}

/// By their names in blockevents.bpf.h.
fn is_of_events(program: &OsStr) -> bool {
    program.as_encoded_bytes().starts_with(b"event_")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// By what the build script told cargo.
    #[test]
    fn a_changed_header_compiles_the_probes_again() {
        let told = Path::new(env!("OUT_DIR")).with_file_name("output");
        let told = fs::read_to_string(told).unwrap();
        let is_followed = |name: &str| {
            let line = format!("cargo:rerun-if-changed={name}");
            told.lines().any(|l| l == line)
        };
        let mut files = vec!["mostrace.bpf.c".to_owned()];
        let mut at = 0;
        while let Some(file) = files.get(at).cloned() {
            assert!(is_followed(&file), "{file}");
            let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
            let includes = text.unwrap();
            let includes = includes.lines().filter_map(|line| {
                let name = line.strip_prefix("#include \"")?.strip_suffix('"')?;
                Some(name.to_owned())
            });
            let new: Vec<_> = includes.filter(|name| !files.contains(name)).collect();
            files.extend(new);
            at += 1;
        }
        assert!(files.contains(&"dirtier.bpf.h".to_owned()), "{files:?}");
    }
}
