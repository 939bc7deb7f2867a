// SPDX-License-Identifier: MIT OR Apache-2.0

use std::collections::BTreeSet;
use std::fs;

use mostrace_bundle::Bundle;
use mostrace_bundle::entry::{Entry, Origin};
use proptest::prelude::*;

use super::*;
use crate::about;
use crate::attribute::Op;
use crate::blktrace::Completions;
use crate::recording::Recording;

/// A completion: its time and beginning (ns), sector, bytes, and who queued it.
pub(super) type Seen = (u64, Option<u64>, u64, u32, Option<u32>);

pub(super) struct Made {
    pub manifest: Manifest,
    pub notes: Vec<String>,
    pub completions: Vec<Seen>,
    /// Whether something was lost.
    pub whole: String,
}

/// Imports texts, and reads the bundle as every verb does.
pub(super) fn made<T: AsRef<[u8]>>(texts: &[T], device: Option<&str>) -> Result<Made, String> {
    let dir = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (nth, text) in texts.iter().enumerate() {
        let path = dir.path().join(format!("{nth}.txt"));
        fs::write(&path, text).unwrap();
        paths.push(path);
    }
    let bundle = dir.path().join("x.most");
    let writer = Writer::create(&bundle).unwrap();
    let place = format!("{}/", dir.path().display());
    let choice = Choice {
        device: device.map(str::to_owned),
        ..Choice::default()
    };
    let imported = import(&paths, &choice, &writer);
    let imported = imported.map_err(|error| error.to_string().replace(&place, ""))?;
    assert!(Bundle::open(&bundle).unwrap().shortfalls().is_empty());
    let recordings = Recording::open_all(&[bundle], false).unwrap();
    let recording = recordings.first().unwrap();
    let mut completions = Completions::new(recording.events().unwrap());
    let mut all = Vec::new();
    while let Some(done) = completions.next().unwrap() {
        let part = done.parts.first().unwrap();
        all.push((done.time_ns, part.q_ns, done.sector, done.bytes, part.pid));
    }
    assert_eq!(all.len() as u64, imported.completed);
    Ok(Made {
        manifest: recording.manifest().unwrap().clone(),
        notes: imported.notes,
        completions: all,
        whole: about::whole(&recordings, &[]).unwrap(),
    })
}

const BLKPARSE: &str = "  8,0    1        1     0.000000000   697  Q  WS 100 + 8 [sh]
  8,0    1        2     0.000000100   697  D  WS 100 + 8 [sh]
  8,0    0        1     0.000000500     0  C  WS 100 + 8 [0]
";
const FTRACE: &str = "# tracer: nop
# entries-in-buffer/entries-written: 140/240   #P:4
  sh-697    [001] d..1.   100.000001: block_bio_remap: 259,1 WS 100 + 8 <- (259,1) 36
  sh-697    [001] d..1.   100.000001: block_bio_queue: 259,1 WS 100 + 8 [sh]
  sh-697    [001] d..1.   100.000002: block_rq_issue: 259,0 WS 4096 () 100 + 8 none,0,0 [sh]
  <idle>-0  [000] d.h1.   100.000005: block_rq_complete: 259,0 WS () 100 + 8 none,0,0 [0]
";

#[test]
fn a_request_has_its_bytes_times_and_process() {
    let blkparse = made(&[BLKPARSE], None).unwrap();
    assert_eq!(blkparse.completions, [(500, Some(0), 100, 4096, Some(697))]);
    assert_eq!(blkparse.manifest.device.dev, "8:0");
    assert_eq!(blkparse.notes.len(), 1);
    assert!(blkparse.whole.starts_with("The trace does not say"));
    let without = FTRACE.replace("140/240", "140/140");
    let without = made(&[&without], None).unwrap();
    assert!(without.whole.starts_with("Nothing was lost; "));

    let ftrace = made(&[FTRACE], None).unwrap();
    let (begin, end) = (100_000_001_000, 100_000_005_000);
    assert_eq!(
        ftrace.completions,
        [(end, Some(begin), 100, 4096, Some(697))]
    );
    assert_eq!(ftrace.manifest.losses["events_tracefs"], 100);

    let page = format!("<!DOCTYPE html>\n<script>\n{FTRACE}</script>\n");
    let page = made(&[&page], None).unwrap();
    assert_eq!(page.completions, ftrace.completions);
    assert_eq!(page.notes, ftrace.notes);
}

