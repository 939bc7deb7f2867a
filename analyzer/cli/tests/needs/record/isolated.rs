// SPDX-License-Identifier: MIT OR Apache-2.0
//! Android's isolated processes, whose users are not on the list of apps.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::tool;

use crate::run::{mostrace, record};

/// The shell `sh` writes under a name of its own, as one process of its user, and stays until its entries have been read.
const WRITE: &str = "name() { setpriv --reuid=$1 --clear-groups bash -c \
    'exec -a \"$0\" sh -c \"i=0; while [ \\$i -lt 200 ]; do echo some line; i=\\$((i+1)); done >$1; sleep 2\"' \"$2\" \"$3\"; }
    name 99013 org.example.a:sandboxed_process0:x its &
    name 1099013 org.other:sandboxed_process0:x others &
    name 99014 org.example.a plain & wait";

pub fn an_isolated_process_is_its_apps() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let mount = disk.mount_point();
    fs::set_permissions(&mount, fs::Permissions::from_mode(0o777)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("packages.list");
    fs::write(&list, "org.example.a 10001\n").unwrap();
    for segments in [&[][..], &["--segment", "1s"]] {
        let out = dir.path().join(format!("{}.most", segments.len()));
        let mut command = record(disk.device(), &out);
        command.arg("--packages").arg(&list).args(segments);
        command.args(["--sync", "--", "bash", "-c", WRITE]);
        tool::run(command.current_dir(&mount));
        let by = ["--by", "path,cause_package", "--format", "csv"];
        let rows = mostrace(&[&["analyze", out.to_str().unwrap()], &by[..]].concat());
        let has = |row: &str| rows.lines().any(|line| line.starts_with(row));
        assert!(has("/its,org.example.a,"), "{rows}");
        assert!(has("/others,,") && has("/plain,,"), "{rows}");
    }
}
