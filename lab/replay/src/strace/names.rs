// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of system calls.

/// Returns the name that a call has on 64-bit machines; programs of 32 bits and other machines have further names for some.
pub(super) fn plain(name: &str) -> &str {
    let known = ALIASES.iter().find(|(alias, _)| *alias == name);
    known.map_or(name, |(_, name)| *name)
}

const ALIASES: &[(&str, &str)] = &[
    ("_llseek", "lseek"),
    ("llseek", "lseek"),
    ("fadvise64_64", "fadvise64"),
    ("arm_sync_file_range", "sync_file_range2"),
    ("chown32", "chown"),
    ("fchown32", "fchown"),
    ("lchown32", "lchown"),
    ("fcntl64", "fcntl"),
    ("fstat64", "fstat"),
    ("oldfstat", "fstat"),
    ("stat64", "stat"),
    ("oldstat", "stat"),
    ("lstat64", "lstat"),
    ("oldlstat", "lstat"),
    ("fstatat64", "newfstatat"),
    ("ftruncate64", "ftruncate"),
    ("truncate64", "truncate"),
    ("mmap2", "mmap"),
    ("old_mmap", "mmap"),
    ("pread", "pread64"),
    ("pwrite", "pwrite64"),
    ("sendfile64", "sendfile"),
    ("umount", "umount2"),
    ("utimensat_time64", "utimensat"),
];

/// What is known of a call that is never replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// It changes no file.
    Harmless,
    /// It changes no file, and returns a descriptor of something else.
    Makes,
    /// It may change files, and a replay cannot make it, for this reason.
    Missing(&'static str),
    Unknown,
}

const REQUESTS: &str = "strace does not show what its requests are (io_uring, io_submit)";
const NAMESPACE: &str = "a replay does not change mounts or roots";
const HANDLE: &str = "strace does not show which file its descriptor leads to";
const NONE: &str = "a replay has no such call";

const MISSING: &[(&str, &str)] = &[
    ("io_uring_enter", REQUESTS),
    ("io_submit", REQUESTS),
    ("mount", NAMESPACE),
    ("umount2", NAMESPACE),
    ("move_mount", NAMESPACE),
    ("mount_setattr", NAMESPACE),
    ("open_tree_attr", NAMESPACE),
    ("pivot_root", NAMESPACE),
    ("chroot", NAMESPACE),
    ("setns", NAMESPACE),
    ("open_by_handle_at", HANDLE),
    ("pidfd_getfd", HANDLE),
    ("acct", NONE),
    ("bind", NONE),
    ("file_setattr", NONE),
    ("ioctl", NONE),
    ("nfsservctl", NONE),
    ("quotactl", NONE),
    ("quotactl_fd", NONE),
    ("remap_file_pages", NONE),
    ("removexattrat", NONE),
    ("setxattrat", NONE),
    ("swapoff", NONE),
    ("swapon", NONE),
    ("uselib", NONE),
];

/// Returns what is known of a call, given its name on 64-bit machines.
pub(super) fn sort(name: &str) -> Sort {
    let missing = MISSING.iter().find(|(known, _)| *known == name);
    let is_in = |names: &str| names.split_ascii_whitespace().any(|known| known == name);
    match missing {
        Some((_, why)) => Sort::Missing(why),
        None if is_in(HARMLESS) => Sort::Harmless,
        None if is_in(MAKES) => Sort::Makes,
        None => Sort::Unknown,
    }
}

/// Calls whose result is a new descriptor of no file.
const MAKES: &str = "accept accept4 bpf epoll_create epoll_create1 eventfd eventfd2 fanotify_init fsmount fsopen fspick \
    inotify_init inotify_init1 io_uring_setup landlock_create_ruleset memfd_create memfd_secret mq_open open_tree \
    perf_event_open pidfd_open pipe pipe2 signalfd signalfd4 socket socketpair timerfd_create userfaultfd";

