// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of what is made of a trace; they need nothing of the machine.

#[path = "../scene/mod.rs"]
mod scene;
#[path = "../support/mod.rs"]
mod support;

mod blktrace_files;
mod blktrace_real;
mod blktrace_synthetic;
mod blktrace_twins;
mod causes;
mod samples;
