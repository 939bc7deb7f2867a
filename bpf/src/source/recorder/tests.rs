// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the recorder as a source, with a device made of plain files.

use std::io::Write;

use mostrace_bundle::{Bundle, Entry, Folder, Manifest, Writer, layout};
use tempfile::TempDir;

use super::stream::tests::{entry, header};
use super::*;
use crate::sink::{Counts, NameFilter, Retention};

const SETTINGS: [(&str, &str); 4] = [
    ("dev", "sda2"),
    ("names", "a\\nb"),
    ("ring_kb", "1024"),
    ("filesystems", "8:2"),
];

/// A recorder made of plain files; its device returns what was put into it.
struct Fake {
    dir: TempDir,
    paths: KernelPaths,
}

impl Fake {
    fn new() -> Fake {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let paths = KernelPaths {
            device: at("device"),
            parameters: at("parameters"),
            class: at("class"),
        };
        fs::create_dir(&paths.parameters).unwrap();
        fs::create_dir_all(paths.class.join("losses")).unwrap();
        for (name, text) in SETTINGS {
            fs::write(paths.parameters.join(name), format!("{text}\n")).unwrap();
        }
        fs::write(paths.class.join("losses/entries_ring"), "3\n").unwrap();
        fs::write(paths.class.join("losses/dirtiers"), "0\n").unwrap();
        fs::write(&paths.device, header(0)).unwrap();
        Fake { dir, paths }
    }

    fn put(&self, bytes: &[u8]) {
        let mut device = File::options()
            .append(true)
            .open(&self.paths.device)
            .unwrap();
        device.write_all(bytes).unwrap();
    }

    fn start(&self) -> Result<Running> {
        let names = "temp".parse::<NameFilter>().unwrap();
        let folder = Folder::open(self.dir.path()).unwrap();
        let mut sink = Sink::new(&folder, names, Retention::of(false));
        let source = Recorder::start(&self.paths, "7:0", &["7:0".into()], &mut sink)?;
        Ok(Running { source, sink })
    }

    fn setting(&self, name: &str) -> String {
        read_line(self.paths.parameters.join(name)).unwrap()
    }

    fn assert_put_back(&self) {
        for (name, text) in SETTINGS {
            assert_eq!(self.setting(name), text, "{name}");
        }
    }

    fn entries(&self, table: &str) -> Vec<Entry> {
        let writer = Writer::create(&self.dir.path().join("x.most")).unwrap();
        let manifest = Manifest {
            schema: 1,
            ..Manifest::default()
        };
        writer.put_manifest(&manifest).unwrap();
        fs::copy(self.dir.path().join(table), writer.path(table)).unwrap();
        let bundle = Bundle::open(writer.dir()).unwrap();
        let entries = bundle.table(table, false).unwrap().unwrap();
        entries.map(|entry| entry.unwrap()).collect()
    }
}

/// The running recorder, and the place to which it records.
struct Running {
    source: Recorder,
    sink: Sink,
}

impl Running {
    fn poll(&mut self) -> Result<()> {
        self.source.poll(&mut self.sink)
    }

    fn stop(&mut self) -> Result<()> {
        self.source.stop(Provides::ENTRIES, &mut self.sink)?;
        self.source.stop(Provides::CAUSES, &mut self.sink)?;
        self.sink.flush()
    }

    fn counts(&self) -> Counts {
        self.sink.entry_counts()
    }

    fn losses(&self) -> Losses {
        self.source.losses().unwrap()
    }
}