/// The other calls of Linux 6.18 on x86 with 64 and 32 bits, and some of other machines.
const HARMLESS: &str = "\
    _newselect _sysctl access add_key adjtimex afs_syscall alarm arch_prctl bdflush break brk cacheflush cachestat \
    capget capset clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime clock_gettime64 \
    clock_nanosleep clock_nanosleep_time64 clock_settime clock_settime64 connect create_module delete_module \
    epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old exit exit_group faccessat faccessat2 \
    fanotify_mark fgetxattr file_getattr finit_module flistxattr flock fsconfig fstatfs fstatfs64 ftime futex \
    futex_requeue futex_time64 futex_wait futex_waitv futex_wake get_kernel_syms get_mempolicy get_robust_list \
    get_thread_area getcpu getdents getdents64 getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups \
    getgroups32 getitimer getpeername getpgid getpgrp getpid getpmsg getppid getpriority getrandom getresgid \
    getresgid32 getresuid getresuid32 getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid \
    getuid32 getxattr getxattrat gtty idle init_module inotify_add_watch inotify_rm_watch io_cancel io_destroy \
    io_getevents io_pgetevents io_pgetevents_time64 io_setup io_uring_register ioperm iopl ioprio_get ioprio_set ipc \
    kcmp kexec_file_load kexec_load keyctl kill landlock_add_rule landlock_restrict_self lgetxattr listen listmount \
    listns listxattr listxattrat llistxattr lock lookup_dcookie lsm_get_self_attr lsm_list_modules lsm_set_self_attr \
    madvise map_shadow_stack mbind membarrier migrate_pages mincore mlock mlock2 mlockall modify_ldt move_pages \
    mprotect mpx mq_getsetattr mq_notify mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 \
    mq_unlink mseal msgctl msgget msgrcv msgsnd munlock munlockall name_to_handle_at nanosleep nice \
    oldolduname olduname pause personality pidfd_send_signal pkey_alloc pkey_free pkey_mprotect poll ppoll \
    ppoll_time64 prctl prlimit64 process_madvise process_mrelease process_vm_readv process_vm_writev prof profil \
    pselect6 pselect6_time64 ptrace putpmsg query_module readahead readdir readlink readlinkat reboot recvfrom \
    recvmmsg recvmmsg_time64 recvmsg request_key restart_syscall riscv_flush_icache riscv_hwprobe rseq \
    rseq_slice_yield rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend \
    rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min \
    sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval \
    sched_rr_get_interval_time64 sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield \
    seccomp security select semctl semget semop semtimedop semtimedop_time64 sendmmsg sendmsg sendto set_mempolicy \
    set_mempolicy_home_node set_robust_list set_thread_area set_tid_address set_tls setdomainname setfsgid \
    setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 sethostname setitimer setpgid setpriority \
    setregid setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setrlimit setsid setsockopt \
    settimeofday setuid setuid32 sgetmask shmat shmctl shmdt shmget shutdown sigaction sigaltstack signal sigpending \
    sigprocmask sigreturn sigsuspend socketcall ssetmask statfs statfs64 statmount stime stty sysfs sysinfo syslog \
    tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime timer_gettime64 timer_settime \
    timer_settime64 timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64 times tkill tuxcall \
    ugetrlimit ulimit umask uname uprobe uretprobe ustat vhangup vm86 vm86old vmsplice vserver wait4 waitid waitpid";
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_of_one_sort() {
        assert_eq!(plain("ftruncate64"), "ftruncate");
        assert_eq!(sort("futex"), Sort::Harmless);
        assert_eq!(sort("pipe2"), Sort::Makes);
        assert_eq!(sort("io_submit"), Sort::Missing(REQUESTS));
        assert_eq!(sort("write"), Sort::Unknown);
        let all = HARMLESS
            .split_ascii_whitespace()
            .chain(MAKES.split_ascii_whitespace());
        let mut all: Vec<&str> = all.chain(MISSING.iter().map(|(name, _)| *name)).collect();
        let number = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), number);
        assert!(all.iter().all(|name| plain(name) == *name));
    }
}
