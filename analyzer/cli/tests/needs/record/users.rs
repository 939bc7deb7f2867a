// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorders and commands of several users, and what one gets of another.

use super::*;

pub fn suite() -> Suite {
    one_by_one(tests![
        links_are_not_followed needs [Need::Loop, Need::Btf],
        a_bundle_is_its_owners_alone needs [Need::Loop, Need::Btf],
        tools_are_the_systems_own needs [Need::Loop, Need::Btf],
        a_command_of_another_user needs [Need::Loop, Need::Btf],
        of_the_recorders_another_user_gets_little needs [Need::Loop, Need::Btf],
        another_user_has_not_the_recorders_terminal needs [Need::Loop, Need::Btf, SCRIPT, PERL],
        an_interrupt_reaches_another_users_command needs [Need::Loop, Need::Btf, PERL],
        who_called_sudo_is_told_by_numbers needs [Need::Loop, Need::Btf],
        without_root needs [Need::Loop],
    ])
}

/// If somebody else has planted a link, nothing is written to its target.
fn links_are_not_followed() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("file"), "precious").unwrap();
    for target in ["folder", "file", "nothing"] {
        for (name, link) in [
            ("a.most", "a.most"),
            ("b.most.tar.zst", "b.most.tar.zst"),
            ("c.most.tar.zst", "c.most"),
        ] {
            symlink(at(target), at(link)).unwrap();
            assert_complains(
                record(disk.device(), at(name)).args(["--", "true"]),
                "exists already",
            );
            fs::remove_file(at(link)).unwrap();
        }
    }
    // The archive's name is still free while recording.
    let archive = at("d.most.tar.zst");
    let script = format!("ln -s {} {}", at("nothing").display(), archive.display());
    assert_complains(
        record(disk.device(), &archive).args(["-q", "--no-snapshot", "--", "sh", "-c", &script]),
        "d.most.tar.zst: File exists",
    );
    assert!(
        at("d.most/manifest.json").exists(),
        "what was recorded stays"
    );
    assert!(!at("nothing").exists());
    assert_eq!(fs::read_to_string(at("file")).unwrap(), "precious");
    assert_eq!(fs::read_dir(at("folder")).unwrap().count(), 0);
}

fn a_bundle_is_its_owners_alone() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let of = |path: &Path| {
        let meta = fs::symlink_metadata(path).unwrap();
        (meta.mode() & 0o7777, meta.uid(), meta.gid())
    };
    let own = of(dir.path());
    for (sudo, uid, gid) in [(false, own.1, own.2), (true, NOBODY, 65533)] {
        for name in ["a.most", "a.most.tar.zst"] {
            let out = dir.path().join(name);
            let mut command = record(disk.device(), &out);
            command.env_remove("SUDO_UID").env_remove("SUDO_GID");
            if sudo {
                command.env("SUDO_UID", uid.to_string());
                command.env("SUDO_GID", gid.to_string());
            }
            let script = dd(&disk.mount_point().join("f"));
            succeeds(command.args(["--", "sh", "-c", &script]));
            if out.is_file() {
                assert_eq!(of(&out), (0o600, uid, gid));
                fs::remove_file(out).unwrap();
                continue;
            }
            assert_eq!(of(&out), (0o700, uid, gid));
            let files: Vec<_> = fs::read_dir(&out)
                .unwrap()
                .map(|e| e.unwrap().path())
                .collect();
            assert!(files.len() >= 6, "{files:?}");
            for file in files {
                assert_eq!(of(&file), (0o600, uid, gid), "{}", file.display());
            }
            fs::remove_dir_all(out).unwrap();
        }
    }
}

/// The caller's PATH is used only for the command.
fn tools_are_the_systems_own() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let marker = dir.path().join("was-run");
    let hostile = dir.path().join("bin");
    fs::create_dir(&hostile).unwrap();
    for tool in [
        "sh", "blktrace", "e2image", "dumpe2fs", "debugfs", "mount", "modprobe", "sleep",
    ] {
        let path = hostile.join(tool);
        fs::write(
            &path,
            format!("#!/bin/sh\necho {tool} >>{}\n", marker.display()),
        )
        .unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
    let out = dir.path().join("t.most");
    succeeds(
        record(disk.device(), &out)
            .env("PATH", &hostile)
            .args(["--", "/bin/true"]),
    );
    succeeds(program().arg("analyze").arg(&out).env("PATH", &hostile));
    assert!(!marker.exists(), "{}", fs::read_to_string(marker).unwrap());
    assert!(manifest(&out).snapshot.is_some());
}

