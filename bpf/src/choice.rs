// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources and events for which the user can ask.

use strum::{Display, EnumString, VariantNames};

/// Returns why a text is none of an option's values.
pub(crate) fn unknown<T: VariantNames>(text: &str) -> String {
    format!("`{text}` is none of {}", T::VARIANTS.join(", "))
}

/// `--source`: the source of block events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = unknown::<Choice>)]
pub enum Choice {
    /// The first source that works, in one of the orders below.
    #[default]
    Auto,
    /// The blktrace utility, through debugfs.
    Blktrace,
    /// The project's own probes.
    Bpf,
    /// Plain tracepoints.
    Tracefs,
}

impl Choice {
    /// The order in which `auto` tries the sources if the project's own probes make the entries and see every completion. They cost
    /// least, and they distinguish requests for the same sectors.
    pub const PROBES_FIRST: [Choice; 3] = [Choice::Bpf, Choice::Tracefs, Choice::Blktrace];
    /// The order in which `auto` tries the sources in all other cases.
    pub const TRACEPOINTS_FIRST: [Choice; 3] = [Choice::Tracefs, Choice::Bpf, Choice::Blktrace];
}

/// `--events`: the block events that are recorded. The block tracers always record all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = unknown::<Events>)]
pub enum Events {
    /// The events of a request's life: Q, X, I, D, R and C.
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
    /// The calls that change the filesystem or order its writes.
    Changes,
    /// These calls, and those that read.
    All,
}

/// `--entries`: the source of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = unknown::<Entries>)]
pub enum Entries {
    /// The first source that works, in one of the orders below.
    #[default]
    Auto,
    /// The project's own probes.
    Bpf,
    /// The kernel's own recorder, a module or built in.
    Kernel,
    /// Plain tracepoints.
    Tracefs,
    /// No entries, only block events.
    None,
}

impl Entries {
    /// The order in which `auto` tries the sources.
    pub const PROBES_FIRST: [Entries; 3] = [Entries::Bpf, Entries::Kernel, Entries::Tracefs];
    /// The order in which `auto` tries them if the probes do not know the kernel's functions, so that they find no file but those of a journal's copies.
    pub const PROBES_LAST: [Entries; 3] = [Entries::Kernel, Entries::Tracefs, Entries::Bpf];
}

/// `--causes`: the source of causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = unknown::<Causes>)]
pub enum Causes {
    /// The project's own probes if the kernel accepts them, or the kernel's recorder if that is the source of entries.
    #[default]
    Auto,
    /// The project's own probes.
    Bpf,
    /// The kernel's own recorder, which must then be the source of entries too.
    Kernel,
    /// No causes.
    None,
}
