// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attaches one program to both ends of functions (`kprobe.session`, from 6.10 on), which libbpf-rs does not offer.

use std::ffi::CString;
use std::ptr::{self, NonNull};

use libbpf_rs::libbpf_sys::{bpf_kprobe_multi_opts, bpf_program__attach_kprobe_multi_opts};
use libbpf_rs::{AsRawLibbpf, Link, ProgramMut};

use crate::error::{Error, Result};

/// Attaches the program to functions, each with its cookie.
///
/// # Errors
/// Returns an error if the kernel refuses the program, or if it lacks one of the functions; none is attached then.
#[allow(unsafe_code)]
pub(super) fn attach<'f>(
    program: &ProgramMut<'_>,
    functions: impl Iterator<Item = (&'f str, u64)>,
) -> Result<Link> {
    let (names, cookies): (Vec<_>, Vec<u64>) = functions
        .map(|(name, cookie)| (CString::new(name).unwrap_or_default(), cookie))
        .unzip();
    let mut symbols: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
    let options = bpf_kprobe_multi_opts {
        sz: size_of::<bpf_kprobe_multi_opts>() as _,
        syms: symbols.as_mut_ptr(),
        cookies: cookies.as_ptr(),
        cnt: symbols.len() as _,
        session: true,
        ..Default::default()
    };
    let program = program.as_libbpf_object().as_ptr();
    // SAFETY: the program lives, no pattern is passed, and the names, the cookies and the options live until the call returns.
    let link =
        unsafe { bpf_program__attach_kprobe_multi_opts(program, ptr::null(), &raw const options) };
    let link = NonNull::new(link).ok_or_else(|| Error::bpf(std::io::Error::last_os_error()))?;
    // SAFETY: libbpf made the link, and nothing else has it.
    Ok(unsafe { Link::from_ptr(link) })
}
