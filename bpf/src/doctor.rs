// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks what can be captured on this machine, what is missing, and what that costs.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::{At, Error};
use crate::machine::device::{self, Device};
use crate::machine::filesystem;
use crate::machine::kallsyms;
use crate::machine::kernel::{self, Symbols};
use crate::machine::mounts::Mount;
use crate::machine::queue;
use crate::machine::tool;
use crate::record::{self, Options};
use crate::source::bpf::{self, Known, Told, process1};
use crate::source::recorder::{self, KernelPaths};
use crate::source::tracefs::{BLOCK_EVENTS, check};

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The subject of the check.
    pub what: &'static str,
    /// True if the result is the desired one; None if only root can tell.
    pub ok: Option<bool>,
    /// The state that was found.
    pub found: String,
    /// The loss that follows from it; empty unless the result is another than the desired one.
    pub cost: &'static str,
}

/// What is said of a check that needs root.
const ONLY_ROOT: &str = "only root can tell";

impl Check {
    /// Makes a check that needs root.
    fn of_root(
        what: &'static str,
        find: impl FnOnce() -> Result<String, String>,
        cost: &'static str,
    ) -> Check {
        match is_root() {
            true => Check::new(what, find(), cost),
            false => Check {
                what,
                ok: None,
                found: ONLY_ROOT.into(),
                cost: "",
            },
        }
    }

    fn new(what: &'static str, found: Result<String, String>, cost: &'static str) -> Check {
        match found {
            Ok(found) => Check {
                what,
                ok: Some(true),
                found,
                cost: "",
            },
            Err(found) => Check {
                what,
                ok: Some(false),
                found,
                cost,
            },
        }
    }
}

/// Makes all checks; those that concern a device are made only if one is given.
pub fn examine(device: Option<&Path>) -> Vec<Check> {
    let told = if is_root() {
        Told::read()
    } else {
        Told::default()
    };
    let mut checks = vec![
        Check::new("root", root(), "record needs it; analyze does not"),
        Check::new("kernel", Ok(kernel::describe().release), ""),
        Check::new(
            "BTF",
            btf(),
            "no BPF probes: entries from the kernel's recorder, or from plain tracepoints, which know files alone whose filesystem tells",
        ),
        Check::of_root(
            "kallsyms",
            kallsyms,
            "the kernel's functions have no names, in stacks and where handles began",
        ),
        Check::of_root(
            "functions",
            functions,
            "our probes see no file and no dirtier, but for copies in a journal: the kernel's recorder, then plain tracepoints go first",
        ),
        Check::of_root(
            "source bpf",
            probes_see_all,
            "plain tracepoints are taken, which cost more",
        ),
        Check::of_root(
            "tracefs",
            tracepoints,
            "no plain tracepoints, neither as a source of events nor as one of entries",
        ),
        Check::of_root(
            "source blktrace",
            blktrace,
            "record --source blktrace is refused",
        ),
        Check::new(
            "causes",
            causes(),
            "whose a journal's copies and metadata are is not known",
        ),
        Check::of_root(
            "each modification",
            || modifications(told),
            "in ext4's journal a cause is `first` where it could be `exact` or `shared`",
        ),
        Check::of_root("stacks", stacks, "record --stacks is refused"),
        Check::of_root("direct IO", || Ok(direct_files(told)), ""),
        Check::of_root("dirtiers", || Ok(dirtiers(told)), ""),
        Check::new(
            "recorded calls",
            recorded_calls(),
            "while causes are recorded, every system call of the machine takes some 0.1 µs longer",
        ),
        Check::of_root(
            "kernel's recorder",
            recorder,
            "without BPF entries from plain tracepoints alone: no journal's homes, no dirtiers, of ext4 no live names",
        ),
        Check::new("traced now", Ok(traced_now()), ""),
        Check::new(
            "disks",
            disks(),
            "traced are their bios, which have no D events; of dm-linear and dm-crypt, the disk below",
        ),
        tool("debugfs", "nothing is held against the map of ext4"),
    ];
    if let Some(path) = device {
        checks.extend(examine_device(path));
    }
    checks
}

/// The check of the device itself.
const DEVICE: &str = "device";

