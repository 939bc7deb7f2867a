// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads the BPF probes, and moves their entries into the bundle's tables.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::path::Path;
use std::rc::Rc;

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject, PrintLevel, RingBuffer, RingBufferBuilder};
use mostrace_bundle::entry::{Flags, RawFile, RawProcess, TYPE_FILE, TYPE_PROCESS};
use mostrace_bundle::layout;
use mostrace_bundle::table::TableWriter;

use crate::device::Device;
use crate::error::{At, Error, Result};
use crate::events::CpuFiles;
use crate::events::bpf::{BpfEvents, Sink};
use crate::kernel;
use crate::names::NameFilter;

mod skel {
    #![allow(missing_docs, unsafe_code, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/mostrace.skel.rs"));
}

use skel::{MostraceSkel, MostraceSkelBuilder, OpenMostraceSkel};

/// `enum loss` of submitter.bpf.h, in its order; the manifest's names.
const LOSSES: [&str; 5] = [
    "entries_ring",
    "events_ring",
    "submitters",
    "bios_cut",
    "pages_cut",
];

/// The attached probes.
pub(crate) struct Probes<'o> {
    skel: MostraceSkel<'o>,
    event_links: Vec<Link>,
    ring: RingBuffer<'static>,
    tables: Rc<RefCell<Tables>>,
    misses: u64,
}

/// The two tables, fed by the ring buffer's callback.
struct Tables {
    process: TableWriter,
    file: TableWriter,
    names: NameFilter,
    kept: [u64; 2],
    error: Option<Error>,
    process_path: std::path::PathBuf,
    file_path: std::path::PathBuf,
}

