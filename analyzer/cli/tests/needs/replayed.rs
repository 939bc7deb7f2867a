// SPDX-License-Identifier: MIT OR Apache-2.0
//! `measure --operations` and `mostrace replay`: what is written again is what was written, layer by layer.

use crate::run;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use run::{program, say, succeeds};
use serde_json::Value;
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, at_once, tests};

const LIVE: [Need; 2] = [Need::Loop, Need::Btf];
/// What the kernel writes in both runs is compared.
const COMPARED: [Need; 3] = [Need::Loop, Need::Btf, Need::NoSync];
/// A layer may differ by so many bytes: the kernel commits a transaction every five seconds, whatever the application does,
/// and a commit writes a handful of blocks.
const COMMITS: u64 = 64 << 10;

pub fn suite() -> Suite {
    at_once(tests![
        sqlite_writes_the_same_again needs COMPARED,
        names_of_every_kind_are_the_same_again needs COMPARED,
        what_mkfs_makes_is_there_as_it_was_found needs LIVE,
        a_file_gets_its_name_later_again needs COMPARED,
        what_is_stored_to_a_mapping_is_stored_again needs COMPARED,
        requests_to_io_uring_are_made_again_as_calls needs [
            Need::Loop,
            Need::Btf,
            Need::NoSync,
            Need::Tool("fio", "fio"),
        ],
        files_lie_where_they_lay_if_the_snapshot_is_the_start needs COMPARED,
        an_application_is_handed_on_without_its_names needs LIVE,
        a_guest_has_filesystems_that_this_kernel_lacks needs [
            Need::Loop,
            Need::Btf,
            Need::Minutes,
            Need::Tool("qemu-system-x86_64", "qemu-system-x86"),
            Need::Tool("busybox", "busybox-static"),
        ],
        a_script_is_replayed_on_a_fresh_filesystem needs LIVE,
        what_cannot_be_replayed_is_one_line,
    ])
}

fn measured(output: &Path, command: &[&str]) {
    let mut measure = program();
    measure.args(["measure", "--operations", "--empty", "-q", "-o"]);
    succeeds(measure.arg(output).arg("--").args(command));
}

fn replayed(recording: &Path, more: &[&str]) -> Value {
    let replayed = succeeds(
        program()
            .arg("replay")
            .arg(recording)
            .arg("--json")
            .args(more),
    );
    serde_json::from_str(&replayed.out).unwrap()
}

/// Every call returned what it did, and none was left out. Returns the number of calls.
fn check_calls(outcome: &Value) -> u64 {
    assert_eq!(outcome["left_out"], serde_json::json!({}), "{outcome}");
    let kinds = outcome["calls"].as_object().unwrap();
    let made = kinds.values().map(|kind| {
        assert_eq!(kind["made"], kind["same"], "{outcome}");
        kind["made"].as_u64().unwrap()
    });
    made.sum()
}

/// No layer differs by more than so many per cent.
fn check_layers(found: &Value, percent: f64) {
    let layers = found["by_layer"].as_array().unwrap();
    assert!(layers.len() >= 3, "{found}");
    for layer in layers {
        let bytes = |side: &str| layer[side].as_u64().unwrap();
        let (recorded, replayed) = (bytes("a_write_bytes"), bytes("b_write_bytes"));
        let apart = recorded.abs_diff(replayed);
        let is_near = apart as f64 <= recorded as f64 * percent / 100.0 || apart <= COMMITS;
        assert!(is_near, "{layer}");
    }
}

fn sqlite_writes_the_same_again() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_mostrace");
    // In how many extents a growing WAL lies differs from run to run, and its extents' block is journalled each time.
    for (journal, percent) in [("delete", 2.0), ("wal", 25.0)] {
        let recording = folder.path().join(format!("{journal}.most"));
        let workload = [
            "workload",
            "sqlite",
            "--journal",
            journal,
            "--transactions",
            "50",
            "x.db",
        ];
        measured(&recording, &[&[program], &workload[..]].concat());
        let kept = folder.path().join(journal);
        let found = replayed(&recording, &["-o", kept.to_str().unwrap()]);
        assert!(check_calls(&found["replays"]["ext4"]) > 100, "{found}");
        check_layers(&found, percent);
        let again = kept.join("ext4.most.tar.zst");
        // The replay is a recording like any other.
        let finding = run::mostrace(&["analyze", again.to_str().unwrap()]);
        assert!(finding.contains("/x.db"), "{finding}");
    }
}

