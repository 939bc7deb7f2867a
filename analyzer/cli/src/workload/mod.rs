// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace workload`: generates the IO to be measured, with a file for each kind.

mod file;
mod fill;
mod mobibench;
mod names;
pub mod replay;
mod report;
mod sql;
mod sqlite;

/// The arguments of `mostrace workload`.
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
    Replay(replay::Args),
}

/// Runs the workload, and reports to `record` what was stored if it asks.
pub fn run(args: &Workload) -> anyhow::Result<()> {
    match &args.kind {
        Kind::Sqlite(args) => args.run(),
        Kind::File(args) => args.run(),
        Kind::Names(args) => args.run(),
        Kind::Mobibench(args) => args.run(),
        Kind::Sql(args) => args.run(),
        Kind::Fill(args) => args.run(),
        Kind::Replay(args) => args.run(),
    }
}
