// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's functions that began a journal's handles.

use std::collections::HashMap;
use std::mem::offset_of;

use mostrace_bundle::entry::{NONE, RawHandle, RawHead};

/// The size of a handle's entry.
pub(super) const HANDLE: usize = size_of::<RawHandle>();

/// The functions that began handles. Each gets a number, so that the bundle does not contain addresses of the kernel.
#[derive(Default)]
pub(super) struct Functions {
    addresses: Vec<u64>,
    numbers: HashMap<u64, u64>,
}

impl Functions {
    /// Returns a handle's entry with a number instead of the function's address.
    pub fn number(&mut self, entry: &[u8]) -> [u8; HANDLE] {
        const AT: usize = offset_of!(RawHandle, function);
        const _: () = assert!(AT.is_multiple_of(8) && offset_of!(RawHead, kind) == 0);
        let mut numbered = [0; HANDLE];
        numbered.copy_from_slice(entry);
        let place = &mut numbered[AT..AT + 8];
        let mut address = [0; 8];
        address.copy_from_slice(place);
        place.copy_from_slice(&self.of(u64::from_ne_bytes(address)).to_ne_bytes());
        numbered
    }

    /// Returns the addresses in the order of their numbers.
    pub fn addresses(&self) -> &[u64] {
        &self.addresses
    }

    fn of(&mut self, address: u64) -> u64 {
        if address == NONE || address == 0 {
            return NONE;
        }
        *self.numbers.entry(address).or_insert_with(|| {
            self.addresses.push(address);
            self.addresses.len() as u64 - 1
        })
    }
}