/// f2fs on dm-3, which lies on partition 259,7 from sector 100 on, and that on its disk from 1000 on.
const F2FS: &str = "# tracer: nop
  app-71  (   70) [001] ..... 5.000001: f2fs_write_begin: dev = (254,3), ino = 9, pos = 4096, len = 4096
  app-71  (   70) [001] ..... 5.000002: f2fs_datawrite_start: entry_name /app/a b.db, offset 4096, bytes 4096, cmdline x, ino 3, pid 70, i_size 0, ino 9
  app-71  (   70) [001] ..... 5.000003: f2fs_submit_page_write: dev = (254,3), ino = 9, page_index = 0x1, oldaddr = 0x0, newaddr = 0x200, rw = WRITE(S), type = WARM_DATA
  app-71  (   70) [001] ..... 5.000003: f2fs_submit_page_write: dev = (254,3), ino = 9, page_index = 0x9, oldaddr = 0x0, newaddr = 0x201, rw = WRITE(S), type = WARM_NODE
  app-71  (   70) [001] ..... 5.000004: block_bio_queue: 254,3 WS 4096 + 16 [app]
  dm-72   (-----) [000] ..... 5.000005: block_bio_remap: 259,7 WS 4196 + 16 <- (254,3) 4096
  dm-72   (-----) [000] ..... 5.000005: block_bio_remap: 259,7 WS 5196 + 16 <- (259,7) 4196
  dm-72   (-----) [000] ..... 5.000006: block_bio_queue: 259,7 WS 5196 + 16 [dm]
  dm-72   (-----) [000] ..... 5.000007: block_rq_issue: 259,0 WS 8192 () 5196 + 16 [dm]
  <idle>-0 (-----) [000] ..... 5.000009: block_rq_complete: 259,0 WS () 5196 + 16 [0]
";

/// An entry of a file: its sector, bytes, inode, offset and name, and whether it is of a node.
pub(super) type File = (u64, u32, u64, u64, String, bool);

pub(super) fn files(text: impl AsRef<[u8]>) -> (Vec<(u32, u32)>, Vec<File>) {
    let dir = tempfile::tempdir().unwrap();
    let (path, bundle) = (dir.path().join("t.txt"), dir.path().join("x.most"));
    fs::write(&path, text).unwrap();
    import(
        &[path],
        &Choice::default(),
        &Writer::create(&bundle).unwrap(),
    )
    .unwrap();
    let bundle = Bundle::open(&bundle).unwrap();
    let entries = |table| bundle.table(table, false).unwrap().unwrap();
    let (mut submitters, mut files) = (Vec::new(), Vec::new());
    for entry in entries(layout::PROCESS) {
        if let Entry::Process(process) = entry.unwrap() {
            submitters.push((process.pid.get(), process.tgid.get()));
        }
    }
    for entry in entries(layout::FILE) {
        if let Entry::File(file) = entry.unwrap() {
            let raw = file.raw;
            files.push((
                raw.head.sector.get(),
                raw.head.bytes.get(),
                raw.ino.get(),
                raw.offset.get(),
                String::from_utf8_lossy(&file.name).into_owned(),
                raw.origin == Origin::NODE,
            ));
        }
    }
    (submitters, files)
}