fn a_command_of_another_user() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = open_folder();
    let said = dir.path().join("said");
    let payload = r#"{"workload": "w", "payload_bytes": 7, "file_bytes": 8, "transactions": 1,
        "elapsed_ns": 2, "settings": {}}"#;
    let script = format!(
        "echo $(id -u) $(id -g) $(id -G) $USER $HOME >{}; echo '{payload}' >$MOSTRACE_PAYLOAD",
        said.display()
    );
    let out = dir.path().join("t.most");
    succeeds(record(disk.device(), &out).args(["-u", "nobody", "--", "sh", "-ec", &script]));
    let id = |option: &str| {
        let id = tool::text(tool::command("id").args([option, "nobody"]));
        id.trim().to_owned()
    };
    let expected = [id("-u"), id("-g"), id("-G"), "nobody".into()].join(" ");
    let said = fs::read_to_string(said).unwrap();
    assert!(
        said.starts_with(&expected) && !said.contains("/root"),
        "{said}, not {expected}"
    );
    assert_eq!(manifest(&out).payload.unwrap().payload_bytes, 7);
}

/// Makes a folder that everybody may write to.
fn open_folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
    dir
}

/// The command gets the environment that sudo keeps, and only the three standard files.
fn of_the_recorders_another_user_gets_little() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = open_folder();
    let secret = dir.path().join("secret");
    fs::write(&secret, "precious").unwrap();
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    let said = dir.path().join("said");
    let script = format!("env >{0}; cat <&9 >>{0} 2>&1 || :", said.display());
    let path = std::env::var("PATH").unwrap() + ":/of/the/caller";
    let recorded = |name: &str, user: &str| {
        let mut held = Command::new("sh");
        held.args(["-c", "exec \"$@\" 9<\"$0\""]).arg(&secret);
        held.args([env!("CARGO_BIN_EXE_mostrace"), "record", "-q", "-d"]);
        held.arg(disk.device()).arg("-o").arg(dir.path().join(name));
        held.args(["-u", user, "--", "sh", "-c", &script])
            .env("OF_ROOT", "precious")
            .env("LC_TIME", "C")
            .env("TERM", "vt100")
            .env("PATH", &path);
        succeeds(&mut held);
        let text = fs::read_to_string(&said).unwrap();
        fs::remove_file(&said).unwrap();
        text
    };
    let text = recorded("theirs.most", "nobody");
    assert!(!text.contains("precious"), "{text}");
    let kept = [
        "LC_TIME=C",
        "TERM=vt100",
        "USER=nobody",
        "SHELL=",
        "MOSTRACE_PAYLOAD=",
    ];
    for line in kept
        .map(str::to_owned)
        .into_iter()
        .chain([format!("PATH={path}")])
    {
        assert!(text.contains(&line), "{line}: {text}");
    }
    // Root's own command runs as nobody else.
    let text = recorded("own.most", "root");
    assert_eq!(text.matches("precious").count(), 2, "{text}");
}

/// Sets `dev.tty.legacy_tiocsti` while it lives, if the kernel has it.
struct Typing(Option<String>);

const TYPING: &str = "/proc/sys/dev/tty/legacy_tiocsti";

impl Typing {
    fn on() -> Typing {
        let before = fs::read_to_string(TYPING).ok();
        if before.is_some() {
            // A kernel that does not allow it has TIOCSTI disabled anyway.
            let _ = fs::write(TYPING, "1");
        }
        Typing(before)
    }
}

impl Drop for Typing {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = fs::write(TYPING, before);
        }
    }
}

