// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stand-in for adb and the phone: a script that runs here, in a folder of its own, what adb would run there.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use mostrace_bundle::Bundle;
use mostrace_bundle::manifest::State;
use test_support::{tool, wait};

use crate::run::{Said, program, say};

/// Commands that it runs have the folder as `/data/local/tmp`, and below it what else of Android is asked for.
const ADB: &str = r#"#!/bin/sh
phone=$(dirname "$0")
[ ! -e "$phone/gone" ] || { echo "adb: no devices/emulators found" >&2; exit 1; }
verb=$1
shift
there() { printf '%s' "$1" | sed "s,/data/local/tmp,$phone,g; s,/data/system,$phone/system,g"; }
case $verb in
push) cp "$1" "$(there "$2")" ;;
shell | exec-out) PATH=$phone/bin:$PATH exec sh -c "$(there "$1")" ;;
esac
"#;

/// The ways in which phones give root, and what their su is.
pub const MAGISK: &str =
    "case $1 in -v) echo 27.0:MAGISKSU ;; -c) ROOT=1 exec sh -c \"$2\" ;; *) exit 1 ;; esac";
pub const KERNELSU: &str =
    "case $1 in -v) echo '0.9.5 KernelSU' ;; -c) ROOT=1 exec sh -c \"$2\" ;; *) exit 1 ;; esac";
pub const APATCH: &str =
    "case $1 in -v) echo 10763:APatch ;; -c) ROOT=1 exec sh -c \"$2\" ;; *) exit 1 ;; esac";
pub const DEVELOPER: &str = "[ \"$1\" = 0 ] || { echo \"su: invalid uid/gid '$1'\" >&2; exit 1; }; shift; ROOT=1 exec \"$@\"";
pub const DENIED: &str = "echo 'Permission denied' >&2; exit 13";
pub const SILENT: &str = "sleep 600";

pub struct Stand {
    pub dir: tempfile::TempDir,
}

impl Stand {
    /// Makes a phone whose adbd is root.
    pub fn root() -> Stand {
        Stand::new("echo 0", "exit 1")
    }

    /// Makes a phone with this su.
    pub fn with(su: &str) -> Stand {
        Stand::new("[ -z \"$ROOT\" ] && echo 2000 || echo 0", su)
    }

    fn new(id: &str, su: &str) -> Stand {
        let stand = Stand {
            dir: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(stand.at("bin")).unwrap();
        stand.program("adb", ADB);
        stand.program("bin/id", &format!("#!/bin/sh\n{id}\n"));
        stand.program("bin/su", &format!("#!/bin/sh\n{su}\n"));
        stand.program("bin/getprop", "#!/bin/sh\necho Pixel 7\n");
        let battery = "Current Battery Service state:\n  USB powered: true\n  level: 83";
        stand.program("bin/dumpsys", &format!("#!/bin/sh\necho '{battery}'\n"));
        stand
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn program(&self, name: &str, text: &str) {
        fs::write(self.at(name), text).unwrap();
        fs::set_permissions(self.at(name), Permissions::from_mode(0o755)).unwrap();
    }

    pub fn phone(&self, args: &[&str]) -> Command {
        let mut command = program();
        command.arg("phone").arg("--adb").arg(self.at("adb"));
        command.args(["--recorder", env!("CARGO_BIN_EXE_mostrace")]);
        command.args(args).current_dir(self.dir.path());
        command
    }

    pub fn say(&self, args: &[&str]) -> Said {
        say(&mut self.phone(args))
    }

    /// Records; the recorder's own options follow.
    pub fn record(&self, device: &Path, out: &str) -> Command {
        self.phone(&["record", "-d", device.to_str().unwrap(), "-o", out, "--"])
    }

    pub fn pull(&self, out: &str) -> Said {
        self.say(&["pull", "-o", out])
    }

    pub fn on_phone(&self, name: &str) -> PathBuf {
        self.at("mostrace").join(name)
    }

    pub fn pid(&self) -> String {
        let pid = fs::read_to_string(self.on_phone("pid"));
        pid.unwrap_or_default().trim().to_owned()
    }

    /// Waits until the recorder answers signals as one that records.
    pub fn wait_until_it_records(&self) {
        wait::until("the recording begins", || {
            let held = fs::read_dir(format!("/proc/{}/fd", self.pid()));
            let held = held.into_iter().flatten().flatten();
            held.filter_map(|fd| fs::read_link(fd.path()).ok())
                .any(|to| to.to_string_lossy().contains(".most/"))
        });
    }

    /// Checks the bundle, and that nothing of it is left elsewhere.
    pub fn check_bundle(&self, name: &str, label: &str) {
        let bundle = Bundle::open(&self.at(name)).unwrap();
        let manifest = bundle.manifest();
        assert_eq!(manifest.label.as_deref(), Some(label));
        assert_eq!(manifest.state, State::Complete);
        self.check_empty();
    }

    /// Checks that mostrace's folder on the phone is gone, and that no `.part` file is left in the test's folder.
    pub fn check_empty(&self) {
        assert!(
            !self.on_phone("").exists(),
            "everything goes from the phone"
        );
        let here = fs::read_dir(self.dir.path()).unwrap().flatten();
        let parts = here.filter(|entry| entry.path().extension().is_some_and(|e| e == "part"));
        assert_eq!(parts.count(), 0);
    }

    pub fn kill(&self, signal: &str) {
        tool::kill(signal, &self.pid());
    }
}
