// SPDX-License-Identifier: MIT OR Apache-2.0
//! `analyze --every`: the sums of each interval of a sample, against the rows that `events` prints.

use crate::run;

use std::collections::BTreeMap;

use run::{mostrace, sample};

/// Bytes written, by the moment at which an interval begins and the class.
type Sums = BTreeMap<(String, String), u64>;

fn csv(text: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| line.split(',').map(str::to_owned).collect();
    text.lines().skip(1).map(cells).collect()
}

/// Sums up the rows by the text of their time, of which the first `digits` characters name the interval.
fn of_rows(digits: usize, ending: &str) -> Sums {
    let columns = "time_utc,class,op,bytes";
    let text = mostrace(&[
        "events",
        &sample("delete"),
        "--columns",
        columns,
        "--format",
        "csv",
    ]);
    let mut sums = Sums::new();
    for row in csv(&text).iter().filter(|row| row[2] == "write") {
        let begin = format!("{}{ending}", &row[0][..digits]);
        *sums.entry((begin, row[1].clone())).or_default() += row[3].parse::<u64>().unwrap();
    }
    sums
}

fn of_intervals(every: &str) -> Vec<((String, String), u64)> {
    let columns = "time_utc,class,write_bytes";
    let args = [
        "analyze",
        &sample("delete"),
        "--every",
        every,
        "--by",
        "class",
        "--columns",
        columns,
    ];
    let text = mostrace(&[&args[..], &["--format", "csv"]].concat());
    let sum = |row: &Vec<String>| ((row[0].clone(), row[1].clone()), row[2].parse().unwrap());
    let rows = csv(&text);
    assert!(rows.iter().all(|row| row[0] != "total"));
    rows.iter()
        .map(sum)
        .filter(|(_, bytes)| *bytes > 0)
        .collect()
}

#[test]
fn the_sums_of_intervals_are_those_of_their_rows() {
    for (every, digits, ending) in [
        ("1ms", "2026-11-22T13:26:44.047".len(), "Z"),
        ("100ms", "2026-11-22T13:26:44.0".len(), "00Z"),
        ("1m", "2026-11-22T13:26".len(), ":00Z"),
    ] {
        let expected = of_rows(digits, ending);
        let found = of_intervals(every);
        let times: Vec<&String> = found.iter().map(|((time, _), _)| time).collect();
        assert!(times.is_sorted(), "{every}");
        assert!(every == "1m" || expected.len() > 5, "{every}");
        assert_eq!(found.into_iter().collect::<Sums>(), expected, "{every}");
    }
}

#[test]
fn an_interval_alone_has_one_row_each() {
    let text = mostrace(&[
        "analyze",
        &sample("delete"),
        "--every",
        "1d",
        "--format",
        "csv",
    ]);
    let rows = csv(&text);
    assert_eq!(rows.len(), 1, "{text}");
    assert!(rows[0][0].ends_with("T00:00:00Z"), "{text}");
}