/// fio counts its own writes and fsyncs.
fn requests_to_io_uring_are_made_again_as_calls() {
    let folder = tempfile::tempdir().unwrap();
    let (recording, told) = (
        folder.path().join("fio.most"),
        folder.path().join("fio.json"),
    );
    let output = format!("--output={}", told.display());
    let job = [
        "fio",
        "--name=j",
        "--ioengine=io_uring",
        "--rw=randwrite",
        "--bs=4k",
        "--size=2M",
        "--fsync=8",
        "--fallocate=none",
        "--output-format=json",
        &output,
    ];
    measured(&recording, &job);
    let told: Value = serde_json::from_slice(&fs::read(&told).unwrap()).unwrap();
    let found = replayed(&recording, &[]);
    let outcome = &found["replays"]["ext4"];
    check_calls(outcome);
    for (kind, of_fio) in [("write", "write"), ("fsync", "sync")] {
        let count = &told["jobs"][0][of_fio]["total_ios"];
        assert!(count.as_u64().unwrap() >= 60, "{told}");
        assert_eq!(&outcome["calls"][kind]["made"], count, "{kind}");
    }
    check_layers(&found, 2.0);
}

/// The free space is in parts when the recording begins.
fn files_lie_where_they_lay_if_the_snapshot_is_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("aged.most");
    let each = "dd if=/dev/urandom bs=100k count=1 status=none of=f$i";
    let before = format!(
        "for i in $(seq 40); do {each}; done; for i in $(seq 1 2 40); do rm f$i; done; echo x >>f2"
    );
    let script =
        "dd if=/dev/urandom of=new bs=1M count=3 conv=fsync status=none; mkdir d; echo y >>f8";
    succeeds(
        program()
            .args(["measure", "--operations", "--empty", "-q", "--size=8M"])
            .arg(format!("--before={before}"))
            .arg("-o")
            .arg(&recording)
            .args(["--", "sh", "-ec", script]),
    );
    let kept = folder.path().join("kept");
    let found = replayed(&recording, &["--image", "-o", kept.to_str().unwrap()]);
    check_calls(&found["replays"]["ext4"]);
    check_layers(&found, 2.0);
    let extents = |bundle: &Path| {
        let map = run::mostrace(&["map", bundle.to_str().unwrap()]);
        let of_files = map.lines().filter(|line| line.contains("regular"));
        let mut of_files: Vec<String> = of_files.map(str::to_owned).collect();
        of_files.sort();
        of_files
    };
    let lay = extents(&recording);
    assert!(
        lay.iter().filter(|line| line.contains("/new")).count() > 2,
        "{lay:?}"
    );
    assert_eq!(extents(&kept.join("ext4.most.tar.zst")), lay);
}

/// mkfs makes `lost+found`, on which each of these makes other calls.
const LOST_FOUND: [&str; 5] = [
    "ls lost+found; echo a >lost+found/f; sync",
    "rmdir lost+found && mkdir lost+found && echo b >lost+found/f",
    "rmdir lost+found && echo c >lost+found",
    "! mkdir lost+found; chmod 755 lost+found; ! cat /dev/null >lost+found",
    "mv lost+found found && echo d >lost+found; touch found/f",
];
/// Its filesystem had no such folder.
const WITHOUT: &str = "\
9 1700000000.000001 mkdir(\"/r/lost+found\", 0755) = 0 <0.000010>
9 1700000000.000100 openat(AT_FDCWD</r>, \"/r/lost+found/f\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3</r/lost+found/f> <0.000010>
9 1700000000.000200 close(3</r/lost+found/f>) = 0 <0.000010>
";

fn what_mkfs_makes_is_there_as_it_was_found() {
    let folder = tempfile::tempdir().unwrap();
    for (nth, script) in LOST_FOUND.iter().enumerate() {
        let recording = folder.path().join(format!("{nth}.most"));
        measured(&recording, &["sh", "-c", script]);
        let found = replayed(&recording, &[]);
        assert!(check_calls(&found["replays"]["ext4"]) > 0, "{script}");
    }
    let strace = folder.path().join("without.strace");
    fs::write(&strace, WITHOUT).unwrap();
    let found = replayed(&strace, &["--root", "/r"]);
    assert_eq!(check_calls(&found["replays"]["ext4"]), 3);
    // The root of a mounted filesystem is an empty folder too.
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let mount = disk.mount_point();
    let within = ["--in", mount.to_str().unwrap()];
    let found = replayed(&folder.path().join("0.most"), &within);
    assert!(check_calls(&found["replays"]["replayed"]) > 0);
}

/// A shell's commands, with relative paths, folders, links and calls that fail.
const NAMES: &str = "mkdir -p a/b && cd a && echo one >b/f && ln b/f hard && ln -s b/f soft && mv b c && \
                     echo two >>c/f && truncate -s 9000 c/f && chmod 600 hard && rm hard && \
                     mkdir d && rmdir d && cp c/f copy && sync copy && touch late && ! rmdir c";

fn names_of_every_kind_are_the_same_again() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("names.most");
    measured(&recording, &["sh", "-c", NAMES]);
    let found = replayed(&recording, &[]);
    let outcome = &found["replays"]["ext4"];
    check_calls(outcome);
    for (kind, least) in [
        ("mkdir", 3),
        ("link", 1),
        ("symlink", 1),
        ("rename", 1),
        ("truncate", 1),
        ("chmod", 1),
        ("unlink", 1),
        ("rmdir", 2),
        ("utimes", 1),
    ] {
        let made = outcome["calls"][kind]["made"].as_u64().unwrap_or(0);
        assert!(made >= least, "{kind}: {outcome}");
    }
    check_layers(&found, 2.0);
}

