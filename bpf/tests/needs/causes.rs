// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes on loop-mounted ext4, compared with strace and the journal's own counters.
//!
//! The tests run one at a time: signal handlers belong to the process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use mostrace_bundle::entry::{CallKind, Jbd2, RawProcess, call_flags, handle_flags};
use mostrace_capture::Causes;
use test_support::loopdev::LoopExt4;
use test_support::{Need, Suite, nothing_lost, one_by_one, tests};

use crate::recorded;

use recorded::{Recording, disk as sized_disk, recording};

const FIO: Need = Need::Tool("fio", "fio");
const SQLITE: Need = Need::Tool("sqlite3", "sqlite3");
const STRACE: Need = Need::Tool("strace", "strace");
const SETPRIV: Need = Need::Tool("setpriv", "util-linux");
const FREEZE: Need = Need::Tool("fsfreeze", "util-linux");
const PROBES: [Need; 2] = [Need::Loop, Need::Btf];

pub fn suite() -> Suite {
    one_by_one(tests![
        every_copy_is_of_a_block_that_a_handle_dirtied needs PROBES,
        what_is_dirtied_has_its_own_task needs PROBES,
        what_a_user_does_is_that_users needs [Need::Loop, Need::Btf, SETPRIV],
        calls_are_straces needs [Need::Loop, Need::Btf, Need::Ptrace, SQLITE, STRACE],
        what_io_uring_is_asked_for_is_a_call needs [Need::Loop, Need::Btf, FIO],
        transactions_are_the_journals needs [Need::Loop, Need::Btf, SQLITE],
        what_ext4_counts_is_what_was_written needs PROBES,
        none_are_recorded_unless_asked_for needs PROBES,
        threads_of_one_place_have_their_own_calls needs [Need::Loop, Need::Btf, FREEZE],
    ])
}

fn disk(mount_options: &str) -> LoopExt4 {
    sized_disk(mount_options, 64, &[])
}

fn copies(got: &Recording) -> impl Iterator<Item = &RawProcess> {
    let copies = [Jbd2::METADATA_COPY, Jbd2::DATA_COPY];
    got.process.iter().filter(move |p| copies.contains(&p.jbd2))
}

/// Three writers at once, in each mode of the journal.
fn every_copy_is_of_a_block_that_a_handle_dirtied() {
    for mode in ["data=ordered", "data=journal", "data=writeback"] {
        let disk = disk(mode);
        let script = format!(
            "cd {}; work() {{ mkdir $1; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
                echo $i >$1/a$i; dd if=/dev/zero of=$1/b$i bs=20k count=1 conv=fsync 2>/dev/null
                mv $1/a$i $1/c$i; ln $1/c$i $1/d$i; truncate -s 1000 $1/b$i; rm $1/c$i
            done; }}; work x & work y & work z & wait",
            disk.mount_point().display()
        );
        let got = recording(disk.device(), Causes::Bpf, &script);
        let sums = got.manifest.causes.unwrap();
        assert!(
            sums.transactions > 10 && sums.copies > 100,
            "{mode}: {sums}"
        );
        assert!(sums.copies <= sums.dirtied, "{mode}: {sums}");
        assert!(sums.named * 100 >= sums.copies * 99, "{mode}: {sums}");
        let named: BTreeSet<(u32, u64)> = got
            .dirtied
            .iter()
            .map(|d| (d.tid.get(), d.head.sector.get()))
            .collect();
        let first = got.handles.iter().map(|h| h.tid.get()).min();
        let of_whole = copies(&got).filter(|p| Some(p.tid.get()) > first);
        let (known, all) = of_whole.fold((0, 0), |(known, all), p| {
            let is_named = named.contains(&(p.tid.get(), p.home_sector.get()));
            (known + u32::from(is_named), all + 1)
        });
        assert!(known * 100 >= all * 99, "{mode}: {known} of {all}");
    }
}

