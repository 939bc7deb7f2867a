// SPDX-License-Identifier: MIT OR Apache-2.0
//! `diff` of the samples: its figures are differences of what `analyze` prints for each.

use crate::run;

use std::collections::BTreeMap;

use run::{json, mostrace, sample};
use serde_json::Value;

/// Returns write_bytes by role, from `analyze`.
fn by_role(sample: &str) -> BTreeMap<Option<String>, i64> {
    let rows = json(&["analyze", sample, "--by", "role", "--json"]);
    let row = |row: &Value| {
        let role = row["role"].as_str().map(str::to_owned);
        (role, row["write_bytes"].as_i64().unwrap())
    };
    rows.as_array().unwrap().iter().map(row).collect()
}

#[test]
fn changes_are_the_differences_of_what_analyze_says() {
    let (a, b) = (sample("delete"), sample("wal"));
    let diff = json(&["diff", &a, &b, "--json"]);
    let (before, after) = (by_role(&a), by_role(&b));
    let rows = diff["by_role"].as_array().unwrap();
    assert!(rows.len() >= 4);
    for row in rows {
        let role = row["role"].as_str().map(str::to_owned);
        let [a, b] = [&before, &after].map(|sums| sums.get(&role).copied().unwrap_or(0));
        assert_eq!(row["a_write_bytes"], a, "{role:?}");
        assert_eq!(row["b_write_bytes"], b, "{role:?}");
        assert_eq!(row["change_bytes"], b - a, "{role:?}");
    }
    for table in ["by_layer", "by_class", "by_role", "by_home", "by_cause"] {
        let rows = diff[table].as_array().unwrap();
        let sum = |column: &str| {
            rows.iter()
                .map(|row| row[column].as_i64().unwrap())
                .sum::<i64>()
        };
        let written = [before.values().sum::<i64>(), after.values().sum()];
        assert_eq!(
            [sum("a_write_bytes"), sum("b_write_bytes")],
            written,
            "{table}"
        );
    }
}

/// Formats kB per transaction of a sample, which has a thousand, as the sentence does.
fn each_kb(bytes: i64) -> String {
    format!("{:.1} kB", bytes as f64 / 1000.0 / 1000.0)
}

#[test]
fn the_first_line_is_the_abstract() {
    let (a, b) = (sample("delete"), sample("wal"));
    let text = mostrace(&["diff", &a, &b]);
    let first = text.lines().next().unwrap();
    let [before, after] =
        [&a, &b].map(|sample| json(&["analyze", sample, "--json"])["total"].take());
    let of = |total: &Value, column: &str| total[column].as_i64().unwrap();
    let [from, to] = [&before, &after].map(|total| of(total, "write_bytes"));
    let journal = |sample: &str| {
        let classes = json(&["analyze", sample, "--by", "class", "--json"]);
        let mut rows = classes.as_array().unwrap().iter();
        let row = rows.find(|row| row["class"] == "journal").unwrap();
        row["write_bytes"].as_i64().unwrap()
    };
    let role = |sample: &str, role: &str| {
        let roles = by_role(sample);
        roles.get(&Some(role.to_owned())).copied().unwrap_or(0)
    };
    let rollback = role(&a, "rollback_journal") - role(&b, "rollback_journal");
    let [writes, flushes] = ["writes", "device_flushes"].map(|column| {
        [&after, &before].map(|total| format!("{:.1}", of(total, column) as f64 / 1000.0))
    });
    assert_eq!(
        first,
        format!(
            "wal writes {} per transaction, {:.0} % less than the {} of delete: −{} SQLite's rollback journal, −{} ext4's journal, +{} \
             SQLite's WAL; {} writes instead of {}, {} device flushes instead of {}",
            each_kb(to),
            (1.0 - to as f64 / from as f64) * 100.0,
            each_kb(from),
            each_kb(rollback),
            each_kb(journal(&a) - journal(&b)),
            each_kb(role(&b, "wal")),
            writes[0],
            writes[1],
            flushes[0],
            flushes[1],
        )
    );
}

#[test]
fn two_filesystems_have_each_a_journal_of_their_own() {
    let diff = json(&["diff", &sample("delete"), &sample("f2fs-delete"), "--json"]);
    let layers: Vec<&str> = diff["by_layer"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["layer"].as_str().unwrap())
        .collect();
    assert!(layers.contains(&"the filesystem's journal"), "{layers:?}");
    assert!(layers.contains(&"the filesystem's metadata"), "{layers:?}");
}

#[test]
fn the_same_trace_has_not_changed() {
    let a = sample("wal");
    let diff = json(&["diff", &a, &a, "--json"]);
    for row in diff["by_layer"].as_array().unwrap() {
        assert_eq!(row["change_bytes"], 0, "{row}");
    }
}

/// Each side has the three facts that `analyze` has of it, in text and in JSON.
#[test]
fn each_side_has_its_three_facts() {
    let sides = [sample("delete"), sample("wal")];
    let text = mostrace(&["diff", &sides[0], &sides[1]]);
    let (head, _) = text.split_once("\nTotal\n").unwrap();
    let diff = json(&["diff", &sides[0], &sides[1], "--json"]);
    let mut rest = head;
    for (letter, side) in ["a", "b"].into_iter().zip(&sides) {
        let shown = mostrace(&["analyze", side]);
        let (facts, _) = shown.split_once("\n\n").unwrap();
        assert!(facts.lines().count() >= 4, "{facts}");
        let at = rest.find(&format!("\n{letter}: ")).unwrap();
        rest = &rest[at..];
        assert!(rest.contains(facts), "{facts}\n---\n{rest}");
        let alone = json(&["analyze", side, "--json"]);
        assert!(alone["finding"]["parts"].as_array().unwrap().len() >= 2);
        assert_eq!(diff[letter]["finding"], alone["finding"]);
    }
}
