// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace query`: SQL over the rows and over the tables beside them.

use mostrace_tables::tables::calls;
use mostrace_tables::tables::query::{self, Asked};

use super::out::OutArgs;
use super::source::SourceArgs;
use crate::{UsageError, usage};

/// Ask in SQL: of events, requests, causes, processes, files, recordings, transactions and calls
///
/// `mostrace schema` describes the tables and their columns; `bundle` is the recording if there are several.
/// The named columns of events are held in memory for all rows, and so are the other tables that are named. Calls are
/// those of one recording. The query is the last argument that is no option.
///
/// Examples:
///   mostrace query run.most "SELECT role, sum(bytes) FROM events WHERE op = 'write' GROUP BY role"
///   mostrace query run.most "SELECT path, write_bytes FROM files ORDER BY write_bytes DESC LIMIT 10"
///   mostrace query 'day-*.most' "SELECT bundle, count(*) AS n FROM requests GROUP BY bundle"
///   mostrace query run.most "SELECT * FROM events ORDER BY d2c_ns DESC LIMIT 10" --json
///   mostrace query run.most "SELECT * FROM calls WHERE call = 'fsync' ORDER BY wait_flush_ns DESC"
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "mostrace query [OPTIONS] <BUNDLE>... <SQL>"
)]
pub struct Query {
    // Its last name is the query: with an argument of its own for it, clap would accept no option between the two.
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    pub(super) out: OutArgs,
}

impl Query {
    /// Runs the command.
    pub fn run(mut self) -> anyhow::Result<()> {
        let Some(sql) = self.source.take_last() else {
            usage!("no query: it is the last argument, as in mostrace query run.most \"SELECT …\"");
        };
        let sql = sql.to_string_lossy();
        if let Some(why) = query::too_much(&sql) {
            usage!("{why}");
        }
        if !query::asks(&sql) {
            usage!("{sql}: not a query: a query begins with SELECT or WITH, and changes nothing");
        }
        let in_query = |error: query::Error| UsageError(format!("{sql}: {error}"));
        let named = query::checked(&sql).map_err(in_query)?;
        let mut out = self.out.create()?;
        #[cfg(target_os = "linux")]
        bound_memory()?;
        let asked = Asked::by(&sql);
        let mut analysis = self
            .source
            .analyze(asked.needs_locality(), asked.needs_causes())?;
        if asked.needs_transactions() {
            analysis.find_transactions()?;
        }
        let calls = match analysis.is_of_several() || !asked.calls {
            true => Vec::new(),
            false => calls::of(&analysis.facts, analysis.calls()?, analysis.waits(0)?)
                .collect::<Result<_, _>>()?,
        };
        let answer = query::run(&analysis.facts, &named, &asked, calls).map_err(in_query)?;
        Ok(self.out.format().write_one(&mut out, answer.into())?)
    }
}

/// Bounds memory to three quarters of the machine's. Beyond it an allocation fails, which the standard library says in a line before
/// it aborts.
#[cfg(target_os = "linux")]
fn bound_memory() -> std::io::Result<()> {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let info = rustix::system::sysinfo();
    let physical = info.totalram.saturating_mul(info.mem_unit.into());
    let most = physical / 4 * 3;
    let now = getrlimit(Resource::Data);
    let bounded = Rlimit {
        current: now.current.into_iter().chain([most]).min(),
        ..now
    };
    setrlimit(Resource::Data, bounded)?;
    let yes = Arc::new(AtomicBool::new(true));
    signal_hook::flag::register_conditional_shutdown(signal_hook::consts::SIGABRT, 1, yes)?;
    Ok(())
}
