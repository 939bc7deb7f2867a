// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates docs/SCHEMA.md from the catalogue and from the tables beside `events`.

use std::fmt::Write;

use super::calls;
use super::relations::{Doc, Relation};
use crate::facts::catalogue::{ALL, SCHEMA};

/// Returns the page.
pub fn markdown() -> String {
    let mut page = format!(
        "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->\n\
         <!-- Made by `mostrace schema`; a test compares. -->\n\
         # Tables and their columns\n\n\
         `query` and a data set (`export --format dataset`) have all of these tables; `events`, `--by` and `--where` use the first. \
         If there are several recordings, `bundle` says which one a row comes from. In a data set each table also has `bundle_id` (string), which is made from the \
         contents of the recording, and by the names of its folders `day` (date), the day of UTC on which the recording began.\n\n\
         ## `events`\n\n\
         Version {SCHEMA}, in the metadata of Parquet files as `mostrace.schema`. One row is a run of a completed \
         request's sectors with one answer; the bytes of a request's rows sum to its own. Numbers are signed; a value \
         that is unknown or does not apply is empty (null). Rows can be grouped by every column but `time_utc` \
         (`--by`), and selected by every column (`--where`, `query`).\n\n\
         | column | type | what |\n| --- | --- | --- |\n"
    );
    for column in ALL {
        let derived = if column.derived {
            " (not printed by `events` unless asked for)"
        } else {
            ""
        };
        let (name, ty, doc) = (column.name, column.ty.name(), column.doc);
        // Writing to a String does not fail.
        let _ = writeln!(page, "| `{name}` | {ty} | {doc}{derived} |");
    }
    for relation in Relation::ALL.iter().copied() {
        describe(
            &mut page,
            relation.name(),
            relation.doc(),
            &relation.columns(),
        );
    }
    describe(&mut page, calls::NAME, calls::DOC, &calls::columns());
    page
}

/// Adds a table beside `events` to the page.
fn describe(page: &mut String, name: &str, doc: &str, columns: &[Doc]) {
    let _ = write!(
        page,
        "\n## `{name}`\n\n{doc}\n\n| column | type | what |\n| --- | --- | --- |\n"
    );
    for (name, ty, doc) in columns {
        let _ = writeln!(page, "| `{name}` | {ty} | {doc} |");
    }
}
