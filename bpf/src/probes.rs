// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads the BPF probes, and attaches those of the entries and those of the block events.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::path::Path;
use std::rc::Rc;

use libbpf_rs::btf::Btf;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject, PrintLevel, RingBuffer, RingBufferBuilder};

use crate::device::Device;
use crate::entries::Tables;
use crate::entries::bpf::{self as entries, BpfEntries};
use crate::error::{Error, Result};
use crate::events::CpuFiles;
use crate::events::bpf::{self as events, BpfEvents};
use crate::kernel;
use crate::names::NameFilter;

mod skel {
    #![allow(missing_docs, unsafe_code, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/mostrace.skel.rs"));
}

pub(crate) use skel::MostraceLinks as EntryLinks;
use skel::{MostraceSkel, MostraceSkelBuilder, OpenMostraceSkel};

/// `enum loss` of submitter.bpf.h, in its order; the manifest's names.
const LOSSES: [&str; 5] = [
    "entries_ring",
    "events_ring",
    "submitters",
    "bios_cut",
    "pages_cut",
];

/// The probes, loaded when they are first asked for: a kernel that cannot have them need not.
pub(crate) struct Loader<'o> {
    storage: Option<&'o mut MaybeUninit<OpenObject>>,
    probes: Option<Probes<'o>>,
    refused: String,
}

impl<'o> Loader<'o> {
    pub fn new(storage: &'o mut MaybeUninit<OpenObject>) -> Loader<'o> {
        Loader {
            storage: Some(storage),
            probes: None,
            refused: String::new(),
        }
    }

    /// Loads them, unless that was tried before.
    ///
    /// # Errors
    /// No BTF, or the kernel refuses the probes.
    pub fn load(&mut self, device: &Device) -> Result<&mut Probes<'o>> {
        if let Some(storage) = self.storage.take() {
            match Probes::load(storage, device) {
                Ok(probes) => self.probes = Some(probes),
                Err(e) => self.refused = e.to_string(),
            }
        }
        match &mut self.probes {
            Some(probes) => Ok(probes),
            None => Err(Error::unfit(&*self.refused)),
        }
    }

    /// What the probes lost, by the manifest's names; nothing if there are none.
    ///
    /// # Errors
    /// The kernel does not give the counters.
    pub fn losses(&self) -> Result<BTreeMap<String, u64>> {
        self.probes
            .as_ref()
            .map_or(Ok(BTreeMap::new()), Probes::losses)
    }
}

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
        configure(&mut open, device)?;
        let btf = kernel::btf()?;
        let looped = kernel::has_bpf_loop(&btf);
        let names: Vec<_> = open
            .open_object()
            .progs()
            .map(|p| p.name().to_owned())
            .collect();
        for mut program in open.open_object_mut().progs_mut() {
            let name = program.name().to_owned();
            program.set_autoattach(!is_of_events(&name));
            program.set_autoload(is_for(looped, &name, &names) && has_dirtier(&btf, &name));
        }
        let skel = open.load().map_err(Error::bpf)?;
        Ok(Probes { skel })
    }

    /// Attaches the probes of entries, as a source that writes into `dir`.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn entries(&mut self, dir: &Path, names: NameFilter) -> Result<BpfEntries> {
        let tables = Tables::create(dir, names, "BPF probes")?;
        let sink = Rc::new(RefCell::new(entries::Sink::new(tables)));
        let ring = ring_of(&self.skel.maps.entries, {
            let sink = Rc::clone(&sink);
            move |data: &[u8]| sink.borrow_mut().take(data)
        })?;
        let attached = self.skel.attach().map_err(Error::bpf);
        // Those that were attached before one was refused go with the source too.
        let links = std::mem::take(&mut self.skel.links);
        attached?;
        Ok(BpfEntries::new(links, ring, sink))
    }

    /// Attaches the probes of block events, as a source that writes into `dir`.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn events(&mut self, dir: &Path) -> Result<BpfEvents> {
        let sink = Rc::new(RefCell::new(events::Sink::new(CpuFiles::new(dir))));
        let ring = ring_of(&self.skel.maps.events, {
            let sink = Rc::clone(&sink);
            move |data: &[u8]| sink.borrow_mut().take(data)
        })?;
        let links: Result<Vec<Link>> = self
            .skel
            .object()
            .progs_mut()
            .filter(|program| is_of_events(program.name()))
            .map(|program| program.attach().map_err(Error::bpf))
            .collect();
        Ok(BpfEvents::new(links?, ring, sink))
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

