// SPDX-License-Identifier: MIT OR Apache-2.0
//! The BPF probes: those of entries here, those of block events in [`events`], each loaded without the other.
//!
//! A source of either kind asks for its stream; nothing here knows what a record says.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::path::Path;

use libbpf_rs::btf::Btf;
use libbpf_rs::skel::{OpenSkel, Skel};
use libbpf_rs::{ErrorKind, Map, MapCore, MapFlags, Object, OpenMapMut, OpenObject, PrintLevel};

use crate::error::{Error, Result};
use crate::machine::device::Device;
use crate::machine::kernel;
use crate::machine::memory;
use crate::ring_size::RingSize;

pub(crate) mod causes;
mod configure;
pub(crate) mod events;
mod form;
mod loader;
mod reader;
mod ring;
mod stream;
mod teller;

use form::entries;
pub(crate) use loader::{Loader, Rooms};
pub(crate) use stream::{Stream, Take};
pub(crate) use teller::{Teller, Told};

/// `enum loss` of loss.bpf.h, in its order; the manifest's names.
const LOSSES: [&str; 4] = ["entries_ring", "submitters", "pages_cut", "dirtiers"];

/// Of programs whose names begin so one is enough, and none is needed: a kernel may have no such probes, or keep them to itself.
const MODIFY: &[u8] = b"cause_modify_";

/// The loaded probes.
pub(crate) struct Probes<'o> {
    skel: Box<dyn Skel<'o> + 'o>,
    /// What they cannot tell on this kernel, and why.
    notes: Vec<String>,
}

impl<'o> Probes<'o> {
    /// By the kernel's own BTF, or that of a file.
    fn load(
        storage: &'o mut MaybeUninit<OpenObject>,
        device: &Device,
        btf: Option<&Path>,
        ring: RingSize,
    ) -> Result<Probes<'o>> {
        match btf {
            None => Probes::configured(entries::typed(storage)?, device, kernel::btf()?, ring),
            Some(file) => {
                let btf = kernel::btf_of(file)?;
                Probes::configured(entries::untyped(storage, file)?, device, btf, ring)
            }
        }
    }

    fn configured(
        mut open: impl entries::Form<'o, Output: 'o>,
        device: &Device,
        btf: Btf<'_>,
        ring: RingSize,
    ) -> Result<Probes<'o>> {
        let notes = configure::configure(&mut open, device, &btf)?;
        // libbpf reads it once more: not both at a time.
        drop(btf);
        memory::give_back();
        map_to_open(&mut open, "entries")?
            .set_max_entries(ring.bytes())
            .map_err(Error::bpf)?;
        let skel = open.load().map_err(Error::bpf)?;
        memory::give_back();
        let skel = Box::new(skel);
        Ok(Probes { skel, notes })
    }

    /// What a reader of their entries should know.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Attaches them.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn attach<T>(&self, to: T, take: Take<T>) -> Result<Stream<T>> {
        let stream = Stream::new(&map_of(&*self.skel, "entries")?, to, take)?;
        attach(self.skel.object(), stream)
    }

    /// By the manifest's names.
    fn losses(&self) -> Result<BTreeMap<String, u64>> {
        let mut losses = BTreeMap::new();
        for (index, name) in (0u32..).zip(LOSSES) {
            let lost = per_cpu_sum(&map_of(&*self.skel, "losses")?, index)?;
            losses.insert(name.to_owned(), lost);
        }
        losses.insert("events_ring".to_owned(), events_lost(&*self.skel)?);
        let misses = recursion_misses(self.skel.object());
        losses.insert("probe_misses".to_owned(), misses);
        Ok(losses)
    }

    /// What lets them tell block events too.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub fn teller(&self) -> Result<Teller> {
        let told_to = map_of(&*self.skel, "told_to")?;
        Teller::of(&told_to)
    }
}

/// Block events that found the ring full.
fn events_lost(skel: &dyn Skel<'_>) -> Result<u64> {
    per_cpu_sum(&map_of(skel, "events_lost")?, 0)
}

/// Attaches the programs that were loaded. Those that were attached before one was refused go with the stream.
fn attach<T>(object: &Object, mut stream: Stream<T>) -> Result<Stream<T>> {
    let mut has_modify = false;
    for program in object.progs_mut().filter(|p| p.autoload()) {
        let is_modify = program.name().as_encoded_bytes().starts_with(MODIFY);
        if is_modify && has_modify {
            continue;
        }
        match program.attach() {
            Ok(link) => {
                has_modify |= is_modify;
                stream.keep(program.name(), link);
            }
            Err(e) if is_of_a_filesystem(program.name()) && e.kind() == ErrorKind::NotFound => {
                log::debug!("{}: not there", program.name().to_string_lossy());
            }
            Err(e) if is_modify => {
                log::debug!("{}: {e}", program.name().to_string_lossy());
            }
            Err(e) => return Err(Error::bpf(e)),
        }
    }
    Ok(stream)
}

/// A map by its name.
fn map_of<'s>(skel: &'s dyn Skel<'_>, name: &str) -> Result<Map<'s>> {
    let mut maps = skel.object().maps();
    let found = maps.find(|map| map.name() == name);
    found.ok_or_else(|| Error::bpf(format!("probes without {name}")))
}

/// Of probes that are not loaded yet.
fn map_to_open<'a, 'o: 'a>(open: &'a mut impl OpenSkel<'o>, name: &str) -> Result<OpenMapMut<'a>> {
    let mut maps = open.open_object_mut().maps_mut();
    let found = maps.find(|map| map.name() == name);
    found.ok_or_else(|| Error::bpf(format!("probes without {name}")))
}

/// An element of a per-CPU array of u64, over all CPUs.
fn per_cpu_sum(map: &dyn MapCore, index: u32) -> Result<u64> {
    let per_cpu = map.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY);
    let per_cpu = per_cpu.map_err(Error::bpf)?.unwrap_or_default();
    let count = |bytes: &Vec<u8>| {
        let bytes = bytes.get(..8).and_then(|b| b.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    };
    Ok(per_cpu.iter().map(count).sum())
}

/// Runs that the kernel skipped because a program was already running on the CPU (6.1 and later).
fn recursion_misses(object: &Object) -> u64 {
    let mine: Vec<u32> = object.progs().filter_map(|p| program_id(&p)).collect();
    libbpf_rs::query::ProgInfoIter::default()
        .filter(|info| mine.contains(&info.id))
        .map(|info| info.recursion_misses)
        .sum()
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

/// By their names in flush.bpf.h and causes.bpf.c: their tracepoints are there only once the filesystem is.
fn is_of_a_filesystem(program: &OsStr) -> bool {
    let name = program.as_encoded_bytes();
    [
        "mostrace_ext4_",
        "mostrace_f2fs_",
        "cause_ext4_",
        "cause_f2fs_",
        "cause_jbd2_",
    ]
    .iter()
    .any(|of_one| name.starts_with(of_one.as_bytes()))
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
        let mut files = ["mostrace.bpf.c", "events.bpf.c", "causes.bpf.c"]
            .map(str::to_owned)
            .to_vec();
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