fn examine_device(path: &Path) -> Vec<Check> {
    let refused = |why: Error| {
        let cost = "it cannot be traced";
        vec![Check::new(DEVICE, Err(why.to_string()), cost)]
    };
    let device = match Device::open(path) {
        Ok(device) => device,
        Err(why) => return refused(why),
    };
    if is_root()
        && let Err(why) = File::open(device.node()).at(device.node())
    {
        return refused(why);
    }
    let info = &device.info;
    let found = format!(
        "{} on {}, scheduler {}",
        info.name, info.disk, info.scheduler
    );
    let filesystem = match filesystem::find(&device) {
        Ok(Some(f)) => Ok(format!(
            "{} {}",
            f.kind,
            f.mount_point.unwrap_or(match f.mount_options {
                Some(_) => "(mounted, but other mounts cover it)".into(),
                None => "(not mounted)".into(),
            })
        )),
        Ok(None) => Err("none recognised".into()),
        Err(e) => Err(e.to_string()),
    };
    // Nothing is said of how to end another's trace.
    let queue = || match queue::check_free(&device) {
        Ok(()) => Ok("free".into()),
        Err(Error::Busy { what, .. }) => Err(what),
        Err(why) => Err(why.to_string()),
    };
    vec![
        Check::new(DEVICE, Ok(found), ""),
        requests(&device),
        Check::of_root(
            "filesystem",
            || filesystem,
            "record has the block IO alone, without files",
        ),
        Check::of_root(
            "queue",
            queue,
            "blktrace cannot trace it; bpf and tracefs can",
        ),
        Check::of_root("record -d", || would(path), "record says this and ends"),
    ]
}

/// Returns what `record -d PATH` would trace, and the notes that it would make.
fn would(path: &Path) -> Result<String, String> {
    let options = Options {
        device: path.to_owned(),
        ..Options::default()
    };
    match record::planned(&options) {
        Ok(all) => Ok(all.join("; ")),
        Err(why) => Err(why.to_string()),
    }
}

fn requests(device: &Device) -> Check {
    let below = device.below();
    if device.has_requests() {
        let found = match device.paths.len() {
            0 => "its own".into(),
            1 => "of its path (NVMe multipath); only source bpf follows them".into(),
            n => format!("of its {n} paths (NVMe multipath); only source bpf follows them"),
        };
        Check::new("requests", Ok(found), "")
    } else if below.is_empty() {
        let found = "none: its driver takes bios as they are".into();
        let cost = "its bios have no D events, and no counters of the kernel's to be held against";
        Check::new("requests", Err(found), cost)
    } else {
        let found = format!("made by {}", below.join(", "));
        let cost = "traced are its bios; of dm-linear and dm-crypt, the disk below";
        Check::new("requests", Err(found), cost)
    }
}

/// Returns the disks that are being traced, and by whom.
fn traced_now() -> String {
    match queue::traced() {
        traced if traced.is_empty() => "no disk".into(),
        traced => traced.join("; "),
    }
}

