// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings that go on without the desktop.

use std::fs;
use std::path::Path;
use std::time::Duration;

use mostrace_bundle::Bundle;
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::wait;

use super::stand::Stand;
use crate::run::mostrace;

fn runs(pid: &str) -> bool {
    let comm = fs::read_to_string(format!("/proc/{pid}/comm"));
    comm.is_ok_and(|comm| comm.trim() == "mostrace")
}

pub fn a_recording_goes_on_without_the_desktop() {
    let stand = Stand::root();
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let mount = disk.mount_point();
    let device = mount.to_str().unwrap();
    let start = ["start", "-d", device, "--", "--segment", "1s", "--memory"];
    let said = stand.say(&start).ended(0);
    said.complains("battery 83 %, on power");
    said.complains("next: mostrace phone status");
    let pid = stand.pid();
    assert!(runs(&pid));
    // Nobody records beside it, and nobody takes it away.
    for verb in [
        &["record"][..],
        &start,
        &["pull"],
        &["pull", "--discard"],
        &["doctor"],
    ] {
        stand.say(verb).ended(1).complains("mostrace phone stop");
    }
    for name in ["a", "b"] {
        fs::write(mount.join(name), vec![7; 1 << 20]).unwrap();
        fs::File::open(mount.join(name))
            .unwrap()
            .sync_all()
            .unwrap();
        std::thread::sleep(Duration::from_millis(1200));
    }
    let status = stand.say(&["status"]).ended(0);
    status.complains(" written, 0 lost; ");
    status.complains("finished segments");
    stand
        .say(&["stop"])
        .ended(0)
        .complains("next: mostrace phone pull");
    assert!(!runs(&pid));
    stand.say(&["stop"]).ended(0).complains("it had ended");
    stand.say(&["status"]).complains("ended; ");
    let pulled = stand.pull("a.most.tar.zst").ended(0);
    pulled.complains("next: mostrace analyze a.most.tar.zst");
    stand.check_empty();
    let first = Bundle::open(&stand.at("a.0001.most.tar.zst")).unwrap();
    let notes = first.manifest().notes.join("\n");
    assert!(notes.contains("at the beginning: battery 83 %"), "{notes}");
    let bundle = stand.at("a.most.tar.zst").display().to_string();
    let files = mostrace(&["analyze", &bundle, "--by", "path", "--format", "csv"]);
    assert!(files.contains("/a,") && files.contains("/b,"), "{files}");
}

pub fn a_recording_ends_at_its_limit() {
    let stand = Stand::root();
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let device = disk.mount_point().to_str().unwrap().to_owned();
    stand.say(&["start", "-d", &device, "-w", "2s"]).ended(0);
    let pid = stand.pid();
    wait::until("the limit", || !runs(&pid));
    stand.say(&["record"]).ended(1).complains("not fetched");
    stand.say(&["pull"]).ended(0);
    stand.check_bundle("phone.most.tar.zst", "phone Pixel 7");
}

pub fn a_process_that_dies_is_told() {
    let stand = Stand::root();
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let device = disk.mount_point().to_str().unwrap().to_owned();
    stand.say(&["start", "-d", &device]).ended(0);
    let pid = stand.pid();
    stand.kill("-KILL");
    wait::until("its end", || !runs(&pid));
    stand
        .say(&["stop"])
        .ended(1)
        .complains("nothing to be fetched");
    stand
        .say(&["pull"])
        .ended(1)
        .complains("the phone has no recording");
    // What was attached ends with its reason too.
    let mut desktop = stand.record(Path::new(&device), "x.most.tar.zst");
    let desktop = std::thread::spawn(move || crate::run::say(&mut desktop));
    wait::until("another process", || {
        stand.pid() != pid && runs(&stand.pid())
    });
    stand.wait_until_it_records();
    stand.kill("-KILL");
    let said = desktop.join().unwrap().ended(1);
    said.complains("nothing was recorded");
    assert!(!said.err.contains("pull"), "{}", said.err);
    assert!(!stand.at("x.most.tar.zst").exists());
    stand.check_empty();
}

pub fn what_cannot_start_leaves_nothing() {
    let stand = Stand::root();
    for start in [&["start"][..], &["start", "--ledger"]] {
        let said = stand.say(&[start, &["-d", "/no/such"]].concat()).ended(1);
        said.complains("not started: /no/such");
        assert!(!said.err.contains("next:"), "{}", said.err);
        stand.check_empty();
    }
    let said = stand.say(&["record", "-d", "/no/such"]).ended(1);
    said.complains("/no/such");
    assert!(!said.err.contains("pull"), "{}", said.err);
    stand.check_empty();
}

pub fn a_ledger_goes_on_without_the_desktop() {
    let stand = Stand::root();
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let mount = disk.mount_point();
    let device = mount.to_str().unwrap();
    stand
        .say(&["start", "--ledger", "-d", device])
        .ended(0)
        .complains("next: mostrace phone status");
    stand.say(&["status"]).ended(0).complains("0 lost; 0 days");
    stand.say(&["pull"]).ended(1).complains("no day yet");
    fs::write(mount.join("a"), vec![7; 1 << 20]).unwrap();
    fs::File::open(mount.join("a")).unwrap().sync_all().unwrap();
    // The cable is out meanwhile.
    fs::write(stand.at("gone"), "").unwrap();
    stand.say(&["status"]).ended(1);
    fs::remove_file(stand.at("gone")).unwrap();
    stand.say(&["stop"]).ended(0).complains("1 days");
    let pulled = stand.say(&["pull"]).ended(0);
    pulled.complains("next: mostrace ledger show phone-ledger");
    stand.check_empty();
    let ledger = stand.at("phone-ledger").display().to_string();
    let rows = mostrace(&["ledger", "show", &ledger, "--by", "class"]);
    assert!(rows.contains("data"), "{rows}");
}
