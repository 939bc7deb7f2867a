// SPDX-License-Identifier: MIT OR Apache-2.0
//! The short output of rows that pass a filter.

use mostrace_tables::analysis::Analysis;
use mostrace_tables::facts::Filter;
use mostrace_tables::tables::{about, for_the_answer};
use mostrace_trace::answer::Answer;

use crate::brief::{Brief, MOST};

/// Returns what the rows that pass the filter show. The analysis must have causes.
///
/// # Errors
/// Returns an error if a temporary file cannot be read or the filter does not fit its columns.
pub fn of(analysis: &Analysis, filter: &Filter) -> anyhow::Result<Brief> {
    let sums = for_the_answer(&analysis.facts, Some(filter))?;
    let manifest = analysis.manifest();
    Ok(Brief {
        warnings: analysis.warnings.clone(),
        whole: about::whole(analysis.recordings(), &analysis.warnings),
        answer: Answer::of(&sums, manifest, &analysis.databases),
        destinations: Answer::destinations(&sums, manifest, MOST),
        notices: analysis.all_notices(),
        is_filtered: true,
        others: None,
    })
}
