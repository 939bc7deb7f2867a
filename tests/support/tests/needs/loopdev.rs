// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the loop device that other tests use.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::Command;

use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, at_once, tests, wait};

pub fn suite() -> Suite {
    at_once(tests![
        mounts_what_was_asked_for_and_leaves_nothing needs [Need::Loop, Need::Tool("sfdisk", "fdisk")],
        a_panic_and_an_open_file_leave_nothing needs [Need::Loop],
        the_scheduler_is_set_and_put_back needs [Need::Loop, Need::Scheduler("mq-deadline")],
        an_earlier_limit_of_requests_is_lifted needs [Need::Loop],
        a_failure_names_the_command_and_leaves_nothing needs [Need::Loop],
    ])
}

fn says(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Returns the images behind all loop devices.
fn images() -> String {
    says(
        "losetup",
        &["--list", "--noheadings", "--output", "BACK-FILE"],
    )
}

/// Returns true if the kernel still has the mount or the image of that folder.
fn is_in_use(folder: &Path) -> bool {
    let folder = folder.to_str().unwrap();
    fs::read_to_string("/proc/mounts").unwrap().contains(folder) || images().contains(folder)
}

fn mounts_what_was_asked_for_and_leaves_nothing() {
    for (partitioned, start) in [(false, 0), (true, 2048 + 8 * 2048)] {
        let options = LoopOptions {
            size_mib: 40,
            mkfs: ["-b", "1024", "-L", "seen"].map(str::to_owned).to_vec(),
            mount_options: "noatime,data=journal".into(),
            scheduler: None,
            partitioned,
        };
        let mut disk = LoopExt4::new(&options).unwrap();
        assert_eq!(disk.start_sector(), start);
        assert_eq!(disk.device() == disk.disk(), !partitioned);
        fs::write(disk.mount_point().join("file"), "text").unwrap();
        let point = disk.mount_point();
        let found = says(
            "findmnt",
            &[
                "-no",
                "SOURCE,FSTYPE,LABEL,OPTIONS",
                point.to_str().unwrap(),
            ],
        );
        let [source, kind, label, mounted] = found.split_whitespace().collect::<Vec<_>>()[..]
        else {
            panic!("{found}");
        };
        assert_eq!(
            [source, kind, label],
            [disk.device().to_str().unwrap(), "ext4", "seen"]
        );
        assert!(
            mounted.contains("noatime") && mounted.contains("data=journal"),
            "{mounted}"
        );
        disk.unmount().unwrap();
        assert!(!point.join("file").exists());
        assert!(
            says("dumpe2fs", &["-h", disk.device().to_str().unwrap()])
                .contains("Block size:               1024")
        );
        disk.mount().unwrap();
        assert_eq!(fs::read_to_string(point.join("file")).unwrap(), "text");
        let folder = point.parent().unwrap().to_owned();
        assert!(is_in_use(&folder));
        drop(disk);
        assert!(!folder.exists());
        // Another program, such as udev, may be looking at the device.
        wait::until("the device is in use", || !is_in_use(&folder));
    }
}

fn a_panic_and_an_open_file_leave_nothing() {
    let (mut folder, mut open) = (None, None);
    let result = catch_unwind(std::panic::AssertUnwindSafe(|| {
        let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
        folder = disk.mount_point().parent().map(Path::to_owned);
        open = fs::File::create(disk.mount_point().join("open")).ok();
        panic!("as a failed test would");
    }));
    assert!(result.is_err() && open.is_some());
    let folder = folder.unwrap();
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains(folder.to_str().unwrap()) && !folder.exists());
    // The device is detached when the last user of the mount closes its file.
    drop(open);
    wait::until("the device is in use", || !is_in_use(&folder));
}

fn the_scheduler_is_set_and_put_back() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let name = disk.disk().file_name().unwrap().to_owned();
    let file = Path::new("/sys/class/block")
        .join(name)
        .join("queue/scheduler");
    let offered = fs::read_to_string(&file).unwrap();
    drop(disk);
    let other = offered
        .split_whitespace()
        .find(|name| !name.starts_with('['))
        .expect("none, or mq-deadline");
    let options = LoopOptions {
        scheduler: Some(other.into()),
        ..LoopOptions::default()
    };
    let disk = LoopExt4::new(&options).unwrap();
    let name = disk.disk().file_name().unwrap().to_owned();
    let file = Path::new("/sys/class/block")
        .join(name)
        .join("queue/scheduler");
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .contains(&format!("[{other}]"))
    );
    drop(disk);
    let after = fs::read_to_string(&file).unwrap_or_default();
    assert!(!after.contains(&format!("[{other}]")), "{after}");
}

fn an_earlier_limit_of_requests_is_lifted() {
    let limit = |disk: &LoopExt4| {
        let name = disk.disk().file_name().unwrap();
        let file = Path::new("/sys/class/block").join(name);
        file.join("queue/max_sectors_kb")
    };
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    fs::write(limit(&disk), "16").unwrap();
    drop(disk);
    // losetup takes the first free device, which is the same unless somebody else was faster.
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let now: u32 = fs::read_to_string(limit(&disk))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(now >= 127, "{now}");
}

fn a_failure_names_the_command_and_leaves_nothing() {
    let before = images();
    let wrong = |options| LoopExt4::new(&options).err().unwrap();
    let mkfs = wrong(LoopOptions {
        mkfs: vec!["-Z".into()],
        ..LoopOptions::default()
    });
    assert!(
        mkfs.starts_with("mke2fs: exit status: 1") && !mkfs.contains('\n'),
        "{mkfs}"
    );
    let mount = wrong(LoopOptions {
        mount_options: "no_such_option".into(),
        ..LoopOptions::default()
    });
    assert!(mount.starts_with("mount: "), "{mount}");
    let scheduler = wrong(LoopOptions {
        scheduler: Some("no-such".into()),
        ..LoopOptions::default()
    });
    assert!(
        scheduler.contains("queue/scheduler: no-such"),
        "{scheduler}"
    );
    let after = images();
    let new: Vec<_> = after
        .lines()
        .filter(|image| image.contains("mostrace-loop") && !before.contains(image))
        .collect();
    // Tests that run at the same time have loop devices of their own, but none for long.
    wait::until("the devices are in use", || {
        new.iter().all(|image| !images().contains(image))
    });
}