/// Tells the probes what to trace and where this kernel keeps things.
fn configure(open: &mut OpenMostraceSkel<'_>, device: &Device) -> Result<()> {
    let btf = kernel::btf()?;
    let bio = |tracepoint: &str| kernel::argument_index(&btf, tracepoint, "bio");
    let request = |tracepoint: &str| kernel::argument_index(&btf, tracepoint, "request");
    let rodata = open
        .maps
        .rodata_data
        .as_deref_mut()
        .ok_or_else(|| Error::bpf("skeleton without rodata"))?;
    rodata.target.disk_dev = device.disk_dev;
    rodata.target.dev = device.dev;
    rodata.target.start = device.info.start_sector;
    rodata.target.end = device.end_sector();
    rodata.target_start = device.info.start_sector;
    rodata.page_shift = rustix::param::page_size().trailing_zeros();
    rodata.complete_has_errno = kernel::completes_with_errno(&btf);
    rodata.args.bio_queue = bio("block_bio_queue")?;
    rodata.args.split = bio("block_split")?;
    rodata.args.getrq = bio("block_getrq")?;
    rodata.args.backmerge = bio("block_bio_backmerge")?;
    rodata.args.frontmerge = bio("block_bio_frontmerge")?;
    rodata.args.remap = bio("block_bio_remap")?;
    rodata.args.rq_insert = request("block_rq_insert")?;
    rodata.args.rq_issue = request("block_rq_issue")?;
    rodata.args.rq_merge = request("block_rq_merge")?;
    rodata.args.rq_requeue = request("block_rq_requeue")?;
    let symbols = &mut rodata.symbols;
    kernel::fill_addresses(&mut [
        ("bio_chain_endio", &mut symbols.bio_chain_endio),
        ("iomap_dio_bio_end_io", &mut symbols.iomap_dio_bio_end_io),
        ("blkdev_bio_end_io", &mut symbols.blkdev_bio_end_io),
        (
            "blkdev_bio_end_io_simple",
            &mut symbols.blkdev_bio_end_io_simple,
        ),
        (
            "blkdev_bio_end_io_async",
            &mut symbols.blkdev_bio_end_io_async,
        ),
        ("submit_bio_wait_endio", &mut symbols.submit_bio_wait_endio),
        ("bio_wait_end_io", &mut symbols.bio_wait_end_io),
        (
            "journal_end_buffer_io_sync",
            &mut symbols.journal_end_buffer_io_sync,
        ),
        ("dio_bio_end_io", &mut symbols.dio_bio_end_io),
        ("dio_bio_end_aio", &mut symbols.dio_bio_end_aio),
        ("f2fs_dio_end_io", &mut symbols.f2fs_dio_end_io),
        ("f2fs_dio_end_bio", &mut symbols.f2fs_dio_end_bio),
        ("page_offset_base", &mut symbols.page_offset_base),
        ("vmemmap_base", &mut symbols.vmemmap_base),
    ]);
    Ok(())
}

fn ring_of(
    map: &dyn MapCore,
    take: impl FnMut(&[u8]) -> i32 + 'static,
) -> Result<RingBuffer<'static>> {
    let mut builder = RingBufferBuilder::new();
    builder.add(map, take).map_err(Error::bpf)?;
    builder.build().map_err(Error::bpf)
}

/// Programs with a loop come twice, the second without bpf_loop for kernels before 5.17.
fn is_for(looped: bool, program: &OsStr, all: &[OsString]) -> bool {
    const UNROLLED: &str = "_unrolled";
    let mut twin = program.to_owned();
    twin.push(UNROLLED);
    let is_unrolled = program.as_encoded_bytes().ends_with(UNROLLED.as_bytes());
    if looped {
        !is_unrolled
    } else {
        is_unrolled || !all.contains(&twin)
    }
}

/// Of the two probes of dirtier.bpf.h, the one whose tracepoint there is; any other program.
fn has_dirtier(btf: &Btf<'_>, program: &OsStr) -> bool {
    match program.to_str() {
        Some("mostrace_dirty_folio" | "mostrace_dirty_page") if !kernel::takes_dirtiers() => false,
        Some("mostrace_dirty_folio") => kernel::has_tracepoint(btf, "writeback_dirty_folio"),
        Some("mostrace_dirty_page") => kernel::has_tracepoint(btf, "writeback_dirty_page"),
        _ => true,
    }
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