#[test]
fn the_manifest_has_what_the_trace_says_and_nothing_else() {
    let made = made(&[FTRACE], None).unwrap().manifest;
    let mut wanted = Manifest {
        schema: SCHEMA,
        tool: made.tool.clone(),
        state: State::Complete,
        sources: Sources {
            events: "the text of ftrace, imported".into(),
            entries: "none".into(),
            files: "none".into(),
            causes: "none".into(),
        },
        losses: [("events_tracefs".to_owned(), 100)].into(),
        counters: Some(Counters::NotCompared("imported traces have none".into())),
        files: made.files.clone(),
        notes: made.notes.clone(),
        ..Manifest::default()
    };
    for name in ["name", "dev", "disk", "disk_dev"] {
        assert_eq!(json(&made.device)[name], "259:0", "{name}");
    }
    wanted.device = made.device.clone();
    wanted.clock.start_mono_ns = 100_000_001_000;
    wanted.clock.stop_mono_ns = 100_000_005_000;
    for (what, count) in [
        ("events", 3),
        ("process_entries", 0),
        ("file_entries", 0),
        ("comm_entries", 0),
    ] {
        wanted.counts.insert(what.to_owned(), count);
    }
    assert!(made.tool.starts_with("mostrace "));
    assert_eq!(made.notes.len(), 1);
    assert_eq!(json(&made), json(&wanted));
}

#[test]
fn what_was_forgotten_is_a_loss() {
    let target = Target {
        device: 0,
        name: "sda".into(),
        partitions: BTreeSet::new(),
        completes_at: 0,
        leaves_bios: false,
        volume: None,
        tells_files: false,
        several_filesystems: false,
    };
    let losses = |forgotten| {
        let made = making::Made {
            forgotten,
            ..making::Made::default()
        };
        manifest(Kind::Ftrace, &target, &made).losses
    };
    assert!(losses(0).is_empty());
    assert_eq!(losses(2), [("extents_forgotten".to_owned(), 2)].into());
}

fn json(value: impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap()
}

#[test]
fn files_are_found_through_mapped_devices() {
    let (submitters, found) = files(F2FS);
    assert_eq!(submitters, [(71, 70)]);
    assert_eq!(
        found,
        [
            (5196, 4096, 9, 4096, "/app/a b.db".into(), false),
            (5204, 4096, 0, 9 * 4096, String::new(), true),
        ]
    );
    // Another filesystem may have told the path, and nothing of the traced one follows.
    let other = F2FS.replace(
        "# tracer: nop",
        "# tracer: nop\n  b-1 [001] ..... 4.0: ext4_evict_inode: dev 8,1 ino 5 nlink 0",
    );
    assert_eq!(files(&other).1[0].4, "");
    // Where the filesystem lies is not known if bios are shifted by several lengths.
    let line =
        "  dm-72   (-----) [000] ..... 5.000005: block_bio_remap: 259,7 WS 9 + 8 <- (254,3) 1\n";
    assert_eq!(files(&(F2FS.to_owned() + line)).1, []);
}

#[test]
fn a_process_is_named_by_what_it_executes() {
    let text = FTRACE.replace(
        "# tracer: nop\n",
        "# tracer: nop\n  a-1 [001] ..... 99.000001: sched_process_exec: filename=/bin/long-name-of-a-tool pid=697 old_pid=697\n",
    );
    let (submitters, _) = files(&text);
    assert_eq!(submitters, [(697, 697)]);
    assert_eq!(files(FTRACE).0, []);
    let dir = tempfile::tempdir().unwrap();
    let (path, bundle) = (dir.path().join("t.txt"), dir.path().join("x.most"));
    fs::write(&path, text).unwrap();
    let writer = Writer::create(&bundle).unwrap();
    import(&[path], &Choice::default(), &writer).unwrap();
    let bundle = Bundle::open(&bundle).unwrap();
    let mut comms = bundle.table(layout::COMM, false).unwrap().unwrap();
    let Entry::Comm(comm) = comms.next().unwrap().unwrap() else {
        panic!("no name");
    };
    assert_eq!(&comm.comm[..], b"long-name-of-a-\0");
}

#[test]
fn zeroes_are_no_writes() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bundle) = (dir.path().join("t.txt"), dir.path().join("x.most"));
    fs::write(&path, FTRACE.replace(" WS ", " NS ")).unwrap();
    let writer = Writer::create(&bundle).unwrap();
    import(&[path], &Choice::default(), &writer).unwrap();
    let recordings = Recording::open_all(&[bundle], false).unwrap();
    let events = recordings.first().unwrap().events().unwrap();
    let mut completions = Completions::new(events);
    let done = completions.next().unwrap().unwrap();
    assert_eq!(Op::of(done.action, done.bytes), Op::WriteZeroes);
}

