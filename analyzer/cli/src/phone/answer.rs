// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an app caused, and one line about the others: the answer after a recording of one app.

use std::path::Path;

use mostrace_bundle::Packages;
use mostrace_trace::attribute::Process;
use mostrace_trace::charged::Counted;
use mostrace_trace::output::Output;

use super::app::App;
use crate::brief::Brief;
use crate::budget::OneRun;
use crate::{paint, shell};

/// Prints what the app caused in a recording that was fetched.
///
/// # Errors
/// Returns an error if the recording cannot be read.
pub fn print(app: &App, recorded: &Path) -> anyhow::Result<()> {
    let run = OneRun::named(recorded)?;
    let origins = &run.reading.origins;
    let none = Packages::default();
    let is_its = |at: usize, process: &Process| {
        let origin = origins.list.get(origins.of_process(at));
        let packages = origin.and_then(|origin| origin.packages.as_ref());
        let app_of = packages.unwrap_or(&none).app(process.uid?);
        app_of.map(|its| its == app.uid)
    };
    let charged = run.charging.charged_to_app(&run.reading, is_its);
    let mut brief = Brief::of_charged(&run.reading, &charged);
    // Where no cause is known, the headline would say that the app wrote nothing.
    brief.is_filtered = charged.total.write_bytes == 0
        && matches!(charged.counted, Counted::OfApp { unknown: 1.., .. });
    let mut out = Output::create(None)?;
    let knows_apps = origins.list.iter().all(|origin| origin.packages.is_some());
    let text = brief.text(out.width(), &next(app, recorded, knows_apps));
    Ok(paint::put(&mut out, &format!("{}\n{text}", heading(app)))?)
}

fn heading(app: &App) -> String {
    match app.is_alone {
        true => format!("What {} caused:", app.package),
        // The kernel cannot tell them apart.
        false => format!("What {} and the apps of its user caused:", app.package),
    }
}

/// Returns the command that shows more of the app, and the one for everything.
fn next(app: &App, recorded: &Path, knows_apps: bool) -> String {
    let path = shell::plain(&recorded.display().to_string());
    let own = match app.is_alone && knows_apps {
        true => format!("cause_package = '{}'", app.package),
        false => format!("cause_uid = {}", app.uid),
    };
    let own = shell::plain(&own);
    format!("mostrace analyze {path} --by cause_comm,file --where {own}; mostrace analyze {path}")
}
