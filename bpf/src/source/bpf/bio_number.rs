// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers that identify events of the same bio.
//!
//! The probes report the bio's address. It is encoded with a secret of the recording, so that a bundle does not reveal the places
//! of the kernel's memory.

use std::hash::{BuildHasher, RandomState};

use mostrace_bundle::blk_io_trace::action::{act, ta};

const NUMBER: usize = size_of::<u64>();

/// The secret of one recording.
pub(super) struct BioNumbers {
    secret: [u64; 2],
}

impl BioNumbers {
    pub fn new() -> BioNumbers {
        // The standard library takes the keys of its hash function from the system's random numbers.
        let random = RandomState::new();
        BioNumbers {
            secret: [random.hash_one(0), random.hash_one(1)],
        }
    }

    /// Puts the payload of an event behind `record`, with its addresses encoded. For Q, I, D, R and C, this is the bio's address. An
    /// X has the addresses of the front and of the bio that is cut, behind the place of the cut.
    #[inline]
    pub fn encode(&self, action: u64, pdu: &[u8], record: &mut Vec<u8>) {
        let plain = match act(action) {
            ta::QUEUE | ta::INSERT | ta::ISSUE | ta::REQUEUE | ta::COMPLETE => 0,
            ta::SPLIT => pdu.len().min(NUMBER),
            _ => pdu.len(),
        };
        let (plain, rest) = pdu.split_at(plain);
        let (addresses, rest) = rest.as_chunks::<NUMBER>();
        record.extend_from_slice(plain);
        for address in addresses {
            let number = self.number(u64::from_ne_bytes(*address));
            record.extend_from_slice(&number.to_le_bytes());
        }
        record.extend_from_slice(rest);
    }

    /// Returns the number for an address; 0 for none. Each step can be inverted, so no two bios have the same number.
    fn number(&self, address: u64) -> u64 {
        if address == 0 {
            return 0;
        }
        let mixed = (address ^ self.secret[0]).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let mixed = ((mixed ^ mixed >> 33) ^ self.secret[1]).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        mixed ^ mixed >> 29
    }
}
