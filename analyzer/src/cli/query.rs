// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace query`: SQL over the rows.

use mostrace::tables::{Table, query};

use super::UsageError;
use super::out::OutArgs;
use super::source::SourceArgs;

/// Ask in SQL: the table is called events, its columns are those of `mostrace schema`
///
/// The columns that are named are held in memory for all rows of the trace.
///
/// Examples:
///   mostrace query run.most "SELECT role, sum(bytes) FROM events WHERE op = 'write' GROUP BY role"
///   mostrace query run.most "SELECT * FROM events ORDER BY d2c_ns DESC LIMIT 10" --json
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Query {
    #[command(flatten)]
    source: SourceArgs,
    /// The query
    sql: String,
    #[command(flatten)]
    out: OutArgs,
}

impl Query {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        if !query::asks(&self.sql) {
            let what = "asks nothing: a query begins with SELECT or WITH, and changes nothing";
            return Err(UsageError(format!("{}: {what}", self.sql)).into());
        }
        let mut out = self.out.create()?;
        let columns = query::named(&self.sql);
        let analysis = self.source.read_for(columns.iter())?;
        let answer = query::run(&analysis.facts, &self.sql, &columns);
        let answer = answer.map_err(|e| UsageError(format!("{}: {e}", self.sql)))?;
        let answer = Ok::<_, std::convert::Infallible>(Table::from(answer));
        Ok(self.out.format().write_all(&mut out, [answer])?)
    }
}