/// Each of three writers has a folder of its own, far apart: the handles that dirty the inode of a writer's file must
/// be that writer's.
fn what_is_dirtied_has_its_own_task() {
    let disk = disk("data=ordered");
    let script = format!(
        "cd {}; mkdir x y z; sync; work() {{ echo $2 >$1.pid; for i in 1 2 3 4 5 6; do
            dd if=/dev/zero of=$1/f bs=4k count=$i conv=fsync 2>/dev/null; done; }}
        (work x; sync x/f) & (work y; sync y/f) & (work z; sync z/f) & wait; stat -c '%i %n' ?/f >inodes",
        disk.mount_point().display()
    );
    let got = recording(disk.device(), Causes::Bpf, &script);
    let inodes = fs::read_to_string(disk.mount_point().join("inodes")).unwrap();
    let mut tasks: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for handle in got
        .handles
        .iter()
        .filter(|h| !h.head.flags.has(handle_flags::KERNEL))
    {
        let comm = String::from_utf8_lossy(&handle.comm);
        let comm = comm.trim_end_matches('\0').to_owned();
        tasks.entry(handle.ino.get()).or_default().insert(comm);
    }
    for line in inodes.lines() {
        let ino = line.split(' ').next().unwrap().parse().unwrap();
        let of_file = tasks
            .get(&ino)
            .unwrap_or_else(|| panic!("no handle of {line}"));
        assert!(of_file.contains("dd"), "{line}: {of_file:?}");
    }
    let functions = &got.manifest.functions;
    for handle in &got.handles {
        let begun = handle.function.get();
        let is_told = functions.get(usize::try_from(begun).unwrap_or(usize::MAX));
        assert!(
            is_told.is_some_and(|name| name.contains("ext4"))
                || handle.head.flags.has(handle_flags::KERNEL),
            "function {begun} of {functions:?}"
        );
    }
}

/// Three users have a file each; stat says whose it is.
fn what_a_user_does_is_that_users() {
    let disk = disk("data=ordered");
    let script = format!(
        "cd {}; chmod 777 .; for user in 1001 1002 1003; do
            setpriv --reuid=$user --clear-groups dd if=/dev/zero of=$user bs=4k count=5 conv=fsync 2>/dev/null
        done; stat -c '%i %u' 100? >owners",
        disk.mount_point().display()
    );
    let got = recording(disk.device(), Causes::Bpf, &script);
    let owners = fs::read_to_string(disk.mount_point().join("owners")).unwrap();
    let owners: BTreeMap<u64, u32> = owners
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(ino, uid)| (ino.parse().unwrap(), uid.parse().unwrap()))
        .collect();
    assert_eq!(owners.len(), 3);
    let is_dd = |comm: &[u8; 16]| comm.starts_with(b"dd\0");
    let handles = got.handles.iter().filter(|h| is_dd(&h.comm));
    let handles: BTreeSet<_> = handles.map(|h| (h.ino.get(), h.uid.get())).collect();
    let calls = got.calls.iter().filter(|c| is_dd(&c.comm));
    let calls: BTreeSet<_> = calls.map(|c| (c.ino.get(), c.uid.get())).collect();
    for seen in [handles, calls] {
        let seen = seen.into_iter().filter(|(ino, _)| owners.contains_key(ino));
        assert!(seen.eq(owners.clone()));
    }
    let dirtiers = got.dirtiers.iter().filter(|d| is_dd(&d.comm));
    let dirtiers: BTreeSet<_> = dirtiers.map(|d| d.uid.get()).collect();
    assert!(dirtiers.into_iter().eq([1001, 1002, 1003]));
}

/// The probes have a place for each thread, by its number modulo this (`PLACES` of place.bpf.h).
const PLACES: u32 = 1 << 11;

