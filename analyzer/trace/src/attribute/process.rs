// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads that submitted or dirtied, each kept once.

use mostrace_bundle::entry::{Flags, RawDirtier, RawProcess, UNKNOWN_ID};

use super::cgroups::{CgroupId, Cgroups};
use super::family::Family;
use super::process_names::{NameId, ProcessNames};
use super::task::{Task, is_kernels_name, text};
use super::{HashMap, HashSet};
use crate::blktrace::{Part, ThreadNames};

/// The number of a [`Process`] in its list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

impl ProcessId {
    /// The submitter is unknown.
    pub const UNKNOWN: ProcessId = ProcessId(0);
}

/// One thread under one name. Unknown fields are None.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Process {
    /// Thread ID.
    pub pid: Option<u32>,
    /// Process ID (the thread group's).
    pub tgid: Option<u32>,
    /// User ID.
    pub uid: Option<u32>,
    /// `task->comm`, raw bytes without NULs.
    pub comm: Option<Box<[u8]>>,
    /// The name of its process, which is that of the main thread then; None if unknown. If the process is not known, it is the
    /// thread's own.
    pub process_comm: Option<Box<[u8]>>,
    /// True if it belongs to the tree of the recorded command; None if unknown.
    pub of_command: Option<bool>,
    /// The path of its cgroup (v2); None if unknown.
    pub cgroup: Option<Box<[u8]>>,
    /// The last time when it was seen under this name, ns; 0 if unknown.
    pub told_ns: u64,
}

impl Process {
    /// Returns true if the thread looks like one of the kernel's; false if a field that decides it is unknown.
    pub fn is_called_like_the_kernels(&self) -> bool {
        let is_called = self.comm.as_deref().is_some_and(is_kernels_name);
        self.uid == Some(0) && self.pid == self.tgid && is_called
    }
}

/// A thread as an entry described it at one time. Its number may have had another owner before.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Told {
    task: Task,
    /// Whether it was of the command's tree.
    of_command: Option<bool>,
    cgroup: Option<CgroupId>,
    /// What its process was called, unless it is the main thread.
    process: Option<NameId>,
}

/// The current owner of a thread number.
struct Thread {
    /// The thread as an entry described it; None without an entry.
    task: Option<Told>,
    id: ProcessId,
    /// The last time when an entry or event named it, ns.
    told_ns: u64,
}

/// All processes of a trace.
pub(super) struct Processes {
    list: Vec<Process>,
    /// The processes of the command's tree.
    family: Family,
    cgroups: Cgroups,
    names: ProcessNames,
    by_entry: HashMap<Told, ProcessId>,
    /// The latest thread that an entry named for each thread number.
    by_pid: HashMap<u32, Thread>,
    /// The previous thread of each renamed number, and until when (ns): it may have bios in flight.
    before: HashMap<u32, (ProcessId, u64)>,
    /// Threads that only events name, and when one first did (ns).
    bare: Vec<(ProcessId, u64)>,
    /// The threads in `list` that an entry named and that are not the kernel's.
    users: HashSet<ProcessId>,
}

impl Default for Processes {
    fn default() -> Self {
        Processes {
            list: vec![Process::default()],
            family: Family::default(),
            cgroups: Cgroups::default(),
            names: ProcessNames::default(),
            by_entry: HashMap::default(),
            by_pid: HashMap::default(),
            before: HashMap::default(),
            bare: Vec::new(),
            users: HashSet::default(),
        }
    }
}

impl Processes {
    /// Sets which processes are of the command's tree; call it before any entry is read.
    pub fn set_family(&mut self, family: Family) {
        self.family = family;
    }

    /// Returns the number of processes, and of those whose cgroup is known.
    pub fn len(&self) -> usize {
        self.list.len().saturating_add(self.cgroups.len())
    }

    /// Returns the cgroups of processes; more of them become known as the trace is read.
    pub fn cgroups_mut(&mut self) -> &mut Cgroups {
        &mut self.cgroups
    }

    /// Returns the names of processes; more of them become known as the trace is read.
    pub fn names_mut(&mut self) -> &mut ProcessNames {
        &mut self.names
    }

    /// Returns the names of processes.
    pub fn names(&self) -> &ProcessNames {
        &self.names
    }

    /// Returns the path of the cgroup that a process was in.
    pub fn cgroup(&self, tgid: u32, time_ns: u64) -> Option<&[u8]> {
        self.cgroups.path(self.cgroups.of(tgid, time_ns)?)
    }

    /// Returns the process of an entry; unknown if the probe did not see the submitter.
    pub fn submitter(&mut self, raw: &RawProcess) -> ProcessId {
        if raw.head.flags.has(Flags::NO_SUBMITTER) {
            return ProcessId::UNKNOWN;
        }
        let task = Task::from(raw);
        let told_ns = raw.head.time_ns.get();
        let told = self.told(task, told_ns);
        if let Some(thread) = self.by_pid.get_mut(&task.pid)
            && thread.task == Some(told)
        {
            thread.told_ns = told_ns;
            return thread.id;
        }
        let id = self.task(task, told_ns);
        self.note_kernels(raw.head.flags, id);
        let told = Thread {
            task: Some(told),
            id,
            told_ns,
        };
        self.by_pid.insert(task.pid, told);
        id
    }

