// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace report`: makes an HTML page.

use std::path::{Path, PathBuf};

use mostrace_bundle::units;
use mostrace_report::{Flash, Sheet, page};
use mostrace_tables::analysis::{Analysis, Options, shown};
use mostrace_tables::export::Output;
use mostrace_trace::causes::Sharing;
use mostrace_trace::flash::{Drive, Taking};

use super::hide::HideArgs;
use super::wrote;
use crate::bar::Bar;
use crate::names;
use crate::usage;

/// Endings of formats that people may expect of a report.
const OTHERS: [&str; 10] = [
    "pdf", "png", "svg", "jpg", "csv", "json", "txt", "md", "xlsx", "docx",
];

/// Make a page about one or more recordings, to look at in a browser
///
/// The page is one file that needs no network. It has the rows of the trace, and one selection for all that it
/// shows: an interval of time, programs, files, layers, operations. What it shows is whether anything is missing,
/// what was written and why, programs over time, where the bytes went, files, SQLite's transactions with what each
/// waited for, latencies, calls for durability, sizes, and places on the disk. The rows of a long trace are summed up,
/// so that the page has at most some 5 MB.
///
/// Examples:
///   mostrace report run.most -o run.html
///   mostrace report run.most.tar.zst > run.html
///   mostrace report run.most --anonymize -o run.html
///   mostrace report run.most --flash=32GB -o run.html      (what a drive's flash is written, by a model)
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Report {
    /// Bundles (folders or .tar.zst), or bare blktraces; globs; or the name of a recording in segments: run.most for
    /// run.0001.most and those after it. Segments that follow one another are one recording
    #[arg(required = true, value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
    /// The file to write to; - is the standard output
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    /// Add a tab with what a model of a drive of this capacity writes to its flash, as `mostrace flash` tells; takes seconds
    #[arg(
        long,
        value_name = "SIZE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "8GB",
        value_parser = units::amount
    )]
    flash: Option<u64>,
    #[command(flatten)]
    hide: HideArgs,
}

impl Report {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        if let Some(other) = self.output.as_deref().and_then(other_format) {
            usage!(
                "a report is a page for a browser, which can print it: name it .html, not .{other}"
            );
        }
        let mut out = Output::create(self.output.as_deref())?;
        if out.is_terminal() {
            usage!("a page is not for terminals: write it to a file (-o FILE.html) or a pipe");
        }
        let options = Options {
            locality: true,
            causes: Some(Sharing::default()),
            ..Options::default()
        };
        let drive = self.flash.map(|capacity| Drive {
            capacity,
            ..Drive::default()
        });
        if let Some(Err(what)) = drive.map(|drive| drive.shape()) {
            usage!("{what}");
        }
        let key = self.hide.key()?;
        let mut sheets = Vec::new();
        let recordings = names::open(&self.bundles, false)?;
        let is_compared = recordings.len() > 1;
        for recording in recordings {
            let bar = Bar::new();
            let path = recording.path().to_owned();
            let watcher = |progress| bar.at(progress);
            let mut taking = drive.map(|drive| Taking::new(drive.unit));
            let recordings = vec![recording];
            let mut analysis = Analysis::beside(recordings, &options, &watcher, &mut taking)?;
            drop(bar);
            let flash = taking.zip(drive).map(|(taking, drive)| {
                let origins = analysis.facts.all_origins();
                Flash::new(&drive, &taking.load(origins, analysis.manifest(), &[]))
            });
            for line in &analysis.warnings {
                log::warn!("{}: {line}", path.display());
            }
            if let Some(key) = &key {
                analysis.anonymize(key);
            }
            sheets.push(Sheet::new(
                &shown(&path, key.as_ref()),
                &analysis,
                flash,
                is_compared,
            )?);
        }
        out.page(&page(&sheets)?)?;
        if let Some(path) = self.output.filter(|path| path.as_os_str() != "-") {
            wrote::tell(&path, "open it in a browser");
        }
        Ok(())
    }
}

/// Returns the ending of a name that stands for another format than a page's; None for a name without one.
fn other_format(path: &Path) -> Option<String> {
    let ending = path.extension()?.to_str()?.to_lowercase();
    OTHERS.contains(&&*ending).then_some(ending)
}
