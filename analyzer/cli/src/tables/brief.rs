// SPDX-License-Identifier: MIT OR Apache-2.0
//! The short output of rows that are kept as tables.

use mostrace_tables::analysis::Analysis;
use mostrace_tables::facts::Filter;
use mostrace_tables::tables::charged::Charged;
use mostrace_tables::tables::{about, for_the_answer, summary};
use mostrace_trace::answer::{Answer, Sums};
use mostrace_trace::transactions::Database;

use crate::brief::{Brief, MOST, Others};

/// Returns what the rows that pass the filter show. The analysis must have causes.
///
/// # Errors
/// Returns an error if a temporary file cannot be read or the filter does not fit its columns.
pub fn of(analysis: &Analysis, filter: Option<&Filter>) -> anyhow::Result<Brief> {
    let sums = for_the_answer(&analysis.facts, filter)?;
    Ok(Brief {
        is_filtered: filter.is_some(),
        ..of_sums(analysis, &sums, &analysis.databases()?)
    })
}

/// Returns what a command caused, and what others wrote meanwhile.
///
/// # Errors
/// Returns an error if a temporary file cannot be read.
pub fn of_command(analysis: &Analysis) -> anyhow::Result<Brief> {
    let (facts, manifest) = (&analysis.facts, analysis.manifest());
    let charged = Charged::new(facts, manifest)?;
    let databases = analysis.databases()?;
    let databases = charged.databases(facts, &databases);
    let others = charged.of_others(facts)?;
    let others = others.map(|sums| Answer::destinations(&sums, manifest, MOST));
    Ok(Brief {
        others: charged.counted.words().map(|words| Others {
            words,
            destinations: others,
        }),
        ..of_sums(analysis, &charged.for_the_answer(facts)?, &databases)
    })
}

fn of_sums(analysis: &Analysis, sums: &Sums, databases: &[Database]) -> Brief {
    let manifest = analysis.manifest();
    Brief {
        warnings: analysis.warnings.clone(),
        whole: about::whole(analysis.recordings(), &analysis.warnings),
        answer: Answer::of(sums, manifest, databases),
        destinations: Answer::destinations(sums, manifest, MOST),
        notices: summary::notices(&analysis.facts, &analysis.trace()),
        is_filtered: false,
        others: None,
    }
}
