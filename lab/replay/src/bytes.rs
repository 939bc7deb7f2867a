// SPDX-License-Identifier: MIT OR Apache-2.0
//! The contents that a replay writes, because a recording does not hold what was written.

use std::io::IoSlice;

/// The contents that a replay writes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Contents {
    /// Bytes that cannot be compressed.
    #[default]
    Random,
    /// Zeros.
    Zeros,
    /// The part of every 4096 bytes that cannot be compressed, between 0 and 1; the rest is zeros.
    Ratio(f64),
}

/// The most that one call writes (`MAX_RW_COUNT` of the kernel, for pages of 4096 bytes), bytes.
pub(crate) const CALL_MAX: u64 = 0x7fff_f000;
/// The most buffers that one call may have (`UIO_MAXIOV`). Together they hold at least [`CALL_MAX`] bytes.
const BUFFERS_MAX: usize = 1024;
const BUFFER: usize = 2 << 20;
const BLOCK: usize = 4096;

/// A buffer from which all writes take their bytes, aligned as `O_DIRECT` needs it.
#[derive(Debug)]
pub(crate) struct Bytes {
    memory: Vec<u8>,
    begin: usize,
}

impl Bytes {
    pub(crate) fn new(contents: Contents) -> Bytes {
        let mut memory = vec![0; BUFFER + BLOCK];
        let begin = memory.as_ptr().align_offset(BLOCK).min(BLOCK);
        let random = match contents {
            Contents::Random => BLOCK,
            Contents::Zeros => 0,
            Contents::Ratio(part) => (part.clamp(0.0, 1.0) * BLOCK as f64) as usize,
        };
        let mut state = 0;
        for block in memory[begin..begin + BUFFER].chunks_exact_mut(BLOCK) {
            for eight in block[..random].chunks_mut(8) {
                eight.copy_from_slice(&splitmix(&mut state).to_le_bytes()[..eight.len()]);
            }
        }
        Bytes { memory, begin }
    }

    fn all(&self) -> &[u8] {
        &self.memory[self.begin..self.begin + BUFFER]
    }

    /// Returns this many bytes, or the whole buffer if it is smaller.
    pub(crate) fn first(&self, bytes: u64) -> &[u8] {
        let bytes = usize::try_from(bytes).unwrap_or(BUFFER).min(BUFFER);
        &self.all()[..bytes]
    }

    /// Returns the same buffers as [`Self::buffers`] for the kernel, which does not write to them.
    pub(crate) fn iovecs(&self, bytes: u64) -> Vec<libc::iovec> {
        let buffers = self.buffers(bytes);
        let iovec = |buffer: &IoSlice<'_>| libc::iovec {
            iov_base: buffer.as_ptr().cast_mut().cast(),
            iov_len: buffer.len(),
        };
        buffers.iter().map(iovec).collect()
    }

    /// Returns this many bytes, at most [`CALL_MAX`], as buffers for one call; all of them are the same memory.
    pub(crate) fn buffers(&self, bytes: u64) -> Vec<IoSlice<'_>> {
        let mut rest = bytes.min(CALL_MAX);
        let mut buffers = Vec::new();
        while rest > 0 && buffers.len() < BUFFERS_MAX {
            let part = self.first(rest);
            rest = rest.saturating_sub(part.len() as u64);
            buffers.push(IoSlice::new(part));
        }
        buffers
    }
}

/// Returns the next number of Sebastiano Vigna's splitmix64.
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_writes_no_more_than_the_kernel_takes() {
        let bytes = Bytes::new(Contents::Zeros);
        let length = |of: u64| bytes.buffers(of).iter().map(|part| part.len() as u64).sum();
        for of in [0, 1, BUFFER as u64, BUFFER as u64 + 1, CALL_MAX] {
            assert_eq!(of, length(of));
        }
        let all: u64 = length(u64::MAX);
        assert_eq!(all, CALL_MAX);
        assert!(bytes.buffers(u64::MAX).len() <= BUFFERS_MAX);
    }

    #[test]
    fn buffers_are_aligned_and_hold_what_was_asked_for() {
        let zeros = |contents| {
            let bytes = Bytes::new(contents);
            assert_eq!(bytes.all().as_ptr().align_offset(BLOCK), 0);
            let block = bytes.first(BLOCK as u64);
            block.iter().filter(|byte| **byte == 0).count()
        };
        assert_eq!(zeros(Contents::Zeros), BLOCK);
        assert!(zeros(Contents::Random) < 64);
        assert!((2048..2100).contains(&zeros(Contents::Ratio(0.5))));
    }
}