#[test]
fn a_format_of_blkparse_may_be_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.txt");
    let text =
        "0.000000100 8,0 Q WS 100 4096 7 sh\n0.000000300 8,0 C WS 100 4096 0 (null)\nCPU0 (8,0):\n";
    fs::write(&path, text).unwrap();
    let bundle = dir.path().join("x.most");
    let choice = Choice {
        format: Some(Format::parse("%T.%t %D %a %d %S %N %p %C\\n").unwrap()),
        ..Choice::default()
    };
    import(
        std::slice::from_ref(&path),
        &choice,
        &Writer::create(&bundle).unwrap(),
    )
    .unwrap();
    let recordings = Recording::open_all(&[bundle], false).unwrap();
    let events = recordings.first().unwrap().events().unwrap();
    let mut completions = Completions::new(events);
    let done = completions.next().unwrap().unwrap();
    let begin = done.parts.first().unwrap();
    assert_eq!(
        (done.time_ns, begin.q_ns, begin.pid),
        (300, Some(100), Some(7))
    );
    assert_eq!((done.sector, done.bytes), (100, 4096));
}

#[test]
fn what_most_wrote_is_read() {
    let text = "    0.000000100\tQ\tWS\t100\t   8\t103336\t  GCMReader\tD\t/a.db-journal
    0.000000200\tC\tWAS\t100\t   8\t103336\t  GCMReader\tD\t/a.db-journal\n";
    let most = made(&[text], None).unwrap();
    assert_eq!(most.completions, [(200, Some(100), 100, 4096, Some(3336))]);
    let ends = made(&[&format!("{}\n", text.lines().next_back().unwrap())], None).unwrap();
    assert_eq!(ends.completions, [(200, None, 100, 4096, None)]);
    assert_eq!(ends.notes[1], "completions alone: latencies are unknown");
}

#[test]
fn what_never_completes_has_no_latency() {
    let issued = BLKPARSE.lines().take(2).collect::<Vec<_>>().join("\n") + "\n";
    let issued = made(&[&issued], None).unwrap();
    assert_eq!(issued.completions, [(100, None, 100, 4096, None)]);
    assert!(
        issued.notes[1].starts_with("no completions: "),
        "{:?}",
        issued.notes
    );
    let iolog = "fio version 3 iolog\n0 a add\n0 a open\n7 a write 4096 8192\n9 a sync\n9 a read 0 512\n9 a close\n";
    let iolog = made(&[iolog], None).unwrap();
    assert_eq!(
        iolog.completions,
        [
            (7_000, None, 8, 8192, None),
            (9_000, None, 0, 0, None),
            (9_000, None, 0, 512, None)
        ]
    );
    assert!(iolog.notes[1].starts_with("no completions: "));
}

#[test]
fn public_traces_have_their_units() {
    let msr =
        "128166372003061629,hm,1,Read,383496192,32768,413\n128166372003061630,hm,1,Write,0,512,1\n";
    let msr = made(&[msr], None).unwrap();
    let unix_ns = (128_166_372_003_061_629 - 116_444_736_000_000_000) * 100;
    assert_eq!(
        msr.completions,
        [
            (unix_ns + 200, Some(unix_ns + 100), 0, 512, None),
            (unix_ns + 41_300, Some(unix_ns), 749_016, 32768, None)
        ]
    );
    assert_eq!(msr.manifest.begin_unix_ns(), Some(unix_ns));
    let alibaba = "419,W,8192,16384,77\n420,R,0,512,78\n";
    assert_eq!(
        made(&[alibaba], None).err().unwrap(),
        "0.txt: requests of 2 devices are in it: choose one with --device, of 420 (1), 419 (1)"
    );
    let alibaba = made(&[alibaba], Some("419")).unwrap();
    assert_eq!(alibaba.completions, [(77_000, None, 16, 16384, None)]);
    let tencent = made(&["1538323200,12910952,128,1,1063\n"], None).unwrap();
    let time_ns = 1_538_323_200_000_000_000;
    assert_eq!(
        tencent.completions,
        [(time_ns, None, 12_910_952, 65536, None)]
    );
}

