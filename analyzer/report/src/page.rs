// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page: a single file that loads nothing else.
//!
//! Names in a trace come from strangers. They are in the page as text of the template, which escapes it, and as JSON, in
//! which `<`, `>` and `&` are escaped; the scripts insert them as text only. In addition, a Content-Security-Policy allows
//! only the page's own scripts and styles, by their hashes, images that the page has itself (a chart that is saved as one),
//! and no request.

use base64::prelude::{BASE64_STANDARD, Engine};
use minijinja::{Environment, Value, context};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::error::Error;
use super::lean::lean;
use super::sheet::{Drawn, Sheet};
use mostrace_tables::tables::diff::Diff;

/// The page's own scripts in the order in which they are used.
const SCRIPTS: [&str; 34] = [
    include_str!("page/js/format.js"),
    include_str!("page/js/dom.js"),
    include_str!("page/js/paint.js"),
    include_str!("page/js/chart.js"),
    include_str!("page/js/save.js"),
    include_str!("page/js/choice.js"),
    include_str!("page/js/unpack.js"),
    include_str!("page/js/store.js"),
    include_str!("page/js/grid.js"),
    include_str!("page/js/details.js"),
    include_str!("page/js/waits.js"),
    include_str!("page/js/causes.js"),
    include_str!("page/js/when.js"),
    include_str!("page/js/tracks.js"),
    include_str!("page/js/lanes.js"),
    include_str!("page/js/durability.js"),
    include_str!("page/js/icicle.js"),
    include_str!("page/js/files.js"),
    include_str!("page/js/waterfall.js"),
    include_str!("page/js/transactions.js"),
    include_str!("page/js/latency.js"),
    include_str!("page/js/sizes.js"),
    include_str!("page/js/flash.js"),
    include_str!("page/js/ladder.js"),
    include_str!("page/js/flow.js"),
    include_str!("page/js/programs.js"),
    include_str!("page/js/waiting.js"),
    include_str!("page/js/first.js"),
    include_str!("page/js/search.js"),
    include_str!("page/js/desk.js"),
    include_str!("page/js/compare.js"),
    include_str!("page/js/sheet.js"),
    include_str!("page/js/keys.js"),
    include_str!("page/js/main.js"),
];
const STYLE: &str = include_str!("page/style.css");
const TEMPLATE: &str = include_str!("page/page.html");

/// Returns the page of these traces.
pub fn page(sheets: &[Sheet]) -> Result<String, Error> {
    let data = serde_json::to_string(&Data {
        compared: compared(sheets)?,
        sheets: sheets.iter().map(|sheet| &sheet.drawn).collect(),
    })?;
    // Base64 has no character that means anything in HTML.
    let pack = |sheet: &Sheet| Value::from_safe_string(sheet.packed.clone());
    let names: Vec<&str> = sheets.iter().map(|sheet| sheet.name.as_str()).collect();
    let page = Page {
        template: TEMPLATE,
        scripts: &SCRIPTS,
        data,
    };
    page.render(context! {
        title => names.join(", "),
        sheets,
        packs => sheets.iter().map(pack).collect::<Vec<_>>(),
    })
}

/// The parts of a page, without the words that its template also needs.
pub(super) struct Page<'p> {
    pub template: &'p str,
    /// Its scripts in the order in which they are used.
    pub scripts: &'p [&'p str],
    /// The data that they draw, as JSON.
    pub data: String,
}

impl Page<'_> {
    /// Puts the page together.
    ///
    /// # Errors
    /// Returns an error if the template needs something that is missing.
    pub fn render(&self, words: Value) -> Result<String, Error> {
        let script = lean(&self.scripts.join("\n"));
        let mut environment = Environment::new();
        environment.add_filter("glued", |text: &str| glued(text));
        // The name's suffix makes the template escape.
        environment.add_template("page.html", self.template)?;
        Ok(environment.get_template("page.html")?.render(context! {
            data => Value::from_safe_string(harmless(&self.data)),
            policy => policy(&script, STYLE),
            script => Value::from_safe_string(script),
            style => Value::from_safe_string(STYLE.into()),
            version => env!("CARGO_PKG_VERSION"),
            ..words
        })?)
    }
}

/// The data that the scripts draw.
#[derive(Serialize)]
struct Data<'s> {
    sheets: Vec<&'s Drawn>,
    compared: Vec<String>,
}

/// Returns what is said of two traces, and what does not count in any. For more than two, tables have the figures.
fn compared(sheets: &[Sheet]) -> Result<Vec<String>, Error> {
    if sheets.len() < 2 {
        return Ok(Vec::new());
    }
    let sides: Vec<_> = sheets.iter().filter_map(|s| s.side.as_ref()).collect();
    let diff = Diff::new(&sides)?;
    let sentence = (sides.len() == 2).then_some(diff.sentence);
    let said = sentence.into_iter().chain(diff.notes);
    Ok(said.map(|line| glued(&line)).collect())
}

/// Puts a non-breaking space between a number and its unit.
fn glued(text: &str) -> String {
    const UNITS: [&str; 7] = ["%", "×", "B", "kB", "MB", "GB", "TB"];
    let mut glued = String::with_capacity(text.len());
    for word in text.split(' ') {
        let unit = word.trim_end_matches([')', ':', ';', ',', '.']);
        let of_number = glued.ends_with(|c: char| c.is_ascii_digit()) && UNITS.contains(&unit);
        match of_number {
            true => glued.push('\u{a0}'),
            false if glued.is_empty() => {}
            false => glued.push(' '),
        }
        glued.push_str(word);
    }
    glued
}

/// Escapes JSON so that it cannot end or begin an element. These characters occur only in its strings.
fn harmless(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

fn policy(script: &str, style: &str) -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; img-src data:; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(script),
        hash(style)
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_number_and_its_unit_are_on_one_line() {
        let text = "of 108 bytes wrote 58.6 kB each (543 ×): 57 % the journal, B 7 a";
        let glued =
            "of 108 bytes wrote 58.6\u{a0}kB each (543\u{a0}×): 57\u{a0}% the journal, B 7 a";
        assert_eq!(super::glued(text), glued);
    }
}
