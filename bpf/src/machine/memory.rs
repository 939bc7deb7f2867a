// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder's own memory.

/// Returns to the kernel the memory that was freed. glibc's allocator would keep it for each thread: the kernel's types take some
/// megabytes while probes are loaded, and so does each segment of a ledger.
#[allow(unsafe_code)]
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call touches only free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Has all threads allocate from one heap, so that [`give_back`] finds what is free in whole pages. It does nothing for threads
/// that have allocated already.
#[allow(unsafe_code)]
pub fn share_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it sets a number of the allocator. It fails for unknown parameters alone.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