/// Files that get their names by their descriptors, and one that never gets any.
const NAMELESS: &str = "import ctypes, os
c = ctypes.CDLL(None)
os.mkdir('d')
for n in range(40):
    f = os.open('d', os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(f, b't' * (5000 * n + 777))
    if n % 4 == 0:
        r = c.linkat(f, b'', -100, b'd/empty%d' % n, 0x1000)
    elif n % 4 == 1:
        r = c.linkat(-100, b'/proc/self/fd/%d' % f, -100, b'd/self%d' % n, 0x400)
    elif n % 4 == 2:
        r = c.linkat(-100, b'/proc/%d/fd/%d' % (os.getpid(), f), -100, b'd/pid%d' % n, 0x400)
    else:
        r = 0
    assert r == 0
    os.chmod('/proc/self/fd/%d' % f, 0o644)
    os.fsync(f)
    os.close(f)
os.symlink('empty0', 'd/to')
assert c.linkat(-100, b'd/to', -100, b'd/followed', 0x400) == 0
assert c.linkat(-100, b'd/to', -100, b'd/itself', 0) == 0
";

fn a_file_gets_its_name_later_again() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("nameless.most");
    measured(&recording, &["python3", "-c", NAMELESS]);
    let found = replayed(&recording, &[]);
    let outcome = &found["replays"]["ext4"];
    check_calls(outcome);
    for (kind, number) in [("link", 32), ("chmod", 40), ("write", 40)] {
        assert_eq!(outcome["calls"][kind]["made"], number, "{outcome}");
    }
    // Whoever starts the program may open the folder too.
    let opens = outcome["calls"]["open"]["made"].as_u64().unwrap();
    assert!(opens >= 40, "{outcome}");
    check_layers(&found, 2.0);
    // The tree is that which the program leaves.
    let [own, again] = ["own", "again"].map(|name| folder.path().join(name));
    for folder in [&own, &again] {
        fs::create_dir(folder).unwrap();
    }
    let mut python = std::process::Command::new("python3");
    let ran = python.args(["-c", NAMELESS]).current_dir(&own).status();
    assert!(ran.unwrap().success());
    succeeds(
        program()
            .args(["workload", "replay", "--fast", "--path"])
            .args([&again, &recording]),
    );
    let tree = |folder: &Path| {
        let entries = fs::read_dir(folder.join("d")).unwrap().map(|entry| {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            let file = (meta.len(), meta.nlink(), meta.mode());
            (entry.file_name(), file)
        });
        entries.collect::<BTreeMap<_, _>>()
    };
    assert_eq!(tree(&again), tree(&own));
}

/// A program with a shared mapping, some pages of which it makes dirty ahead of each msync.
const MAPPED: &str = "import mmap, os
f = os.open('mapped', os.O_RDWR | os.O_CREAT)
os.ftruncate(f, 4 << 20)
m = mmap.mmap(f, 4 << 20)
for round in range(20):
    for page in range(round, 1024, 37):
        m[page * 4096 + 7] = round
    m.flush()
";

fn what_is_stored_to_a_mapping_is_stored_again() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("mapped.most");
    measured(&recording, &["python3", "-c", MAPPED]);
    let found = replayed(&recording, &[]);
    let outcome = &found["replays"]["ext4"];
    check_calls(outcome);
    assert_eq!(outcome["calls"]["msync"]["made"], 20, "{outcome}");
    let of_files = |side: &str| {
        let classes = found["by_class"].as_array().unwrap().iter();
        let data = classes.filter(|row| row["class"] == "data" && row["kind"] == "regular");
        data.map(|row| row[side].as_u64().unwrap()).sum::<u64>()
    };
    let [recorded, replayed] = ["a_write_bytes", "b_write_bytes"].map(of_files);
    assert!(recorded >= 20 * 27 * 4096, "{found}");
    assert_eq!(recorded, replayed);
}

/// Returns the contents of all files of a folder.
fn contents(folder: &Path) -> Vec<u8> {
    let files = fs::read_dir(folder).unwrap();
    files
        .flat_map(|file| fs::read(file.unwrap().path()).unwrap())
        .collect()
}