/// Two processes, whose numbers lead to the same place, are in a call at the same time: each waits until the filesystem thaws.
fn threads_of_one_place_have_their_own_calls() {
    let disk = disk("data=ordered");
    let script = format!(
        "cd {}; mkfifo begin8 begin9; exec 5<>begin8 6<>begin9 8<>a 9<>b
        start() {{
            tries=0
            while :; do
                echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid
                (read line <begin$2; exec dd if=/dev/zero bs=$3 count=1 status=none >&$2) &
                [ $! -ne $1 ] || return 0
                kill $!
                tries=$((tries + 1))
                [ $tries -lt 500 ] || exit 1
            done
        }}
        first=$(($$ % 20000 + 3000))
        while [ -e /proc/$first ] || [ -e /proc/$((first + {PLACES})) ]; do first=$((first + 1)); done
        start $first 8 4096
        start $((first + {PLACES})) 9 8192
        fsfreeze -f .
        echo >&5; echo >&6
        for pid in $first $((first + {PLACES})); do
            until grep -q '^State:.D' /proc/$pid/status; do sleep 0.05; done
        done
        fsfreeze -u .
        wait
        echo $first >first; stat -c %i a b >inodes",
        disk.mount_point().display()
    );
    let got = recording(disk.device(), Causes::Bpf, &script);
    let read = |name: &str| fs::read_to_string(disk.mount_point().join(name)).unwrap();
    let first: u32 = read("first").trim().parse().unwrap();
    let inodes = read("inodes");
    let mut inodes = inodes.lines().map(|line| line.parse::<u64>().unwrap());
    for (pid, bytes) in [(first, 4096), (first + PLACES, 8192)] {
        // Of a call that is not known, only the filesystem's part would be told.
        let writes = got.calls.iter().filter(|c| {
            let is_write = CallKind::of(c.kind.get()) == CallKind::Write;
            c.pid.get() == pid && is_write && !c.head.flags.has(call_flags::PART)
        });
        let told: Vec<_> = writes.map(|c| (c.ino.get(), c.bytes.get())).collect();
        assert_eq!(told, [(inodes.next().unwrap(), bytes)], "{pid}");
    }
    nothing_lost(&got.manifest.losses);
}

/// The number of calls and the sum of their results, by kind.
type Sums = BTreeMap<&'static str, (u64, i64)>;

fn calls_are_straces() {
    let disk = disk("data=ordered");
    let log = tempfile::NamedTempFile::new().unwrap();
    let script = format!(
        "cd {}; strace -f -y -o {} sqlite3 a.db 'create table t(a); {}' >/dev/null",
        disk.mount_point().display(),
        log.path().display(),
        "insert into t values(randomblob(100));".repeat(20)
    );
    let got = recording(disk.device(), Causes::Bpf, &script);
    let log = fs::read_to_string(log.path()).unwrap();
    let told = by_strace(&log, &disk.mount_point());
    let pid: u32 = log.split(' ').next().unwrap().parse().unwrap();
    let mut seen = Sums::new();
    for call in got.calls.iter().filter(|c| c.tgid.get() == pid) {
        let sum = seen
            .entry(CallKind::of(call.kind.get()).into())
            .or_default();
        sum.0 += 1;
        sum.1 += call.result.get();
        assert!(call.start_ns.get() <= call.head.time_ns.get() && call.ino.get() > 0);
        if call.kind.get() == CallKind::Write as u16 {
            assert_eq!(i64::try_from(call.bytes.get()), Ok(call.result.get()));
        }
    }
    assert_eq!(seen, told);
    assert!(
        told["write"].0 > 100 && told["fdatasync"].0 > 60,
        "{told:?}"
    );
    // The first write of each journal is its header of 512 bytes, into which the number of pages is written later.
    let magic = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    let headers = got.calls.iter().filter(|c| c.first_bytes == magic);
    let headers: Vec<_> = headers.collect();
    assert!(headers.iter().all(|c| c.head.flags.has(call_flags::FIRST)));
    assert!(headers.len() >= 20, "{}", headers.len());
}

/// Returns the recorded kinds of calls on files below `mount`, as strace saw them.
fn by_strace(log: &str, mount: &Path) -> Sums {
    const KINDS: [(&str, &str); 6] = [
        ("write(", "write"),
        ("pwrite64(", "write"),
        ("fdatasync(", "fdatasync"),
        ("fsync(", "fsync"),
        ("ftruncate(", "truncate"),
        ("unlink(", "unlink"),
    ];
    let mount = mount.display().to_string();
    let mut sums = Sums::new();
    for line in log.lines() {
        let call = line.split_once(' ').unwrap().1.trim_start();
        let Some((_, kind)) = KINDS.iter().find(|(name, _)| call.starts_with(name)) else {
            continue;
        };
        let result: i64 = call
            .rsplit("= ")
            .next()
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        if call.contains(&mount) && result >= 0 {
            let sum = sums.entry(kind).or_default();
            sum.0 += 1;
            sum.1 += result;
        }
    }
    sums
}