    /// Takes the numbers of threads that were renamed since the last call, and when (ns). Earlier entries with such a number belong
    /// to another thread, or to the same thread before it ran another program.
    pub fn rename(&mut self, renamed: &[(u32, u64)]) {
        for &(pid, since_ns) in renamed {
            if let Some(thread) = self.by_pid.remove(&pid) {
                if thread.told_ns < since_ns {
                    self.before.insert(pid, (thread.id, since_ns));
                } else {
                    self.by_pid.insert(pid, thread);
                }
            }
        }
    }

    /// Returns the thread that dirtied. That was long before, so the number may belong to another thread by now.
    pub fn dirtier(&mut self, raw: &RawDirtier) -> ProcessId {
        let id = self.task(Task::from(raw), raw.dirty_ns.get());
        self.note_kernels(raw.head.flags, id);
        id
    }

    fn note_kernels(&mut self, flags: Flags, id: ProcessId) {
        if flags.has(Flags::KERNEL_THREAD) {
            self.users.remove(&id);
        }
    }

    /// Returns a thread by its number.
    pub fn get(&self, ProcessId(id): ProcessId) -> &Process {
        self.list.get(id as usize).unwrap_or(&self.list[0])
    }

    /// Returns true if the thread is known to belong to a user's program.
    pub fn is_user(&self, process: ProcessId) -> bool {
        self.users.contains(&process)
    }

    /// Returns the number of a thread that an entry names, as it was at `time_ns`.
    pub fn task(&mut self, task: Task, time_ns: u64) -> ProcessId {
        let told = self.told(task, time_ns);
        if let Some(id) = self.known(told) {
            if let Some(process) = self.list.get_mut(id.0 as usize) {
                process.told_ns = process.told_ns.max(time_ns);
            }
            return id;
        }
        let id = self.add(Process {
            pid: Some(task.pid),
            tgid: Some(task.tgid).filter(|&id| id != UNKNOWN_ID),
            uid: Some(task.uid).filter(|&id| id != UNKNOWN_ID),
            comm: Some(text(&task.comm).into()),
            process_comm: self.names.of_task(&task, time_ns).map(Into::into),
            of_command: told.of_command,
            cgroup: told
                .cgroup
                .and_then(|id| self.cgroups.path(id))
                .map(Into::into),
            told_ns: time_ns,
        });
        self.by_entry.insert(told, id);
        if !task.is_called_like_the_kernels() {
            self.users.insert(id);
        }
        id
    }

    /// Returns the number of a thread that an entry named before. Its cgroup may not have been known then: the first report of it
    /// counts for the time before, too.
    fn known(&mut self, told: Told) -> Option<ProcessId> {
        if let Some(&id) = self.by_entry.get(&told) {
            return Some(id);
        }
        let path = self.cgroups.path(told.cgroup?)?.into();
        let before = Told {
            cgroup: None,
            ..told
        };
        let id = self.by_entry.remove(&before)?;
        self.list.get_mut(id.0 as usize)?.cgroup = Some(path);
        self.by_entry.insert(told, id);
        Some(id)
    }

    fn told(&self, task: Task, time_ns: u64) -> Told {
        let cgroup = match task.tgid {
            UNKNOWN_ID => None,
            tgid => self.cgroups.of(tgid, time_ns),
        };
        let process = match task.is_main() || task.tgid == UNKNOWN_ID {
            true => None,
            false => self.names.of(task.tgid, time_ns),
        };
        Told {
            task,
            of_command: self.of_command(task, time_ns),
            cgroup,
            process,
        }
    }

    fn of_command(&self, task: Task, time_ns: u64) -> Option<bool> {
        match task.tgid {
            UNKNOWN_ID => None,
            tgid => self.family.has(tgid, time_ns),
        }
    }

    /// Returns true if it is known which processes are of the command's tree.
    pub fn knows_family(&self) -> bool {
        self.family.is_known()
    }

    /// Returns the thread that queued a bio without an entry; `time_ns` is its completion's time, used if the Q is unknown.
    pub fn by_part(&mut self, part: &Part, time_ns: u64) -> ProcessId {
        let Some(pid) = part.pid else {
            return ProcessId::UNKNOWN;
        };
        let time_ns = part.q_ns.unwrap_or(time_ns);
        if let Some(&(id, until_ns)) = self.before.get(&pid)
            && time_ns < until_ns
        {
            return id;
        }
        if let Some(thread) = self.by_pid.get(&pid) {
            return thread.id;
        }
        let id = self.add(Process {
            pid: Some(pid),
            ..Process::default()
        });
        self.bare.push((id, time_ns));
        let told = Thread {
            task: None,
            id,
            told_ns: time_ns,
        };
        self.by_pid.insert(pid, told);
        id
    }

