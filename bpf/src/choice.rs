// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources that the user asks for, and the events.

use strum::{Display, EnumString, VariantNames};

/// Returns why a text is none of an option's values.
pub(crate) fn unknown<T: VariantNames>(text: &str) -> String {
    format!("`{text}` is none of {}", T::VARIANTS.join(", "))
}

/// `--source`: the source of block events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = unknown::<Choice>)]
pub enum Choice {
    /// The first that works, in one of the orders below.
    Auto,
    /// The utility, through debugfs.
    Blktrace,
    /// ftrace's `blk` tracer, through tracefs.
    Ftrace,
    /// The project's own probes.
    Bpf,
    /// Plain tracepoints.
    Tracefs,
}

impl Choice {
    /// The order in which `auto` tries the sources where the project's own probes make the entries and see every completion:
    /// they cost least, and tell apart requests for the same sectors.
    pub const PROBES_FIRST: [Choice; 4] = [
        Choice::Bpf,
        Choice::Blktrace,
        Choice::Ftrace,
        Choice::Tracefs,
    ];
    /// The order in which `auto` tries the sources elsewhere.
    pub const BLOCK_TRACERS_FIRST: [Choice; 4] = [
        Choice::Blktrace,
        Choice::Ftrace,
        Choice::Bpf,
        Choice::Tracefs,
    ];
}

/// `--events`: the block events that are recorded. The block tracers give all of them anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = unknown::<Events>)]
pub enum Events {
    /// The events that make a request's life: Q, X, I, D, R and C.
    #[default]
    Needed,
    /// Every event that blktrace knows.
    All,
}

/// `--operations`: the calls that are recorded, for a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = unknown::<Operations>)]
pub enum Operations {
    /// No calls.
    #[default]
    None,
    /// Those that change the filesystem or order its writes.
    Changes,
    /// Those that read, too.
    All,
}

/// `--entries`: the source of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = unknown::<Entries>)]
pub enum Entries {
    /// The first that works, in the order below.
    Auto,
    /// The project's own probes.
    Bpf,
    /// The kernel's own recorder, a module or built in.
    Kernel,
    /// Plain tracepoints.
    Tracefs,
    /// No entries: block events alone.
    None,
}

impl Entries {
    /// The sources, in the order in which `auto` tries them.
    pub const IN_ORDER: [Entries; 3] = [Entries::Bpf, Entries::Kernel, Entries::Tracefs];
}

/// `--causes`: the source of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = unknown::<Causes>)]
pub enum Causes {
    /// The project's own probes if the kernel takes them, or the kernel's recorder if that is the source of entries.
    Auto,
    /// The project's own probes.
    Bpf,
    /// The kernel's own recorder, which has to be the source of entries too.
    Kernel,
    /// No causes.
    None,
}
