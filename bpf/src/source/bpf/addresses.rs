// SPDX-License-Identifier: MIT OR Apache-2.0
//! The addresses of the kernel's functions by which the probes recognise a bio: from /proc/kallsyms or, if it hides them, from a
//! program that knows them by the kernel's types (`addresses.bpf.c`).

use std::mem::MaybeUninit;

use libbpf_rs::ProgramInput;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use super::form::entries::Constants;
use crate::error::{Error, Result};
use crate::machine::kallsyms;
use crate::machine::kernel::Symbols;

mod skeleton {
    #![allow(missing_docs, unsafe_code, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/addresses.skel.rs"));
}

/// The addresses, each of which is 0 if the kernel has no such symbol.
type Addresses = skeleton::types::addresses;

/// Calls a macro with the names of the functions, which are those of symbols.bpf.h.
macro_rules! with_functions {
    ($call:ident!($($argument:tt)*)) => {
        $call!(
            ($($argument)*),
            bio_chain_endio,
            iomap_dio_bio_end_io,
            blkdev_bio_end_io,
            blkdev_bio_end_io_simple,
            blkdev_bio_end_io_async,
            submit_bio_wait_endio,
            bio_wait_end_io,
            dio_bio_end_io,
            dio_bio_end_aio,
            f2fs_dio_end_io,
            f2fs_dio_end_bio,
            clone_endio,
            crypt_endio,
            blk_crypto_fallback_encrypt_endio,
            journal_end_buffer_io_sync,
            blk_throtl_dispatch_work_fn,
            wb_workfn
        )
    };
}

macro_rules! named {
    (($places:expr), $($name:ident),*) => {
        [$((stringify!($name), &mut $places.$name)),*]
    };
}

macro_rules! copy {
    (($to:expr, $from:expr), $($name:ident),*) => {
        $($to.$name = $from.$name;)*
    };
}

/// How the addresses are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// /proc/kallsyms shows them.
    Shown,
    /// It hides them, but the kernel's types lead to those of all functions.
    Typed,
    /// It hides them, and that of one function, at least, is not known.
    Not,
}

/// Fills in the addresses. Without some of them, direct IO would be taken for the page cache's, so none are filled in.
pub(super) fn fill(constants: &mut Constants, symbols: &Symbols) -> Known {
    let (found, known) = find(symbols);
    if known != Known::Not {
        let to = &mut constants.symbols;
        with_functions!(copy!(to, found));
        to.page_offset_base = found.page_offset_base;
        to.vmemmap_base = found.vmemmap_base;
    }
    known
}

/// Returns how the addresses are known on this kernel.
pub(crate) fn are_known() -> Known {
    match kallsyms::are_hidden() {
        false => Known::Shown,
        true => find(&Symbols::read()).1,
    }
}

fn find(symbols: &Symbols) -> (Addresses, Known) {
    let mut found = Addresses::default();
    if !symbols.are_hidden() {
        let functions = with_functions!(named!(found));
        let variables = [
            ("page_offset_base", &mut found.page_offset_base),
            ("vmemmap_base", &mut found.vmemmap_base),
        ];
        let mut wanted: Vec<_> = functions.into_iter().chain(variables).collect();
        symbols.fill(&mut wanted);
        return (found, Known::Shown);
    }
    match by_types() {
        Ok(typed) => found = typed,
        Err(why) => log::debug!("no addresses by the kernel's types: {why}"),
    }
    // A name is shown even if its address is not.
    let functions = with_functions!(named!(found));
    let mut missing = functions
        .iter()
        .filter(|(name, at)| **at == 0 && symbols.has(name));
    let known = match missing.next() {
        None => Known::Typed,
        Some((name, _)) => {
            log::debug!("the address of {name} is not known");
            Known::Not
        }
    };
    (found, known)
}

/// Returns the addresses of functions that the kernel's types lead to.
fn by_types() -> Result<Addresses> {
    let mut storage = MaybeUninit::uninit();
    let open = skeleton::AddressesSkelBuilder::default().open(&mut storage);
    let skel = open.map_err(Error::bpf)?.load().map_err(Error::bpf)?;
    let ran = skel.progs.find_addresses.test_run(ProgramInput::default());
    ran.map_err(Error::bpf)?;
    let bss = skel.maps.bss_data.as_deref();
    Ok(bss.ok_or_else(|| Error::bpf("skeleton without bss"))?.found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Such a list is what kernels show with kptr_restrict = 2, and what some containers see.
    #[test]
    fn a_function_without_an_address_makes_all_of_them_unknown() {
        let hidden = "0000000000000000 T no_such_function\n0000000000000000 t clone_endio_twice\n";
        assert_eq!(find(&Symbols::of(hidden)).1, Known::Typed);
        let shown = Symbols::of("ffffffff81000010 t clone_endio\n");
        let (found, known) = find(&shown);
        assert_eq!(
            (found.clone_endio, known),
            (0xffff_ffff_8100_0010, Known::Shown)
        );
    }
}
