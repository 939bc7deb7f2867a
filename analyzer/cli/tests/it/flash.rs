// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace flash`: its lines and its JSON, for samples, and what it refuses.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// A small drive, which is quick.
const SMALL: [&str; 4] = ["--capacity", "512MiB", "--block", "1M"];

fn flash(sample: &str, args: &[&str]) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces");
    let sample = folder.join(sample).with_extension("most.tar.zst");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mostrace"));
    command.arg("flash").arg(sample).args(args);
    command.output().unwrap()
}

fn json(sample: &str, args: &[&str]) -> Value {
    let out = flash(sample, &[&SMALL[..], &["--json"], args].concat());
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    serde_json::from_slice(&out.stdout).unwrap()
}

fn number(value: &Value, path: &str) -> f64 {
    value
        .pointer(path)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("{path}"))
}

#[test]
fn the_first_line_says_that_it_is_a_model() {
    let out = flash("delete", &[&SMALL[..], &["--fill", "95%"]].concat());
    let text = String::from_utf8(out.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0]
            .starts_with("A model, not measured: 536.9 MB, 95 % full, spare 7 %, blocks of 1 MiB"),
        "{text}"
    );
    assert!(
        lines[1]
            .starts_with("Per transaction: 108 B stored → 58.6 kB at the device (543 × stored) → "),
        "{text}"
    );
    assert!(
        lines[..2].iter().all(|line| line.chars().count() <= 120),
        "{text}"
    );
    let table = lines.iter().skip_while(|line| !line.starts_with(" moved"));
    let table = table.skip(1).take_while(|line| !line.is_empty());
    let moved = table.map(|line| line[..4].trim().parse::<u64>().unwrap());
    assert_eq!(moved.sum::<u64>(), 100, "{text}");
}

#[test]
fn shares_and_ratios_sum_up() {
    for sample in ["delete", "wal", "f2fs-delete", "fat32-delete"] {
        let value = json(sample, &["--fill", "95%"]);
        let parts = value["model"]["at"]["parts"].as_array().unwrap();
        let sum = |key: &str| {
            parts
                .iter()
                .map(|part| part[key].as_f64().unwrap())
                .sum::<f64>()
        };
        let of = |key: &str| number(&value, &format!("/model/at/{key}"));
        if !parts.is_empty() {
            assert!((sum("share") - 1.0).abs() < 1e-6, "{sample}");
        }
        assert!((sum("moved") - of("moved")).abs() < 1e-6, "{sample}");
        let rounded = number(&value, "/model/rounded");
        assert!(
            (rounded + of("moved") + of("padded") - of("ratio")).abs() < 1e-6,
            "{sample}"
        );
        assert!(rounded >= 1.0);
        // Clusters of 512 bytes are written in units of 4 KiB.
        assert_eq!(
            rounded > 1.5,
            sample == "fat32-delete",
            "{sample}: {rounded}"
        );
    }
}

/// No sample has discards; its snapshot says what is free.
#[test]
fn discards_of_what_is_free_save() {
    let of = |discard: &str| {
        let args = ["--fill", "95%", "--discard", discard];
        number(&json("delete", &args), "/model/at/ratio")
    };
    let (none, recorded, always) = (of("none"), of("as-recorded"), of("always"));
    assert!(
        none == recorded && always < recorded * 0.9,
        "{none} {recorded} {always}"
    );
}

/// The page has the curve that is printed, if it is asked for.
#[test]
fn a_page_has_the_model_if_it_is_asked_for() {
    let page = |args: &[&str]| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces");
        let mut command = Command::new(env!("CARGO_BIN_EXE_mostrace"));
        command
            .arg("report")
            .arg(folder.join("delete.most.tar.zst"));
        let page = String::from_utf8(command.args(args).output().unwrap().stdout).unwrap();
        let (_, data) = page.split_once(r#"id="data">"#).unwrap();
        let (data, _) = data.split_once("</script>").unwrap();
        let value: Value = serde_json::from_str(data).unwrap();
        value["sheets"][0]["flash"].clone()
    };
    assert!(page(&[]).is_null());
    let drawn = page(&["--flash=1GB"]);
    let words = drawn["words"].as_str().unwrap();
    assert!(
        words.starts_with("A model, not measured: 1.0 GB"),
        "{words}"
    );
    let out = flash("delete", &["--capacity", "1GB", "--json"]);
    let value: Value = serde_json::from_slice(&out.stdout).unwrap();
    let curve = value["model"]["curve"].as_array().unwrap();
    let levels = drawn["levels"].as_array().unwrap();
    assert_eq!(curve.len(), levels.len());
    for (level, said) in levels.iter().zip(curve) {
        assert_eq!(level["ratio"], said["ratio"]);
        let layers = level["layers"].as_array().unwrap().iter();
        let sum: f64 = layers.map(|layer| layer[1].as_f64().unwrap()).sum();
        let whole = f64::from(u8::from(number(level, "/moved") > 0.0));
        assert!((sum - whole).abs() < 1e-9, "{level}");
    }
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    for (args, says) in [
        (
            &["--capacity", "9000TB"][..],
            "--capacity 9000000000000000: at least",
        ),
        (&["--unit", "3K"], "--unit 3072: a power of two"),
        (&["--page", "6K"], "--page 6144: a multiple of --unit, 4096"),
        (
            &["--block", "4097"],
            "--block 4097: a multiple of --page, 4096",
        ),
        (&["--fill", "101%"], "--fill: from 0% to 100%"),
        (&["--spare", "0%"], "--spare: from 0.1% to 400%"),
        (&["--streams", "17"], "--streams: from 1 to 16"),
        (&["--capacity", "16MB"], "take a larger --capacity"),
    ] {
        refused(args, 2, says);
    }
}

#[test]
fn a_recording_that_the_drive_cannot_hold_is_refused_in_one_line() {
    let args = ["--capacity", "20MB", "--block", "64K"];
    refused(&args, 1, "have no place in 20000000");
}

fn refused(args: &[&str], status: i32, says: &str) {
    let out = flash("delete", args);
    let stderr = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(status), "{args:?}: {stderr}");
    assert!(
        stderr.contains(says) && stderr.lines().count() == 1,
        "{args:?}: {stderr}"
    );
    assert!(out.stdout.is_empty());
}
