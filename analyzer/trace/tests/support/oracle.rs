// SPDX-License-Identifier: MIT OR Apache-2.0
//! Returns what blkparse and btt print about a trace.

use std::path::{Path, PathBuf};
use std::process::Command;

fn run(command: &mut Command) -> String {
    let output = command.output().expect("blktrace's tools are installed");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// Makes a command with the basename without its folder, for `-D folder -i name`.
fn blkparse(basename: &Path) -> Command {
    let mut command = Command::new("blkparse");
    command
        .arg("-D")
        .arg(basename.parent().expect("a folder"))
        .arg("-i")
        .arg(basename.file_name().expect("a name"));
    command
}

/// Returns every event in blkparse's order and format.
pub fn lines(basename: &Path, format: &str) -> Vec<String> {
    let text = run(blkparse(basename).args(["-q", "-f", &format!("={format}\n")]));
    text.lines()
        .filter_map(|line| line.strip_prefix('='))
        .map(str::to_owned)
        .collect()
}

/// Completed requests and KiB in blkparse's summary.
#[derive(Debug, PartialEq, Eq)]
pub struct Summary {
    pub reads: u64,
    pub read_kib: u64,
    pub writes: u64,
    pub write_kib: u64,
}

pub fn summary(basename: &Path) -> Summary {
    let text = run(&mut blkparse(basename));
    let total = text.rsplit("\nTotal (").next().unwrap_or(&text);
    let line = total
        .lines()
        .find(|line| line.contains("Reads Completed"))
        .expect("a summary");
    let numbers: Vec<u64> = line
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|n| n.parse().ok())
        .collect();
    let &[reads, read_kib, writes, write_kib] = numbers.as_slice() else {
        panic!("unexpected summary: {line}");
    };
    Summary {
        reads,
        read_kib,
        writes,
        write_kib,
    }
}

/// Makes the merged file that btt reads.
pub fn dump(basename: &Path, folder: &Path) -> PathBuf {
    let dump = folder.join("dump");
    run(blkparse(basename).arg("-O").arg("-d").arg(&dump));
    dump
}

/// Returns a row of btt's "All Devices" table: the average in seconds, and the count.
pub fn btt_row(dump: &Path, row: &str) -> Option<(f64, u64)> {
    // btt leaves files in the folder in which it runs.
    let folder = dump.parent().expect("a folder");
    let text = run(Command::new("btt").current_dir(folder).arg("-i").arg(dump));
    let line = text
        .lines()
        .find(|line| line.split_whitespace().next() == Some(row))?;
    let fields: Vec<&str> = line.split_whitespace().collect();
    Some((fields.get(2)?.parse().ok()?, fields.get(4)?.parse().ok()?))
}