/// fio writes a file of 1 MiB once in sequence, and syncs after every 16th write.
fn what_io_uring_is_asked_for_is_a_call() {
    let disk = disk("data=ordered");
    let file = disk.mount_point().join("f");
    let script = format!(
        "fio --name=w --filename={} --size=1m --bs=4k --rw=write --ioengine=io_uring --iodepth=8 --fsync=16 --direct=1 >/dev/null",
        file.display()
    );
    let got = recording(disk.device(), Causes::Bpf, &script);
    let ino = fs::metadata(&file).unwrap().ino();
    let of_kind = |kind: CallKind| {
        let ours = got.calls.iter().filter(move |c| c.ino.get() == ino);
        ours.filter(move |c| c.kind.get() == kind as u16 && &c.comm[..3] == b"fio")
    };
    let offsets: BTreeSet<u64> = of_kind(CallKind::Write).map(|c| c.offset.get()).collect();
    let expected: BTreeSet<u64> = (0..256).map(|n| n * 4096).collect();
    assert_eq!(offsets, expected);
    let bytes: u64 = of_kind(CallKind::Write).map(|c| c.bytes.get()).sum();
    assert_eq!(bytes, 1 << 20);
    assert!(of_kind(CallKind::Fsync).count() >= 15);
}

/// `/proc/fs/jbd2/DEVICE-8/info` begins with the number of transactions.
fn transactions_are_the_journals() {
    let disk = disk("data=ordered");
    let name = disk.device().file_name().unwrap().to_str().unwrap();
    let info = PathBuf::from(format!("/proc/fs/jbd2/{name}-8/info"));
    let count = || -> u64 {
        let info = fs::read_to_string(&info).unwrap();
        info.split(' ').next().unwrap().parse().unwrap()
    };
    let before = count();
    let script = format!(
        "cd {}; sqlite3 a.db 'create table t(a); {}'",
        disk.mount_point().display(),
        "insert into t values(randomblob(100));".repeat(40)
    );
    let got = recording(disk.device(), Causes::Bpf, &script);
    let commits: BTreeSet<u32> = got
        .process
        .iter()
        .filter(|p| p.jbd2 == Jbd2::COMMIT)
        .map(|p| p.tid.get())
        .collect();
    assert_eq!(commits.len() as u64, count() - before);
    let mut dirtied: HashMap<u32, u32> = HashMap::new();
    for handle in &got.handles {
        *dirtied.entry(handle.tid.get()).or_default() += handle.dirtied.get();
    }
    let with_handles = commits.iter().filter(|tid| dirtied.contains_key(tid));
    assert!(
        with_handles.count() + 1 >= commits.len(),
        "{commits:?} {dirtied:?}"
    );
}

/// `session_write_kbytes` is the amount written since the filesystem was mounted.
fn what_ext4_counts_is_what_was_written() {
    let disk = disk("data=ordered");
    let name = disk.device().file_name().unwrap().to_str().unwrap();
    let counter = PathBuf::from(format!("/sys/fs/ext4/{name}/session_write_kbytes"));
    let count = || -> u64 {
        fs::read_to_string(&counter)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    };
    let root = fs::File::open(disk.mount_point()).unwrap();
    rustix::fs::syncfs(&root).unwrap();
    let before = count();
    let script = format!(
        "cd {}; for i in 1 2 3 4 5; do dd if=/dev/zero of=f$i bs=20k count=3 conv=fsync 2>/dev/null; mv f$i g$i; done",
        disk.mount_point().display(),
    );
    let got = recording(disk.device(), Causes::Bpf, &script);
    let writes = got.process.iter().filter(|p| p.opf.get() & 0xff == 1);
    let bytes: u64 = writes.map(|p| u64::from(p.head.bytes.get())).sum();
    assert!(bytes > 5 * 60 * 1024, "{bytes}");
    assert_eq!(bytes, (count() - before) * 1024);
}

fn none_are_recorded_unless_asked_for() {
    let disk = disk("data=ordered");
    let script = format!("cd {}; echo a >a; sync a", disk.mount_point().display());
    let got = recording(disk.device(), Causes::None, &script);
    assert_eq!(got.manifest.sources.causes, "none");
    assert!(got.manifest.causes.is_none() && got.manifest.functions.is_empty());
    assert!(got.handles.is_empty() && got.calls.is_empty() && !got.process.is_empty());
}
