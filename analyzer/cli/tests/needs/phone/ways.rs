// SPDX-License-Identifier: MIT OR Apache-2.0
//! Phones as people have them: the ways to root, apps, and what goes wrong before anything is recorded.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use test_support::loopdev::{LoopExt4, LoopOptions};

use super::stand::{APATCH, DENIED, DEVELOPER, KERNELSU, MAGISK, SILENT, Stand};
use crate::run::{program, say};

pub fn each_way_to_root_is_named() {
    for (stand, name) in [
        (Stand::root(), "root: adb itself (adb root)"),
        (Stand::with(MAGISK), "root: su -c (27.0:MAGISKSU)"),
        (Stand::with(KERNELSU), "root: su -c (0.9.5 KernelSU)"),
        (Stand::with(APATCH), "root: su -c (10763:APatch)"),
        (Stand::with(DEVELOPER), "root: su 0"),
    ] {
        let said = stand.say(&["status"]).ended(0);
        said.complains(name);
        said.complains("nothing is recorded");
        stand.check_empty();
    }
}

pub fn without_root_nothing_is_pushed() {
    let stand = Stand::with(DENIED);
    let said = stand.say(&["doctor"]).ended(1);
    said.complains("the phone gives no root (su -c: Permission denied; su 0: Permission denied)");
    let stand = Stand::with(MAGISK);
    fs::remove_file(stand.at("bin/su")).unwrap();
    stand.say(&["record"]).ended(1).complains("su");
    stand.check_empty();
}

pub fn a_prompt_that_nobody_answers_is_given_up() {
    let stand = Stand::with(SILENT);
    let said = stand.say(&["--prompt", "3s", "status"]).ended(1);
    said.complains("su has not answered yet");
    said.complains("su did not answer within 3 s");
}

pub fn without_adb_there_is_one_line() {
    let stand = Stand::root();
    let mut phone = program();
    let said = say(phone.args(["phone", "--adb", "/no/adb", "status"])).ended(1);
    said.complains("/no/adb: not found");
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    fs::write(stand.at("gone"), "").unwrap();
    let said = stand.say(&["record"]).ended(1);
    said.complains("no devices/emulators found");
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    stand.check_empty();
}

pub fn a_bundle_is_one_file() {
    let stand = Stand::root();
    let said = stand.say(&["record", "-o", "x.most"]).ended(2);
    said.complains("name it x.most.tar.zst");
    stand.say(&["pull", "-o", "x.most"]).ended(2);
    stand.check_empty();
    assert!(!stand.at("x.most").exists());
}

/// A phone with two apps, and `am` that keeps what it is asked.
fn with_apps() -> Stand {
    let stand = Stand::root();
    fs::create_dir(stand.at("system")).unwrap();
    let list = "org.example.chat 10123 0 /data/user/0/org.example.chat default\norg.example.mail 10124 0 x y\n";
    fs::write(stand.at("system/packages.list"), list).unwrap();
    let asked = stand.at("asked");
    let am = format!("#!/bin/sh\necho \"$*\" >>{}\n", asked.display());
    stand.program("bin/am", &am);
    stand
}

pub fn an_app_that_does_not_exist_is_refused() {
    let stand = with_apps();
    for verb in ["record", "start"] {
        let said = stand.say(&[verb, "--app", "chat"]).ended(1);
        said.complains("chat: no app of this phone; the nearest: org.example.chat");
        stand.check_empty();
    }
    stand
        .say(&["record", "--app", "zzz"])
        .ended(1)
        .complains("zzz: no app of this phone (`adb shell pm");
}

/// A phone with two apps. The folder of one is looked for in `/data/data`, which is a loop device's mount here.
fn with_an_apps_folder() -> (Stand, LoopExt4) {
    let stand = with_apps();
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let mount = disk.mount_point();
    let adb = fs::read_to_string(stand.at("adb")).unwrap();
    let there = format!(
        "s,/data/data/org.example.chat,{},g; s,/data/local",
        mount.display()
    );
    fs::write(stand.at("adb"), adb.replacen("s,/data/local", &there, 1)).unwrap();
    (stand, disk)
}

/// What others wrote meanwhile is one line.
pub fn an_apps_part_is_told_apart() {
    let (stand, disk) = with_an_apps_folder();
    let folder = disk.mount_point().join("files");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let write = "dd if=/dev/zero bs=1M conv=fsync status=none";
    let script = format!(
        "cd {}; {write} count=3 of=others; setpriv --reuid=10123 --clear-groups {write} count=1 of=its",
        folder.display()
    );
    let record = ["record", "--app", "org.example.chat", "--", "--"];
    let said = stand.say(&[&record[..], &["sh", "-c", &script]].concat());
    let said = said.ended(0);
    said.prints("What org.example.chat caused:");
    said.prints("/files/its");
    assert!(!said.out.contains("/files/others"), "{}", said.out);
    let line = said.out.lines().find(|line| line.starts_with("others "));
    let line = line.unwrap_or_else(|| panic!("{}", said.out));
    // Metadata may be anybody's.
    assert!(
        line.contains("others wrote 3.") && line.contains(" % of all 4."),
        "{line}"
    );
    said.prints("--where 'cause_uid = 10123'");
    stand.check_empty();
}

pub fn an_app_starts_cold_when_the_recording_has_begun() {
    let (stand, _disk) = with_an_apps_folder();
    let said = stand
        .say(&["record", "--app", "org.example.chat", "--cold", "-w", "3"])
        .ended(0);
    said.complains("org.example.chat started");
    said.prints("--where 'cause_uid = 10123'");
    let asked = fs::read_to_string(stand.at("asked")).unwrap();
    let asked: Vec<_> = asked.lines().collect();
    assert_eq!(asked[0], "force-stop org.example.chat");
    assert!(asked[1].starts_with("start -a ") && asked[1].ends_with(" org.example.chat"));
    stand.check_bundle("phone.most.tar.zst", "phone Pixel 7");
}

/// The pages' own words are those of the program.
pub fn the_pages_commands_are_understood() {
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/PHONE.md")).unwrap();
    let lines = page
        .lines()
        .filter(|line| line.starts_with("mostrace phone "));
    let lines: Vec<_> = lines.map(|line| line.split('#').next().unwrap()).collect();
    assert!(lines.len() >= 6, "{lines:?}");
    let stand = Stand::root();
    fs::write(stand.at("gone"), "").unwrap();
    for line in lines {
        let mut words = vec![
            "phone".to_owned(),
            "--adb".into(),
            stand.at("adb").display().to_string(),
        ];
        words.extend(line.split_whitespace().skip(2).map(str::to_owned));
        let mut command = Command::new(env!("CARGO_BIN_EXE_mostrace"));
        // Understood, and then there is no phone.
        say(command.args(&words).current_dir(stand.dir.path())).ended(1);
    }
}
