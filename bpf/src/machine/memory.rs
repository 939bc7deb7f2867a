// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorder's own memory.

/// Returns freed memory to the system. The kernel's types take some megabytes while probes are loaded, and the allocator would keep
/// them.
#[allow(unsafe_code)]
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call touches only free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}
