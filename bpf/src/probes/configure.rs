// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the probes are told before they are loaded: what to trace, and where this kernel keeps things.

use std::ffi::{OsStr, OsString};

use libbpf_rs::btf::Btf;
use libbpf_rs::skel::OpenSkel;

use super::skel::OpenMostraceSkel;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernel;

/// Fills in the constants, and leaves out the programs that this kernel has no use for.
///
/// # Errors
/// No BTF, or a tracepoint is missing.
pub(super) fn configure(open: &mut OpenMostraceSkel<'_>, device: &Device) -> Result<()> {
    let btf = kernel::btf()?;
    fill_constants(open, device, &btf)?;
    choose_programs(open, &btf);
    Ok(())
}

fn choose_programs(open: &mut OpenMostraceSkel<'_>, btf: &Btf<'_>) {
    let looped = kernel::has_bpf_loop(btf);
    let names: Vec<_> = open
        .open_object()
        .progs()
        .map(|p| p.name().to_owned())
        .collect();
    for mut program in open.open_object_mut().progs_mut() {
        let name = program.name().to_owned();
        program.set_autoload(is_for(looped, &name, &names) && has_dirtier(btf, &name));
    }
}

fn fill_constants(open: &mut OpenMostraceSkel<'_>, device: &Device, btf: &Btf<'_>) -> Result<()> {
    let bio = |tracepoint: &str| kernel::argument_index(btf, tracepoint, "bio");
    let request = |tracepoint: &str| kernel::argument_index(btf, tracepoint, "request");
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
    rodata.args.bio_queue = bio("block_bio_queue")?;
    rodata.args.split = bio("block_split")?;
    rodata.args.rq_insert = request("block_rq_insert")?;
    rodata.args.rq_issue = request("block_rq_issue")?;
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