/// Whatever it types into the terminal would be run by the shell there.
fn another_user_has_not_the_recorders_terminal() {
    const TIOCSTI: &str = "$| = 1; my $c = 'x'; \
        print open(my $t, '<', '/dev/tty') ? \"has a terminal\\n\" : \"has no terminal\\n\"; \
        print ioctl(STDIN, 0x5412, $c) ? \"typed\\n\" : \"typed nothing\\n\"; \
        print 'read ', scalar <STDIN>;";
    let _typing = Typing::on();
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = open_folder();
    let program = dir.path().join("type.pl");
    fs::write(&program, TIOCSTI).unwrap();
    let said = |name: &str, user: &str| {
        let line = format!(
            "{} record -q -d {} -o {} --no-snapshot -u {user} -- perl {}",
            env!("CARGO_BIN_EXE_mostrace"),
            disk.device().display(),
            dir.path().join(name).display(),
            program.display(),
        );
        let mut script = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The input is held open, because its end would act as Ctrl-D.
        let mut keys = script.stdin.take().unwrap();
        keys.write_all(b"word\n").unwrap();
        let mut text = String::new();
        script
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert!(script.wait().unwrap().success(), "{text}");
        text
    };
    let theirs = said("theirs.most", "nobody");
    for line in ["has no terminal", "typed nothing", "read word"] {
        assert!(theirs.contains(line), "{line}: {theirs}");
    }
    let own = said("own.most", "root");
    assert!(own.contains("has a terminal"), "{own}");
}

/// It has no terminal that could send it Ctrl-C, so the recorder passes the signal on.
fn an_interrupt_reaches_another_users_command() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = open_folder();
    let (begun, out) = (dir.path().join("begun"), dir.path().join("t.most"));
    // SIGTERM follows at once. While perl exits, its own handlers no longer hold.
    let program = "alarm 600; $SIG{TERM} = 'IGNORE'; $SIG{INT} = sub { $i = 1 }; \
        open(my $f, '>', $ARGV[0]); close $f; sleep 1 until $i; exit 7";
    let mut recorder = record(disk.device(), &out)
        .args([
            "-q",
            "--no-snapshot",
            "-u",
            "nobody",
            "--",
            "perl",
            "-e",
            program,
        ])
        .arg(&begun)
        .spawn()
        .unwrap();
    while_running(&mut recorder, "no command", || begun.exists());
    tool::kill("-INT", &recorder.id().to_string());
    assert_eq!(recorder.wait().unwrap().code(), Some(7));
    assert_eq!(manifest(&out).command.unwrap().exit_status, Some(7));
}

/// Nobody is mistaken for root: unknown user numbers are kept, and anything that is not a number is refused.
fn who_called_sudo_is_told_by_numbers() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("t.most");
    let record = |uid: Option<&str>, gid: Option<&str>| {
        let mut command = record(disk.device(), &out);
        command.env_remove("SUDO_UID").env_remove("SUDO_GID");
        let set = [("SUDO_UID", uid), ("SUDO_GID", gid)];
        command.envs(
            set.into_iter()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command.args(["-q", "--no-snapshot", "--", "true"]);
        command
    };
    for (uid, gid, says) in [
        (Some("me"), Some("0"), "SUDO_UID is `me`, and no number: "),
        (Some("0"), Some(""), "SUDO_GID is ``, and no number: "),
        (Some("-1"), Some("0"), "SUDO_UID is `-1`, and no number: "),
        (
            Some("4294967295"),
            Some("0"),
            "SUDO_UID is `4294967295`, and no number: ",
        ),
        (
            Some("1000"),
            None,
            "SUDO_GID is not set, but the other is: ",
        ),
        (
            None,
            Some("1000"),
            "SUDO_UID is not set, but the other is: ",
        ),
    ] {
        assert_complains(&mut record(uid, gid), says);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{says}");
    }
    succeeds(&mut record(Some("99999"), Some("99998")));
    let meta = fs::metadata(&out).unwrap();
    assert_eq!((meta.uid(), meta.gid()), (99_999, 99_998));
}

fn without_root() {
    // The test binary's folder may be closed to others; a copy's is not.
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let copy = dir.path().join("mostrace");
    fs::copy(env!("CARGO_BIN_EXE_mostrace"), &copy).unwrap();
    tool::run(tool::command("chmod").args(["-R", "a+rx"]).arg(dir.path()));
    assert_complains(
        Command::new(&copy)
            .uid(65534)
            .args(["record", "-d", "/dev/loop0", "-o", "/tmp/x.most"]),
        "recording needs root",
    );
}
