// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace workload`: makes the IO to be measured. One file per kind.

mod file;
mod fill;
mod mobibench;
mod names;
mod report;
mod sql;
mod sqlite;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use mostrace_workload::Choice;

/// Arguments of `mostrace workload`.
#[derive(clap::Args)]
pub struct Workload {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(clap::Subcommand)]
enum Kind {
    Sqlite(Box<sqlite::Sqlite>),
    File(file::File),
    Names(names::Names),
    Mobibench(mobibench::Mobibench),
    Sql(sql::Sql),
    Fill(fill::Fill),
}

/// Runs the workload, and tells `record` what was stored if it asks.
///
/// # Errors
/// It cannot be run.
pub fn run(args: &Workload) -> anyhow::Result<()> {
    match &args.kind {
        Kind::Sqlite(args) => args.run(),
        Kind::File(args) => args.run(),
        Kind::Names(args) => args.run(),
        Kind::Mobibench(args) => args.run(),
        Kind::Sql(args) => args.run(),
        Kind::Fill(args) => args.run(),
    }
}

/// Takes one of the names of a setting.
fn choice<T: Choice + Send + std::marker::Sync>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::ALL.iter().map(|value| value.name()))
        .try_map(|name| T::from_name(&name).ok_or("no such value"))
}