fn failure<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => panic!("no error"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn entries_go_into_their_tables_and_settings_back() {
    let fake = Fake::new();
    let mut source = fake.start().unwrap();
    let set = ["dev", "names", "ring_kb", "filesystems"].map(|name| fake.setting(name));
    assert_eq!(set, ["7:0", "all", "4096", "7:0"]);
    let mut dirtier = entry(4, 72);
    dirtier[40] = 7;
    fake.put(&[entry(1, 88), entry(99, 40)].concat());
    source.poll().unwrap();
    // What is there when the recording stops is taken too.
    fake.put(&[entry(2, 72), dirtier, entry(1, 88)].concat());
    source.stop().unwrap();
    fake.assert_put_back();
    let counts = [
        ("process_entries", 2),
        ("file_entries", 1),
        ("dirtier_entries", 1),
        ("freed_entries", 0),
        ("cgroup_entries", 0),
        ("comm_entries", 0),
    ];
    let counts = counts.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(source.counts(), counts);
    let losses = [("dirtiers", 0), ("entries_ring", 3), ("entries_unknown", 1)];
    let losses = losses.map(|(name, lost)| (name.to_owned(), lost));
    assert_eq!(source.losses(), Losses::from(losses));
    match fake.entries(layout::DIRTIER)[..] {
        [Entry::Dirtier(d)] => assert_eq!(d.pid.get(), 7),
        ref others => panic!("{others:?}"),
    }
}

#[test]
fn causes_have_tables_of_their_own() {
    let fake = Fake::new();
    let mut source = fake.start().unwrap();
    assert!(source.source.provides().has(Provides::CAUSES));
    let mut handle = entry(5, 120);
    let address = std::mem::offset_of!(mostrace_bundle::entry::RawHandle, function);
    handle[address..address + 8].copy_from_slice(&0x1000u64.to_ne_bytes());
    fake.put(
        &[
            handle,
            entry(1, 88),
            entry(6, 48),
            entry(6, 48),
            entry(7, 120),
        ]
        .concat(),
    );
    source.stop().unwrap();
    assert_eq!(source.counts()[0], ("process_entries".to_owned(), 1));
    assert_eq!(source.losses()["entries_unknown"], 0);
    let counts = [
        ("handle_entries", 1),
        ("dirtied_entries", 2),
        ("call_entries", 1),
        ("called_entries", 0),
        ("f2fs_entries", 0),
        ("fork_entries", 0),
    ];
    let kept = source.sink.counts();
    for (name, count) in counts {
        assert_eq!(kept[name], count, "{name}");
    }
    match fake.entries(layout::HANDLE)[..] {
        // The table has a number and no address of the kernel's.
        [Entry::Handle(h)] => assert_eq!(h.function.get(), 0),
        ref others => panic!("{others:?}"),
    }
}

#[test]
fn an_older_recorder_has_no_causes() {
    let fake = Fake::new();
    fs::remove_file(fake.paths.parameters.join("filesystems")).unwrap();
    let mut source = fake.start().unwrap();
    assert!(!source.source.provides().has(Provides::CAUSES));
    fake.put(&entry(6, 48));
    source.stop().unwrap();
    assert_eq!(source.losses()["entries_unknown"], 1);
    assert!(!fake.dir.path().join(layout::HANDLE).exists());
}

#[test]
fn a_larger_ring_is_left_as_it_is() {
    let fake = Fake::new();
    fs::write(fake.paths.parameters.join("ring_kb"), "65536\n").unwrap();
    let _source = fake.start().unwrap();
    assert_eq!(fake.setting("ring_kb"), "65536");
}

#[test]
fn an_older_recorder_counts_less() {
    let fake = Fake::new();
    fs::remove_file(fake.paths.class.join("losses/dirtiers")).unwrap();
    let losses = fake.start().unwrap().losses();
    assert!(!losses.contains_key("dirtiers"), "{losses:?}");
    fs::remove_dir_all(&fake.paths.class).unwrap();
    assert_eq!(fake.start().unwrap().losses().len(), 1);
}

#[test]
fn a_wrong_stream_is_refused_at_once_and_settings_put_back() {
    let fake = Fake::new();
    fs::write(&fake.paths.device, "something else").unwrap();
    let said = failure(fake.start());
    assert!(said.contains("/device: not the stream of"), "{said}");
    fake.assert_put_back();
}

#[test]
fn a_stream_that_goes_wrong_is_an_error() {
    for (bytes, says) in [
        (entry(1, 96), "/device: malformed entry"),
        (vec![0; 32], "/device: entry at byte 40: bad size 0"),
    ] {
        let fake = Fake::new();
        let mut source = fake.start().unwrap();
        fake.put(&bytes);
        let said = failure(source.poll());
        assert!(said.contains(says), "{said}");
        drop(source);
        fake.assert_put_back();
    }
    let fake = Fake::new();
    let mut source = fake.start().unwrap();
    fake.put(&entry(1, 88)[..50]);
    source.poll().unwrap();
    let said = failure(source.stop());
    assert!(said.contains("cut short in the entry at byte 40"), "{said}");
}

/// A pipe has nothing to read for a while, as the device does; a plain file never waits.
#[test]
fn an_empty_device_is_waited_for_by_polls() {
    let fake = Fake::new();
    fs::remove_file(&fake.paths.device).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(&fake.paths.device)
        .status();
    assert!(made.unwrap().success());
    let mut pipe = File::options()
        .read(true)
        .write(true)
        .open(&fake.paths.device)
        .unwrap();
    pipe.write_all(&header(0)[..30]).unwrap();
    let mut source = fake.start().unwrap();
    pipe.write_all(&header(0)[30..]).unwrap();
    source.poll().unwrap();
    pipe.write_all(&entry(1, 88)).unwrap();
    source.stop().unwrap();
    assert_eq!(source.counts()[0], ("process_entries".to_owned(), 1));
}

#[test]
fn without_a_device() {
    let fake = Fake::new();
    fs::remove_file(&fake.paths.device).unwrap();
    let said = failure(fake.start());
    assert!(
        said.contains("though the kernel's recorder is there: mknod it"),
        "{said}"
    );
    fs::remove_dir_all(&fake.paths.class).unwrap();
    let said = failure(fake.start());
    assert!(
        said.contains("the kernel's recorder is not loaded ("),
        "{said}"
    );
    fake.assert_put_back();
}
