// SPDX-License-Identifier: MIT OR Apache-2.0
//! The constants of the probes of entries, which are filled in before they are loaded: the device to trace, and the places of the
//! kernel's functions and fields.

use std::ffi::{OsStr, OsString};

use libbpf_rs::btf::Btf;

use super::addresses::{self, Known};
use super::calls;
use super::form::entries::Form;
use super::object::map_to_open;
use super::told::Told;
use crate::error::{Error, Result};
use crate::machine::device::Device;
use crate::machine::filesystem;
use crate::machine::kernel::{self, Symbols};
use crate::machine::members;

/// Fills in the constants, and leaves out the programs that are of no use on this kernel or for this device. Returns what the
/// probes cannot tell here.
///
/// # Errors
/// Returns an error if a tracepoint is missing.
pub(super) fn configure<'o>(
    open: &mut impl Form<'o>,
    device: &Device,
    btf: &Btf<'_>,
) -> Result<Vec<String>> {
    let symbols = Symbols::read();
    let above = device.above();
    fill_constants(open, device, btf)?;
    let mut notes = fill_above(open, &above)?;
    fill_beside(open, &members::beside(device))?;
    notes.extend(fill_symbols(open, &symbols)?);
    let told = Told::read();
    let constants = open.constants()?;
    constants.tells_direct = told.direct;
    constants.tells_writing = told.writing;
    choose_programs(open, btf, &Needs::of(device, told))?;
    Ok(notes)
}

/// Properties of the device that decide which programs have something to do.
struct Needs {
    /// True if there are disks above it.
    is_below: bool,
    /// True if its bios complete without requests.
    has_bios_alone: bool,
    /// True if every filesystem on it is ext4, which reports the pages that it drops.
    tells_drops: bool,
    /// True if several of its blocks may share a page.
    shares_pages: bool,
    told: Told,
}

impl Needs {
    fn of(device: &Device, told: Told) -> Needs {
        let kinds = filesystem::kinds(device);
        let is_mounted = filesystem::mounted(device).is_some();
        Needs {
            is_below: !device.above().is_empty(),
            has_bios_alone: !device.has_requests(),
            tells_drops: !kinds.is_empty() && kinds.iter().all(|kind| is_ext4(kind)),
            shares_pages: !(is_mounted && filesystem::has_whole_pages(device)),
            told,
        }
    }

    /// Returns false for a program that has nothing to do here, or that does what another one does at less cost.
    fn include(&self, program: &OsStr) -> bool {
        let name = program.as_encoded_bytes();
        match name {
            b"mostrace_bio_complete" => self.is_below || self.has_bios_alone,
            _ if name.starts_with(b"mostrace_bio_remap") => self.is_below,
            _ if name.starts_with(b"mostrace_ext4_") && name.ends_with(b"invalidate") => {
                self.tells_drops
            }
            b"mostrace_dirty_buffer" => self.shares_pages,
            b"mostrace_told_direct" => self.told.direct,
            b"mostrace_told_writing" => self.told.writing,
            _ => true,
        }
    }
}

/// Returns true for the kinds of filesystems that the kernel's ext4 mounts.
fn is_ext4(kind: &str) -> bool {
    matches!(kind, "ext4" | "ext3")
}

fn choose_programs<'o>(open: &mut impl Form<'o>, btf: &Btf<'_>, needs: &Needs) -> Result<()> {
    let looped = kernel::has_bpf_loop(btf);
    let names: Vec<_> = open
        .open_object()
        .progs()
        .map(|p| p.name().to_owned())
        .collect();
    for mut program in open.open_object_mut().progs_mut() {
        let name = program.name().to_owned();
        let asked = is_for(looped, &name, &names) && has_dirtier(btf, &name);
        program.set_autoload(asked && needs.include(&name));
    }
    for (map, is_used) in [
        ("submitters", needs.is_below),
        ("told_directs", needs.told.direct),
        ("writing_pages", needs.told.writing),
    ] {
        if !is_used {
            let mut map = map_to_open(open, map)?;
            map.set_max_entries(1).map_err(Error::bpf)?;
        }
    }
    Ok(())
}