    fn add(&mut self, process: Process) -> ProcessId {
        let id = ProcessId(u32::try_from(self.list.len()).unwrap_or(0));
        self.list.push(process);
        id
    }

    /// Names the threads without an entry.
    pub fn fill_in(&mut self, names: &ThreadNames) {
        for &(ProcessId(id), time_ns) in &self.bare {
            if let Some(process) = self.list.get_mut(id as usize)
                && let Some(pid) = process.pid
            {
                process.comm = names.at(pid, time_ns).map(|comm| comm.as_bytes().into());
            }
        }
    }

    /// Returns the processes, and the names that they had.
    pub fn into_list(mut self) -> (Vec<Process>, ProcessNames) {
        let mut seen: Vec<&Process> = self.list.iter().collect();
        seen.sort_by_key(|process| process.told_ns);
        let seen = seen.into_iter().filter_map(|process| {
            let is_main = process.pid == process.tgid;
            Some((process.tgid?, is_main, process.comm.as_deref()?))
        });
        self.names.take_seen(seen);
        for process in &mut self.list {
            match process.tgid {
                Some(tgid) if process.process_comm.is_none() => {
                    let name = self.names.of(tgid, process.told_ns);
                    let name = name.and_then(|id| self.names.name(id));
                    process.process_comm = name.map(Into::into);
                }
                Some(_) => {}
                // The trace tells of threads alone.
                None => process.process_comm.clone_from(&process.comm),
            }
        }
        (self.list, self.names)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cgroups::tests::tell;
    use super::*;
    use crate::blktrace::Event;
    use crate::blktrace::action::BLK_TC_NOTIFY;

    /// A bio that was queued before its thread got another name is still that thread's.
    #[test]
    fn a_renamed_number_is_another_threads_from_then_on() {
        let mut names = ThreadNames::default();
        let note = |names: &mut ThreadNames, pid, time_ns, comm: &[u8]| {
            names.push(&Event {
                time_ns,
                pid,
                action: BLK_TC_NOTIFY,
                pdu: comm,
                ..Event::default()
            });
        };
        let mut processes = Processes::default();
        let entry = |pid: u32, time_ns: u64| {
            let mut raw = RawProcess {
                pid: pid.into(),
                tgid: pid.into(),
                ..RawProcess::default()
            };
            raw.head.time_ns = time_ns.into();
            raw
        };
        let queued = |pid, q_ns| Part {
            sector: 0,
            bytes: 512,
            q_ns: Some(q_ns),
            q_cpu: None,
            pid: Some(pid),
        };
        let [seven, eight, nine] = [(7, 50), (8, 100), (9, 101)]
            .map(|(pid, time_ns)| processes.submitter(&entry(pid, time_ns)));
        for pid in 7..10 {
            note(&mut names, pid, 10, b"old");
            note(&mut names, pid, 100, b"new");
        }
        let known = names.renamed().len();
        processes.rename(names.renamed());
        assert_eq!(processes.by_part(&queued(7, 99), 500), seven);
        let new = processes.by_part(&queued(7, 100), 500);
        assert_ne!(new, seven);
        assert_eq!(processes.get(new).pid, Some(7));
        assert_eq!(processes.by_part(&queued(7, 200), 500), new);
        // The entries of the others are of the thread with the new name.
        assert_eq!(processes.by_part(&queued(8, 100), 500), eight);
        assert_eq!(processes.by_part(&queued(9, 200), 500), nine);
        // Another name that is noted later counts, too.
        let again = processes.submitter(&entry(7, 90));
        note(&mut names, 9, 300, b"newest");
        processes.rename(&names.renamed()[known..]);
        assert_eq!(processes.by_part(&queued(9, 299), 500), nine);
        assert_ne!(processes.by_part(&queued(9, 300), 500), nine);
        assert_eq!(processes.by_part(&queued(7, 200), 500), again);
    }

    /// A segment may end between the first entry of a process and the one that tells its cgroup.
    #[test]
    fn a_process_whose_cgroup_is_told_late_is_one_process() {
        let task = |pid| Task {
            pid,
            tgid: pid,
            uid: 0,
            comm: *b"dd\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        };
        let mut processes = Processes::default();
        let dd = processes.task(task(7), 100);
        assert_eq!(processes.get(dd).cgroup, None);
        tell(
            processes.cgroups_mut(),
            &[(200, 7, "a/", false), (400, 7, "b/", false)],
        );
        for time_ns in [300, 100] {
            assert_eq!(processes.task(task(7), time_ns), dd);
        }
        assert_eq!(processes.get(dd).cgroup.as_deref(), Some(&b"/a"[..]));
        let moved = processes.task(task(7), 500);
        assert_eq!(processes.get(moved).cgroup.as_deref(), Some(&b"/b"[..]));
        assert_ne!(processes.task(task(8), 500), dd);
    }
}
