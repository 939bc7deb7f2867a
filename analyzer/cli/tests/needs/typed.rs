// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs README.md line by line: each command of its table and of its blocks as it is typed, one after the other, in a folder
//! on a filesystem of the test's own that has the files they name.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, at_once, tests};

const LIVE: [Need; 3] = [Need::Loop, Need::Btf, Need::Tool("python3", "python3")];

/// Commands that run until they are interrupted.
const ENDLESS: &[&str] = &["sudo mostrace top ", "sudo mostrace ledger start "];
/// An exit status other than 0 that README mentions.
const OVER: i32 = 3;

pub fn suite() -> Suite {
    at_once(tests![what_readme_has_is_run_as_it_is_typed needs LIVE])
}

/// Returns the commands, and whether README shows their output.
fn typed(readme: &str) -> Vec<(&str, bool)> {
    let is_command = |line: &&str| line.trim_start_matches("sudo ").starts_with("mostrace ");
    let mut all = Vec::new();
    for (nth, part) in readme.split("```").enumerate() {
        if nth % 2 == 1 {
            let lines = part.lines();
            let commands = lines.filter_map(|line| line.strip_prefix("$ "));
            all.extend(commands.filter(is_command).map(|line| (line, true)));
        } else {
            let cells = part.lines().filter(|line| line.starts_with("| "));
            let spans = cells.flat_map(|line| line.split('`').skip(1).step_by(2));
            all.extend(spans.filter(is_command).map(|span| (span, false)));
        }
    }
    all
}

/// Creates in `folder` the files that the commands name.
fn furnish(folder: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["sample-traces", "lab", "examples"] {
        symlink(root.join(name).canonicalize().unwrap(), folder.join(name)).unwrap();
    }
    let program = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    };
    program("my-test", "#!/bin/sh\necho a >f && sync f\n");
    fs::create_dir(folder.join("bin")).unwrap();
    // Root needs no sudo.
    program("bin/sudo", "#!/bin/sh\nexec \"$@\"\n");
    symlink(env!("CARGO_BIN_EXE_mostrace"), folder.join("bin/mostrace")).unwrap();
}

fn what_readme_has_is_run_as_it_is_typed() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let folder = disk.mount_point().join("app");
    fs::create_dir(&folder).unwrap();
    furnish(&folder);
    let all = typed(&readme);
    assert!(all.len() >= 12, "{all:?}");
    for (line, is_shown) in all {
        let is_endless = ENDLESS.iter().any(|verb| line.starts_with(verb));
        let before = if is_endless {
            "exec timeout --preserve-status -s INT 5 "
        } else {
            ""
        };
        // timeout(1) does not know shell functions, and the first word is in bin.
        let output = Command::new("sh")
            .args(["-c", &format!("{before}{line}")])
            .current_dir(&folder)
            .env(
                "PATH",
                format!("{}/bin:/usr/bin:/bin:/usr/sbin:/sbin", folder.display()),
            )
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        let status = output.status.code();
        let is_over =
            is_shown && out.lines().any(|line| line.starts_with("OVER ")) && status == Some(OVER);
        assert!(
            status == Some(0) || is_over,
            "{line}: {status:?}\n{out}{err}"
        );
    }
    assert!(folder.join("run.html").exists() && folder.join("run.parquet").exists());
}
