// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults after something has been recorded: they are reported, and the recording is still complete.

use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use mostrace_bundle::manifest::State;
use mostrace_bundle::{Bundle, Manifest, layout};
use mostrace_capture::{Causes, Choice, Entries, Error, KernelPaths, Options, Outcome, record};
use tempfile::TempDir;
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, one_by_one, tests};

const NEEDS: [Need; 2] = [Need::Loop, Need::Btf];

pub fn suite() -> Suite {
    one_by_one(tests![
        whatever_the_command_leaves_as_its_payload needs NEEDS,
        a_folder_of_names_that_is_gone needs NEEDS,
        a_filesystem_that_cannot_be_synced needs NEEDS,
        a_source_that_fails needs NEEDS,
        another_image_behind_a_loop_device needs NEEDS,
        a_device_that_is_attached_anew needs NEEDS,
        a_filesystem_that_is_made_anew needs NEEDS,
        an_image_that_loses_its_name needs NEEDS,
        loop_devices_that_come_and_go needs NEEDS,
    ])
}

fn disk() -> LoopExt4 {
    LoopExt4::new(&LoopOptions::default()).unwrap()
}

fn options(device: &Path, output: PathBuf, script: &str) -> Options {
    Options {
        device: device.to_owned(),
        output,
        source: Choice::Bpf,
        entries: Entries::None,
        no_snapshot: false,
        argv: ["sh", "-ec", script].map(Into::into).to_vec(),
        ..Options::default()
    }
}

/// Returns a script whose writes reach the device.
fn write(disk: &LoopExt4) -> String {
    let file = disk.mount_point().join("f");
    let file = file.display();
    format!("dd if=/dev/zero of={file} bs=64k count=4 oflag=direct status=none\n")
}

/// Records a script, which must succeed, with options that `change` alters.
fn recorded(disk: &LoopExt4, script: &str, change: impl FnOnce(&mut Options)) -> Manifest {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(disk.device(), dir.path().join("t.most"), script);
    change(&mut options);
    let Outcome {
        exit_status,
        output,
        ..
    } = record(&options).unwrap();
    assert_eq!(exit_status, 0, "{script}");
    let bundle = Bundle::open(&output).unwrap();
    assert!(bundle.shortfalls().is_empty());
    bundle.manifest().clone()
}

/// Checks that losses, counters and snapshot are there.
fn assert_is_whole(manifest: &Manifest) {
    assert_is_finished(manifest);
    assert!(manifest.snapshot.is_some(), "{:?}", manifest.notes);
}

fn assert_is_finished(manifest: &Manifest) {
    assert_eq!(manifest.state, State::Complete);
    assert!(manifest.losses.contains_key("completions"), "{manifest:?}");
    assert!(manifest.counters.is_some());
    assert!(manifest.counts["events"] > 0);
}

/// Checks that exactly one note contains this text, and returns the note.
fn assert_says(manifest: &Manifest, says: &str) -> String {
    let notes = manifest.notes.iter().filter(|note| note.contains(says));
    let found: Vec<_> = notes.collect();
    assert_eq!(found.len(), 1, "`{says}` in {:?}", manifest.notes);
    assert!(found[0].len() < 400 && !found[0].contains(char::is_control));
    found[0].clone()
}

fn whatever_the_command_leaves_as_its_payload() {
    let disk = disk();
    for (leaves, says) in [
        (
            "printf '{\"transactions\": \"\\033]0;x\\007\"}' >$P",
            "not a payload's JSON",
        ),
        (
            "printf '{\"payload_bytes\": -1}' >$P",
            "not a payload's JSON",
        ),
        ("printf '{' >$P", "not a payload's JSON, line 1, column 1"),
        ("truncate -s 1T $P", "longer than 1048576 bytes"),
        ("mkfifo $P", "is not a regular file"),
        ("mkdir $P", "is not a regular file"),
        ("ln -s /dev/zero $P", "Too many levels of symbolic links"),
        ("ln -s $P $P", "Too many levels of symbolic links"),
    ] {
        let script = format!("P=$MOSTRACE_PAYLOAD\n{}{leaves}", write(&disk));
        let manifest = recorded(&disk, &script, |_| {});
        assert_is_whole(&manifest);
        assert!(assert_says(&manifest, says).starts_with("no payload: "));
        assert_eq!(manifest.payload, None);
    }
    // The payload's folder can be removed by the command too.
    let gone = format!("{}rm -r $(dirname $MOSTRACE_PAYLOAD)", write(&disk));
    let manifest = recorded(&disk, &gone, |_| {});
    assert_is_whole(&manifest);
    assert_eq!(manifest.payload, None);
    // Numbers are taken as they are, however large.
    let most = "{\"workload\": \"x\", \"payload_bytes\": 1, \"file_bytes\": 1, \
                \"transactions\": 18446744073709551615, \"elapsed_ns\": 1, \"settings\": {}}";
    let script = format!("{}printf '%s' '{most}' >$MOSTRACE_PAYLOAD", write(&disk));
    let manifest = recorded(&disk, &script, |_| {});
    assert_is_whole(&manifest);
    assert_eq!(manifest.payload.unwrap().transactions, u64::MAX);
}