/// Returns the disks without requests, among those that have a medium.
fn disks() -> Result<String, String> {
    let disks = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut without: Vec<_> = disks
        .map(|disk| disk.path())
        .filter(|disk| !device::makes_requests(disk))
        .filter(|disk| fs::read_to_string(disk.join("size")).is_ok_and(|size| size.trim() != "0"))
        .filter_map(|disk| Some(disk.file_name()?.to_string_lossy().into_owned()))
        .collect();
    without.sort();
    match without.is_empty() {
        true => Ok("all have requests".into()),
        false => Err(format!("no requests: {}", without.join(", "))),
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn root() -> Result<String, String> {
    match is_root() {
        true => Ok("yes".into()),
        false => Err("no".into()),
    }
}

fn btf() -> Result<String, String> {
    kernel::btf()
        .map(|_| kernel::VMLINUX_BTF.into())
        .map_err(|e| e.to_string())
}

/// Checks for what `source/bpf/cause_probes.rs` needs in order to load its probes. Without it, the kernel's recorder may still
/// record causes.
fn causes() -> Result<String, String> {
    let btf = kernel::btf().map_err(|e| e.to_string());
    let refused = match btf.map(|btf| kernel::has_bpf_loop(&btf) || has_kprobes()) {
        Ok(true) => return Ok("our own probes: a journal's handles, system calls".into()),
        Ok(false) => "the kernel has neither bpf_loop (5.17) nor kprobes".to_owned(),
        Err(why) => why,
    };
    match recorder::has_causes(&KernelPaths::default()) {
        true => Ok(format!("with --entries kernel, its recorder; {refused}")),
        false => Err(refused),
    }
}

/// Returns what `record --stacks` records here.
fn stacks() -> Result<String, String> {
    let btf = kernel::btf().map_err(|e| e.to_string())?;
    match (kernel::has_bpf_loop(&btf), kallsyms::are_hidden()) {
        (false, _) => Err("the kernel has no bpf_loop (5.17)".into()),
        (true, false) => Ok("of programs that have frame pointers, and of the kernel".into()),
        (true, true) => {
            Ok("of programs that have frame pointers; the kernel's functions are hidden".into())
        }
    }
}

/// Returns true if a program can be attached to a function by a kprobe.
fn has_kprobes() -> bool {
    Path::new("/sys/bus/event_source/devices/kprobe").exists()
}

/// Returns how every modification of a journalled block is seen: through a tracepoint, or through a program at
/// `jbd2_journal_dirty_metadata`.
fn modifications(told: Told) -> Result<String, String> {
    if told.modifications {
        Ok("of journalled blocks, by the tracepoint jbd2_dirty_metadata".into())
    } else if crate::source::bpf::has_fentry() {
        Ok("of journalled blocks, by fentry".into())
    } else if has_kprobes() {
        Ok("of journalled blocks, by a kprobe".into())
    } else {
        Err("the kernel accepts neither fentry nor kprobes".into())
    }
}

/// Returns how the file of a bio of iomap's direct IO is found.
fn direct_files(told: Told) -> String {
    match told.direct {
        true => "of iomap, by the tracepoint iomap_dio_submit_bio".into(),
        false => "of iomap, from its private structs".into(),
    }
}

/// Returns how the dirtier of a page that is dirtied while it is being written is found.
fn dirtiers(told: Told) -> String {
    match told.writing {
        true => "before and after a write begins, by the tracepoint writeback_start_folio".into(),
        false => {
            "not of a page that two tasks dirty around the moment at which its write begins".into()
        }
    }
}

/// Returns how calls on ext4 and f2fs are traced: with fprobes, only the functions of calls that are recorded have probes.
fn recorded_calls() -> Result<String, String> {
    if Symbols::read().has("register_fprobe_ips") {
        Ok("of ext4 and f2fs, by the functions that carry them out".into())
    } else {
        Err("the kernel has no fprobes (5.18), or was built without".into())
    }
}

/// The number of times that process 1 is waited for, which takes some seconds: on some machines, process 1 rarely runs and does not
/// wake for orphans.
const TRIES: usize = 400;

/// Checks that the probes can be loaded and see every completion.
fn probes_see_all() -> Result<String, String> {
    btf()?;
    let seen = process1::check_runs_always(None, TRIES).map_err(|e| e.to_string());
    seen.map(|()| "our own probes, which run at all times".into())
}

fn kallsyms() -> Result<String, String> {
    let restricted = kallsyms::restriction();
    match (kallsyms::are_hidden(), restricted.as_str()) {
        (true, value) => Err(format!("no addresses (kernel.kptr_restrict is {value})")),
        (false, "0" | "1") => Ok("readable".into()),
        (false, value) => Ok(format!(
            "readable: kernel.kptr_restrict, which is {value}, is lowered for a moment"
        )),
    }
}

/// Returns how the probes recognise the functions that end a bio.
fn functions() -> Result<String, String> {
    match bpf::are_known() {
        Known::Shown => Ok("known from kallsyms".into()),
        Known::Typed => Ok("known by the kernel's types".into()),
        Known::Not => Err("not known".into()),
    }
}

fn recorder() -> Result<String, String> {
    recorder::describe(&KernelPaths::default()).map_err(|e| e.to_string())
}

fn blktrace() -> Result<String, String> {
    tool::find("blktrace").map_err(|e| e.to_string())?;
    if let Some(mode) = kernel::lockdown().filter(|mode| mode != "none") {
        return Err(format!(
            "kernel lockdown is {mode}: debugfs gives no relay files"
        ));
    }
    let mount = Mount::debugfs().map_err(|e| e.to_string())?;
    let found = relay_files(mount.path());
    mount.undo();
    found
}

fn relay_files(debugfs: &Path) -> Result<String, String> {
    let entries = fs::read_dir(debugfs).map_err(|e| format!("{}: {e}", debugfs.display()))?;
    // Lockdown leaves only files of mode 0444 readable, so try one of another mode.
    let mut files = entries.flatten().map(|e| e.path()).filter(|p| {
        p.metadata()
            .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o777 == 0o644)
    });
    match files.next().map(|p| (File::open(&p), p)) {
        None => Err(format!("{}: debugfs is empty", debugfs.display())),
        Some((Err(e), path)) if e.kind() == ErrorKind::PermissionDenied => {
            Err(format!("{}: {e} (kernel lockdown)", path.display()))
        }
        Some(_) => Ok("installed, debugfs readable".into()),
    }
}

/// Checks for plain tracepoints, in an instance made for this.
fn tracepoints() -> Result<String, String> {
    let found = check(&BLOCK_EVENTS);
    found
        .map(|()| "plain tracepoints, in an instance of our own".into())
        .map_err(|e| e.to_string())
}

fn tool(name: &'static str, cost: &'static str) -> Check {
    let found = tool::find(name).map(|_| "installed".into());
    Check::new(name, found.map_err(|e| e.to_string()), cost)
}

/// Returns the sources of events and of entries that `auto` would choose, judged by the checks.
pub fn choice(checks: &[Check]) -> (&'static str, &'static str) {
    let ok = |what: &str| checks.iter().any(|c| c.what == what && c.ok == Some(true));
    let entries = match () {
        () if ok("BTF") && ok("functions") => "bpf",
        () if ok("kernel's recorder") => "kernel",
        () if ok("tracefs") => "tracefs",
        () if ok("BTF") => "bpf",
        () => "none",
    };
    let events = match () {
        () if ok("source bpf") && entries == "bpf" => "bpf",
        () if ok("tracefs") => "tracefs",
        () if ok("BTF") => "bpf",
        () if ok("source blktrace") => "blktrace",
        () => "none",
    };
    (events, entries)
}

/// Returns in one sentence what can be recorded here.
pub fn verdict(checks: &[Check]) -> String {
    let find = |what: &str| checks.iter().find(|check| check.what == what);
    let is_ok = |what: &str| find(what).is_none_or(|check| check.ok == Some(true));
    if !is_ok("root") {
        return "Only root can record, and only root can tell what: sudo mostrace doctor. A recording is read by any user.".into();
    }
    let refused = ["device", "record -d"].into_iter().filter_map(find);
    let mut refused = refused.filter(|check| check.ok != Some(true));
    if let Some(check) = refused.next() {
        return format!("This device cannot be recorded: {}.", check.found);
    }
    let missing = checks
        .iter()
        .filter(|check| check.ok == Some(false))
        .count();
    let missing = match missing {
        0 => "nothing is missing".to_owned(),
        1 => "1 thing is missing, see `no`".to_owned(),
        some => format!("{some} things are missing, see `no`"),
    };
    match choice(checks) {
        ("none", _) => format!("Nothing can be recorded here: {missing}."),
        (_, "none") => {
            format!("What is written can be recorded here, not who writes it: {missing}.")
        }
        _ if is_ok("causes") => {
            format!("What is written can be recorded here, who writes it, and why: {missing}.")
        }
        _ => format!("What is written can be recorded here and who writes it, not why: {missing}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_says_what_can_be_recorded() {
        let check = |what, ok| Check {
            what,
            ok,
            found: "it is a pipe".into(),
            cost: "",
        };
        let (yes, no) = (Some(true), Some(false));
        let of = |some: &[(&'static str, Option<bool>)]| {
            let checks: Vec<Check> = some.iter().map(|(what, ok)| check(what, *ok)).collect();
            verdict(&checks)
        };
        assert!(of(&[("root", no), ("tracefs", None)]).starts_with("Only root can record"));
        let all = [("root", yes), ("BTF", yes), ("causes", yes)];
        assert_eq!(
            of(&all),
            "What is written can be recorded here, who writes it, and why: nothing is missing."
        );
        assert_eq!(
            of(&[&all[..2], &[("causes", no)]].concat()),
            "What is written can be recorded here and who writes it, not why: 1 thing is missing, see `no`."
        );
        assert_eq!(
            of(&[
                ("root", yes),
                ("source blktrace", yes),
                ("BTF", no),
                ("tracefs", no)
            ]),
            "What is written can be recorded here, not who writes it: 2 things are missing, see `no`."
        );
        assert_eq!(
            of(&[("root", yes)]),
            "Nothing can be recorded here: nothing is missing."
        );
        assert_eq!(
            of(&[&all[..], &[("device", no)]].concat()),
            "This device cannot be recorded: it is a pipe."
        );
    }

    #[test]
    fn the_first_source_that_works_is_chosen() {
        let check = |what, ok| Check {
            what,
            ok: Some(ok),
            found: String::new(),
            cost: "",
        };
        let mut checks = vec![check("source blktrace", true)];
        assert_eq!(choice(&checks), ("blktrace", "none"));
        checks.push(check("BTF", true));
        assert_eq!(choice(&checks), ("bpf", "bpf"));
        // Without the functions, others know more.
        let mut blind = checks.clone();
        blind.push(check("tracefs", true));
        assert_eq!(choice(&blind), ("tracefs", "tracefs"));
        blind.push(check("kernel's recorder", true));
        assert_eq!(choice(&blind), ("tracefs", "kernel"));
        checks.push(check("functions", true));
        checks.push(check("tracefs", true));
        assert_eq!(choice(&checks), ("tracefs", "bpf"));
        checks.push(check("source bpf", true));
        assert_eq!(choice(&checks), ("bpf", "bpf"));
        checks.iter_mut().for_each(|check| check.ok = Some(false));
        assert_eq!(choice(&checks), ("none", "none"));
        checks.push(check("tracefs", true));
        assert_eq!(choice(&checks), ("tracefs", "tracefs"));
        checks.push(check("kernel's recorder", true));
        assert_eq!(choice(&checks), ("tracefs", "kernel"));
    }
}
