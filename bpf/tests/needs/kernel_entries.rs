// SPDX-License-Identifier: MIT OR Apache-2.0
//! `record` with the kernel's own recorder. Its device and its settings are plain files here; the traced disk and
//! tracefs are real.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mostrace_bundle::{Bundle, Entry, layout};
use mostrace_capture::{Causes, Choice, Entries, Events, KernelPaths, Options, Outcome, record};
use tempfile::TempDir;
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, one_by_one, tests};

const BTF: &str = "/sys/kernel/btf/vmlinux";

pub fn suite() -> Suite {
    one_by_one(tests![
        entries_come_from_the_recorder needs [Need::Loop, Need::Filesystem("tracefs")],
        no_recorder_and_no_btf needs [Need::Loop],
        without_btf needs [Need::Loop, Need::Filesystem("tracefs"), Need::Btf],
    ])
}

/// A recorder that delivers a process, a file and a dirtier entry.
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
        for (name, text) in [("dev", "\n"), ("names", "temp\n"), ("ring_kb", "1024\n")] {
            fs::write(paths.parameters.join(name), text).unwrap();
        }
        fs::create_dir_all(paths.class.join("losses")).unwrap();
        fs::write(paths.class.join("losses/dirtiers"), "5\n").unwrap();
        let mut stream = b"MOSTDEV\n".to_vec();
        for field in [0x1234u16, 1, 40, 32, 88, 72] {
            stream.extend(field.to_ne_bytes());
        }
        stream.resize(40, 0);
        for (kind, size) in [(1u16, 88u16), (2, 72), (4, 72)] {
            let end = stream.len() + usize::from(size);
            stream.extend(kind.to_ne_bytes());
            stream.extend(size.to_ne_bytes());
            stream.resize(end, 0);
        }
        fs::write(&paths.device, stream).unwrap();
        Fake { dir, paths }
    }

    fn record(&self, device: &Path, entries: Entries) -> Result<(Outcome, Bundle), String> {
        let output = self.dir.path().join("t.most");
        let outcome = record(&self.options(device, output.clone(), entries));
        let outcome = outcome.map_err(|e| e.to_string())?;
        Ok((outcome, Bundle::open(&output).unwrap()))
    }

    fn options(&self, device: &Path, output: PathBuf, entries: Entries) -> Options {
        // The script copies the settings while the command runs, to check them afterwards.
        let script = format!(
            "cp -r {} {}",
            self.paths.parameters.display(),
            self.dir.path().join("meanwhile").display()
        );
        Options {
            device: device.to_owned(),
            output,
            source: Choice::Tracefs,
            events: Events::default(),
            entries,
            kernel: self.paths.clone(),
            files: "temp".parse().unwrap(),
            no_snapshot: true,
            argv: ["sh", "-ec", &script].map(Into::into).to_vec(),
            ..Options::default()
        }
    }

    fn settings(&self, folder: &str) -> [String; 3] {
        ["dev", "names", "ring_kb"].map(|name| {
            let path = self.dir.path().join(folder).join(name);
            fs::read_to_string(path).unwrap().trim_end().to_owned()
        })
    }
}

/// This also runs below with BTF hidden, so it must not depend on BTF.
fn entries_come_from_the_recorder() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    // If there is BTF, `auto` prefers the probes.
    let mut choices = vec![Entries::Kernel];
    choices.extend((!Path::new(BTF).exists()).then_some(Entries::Auto));
    for entries in choices {
        let fake = Fake::new();
        let (outcome, bundle) = fake.record(disk.device(), entries).unwrap();
        assert_eq!(outcome.exit_status, 0);
        let manifest = bundle.manifest();
        assert_eq!(manifest.sources.entries, "kernel");
        assert_eq!(
            (
                manifest.losses["dirtiers"],
                manifest.losses["entries_unknown"]
            ),
            (5, 0)
        );
        assert_eq!(manifest.counts["dirtier_entries"], 1);
        let taken: Vec<Entry> = layout::TABLES
            .iter()
            .flat_map(|name| bundle.table(name, false).unwrap().unwrap())
            .map(Result::unwrap)
            .collect();
        assert!(
            matches!(
                taken[..],
                [Entry::Process(_), Entry::File(_), Entry::Dirtier(_)]
            ),
            "{taken:?}"
        );
        let [dev, names, ring_kb] = fake.settings("meanwhile");
        assert_eq!(
            (dev, &*names, &*ring_kb),
            (manifest.device.dev.clone(), "all", "4096")
        );
        assert_eq!(fake.settings("parameters"), ["", "temp", "1024"]);
        let said = manifest
            .passed_over
            .iter()
            .any(|n| n.contains("entries bpf not taken: "));
        assert_eq!(said, entries == Entries::Auto, "{:?}", manifest.passed_over);
    }
}

fn no_recorder_and_no_btf() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let fake = Fake::new();
    fs::remove_file(&fake.paths.device).unwrap();
    fs::remove_dir_all(&fake.paths.class).unwrap();
    let said = fake.record(disk.device(), Entries::Kernel).unwrap_err();
    assert!(
        said.contains("the kernel's recorder is not loaded"),
        "{said}"
    );
    let output = fake.dir.path().join("t.most");
    let mut bare = fake.options(disk.device(), output.clone(), Entries::None);
    for (causes, why) in [
        (Causes::Kernel, "no causes from the kernel's recorder"),
        (Causes::Bpf, "causes are found by way of entries"),
    ] {
        bare.causes = causes;
        let said = record(&bare).unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
    }
    assert!(!output.exists(), "nothing is left behind");
    if !Path::new(BTF).exists() {
        // Plain tracepoints remain.
        let (outcome, _) = fake.record(disk.device(), Entries::Auto).unwrap();
        assert_eq!(outcome.manifest.sources.entries, "tracefs");
        let said = outcome.manifest.passed_over.join("; ");
        let both = ["no BTF", "is not loaded"];
        assert!(both.iter().all(|why| said.contains(why)), "{said}");
    }
}

/// Runs the tests above once more, in a mount namespace in which the kernel's BTF is hidden. If there is none, they
/// have already run without it.
fn without_btf() {
    let script = "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"";
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["kernel_entries::", "--skip", "without_btf"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("2 passed"), "{said}");
}
