// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace top`: what it shows of a running recording is what the segments contain. The tests run one at a time, because
//! each makes its own load.

use crate::run;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use mostrace_bundle::Bundle;
use mostrace_tables::analysis::{Analysis, Options};
use mostrace_tables::tables::{Grouping, summed};
use mostrace_trace::answer::size;
use mostrace_trace::live::{Line, View, Views, follow};
use run::{program, say, succeeds};
use rustix::process::{Pid, Signal, kill_process};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, one_by_one, tests, wait};

pub fn suite() -> Suite {
    one_by_one(tests![
        what_is_shown_is_what_the_segments_hold needs [Need::Loop, Need::Btf],
        it_does_not_outlive_its_terminal needs [Need::Loop, Need::Btf],
        what_cannot_be_looked_at_is_one_line needs [],
    ])
}

fn what_is_shown_is_what_the_segments_hold() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("kept.most");
    let top = program()
        .args(["top", "-b", "-i", "0.4", "-n", "20", "-d"])
        .arg(disk.mount_point())
        .arg("-o")
        .arg(&output)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let second = dir.path().join("kept.0002.most");
    wait::until("a second segment", || second.exists());
    let database = disk.mount_point().join("x.db");
    let workload = ["workload", "sqlite", "--transactions", "300"];
    succeeds(program().args(workload).arg(&database));
    kill_process(Pid::from_child(&top), Signal::INT).unwrap();
    let top = top.wait_with_output().unwrap();
    let (out, err) = [top.stdout, top.stderr]
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .into();
    assert!(top.status.success(), "{err}");

    let segments = segments(dir.path());
    // What was written in all comes last.
    let (each, totals) = out.rsplit_once("\nin all ").unwrap();
    let of_device = each.lines().filter(|line| !line.starts_with(' '));
    let of_device: Vec<&str> = of_device.collect();
    assert_eq!(of_device.len(), segments.len(), "{out}");
    assert!(
        of_device.iter().all(|line| line.ends_with(", 0 lost")),
        "{out}"
    );

    let mut views = Vec::new();
    let bundles = segments.iter().map(|path| Ok(Bundle::open(path)?));
    follow(bundles, &mut Views::new(|view| views.push(view))).unwrap();
    let apart: Vec<[u64; 3]> = segments.iter().map(|path| held(path)).collect();
    let shown = |view: &View| [view.now.write_bytes, view.now.flushes];
    let shown: Vec<_> = views.iter().map(shown).collect();
    let completed: Vec<_> = apart
        .iter()
        .map(|&[bytes, flushes, _]| [bytes, flushes])
        .collect();
    assert_eq!(shown, completed);

    let last = views.last().unwrap();
    let [written, flushes, asked] = [0, 1, 2].map(|at| apart.iter().map(|s| s[at]).sum::<u64>());
    // The time in which the sources are started is not the first interval's.
    let shortest = views[..views.len() - 1].iter().map(|view| view.lasted);
    assert!(shortest.min() >= Some(Duration::from_millis(400)), "{out}");
    assert!(
        totals.contains(&format!(", written {} in ", size(written as f64)))
            && totals.contains("\n  file /x.db-journal: "),
        "{out}"
    );
    let sum = |lines: &[Line], of: fn(&Line) -> u64| lines.iter().map(of).sum::<u64>();
    for lines in [&last.processes, &last.files, &last.cgroups] {
        assert_eq!(sum(lines, |line| line.all.bytes()), written);
        assert_eq!(sum(lines, |line| line.all.flushes), flushes);
    }
    for lines in [&last.processes, &last.cgroups] {
        assert_eq!(sum(lines, |line| line.all.asked), asked);
    }
    assert_eq!(
        last.classes.iter().map(|(_, all)| all).sum::<u64>(),
        written
    );
    // A commit in one segment of what was changed in the previous one has its cause too.
    let writer = &last.processes[0];
    assert!(writer.name.starts_with("mostrace"), "{}", writer.name);
    assert!(
        writer.all.bytes() * 100 >= written * 95,
        "{:?}",
        last.processes
    );
    assert!(last.files.iter().any(|file| file.name == "/x.db-journal"));
}

/// A window that is closed sends a signal to its session; processes outside it (started by setsid) notice only the
/// terminal's end.
fn it_does_not_outlive_its_terminal() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for (name, before, signal) in [
        ("closed", "", None),
        ("apart", "setsid --wait ", None),
        ("ended", "", Some(Signal::TERM)),
        ("hung-up", "setsid --wait ", Some(Signal::HUP)),
    ] {
        let output = dir.path().join(format!("{name}.most"));
        let program = env!("CARGO_BIN_EXE_mostrace");
        let point = disk.mount_point().display().to_string();
        let command = format!(
            "{before}{program} top -i 0.2 -d {point} -o {}",
            output.display()
        );
        let mut window = Command::new("script")
            .args(["-qfec", &command, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let segment = dir.path().join(format!("{name}.0002.most"));
        wait::until("a second segment", || segment.exists());
        let tops = tops(&format!("{program} top .*{name}.most"));
        assert_eq!(tops.len(), 1, "{tops:?}");
        match signal {
            Some(signal) => tops
                .iter()
                .for_each(|top| kill_process(*top, signal).unwrap()),
            None => kill_process(Pid::from_child(&window), Signal::KILL).unwrap(),
        }
        wait::until("the view ends", || !is_running(tops[0]));
        // The recording is complete.
        let last = segments(dir.path()).pop().unwrap();
        assert!(!Bundle::open(&last).unwrap().is_cut(), "{}", last.display());
        drop(window.stdin.take());
        window.wait().unwrap();
    }
}

/// Returns the processes of this program whose command line begins with the pattern.
fn tops(pattern: &str) -> Vec<Pid> {
    let found = say(Command::new("pgrep").args(["-f", &format!("^{pattern}")]));
    let number = |line: &str| Pid::from_raw(line.parse().unwrap()).unwrap();
    found.out.lines().map(number).collect()
}

fn is_running(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Returns the segments in their order.
fn segments(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    let mut segments: Vec<PathBuf> = files.collect();
    segments.sort();
    segments
}

/// Returns the figures of a segment by itself: bytes and flushes of the device, bytes that calls wrote.
fn held(segment: &Path) -> [u64; 3] {
    let analysis = Analysis::open(segment, &Options::default()).unwrap();
    let grouping = Grouping {
        by: Vec::new(),
        top: None,
        every: None,
    };
    let totals = summed(&analysis.facts, grouping, None).unwrap().total;
    let asked = &analysis.databases;
    let asked = asked.iter().map(|database| database.total().bytes).sum();
    [totals.write_bytes, totals.flushes, asked]
}

fn what_cannot_be_looked_at_is_one_line() {
    for (arguments, status, line) in [
        (
            &["top", "-b", "-d", "/nowhere"][..],
            1,
            "mostrace: /nowhere: No such file or directory",
        ),
        (
            &["top", "-b", "-d", "/", "-o", "x.most.tar.zst"],
            2,
            "mostrace: x.most.tar.zst: the segments must be folders, NAME.most",
        ),
    ] {
        let said = say(program().args(arguments));
        assert_eq!(said.status, Some(status), "{}", said.err);
        assert!(said.err.starts_with(line), "{}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
    say(program().args(["top", "-d", "/", "-i", "0.01"])).ended(2);
}