fn an_application_is_handed_on_without_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("names.most");
    let private = "mkdir private && cd private && echo one >secret.db && ln -s ../private/secret.db secretive && \
                   echo two >>secretive && mv secret.db secret.txt && ! cat secretive && sync secret.txt";
    measured(&recording, &["sh", "-c", private]);
    let whole = replayed(&recording, &[]);
    for name in ["handed.most", "packed.most.tar.zst"] {
        let handed = folder.path().join(name);
        let export = ["--format", "operations", "--anonymize", "-o"];
        succeeds(
            program()
                .arg("export")
                .arg(&recording)
                .args(export)
                .arg(&handed),
        );
        // Without the recording's own figures the replay stands alone.
        let found = replayed(&handed, &[]);
        assert_eq!(found["columns"], serde_json::json!(["ext4"]));
        let [calls, others] = [&found, &whole].map(|found| &found["replays"]["ext4"]["calls"]);
        check_calls(&found["replays"]["ext4"]);
        assert_eq!(calls, others);
        // It says nothing of what was written, and does not say that nothing was.
        let said = say(program().arg("analyze").arg(&handed));
        assert_eq!(
            (said.status, said.err.lines().count()),
            (Some(1), 1),
            "{}",
            said.err
        );
    }
    let handed =
        String::from_utf8_lossy(&contents(&folder.path().join("handed.most"))).into_owned();
    for word in ["private", "secret", "echo"] {
        assert!(!handed.contains(word), "{word}");
    }
    assert!(
        handed.contains(".db") && handed.contains(".txt"),
        "{handed}"
    );
}

fn a_guest_has_filesystems_that_this_kernel_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("app.most");
    measured(&recording, &["sh", "-c", NAMES]);
    let kept = folder.path().join("kept");
    let more = [
        "--fs",
        "f2fs,vfat",
        "--guest",
        "6.12",
        "-o",
        kept.to_str().unwrap(),
    ];
    let found = replayed(&recording, &more);
    assert_eq!(
        found["columns"],
        serde_json::json!(["recorded", "f2fs", "vfat"])
    );
    check_calls(&found["replays"]["f2fs"]);
    for fs in ["f2fs", "vfat"] {
        let again = kept.join(format!("{fs}.most.tar.zst"));
        let finding = run::mostrace(&["analyze", again.to_str().unwrap()]);
        assert!(
            finding.contains("Nothing was lost") && finding.contains("/a"),
            "{finding}"
        );
    }
    // FAT has neither links nor modes.
    let calls = &found["replays"]["vfat"]["calls"];
    assert_eq!(calls["link"]["same"], 0, "{calls}");
    assert_eq!(calls["mkdir"]["same"], calls["mkdir"]["made"], "{calls}");
}

fn a_script_is_replayed_on_a_fresh_filesystem() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("app.mobigen");
    let text = "1 0 open \"/data/a\" O_RDWR|O_CREAT 5\n1 100 write 5 8192\n1 200 fsync 5 0\n\
                2 300 open \"/data/b\" O_RDWR|O_CREAT 6\n2 400 pwrite 6 4096 100\n1 500 close 5 0\n1 600 unlink \"/data/a\" 0\n";
    fs::write(&script, text).unwrap();
    let found = replayed(&script, &["--fs", "ext4"]);
    let outcome = &found["replays"]["ext4"];
    assert_eq!(check_calls(outcome), 7, "{outcome}");
    let written = &found["total"][0]["a"];
    assert!(written.as_u64().unwrap() >= 8192 + 4096, "{found}");
}

fn what_cannot_be_replayed_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let sample = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../sample-traces/delete.most.tar.zst"
    );
    let strace = folder.path().join("app.strace");
    fs::write(&strace, "7 1.000001 fsync(3) = 0\n").unwrap();
    let broken = folder.path().join("broken.strace");
    fs::write(&broken, "nonsense\n").unwrap();
    let [strace, broken] = [&strace, &broken].map(|path| path.to_str().unwrap());
    for (arguments, line) in [
        (
            vec![sample],
            "no operations were recorded; record again with --operations",
        ),
        (vec![strace], "name the folder to replay with --root DIR"),
        (
            vec![strace, "--root", "/"],
            "app.strace: has no call that can be replayed (1: it is not known which file its descriptor leads to",
        ),
        (vec![broken, "--root", "/"], "broken.strace:1: "),
        (
            vec![sample, strace, "--root", "/"],
            "all must be files of strace -ff",
        ),
        (vec!["/nosuch"], "/nosuch: No such file"),
    ] {
        let said = say(program().arg("replay").args(&arguments)).ended(1);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        said.complains(line);
    }
}