fn a_folder_of_names_that_is_gone() {
    let disk = disk();
    let [gone, stays] = ["gone", "stays"].map(|name| disk.mount_point().join(name));
    for folder in [&gone, &stays] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("f"), "").unwrap();
    }
    let script = format!("{}rm -r {}", write(&disk), gone.display());
    let manifest = recorded(&disk, &script, |options| {
        options.names = vec![gone.clone(), stays];
    });
    assert_is_whole(&manifest);
    assert_says(&manifest, &format!("{}: No such file", gone.display()));
    // Both folders were listed before the command, one after it.
    assert_eq!(manifest.counts[&layout::count_of(layout::NAMES)], 3);
}

/// A write that the loop device cannot store fails with EIO.
fn a_filesystem_that_cannot_be_synced() {
    let small = tempfile::tempdir().unwrap();
    let run = |program: &str, args: &[&str]| {
        let done = Command::new(program).args(args).status().unwrap();
        assert!(done.success(), "{program} {args:?}");
    };
    let place = small.path().to_str().unwrap();
    run("mount", &["-t", "tmpfs", "-o", "size=12m", "tmpfs", place]);
    let image = small.path().join("disk.img");
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let (image, mount) = (image.to_str().unwrap(), TempDir::new().unwrap());
    run(
        "mke2fs",
        &["-q", "-F", "-t", "ext4", "-O", "^has_journal", image],
    );
    let point = mount.path().to_str().unwrap();
    run("mount", &["-o", "loop", image, point]);
    let out = tempfile::tempdir().unwrap();
    let script = format!("head -c 20M /dev/zero >{point}/f");
    let outcome = record(&Options {
        sync: true,
        ..options(mount.path(), out.path().join("t.most"), &script)
    });
    // It does not matter here if what was written could not be stored.
    let _ = Command::new("umount").arg(point).status();
    run("umount", &["--lazy", place]);
    let manifest = outcome.unwrap().manifest;
    // There may be no snapshot of a disk that did not store its metadata.
    assert_is_finished(&manifest);
    assert!(assert_says(&manifest, "not synced: ").starts_with("not synced: "));
}

/// A recorder made of plain files, as in `kernel_entries`, whose last entry is malformed.
fn a_source_that_fails() {
    let disk = disk();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let kernel = KernelPaths {
        device: at("device"),
        parameters: at("parameters"),
        class: at("class"),
    };
    fs::create_dir(&kernel.parameters).unwrap();
    for (name, text) in [("dev", "\n"), ("names", "temp\n"), ("ring_kb", "1024\n")] {
        fs::write(kernel.parameters.join(name), text).unwrap();
    }
    fs::create_dir_all(kernel.class.join("losses")).unwrap();
    let mut stream = b"MOSTDEV\n".to_vec();
    for field in [0x1234u16, 1, 40, 32, 88, 72] {
        stream.extend(field.to_ne_bytes());
    }
    stream.resize(40, 0);
    fs::write(&kernel.device, stream).unwrap();
    let rubbish = kernel.device.display().to_string();
    let script = format!(
        "{}head -c 64 /dev/zero >>{rubbish}; exec sleep 600",
        write(&disk)
    );
    let output = at("t.most.tar.zst");
    let error = record(&Options {
        entries: Entries::Kernel,
        causes: Causes::None,
        kernel,
        ..options(disk.device(), output.clone(), &script)
    });
    let error = error.map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::EndedEarly { .. }), "{error}");
    assert!(error.to_string().starts_with(&rubbish), "{error}");
    let says = format!(
        "the recording ends here; what came before is in {}",
        output.display()
    );
    assert!(error.to_string().ends_with(&says), "{error}");
    let bundle = Bundle::open(&output).unwrap();
    assert_is_whole(bundle.manifest());
    assert!(bundle.manifest().counters.as_ref().unwrap().agree());
    assert_says(bundle.manifest(), "the recording ended early: ");
}

/// Makes an image with an ext4.
fn image(path: &Path) {
    fs::File::create(path).unwrap().set_len(64 << 20).unwrap();
    let made = Command::new("mke2fs")
        .args(["-q", "-F", "-t", "ext4"])
        .arg(path)
        .status();
    assert!(made.unwrap().success());
}

