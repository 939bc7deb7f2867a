// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder's own memory.

/// Gives back what was freed. The kernel's types take some megabytes while probes are loaded, and the allocator would keep them.
#[allow(unsafe_code)]
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it touches free memory alone.
    unsafe {
        libc::malloc_trim(0);
    }
}
