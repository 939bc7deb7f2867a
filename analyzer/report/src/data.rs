// SPDX-License-Identifier: MIT OR Apache-2.0
//! All data of one trace that the scripts draw: rows or their sums, calls, transactions, and their words.

use serde::Serialize;

use super::bands::{Bands, Touched};
use super::calls::{self, About};
use super::colour::Colour;
use super::cube::{Cube, Heavy};
use super::error::Error;
use super::pack::{Table, packed};
use super::rows::{self, Shares};
use super::scan::{Dictionary, Scan, known_words};
use super::words::{LayerWord, Who};
use mostrace_tables::analysis::{self, Analysis};
use mostrace_trace::attribute::Op;
use mostrace_trace::transactions;

/// A page's rows take no more than this in its text; longer ones are summed up.
const ROOM: usize = 4_600_000;

/// The words, and what the tables are.
#[derive(Serialize)]
struct Words<'d> {
    /// Time of the first completion in the trace's clock, ns, as text because it has more digits than a script's number.
    start_ns: String,
    span_us: u64,
    /// The length of an interval, if the rows are summed up.
    bin_us: Option<u64>,
    ops: Vec<&'static str>,
    known: Vec<&'static str>,
    colours: Vec<&'static str>,
    whos: Vec<Who>,
    files: &'d [Option<String>],
    whys: &'d [Option<String>],
    layers: &'d [LayerWord],
    bands: &'d Bands,
    about: &'d About,
}

/// The packed data of a trace.
pub(super) struct Data {
    pub packed: String,
    /// True if the rows are summed up.
    pub is_summed: bool,
}

/// Reads all rows and calls of a trace. An empty trace has a span of 0.
pub(super) fn data(analysis: &Analysis, filesystem: &str) -> Result<Data, Error> {
    data_with(analysis, filesystem, rows::MOST)
}

/// Does the same; more than `most` rows are summed up.
fn data_with(analysis: &Analysis, filesystem: &str, most: usize) -> Result<Data, Error> {
    let facts = &analysis.facts;
    let span = facts.span_ns().unwrap_or((0, 0));
    let mut dictionary = Dictionary::default();
    let mut scan = Scan::new(facts, filesystem);
    let mut shares = Some(Shares::new(span.0));
    let mut touched = Touched::default();
    let mut heavy = Heavy::default();
    scan.each(&mut dictionary, |row| {
        touched.see(&row);
        heavy.see(&row);
        if let Some(some) = &mut shares {
            some.see(&row);
            if some.len() > most {
                shares = None;
            }
        }
    })?;
    let mut about = About::default();
    let calls = calls_of(analysis, span.0, &mut dictionary, &mut about)?;
    let bands = touched.bands();
    let packed = |rows: &[Table], bin_us, dictionary: &Dictionary| {
        let words = Words {
            start_ns: span.0.to_string(),
            span_us: span.1.saturating_sub(span.0) / 1000,
            bin_us,
            ops: Op::ALL.iter().map(|op| op.as_str()).collect(),
            known: known_words(),
            colours: Colour::ALL.iter().map(|colour| colour.name()).collect(),
            whos: dictionary.whos(),
            files: dictionary.files.list(),
            whys: dictionary.whys.list(),
            layers: dictionary.layers.list(),
            bands: &bands,
            about: &about,
        };
        packed(&words, rows.iter().chain(&calls))
    };
    if let Some(shares) = shares {
        let packed = packed(&shares.tables(), None, &dictionary)?;
        if packed.len() <= ROOM {
            return Ok(Data {
                packed,
                is_summed: false,
            });
        }
    }
    let kept = heavy.kept(&mut dictionary);
    let mut cube = Cube::new(span, kept, &bands);
    scan.each(&mut dictionary, |row| cube.see(&row))?;
    let (tables, bin_us) = cube.tables();
    Ok(Data {
        packed: packed(&tables, Some(bin_us), &dictionary)?,
        is_summed: true,
    })
}

/// Returns the tables of calls and of transactions; none if no system calls were recorded.
fn calls_of(
    analysis: &Analysis,
    start_ns: u64,
    dictionary: &mut Dictionary,
    about: &mut About,
) -> Result<Vec<Table>, Error> {
    let facts = &analysis.facts;
    let open = || analysis.calls().map_err(analysis::Error::from);
    let (Some(mut first), Some(mut second)) = (open()?, open()?) else {
        return Ok(Vec::new());
    };
    let spans = transactions::spans(&mut first, &facts.names().files)?;
    let transactions = calls::transactions(&spans, facts, start_ns, dictionary, about);
    let waits = analysis.waits(0).map_err(analysis::Error::from)?;
    let calls = calls::calls(&mut second, waits, facts, start_ns, dictionary, about)?;
    Ok(vec![transactions, calls])
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::pack::tests::{sum_of, unpacked};
    use mostrace_tables::analysis::Options;
    use mostrace_trace::causes::Sharing;

    #[test]
    fn a_long_trace_is_summed_up_without_loss() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces");
        let options = Options {
            causes: Some(Sharing::default()),
            ..Options::default()
        };
        let analysis = Analysis::open(&folder.join("delete.most.tar.zst"), &options).unwrap();
        let whole = data(&analysis, "ext4").unwrap();
        let summed = data_with(&analysis, "ext4", 1000).unwrap();
        assert!(!whole.is_summed && summed.is_summed);
        let [whole, summed] = [whole, summed].map(|data| unpacked(&data.packed));
        let bytes = [
            sum_of(&whole, "rows", "bytes"),
            sum_of(&summed, "rows", "bytes"),
        ];
        assert_eq!(bytes[0], bytes[1]);
        assert_eq!(sum_of(&summed, "places", "bytes"), bytes[0]);
        assert_eq!(
            sum_of(&summed, "rows", "requests"),
            analysis.facts.requests()
        );
        assert!(sum_of(&summed, "waits", "requests") > 0);
    }
}