impl<'o> Probes<'o> {
    /// Loads all probes and attaches those of the entries.
    ///
    /// # Errors
    /// No BTF, or the kernel refuses the probes.
    pub fn start(
        storage: &'o mut MaybeUninit<OpenObject>,
        device: &Device,
        dir: &Path,
        names: NameFilter,
    ) -> Result<Probes<'o>> {
        let tables = Rc::new(RefCell::new(Tables::create(dir, names)?));
        libbpf_rs::set_print(Some((PrintLevel::Warn, log_libbpf)));
        let mut open = MostraceSkelBuilder::default()
            .open(storage)
            .map_err(Error::bpf)?;
        configure(&mut open, device)?;
        let looped = kernel::has_bpf_loop(&kernel::btf()?);
        let names: Vec<_> = open
            .open_object()
            .progs()
            .map(|p| p.name().to_owned())
            .collect();
        for mut program in open.open_object_mut().progs_mut() {
            let name = program.name().to_owned();
            program.set_autoattach(!is_of_events(&name));
            program.set_autoload(is_for(looped, &name, &names));
        }
        let mut skel = open.load().map_err(Error::bpf)?;
        let ring = ring_of(&skel.maps.entries, {
            let tables = Rc::clone(&tables);
            move |data: &[u8]| tables.borrow_mut().take(data)
        })?;
        skel.attach().map_err(Error::bpf)?;
        Ok(Probes {
            skel,
            event_links: Vec::new(),
            ring,
            tables,
            misses: 0,
        })
    }

    /// Attaches the probes of block events too, as a source that writes into `dir`.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn events(&mut self, dir: &Path) -> Result<BpfEvents> {
        let sink = Rc::new(RefCell::new(Sink::new(CpuFiles::new(dir))));
        let ring = ring_of(&self.skel.maps.events, {
            let sink = Rc::clone(&sink);
            move |data: &[u8]| sink.borrow_mut().take(data)
        })?;
        for program in self.skel.object().progs_mut() {
            if is_of_events(program.name()) {
                self.event_links.push(program.attach().map_err(Error::bpf)?);
            }
        }
        Ok(BpfEvents::new(ring, sink))
    }

    /// Moves what has come since the last call into the tables.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn poll(&mut self) -> Result<()> {
        let consumed = self.ring.consume();
        let mut tables = self.tables.borrow_mut();
        if let Some(e) = tables.error.take() {
            return Err(e);
        }
        consumed.map_err(Error::bpf)?;
        tables.flush()
    }

    /// Process and file entries kept so far.
    pub fn kept(&self) -> [u64; 2] {
        self.tables.borrow().kept
    }

    /// Detaches the probes.
    pub fn detach(&mut self) {
        self.misses = self.recursion_misses();
        self.skel.links = skel::MostraceLinks::default();
        self.event_links.clear();
    }

    /// What was lost, by the manifest's names.
    ///
    /// # Errors
    /// The kernel does not give the counters.
    pub fn losses(&self) -> Result<BTreeMap<String, u64>> {
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
        losses.insert("probe_misses".to_owned(), self.misses);
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

/// By their names in blockevents.bpf.h.
fn is_of_events(program: &OsStr) -> bool {
    program.as_encoded_bytes().starts_with(b"event_")
}

impl Tables {
    fn create(dir: &Path, names: NameFilter) -> Result<Tables> {
        let process_path = dir.join(layout::PROCESS);
        let file_path = dir.join(layout::FILE);
        Ok(Tables {
            process: TableWriter::create(&process_path).at(&process_path)?,
            file: TableWriter::create(&file_path).at(&file_path)?,
            names,
            kept: [0; 2],
            error: None,
            process_path,
            file_path,
        })
    }

    /// Takes one record of the ring buffer. Anything but 0 ends the consumption.
    fn take(&mut self, data: &[u8]) -> i32 {
        match self.push(data) {
            Ok(()) => 0,
            Err(e) => {
                self.error = Some(e);
                -1
            }
        }
    }

    fn push(&mut self, data: &[u8]) -> Result<()> {
        let kind = data.get(..2).map(|b| u16::from_ne_bytes([b[0], b[1]]));
        match kind {
            Some(TYPE_PROCESS) => {
                let record = data.get(..size_of::<RawProcess>()).ok_or_else(malformed)?;
                self.kept[0] += 1;
                self.process.push(record).at(&self.process_path)
            }
            Some(TYPE_FILE) => {
                let record = cut_to_name(data, &self.names).ok_or_else(malformed)?;
                self.kept[1] += 1;
                self.file.push(&record).at(&self.file_path)
            }
            _ => Err(malformed()),
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.process.flush().at(&self.process_path)?;
        self.file.flush().at(&self.file_path)
    }
}

fn malformed() -> Error {
    Error::bpf("malformed entry in the ring buffer")
}

const FILE_LEN: usize = size_of::<RawFile>();
const SIZE_AT: usize = 2;
const FLAGS_AT: usize = 31;
const NAME_LEN_AT: usize = 68;

/// The probe reserves room for the longest name: cuts the entry to its own name, or, if the
/// file was not asked for, to none.
fn cut_to_name(data: &[u8], names: &NameFilter) -> Option<Vec<u8>> {
    let name_len = usize::from(u16::from_ne_bytes(
        data.get(NAME_LEN_AT..NAME_LEN_AT + 2)?.try_into().ok()?,
    ));
    let name = data.get(FILE_LEN..FILE_LEN + name_len)?;
    let mut record = data.get(..FILE_LEN)?.to_vec();
    if names.keeps(name) {
        record.extend(name);
        record.resize(record.len().next_multiple_of(8), 0);
    } else {
        record[NAME_LEN_AT..NAME_LEN_AT + 2].fill(0);
        record[FLAGS_AT] |= Flags::NAME_WITHHELD.0;
    }
    let size = u16::try_from(record.len()).ok()?;
    record[SIZE_AT..SIZE_AT + 2].copy_from_slice(&size.to_ne_bytes());
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mostrace_bundle::Entry;

    fn raw(name: &[u8]) -> Vec<u8> {
        let mut r = vec![0; FILE_LEN + 256];
        r[..2].copy_from_slice(&TYPE_FILE.to_ne_bytes());
        r[NAME_LEN_AT..NAME_LEN_AT + 2].copy_from_slice(&(name.len() as u16).to_ne_bytes());
        r[FILE_LEN..FILE_LEN + name.len()].copy_from_slice(name);
        r
    }

    #[test]
    fn a_file_entry_is_cut_to_its_name() {
        let temp = NameFilter::parse("temp").unwrap();
        for (name, kept) in [
            (&b"a.db-wal"[..], true),
            (b"a.db", false),
            (b"", false),
            (&[b'x'; 255], false),
        ] {
            let record = cut_to_name(&raw(name), &temp).unwrap();
            let Entry::File(entry) = Entry::decode(&record).unwrap() else {
                panic!("not a file")
            };
            assert_eq!(entry.name, if kept { name } else { b"" });
            assert_eq!(entry.raw.head.flags.has(Flags::NAME_WITHHELD), !kept);
            assert_eq!(record.len() % 8, 0);
        }
    }
}