#[test]
fn damage_is_named_with_its_place() {
    let damaged = BLKPARSE.replace("0.000000100", "x");
    let error = made(&[BLKPARSE, &damaged], None).err().unwrap();
    assert!(error.starts_with("1.txt, line 2: "), "{error}");
    let cut = made(&[&BLKPARSE[..BLKPARSE.len() - 4], BLKPARSE], None).unwrap();
    assert!(
        cut.notes.iter().any(|note| note.ends_with("left out")),
        "{:?}",
        cut.notes
    );
    let two = made(&[BLKPARSE, FTRACE], None).err().unwrap();
    assert!(two.starts_with("1.txt is the text of ftrace, but 0.txt is the text of blkparse"));
    let none = made(&["hello\n"], None).err().unwrap();
    assert!(none.starts_with("0.txt: no trace of a kind"), "{none}");
    let far = BLKPARSE.replace("  8,0    1  ", "  8,0  999  ");
    assert!(made(&[&far], None).err().unwrap().contains("CPU 999"));
}

#[test]
fn another_tools_trace_is_named_when_it_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.txt");
    fs::write(&path, FTRACE).unwrap();
    let error = Recording::open_all(std::slice::from_ref(&path), false)
        .err()
        .unwrap();
    let path = path.display();
    assert_eq!(
        error.to_string(),
        format!(
            "{path}: the text of ftrace: mostrace import {path} -o x.most makes a recording of it"
        )
    );
}

const IOLOG: &str = "fio version 3 iolog\n7 a write 4096 8192\n9 a sync\n9 a read 0 512\n";
const BIOSNOOP: &str =
    "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  QUE(ms) LAT(ms)
1.000004    Web Content 1  1950    xvda1     W 13092560   4096      0.01    0.74
";
const FORMATTED: &str =
    "0.000000100 8,0 Q WS 100 4096 7 sh\n0.000000300 8,0 C WS 100 4096 0 (null)\n";
const TASKS: &str = "  sh-7 (7) [001] ..... 1.000001: task_newtask: pid=8 comm=sh clone_flags=1200000 oom_score_adj=0
  sh-8 (8) [001] ..... 1.000001: sched_process_exec: filename=/bin/a pid=8 old_pid=8
  a-8 (8) [001] ..... 1.000002: block_bio_queue: 8,0 WS 16 + 8 [a]
CPU:3 [7 EVENTS DROPPED]
";
const MOST: &str = "    0.1\tQ\tWS\t100\t   8\t103336\t  GCMReader\tD\t/a.db-journal\n";
const CSV: &str = "128166372003061629,hm,1,Read,383496192,32768,413\n";

proptest! {
    /// A few bytes of a text are replaced, inserted or removed.
    #[test]
    fn no_damage_makes_a_reader_panic(
        which in 0_usize..9,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..4), 1..6),
    ) {
        let texts = [BLKPARSE, FTRACE, F2FS, IOLOG, BIOSNOOP, MOST, CSV, TASKS, FORMATTED];
        let mut text = texts[which].as_bytes().to_vec();
        let named = || Format::parse("%T.%t %D %a %d %S %N %p %C\\n").unwrap();
        let choice = Choice {
            format: (which == 8).then(named),
            ..Choice::default()
        };
        for (place, byte, how) in edits {
            let place = place.index(text.len());
            match how {
                0 => text[place] = byte,
                1 => text.insert(place, byte),
                2 => text.insert(place, b"0123456789,-:[]( "[usize::from(byte) % 17]),
                _ => drop(text.remove(place)),
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.txt");
        fs::write(&path, text).unwrap();
        let writer = Writer::create(&dir.path().join("x.most")).unwrap();
        if let Err(error) = import(&[path], &choice, &writer) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}