/// Records while nothing is mounted, and returns the note that tells what changed about the disk.
fn changed(disk: &LoopExt4, script: &str) -> String {
    let manifest = recorded(disk, script, |options| options.no_wait = false);
    assert_is_whole(&manifest);
    assert_says(&manifest, " changed while it was recorded: ")
}

fn read(disk: &LoopExt4) -> String {
    let device = disk.device().display();
    format!("dd if={device} of=/dev/null bs=64k count=4 iflag=direct status=none\n")
}

/// Uses LOOP_CHANGE_FD on a read-only device.
fn another_image_behind_a_loop_device() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| dir.path().join(name));
    image(&first);
    image(&second);
    let attached = Command::new("losetup")
        .args(["--find", "--show", "--read-only"])
        .arg(&first)
        .output()
        .unwrap();
    let device = String::from_utf8(attached.stdout).unwrap();
    let device = Path::new(device.trim_end());
    let script = format!(
        "dd if={0} of=/dev/null bs=64k count=4 iflag=direct status=none\n\
         perl -e 'open(D, \"<\", \"{0}\") && open(F, \"<\", \"{1}\") && ioctl(D, 0x4c06, fileno(F)) or die $!'",
        device.display(),
        second.display()
    );
    let outcome = record(&options(device, dir.path().join("t.most"), &script));
    let detached = Command::new("losetup").arg("--detach").arg(device).status();
    assert!(detached.unwrap().success());
    let manifest = outcome.unwrap().manifest;
    assert_eq!(manifest.command.as_ref().unwrap().exit_status, Some(0));
    assert_is_whole(&manifest);
    let said = assert_says(&manifest, " changed while it was recorded: ");
    let says = format!(
        "behind it was {}, then {}; its filesystem is another one; the snapshot",
        first.display(),
        second.display()
    );
    assert!(said.contains(&says), "{said}");
}

fn a_device_that_is_attached_anew() {
    let mut disk = disk();
    disk.unmount().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("other");
    fs::copy(disk.image(), &other).unwrap();
    fs::File::options()
        .write(true)
        .open(&other)
        .unwrap()
        .set_len(128 << 20)
        .unwrap();
    let device = disk.device().display();
    let script = format!(
        "{}losetup --detach {device}; losetup {device} {}\n",
        read(&disk),
        other.display()
    );
    let said = changed(&disk, &script);
    let (before, now) = (disk.image(), other.display());
    let says = format!(
        "behind it was {}, then {now}; it had 131072 sectors, then 262144; the snapshot",
        before.display()
    );
    assert!(said.contains(&says), "{said}");
}

fn a_filesystem_that_is_made_anew() {
    let mut disk = disk();
    disk.unmount().unwrap();
    let script = format!(
        "{}mke2fs -q -F -t ext4 {}",
        read(&disk),
        disk.device().display()
    );
    let said = changed(&disk, &script);
    assert!(
        said.contains("recorded: its filesystem is another one; the snapshot"),
        "{said}"
    );
}

/// It is the same image, whatever its name.
fn an_image_that_loses_its_name() {
    let disk = disk();
    let image = disk.image();
    let (image, moved) = (image.display(), format!("{}.moved", disk.image().display()));
    for change in [format!("mv {image} {moved}"), format!("rm {moved}")] {
        let manifest = recorded(&disk, &format!("{}{change}", write(&disk)), |_| {});
        assert_is_whole(&manifest);
        assert_eq!(manifest.notes, [""; 0]);
    }
}

/// One is there for some seconds, another one only when the recording ends.
fn loop_devices_that_come_and_go() {
    let disk = disk();
    let at = disk.mount_point();
    let at = at.display();
    let script = format!(
        "truncate -s 1M {at}/a {at}/b; l=$(losetup -f --show {at}/a); echo $l >{at}/names; sleep 3; losetup -d $l\n\
         l=$(losetup -f --show {at}/b); echo $l >>{at}/names"
    );
    let manifest = recorded(&disk, &script, |_| {});
    let names = fs::read_to_string(disk.mount_point().join("names")).unwrap();
    let names: Vec<_> = names.lines().collect();
    let detached = Command::new("losetup").args(["-d", names[1]]).status();
    assert!(detached.unwrap().success());
    let inode = |name: &str| {
        fs::metadata(disk.mount_point().join(name))
            .unwrap()
            .st_ino()
    };
    let expected = [(names[0], inode("a")), (names[1], inode("b"))];
    let seen = manifest.loops.iter();
    let seen = seen.map(|device| (format!("/dev/{}", device.name), device.inode));
    let seen: Vec<_> = seen.collect();
    assert_eq!(seen, expected.map(|(name, inode)| (name.to_owned(), inode)));
}