/// Tells the probes which disks are mapped onto the traced one.
fn fill_above<'o>(open: &mut impl Form<'o>, above: &[u32]) -> Result<Vec<String>> {
    let room = &mut open.constants()?.above;
    let kept = fill(&mut room.numbers, &mut room.count, above);
    let mut notes = Vec::new();
    if kept < above.len() {
        notes.push(format!(
            "{} disks are mapped onto the traced one: of those beyond {kept}, submitters and dirtiers are not known",
            above.len()
        ));
    }
    Ok(notes)
}

/// Tells the probes on which other disks the filesystems lie. What is written to one beyond those that there is room for is not
/// settled, and may be counted as forgotten.
fn fill_beside<'o>(open: &mut impl Form<'o>, beside: &[u32]) -> Result<()> {
    let room = &mut open.constants()?.beside;
    fill(&mut room.numbers, &mut room.count, beside);
    Ok(())
}

/// Copies as many numbers as there is room for, and sets `count`. Returns how many.
fn fill(room: &mut [u32], count: &mut u32, numbers: &[u32]) -> usize {
    let kept = numbers.len().min(room.len());
    room[..kept].copy_from_slice(&numbers[..kept]);
    *count = u32::try_from(kept).unwrap_or(0);
    kept
}

fn fill_constants<'o>(open: &mut impl Form<'o>, device: &Device, btf: &Btf<'_>) -> Result<()> {
    let bio = |tracepoint: &str| kernel::argument_index(btf, tracepoint, "bio");
    let filesystems = members::filesystems(device);
    let rodata = open.constants()?;
    let room = &mut rodata.filesystems;
    fill(&mut room.devs, &mut room.count, &filesystems);
    rodata.target.disk_dev = device.disk_dev;
    rodata.target.dev = device.dev;
    rodata.target.start = device.info.start_sector;
    rodata.target.end = device.end_sector();
    for (room, path) in rodata.target.paths.iter_mut().zip(&device.paths) {
        *room = path.dev;
        rodata.target.path_count += 1;
    }
    rodata.target_start = device.info.start_sector;
    rodata.page_shift = rustix::param::page_size().trailing_zeros();
    rodata.trace_completion_bit = kernel::enum_value(btf, "BIO_TRACE_COMPLETION")?;
    rodata.complete_has_errno = kernel::completes_with_errno(btf);
    rodata.mount_calls.mount = calls::number(libc::SYS_mount);
    rodata.mount_calls.fsconfig = calls::number(libc::SYS_fsconfig);
    rodata.mount_calls.umount2 = calls::number(libc::SYS_umount2);
    rodata.args.bio_queue = bio("block_bio_queue")?;
    rodata.args.remap = bio("block_bio_remap")?;
    Ok(())
}

/// Fills in the addresses of functions. Returns what the probes cannot tell without them.
fn fill_symbols<'o>(open: &mut impl Form<'o>, symbols: &Symbols) -> Result<Vec<String>> {
    let rodata = open.constants()?;
    // One patch series brought both.
    rodata.size_lags = symbols.has("bio_iov_iter_bounce");
    rodata.blind = addresses::fill(rodata, symbols) == Known::Not;
    let hidden = rodata.blind.then(|| Error::FunctionsUnknown.to_string());
    Ok(hidden.into_iter().collect())
}

/// Returns true if a program is the right one of its two forms. Programs with a loop exist twice, the second time without bpf_loop
/// for kernels before 5.17.
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

/// Returns false for a probe of dirtier.bpf.h if the kernel lacks its tracepoint.
fn has_dirtier(btf: &Btf<'_>, program: &OsStr) -> bool {
    match program.to_str() {
        Some("mostrace_dirty_folio") => kernel::has_tracepoint(btf, "writeback_dirty_folio"),
        Some("mostrace_dirty_page") => kernel::has_tracepoint(btf, "writeback_dirty_page"),
        Some("mostrace_dirty_buffer") => kernel::has_tracepoint(btf, "block_dirty_buffer"),
        _ => true,
    }
}
