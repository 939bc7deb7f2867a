// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the entries of stacks out of what the probes record (stack.bpf.h): the kernel's frames get the names of functions, and a
//! program's frames get the files that its process has mapped. The kernel itself finds the build ids, while the program is there.
//!
//! Nothing here reads a program's file or its symbols: who analyses the recording does that, where there is time for it.

use std::collections::HashMap;
use std::fs;

use mostrace_bundle::entry::stack::{CUT, Place, RawStack, TYPE_STACK};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::machine::kernel::{Functions, Symbols};

/// `STACK_KERNEL` and `STACK_USER`.
const KERNEL: usize = 48;
const USER: usize = 64;

/// `BPF_STACK_BUILD_ID_VALID`: the kernel has found the build id.
const VALID: i32 = 1;

/// The most bytes of an entry's text: its size has 16 bits.
const TEXT: usize = 60_000;

/// The most build ids whose paths are remembered; at one more, those so far are forgotten.
const PATHS: usize = 1 << 12;

/// The beginnings of the names of the functions through which the kernel gets from a tracepoint, or the beginning of a function,
/// to a probe.
const TRACING: [&str; 11] = [
    "bpf_",
    "__bpf_",
    "__traceiter_",
    "trace_call_bpf",
    "trace_event_raw_",
    "perf_",
    "kprobe_",
    "fprobe_",
    "ftrace_",
    "get_callchain_",
    "stack_trace_save",
];

/// The innermost frames among which these are looked for.
const TRACED: usize = 16;

/// `struct user_place`.
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct UserPlace {
    status: i32,
    build_id: [u8; 20],
    /// An offset in the file if the status is [`VALID`], else an address.
    at: u64,
}

/// `struct raw_stack`.
#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Recorded {
    stack: RawStack,
    kernel: [u64; KERNEL],
    user: [u64; USER],
    places: [UserPlace; USER],
}

const _: () = assert!(size_of::<Recorded>() == 2992);

impl Recorded {
    /// Reads a record of the ring; None if it is no stack.
    pub fn read(record: &[u8]) -> Option<Recorded> {
        let recorded = Recorded::read_from_bytes(record).ok()?;
        (recorded.stack.head.kind.get() == TYPE_STACK).then_some(recorded)
    }

    /// The stack's number.
    pub fn id(&self) -> u64 {
        self.stack.id.get()
    }

    /// The program's frames: the addresses, and what the kernel knows of each.
    fn user(&self) -> impl Iterator<Item = (u64, &UserPlace)> {
        let count = usize::from(self.stack.user.get()).min(USER);
        self.user.iter().copied().zip(&self.places).take(count)
    }
}

/// A mapped range of a process.
struct Mapping {
    begin: u64,
    end: u64,
    /// The offset in the file; None if it is no file's.
    offset: Option<u64>,
    path: Box<[u8]>,
}

impl Mapping {
    /// Parses a line of /proc/PID/maps: `begin-end perms offset dev inode path`.
    fn parse(line: &[u8]) -> Option<Mapping> {
        let mut fields = line.splitn(6, |&byte| byte == b' ');
        let mut field = || std::str::from_utf8(fields.next()?).ok();
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (begin, end) = field()?.split_once('-')?;
        field()?;
        let offset = hex(field()?)?;
        field()?;
        let has_file = field()? != "0";
        Some(Mapping {
            begin: hex(begin)?,
            end: hex(end)?,
            offset: has_file.then_some(offset),
            path: fields.next().unwrap_or_default().trim_ascii_start().into(),
        })
    }

    /// The place in the file of an address in the range.
    fn offset_of(&self, address: u64) -> Option<u64> {
        self.offset?.checked_add(address.checked_sub(self.begin)?)
    }
}

/// What a process has mapped.
struct Mappings(Vec<Mapping>);

impl Mappings {
    /// Returns what the process of a stack has mapped; nothing if the process is gone, or is executing another program by now.
    fn of(recorded: &Recorded) -> Mappings {
        let maps = fs::read(format!("/proc/{}/maps", recorded.stack.tgid.get()));
        let mappings = Mappings::parse(&maps.unwrap_or_default());
        match mappings.agree_with(recorded) {
            true => mappings,
            false => Mappings(Vec::new()),
        }
    }

    fn parse(maps: &[u8]) -> Mappings {
        let lines = maps.split(|&byte| byte == b'\n');
        Mappings(lines.filter_map(Mapping::parse).collect())
    }

    /// Returns true if each frame that the kernel has found in a file is at the same place in a file here.
    fn agree_with(&self, recorded: &Recorded) -> bool {
        let mut found = recorded.user().filter(|(_, place)| place.status == VALID);
        found.all(|(address, place)| {
            let mapping = self.at(address);
            mapping.and_then(|mapping| mapping.offset_of(address)) == Some(place.at)
        })
    }

    fn at(&self, address: u64) -> Option<&Mapping> {
        let mut mappings = self.0.iter();
        mappings.find(|mapping| (mapping.begin..mapping.end).contains(&address))
    }
}

/// Makes the entries of stacks.
pub(super) struct Stacks {
    functions: Functions,
    /// The path of the file with each build id.
    paths: HashMap<[u8; 20], Box<[u8]>>,
}

impl Stacks {
    /// Reads the kernel's symbols.
    pub fn new() -> Stacks {
        Stacks {
            functions: Symbols::read().functions(),
            paths: HashMap::new(),
        }
    }

    /// Makes the entry of a stack.
    pub fn entry(&mut self, recorded: &Recorded) -> Vec<u8> {
        let mappings = Mappings::of(recorded);
        let kernel = self.kernel_lines(recorded);
        let user: Vec<Vec<u8>> = recorded
            .user()
            .map(|(address, place)| self.place(address, place, &mappings).line())
            .collect();
        build(&recorded.stack, &kernel, &user)
    }

    /// The kernel's frames, without those of the tracing itself.
    fn kernel_lines(&self, recorded: &Recorded) -> Vec<Vec<u8>> {
        let count = usize::from(recorded.stack.kernel.get()).min(KERNEL);
        let addresses = recorded.kernel.iter().take(count);
        let names: Vec<String> = addresses.map(|&at| self.functions.place(at)).collect();
        let is_tracing = |name: &String| TRACING.iter().any(|begin| name.starts_with(begin));
        let mut innermost = names.iter().take(TRACED);
        let first = innermost.rposition(is_tracing).map_or(0, |last| last + 1);
        let lines = names.iter().skip(first);
        lines.map(|name| format!("{name}\n").into_bytes()).collect()
    }

    /// The place of a frame of the program.
    fn place(&mut self, address: u64, found: &UserPlace, mappings: &Mappings) -> Place {
        let mapping = mappings.at(address);
        let path = mapping.map(|mapping| mapping.path.clone());
        if found.status != VALID {
            return Place {
                build_id: None,
                offset: mapping.and_then(|mapping| mapping.offset_of(address)),
                path: path.unwrap_or_default(),
            };
        }
        if let Some(path) = path {
            if self.paths.len() >= PATHS {
                self.paths.clear();
            }
            self.paths.insert(found.build_id, path);
        }
        let path = self.paths.get(&found.build_id);
        Place {
            build_id: Some(found.build_id.into()),
            offset: Some(found.at),
            path: path.cloned().unwrap_or_default(),
        }
    }
}

/// Puts an entry together, as far as the lines find room.
fn build(stack: &RawStack, kernel: &[Vec<u8>], user: &[Vec<u8>]) -> Vec<u8> {
    let mut len = 0;
    let fits = |line: &&Vec<u8>| {
        len += line.len();
        len <= TEXT
    };
    let lines: Vec<&Vec<u8>> = kernel.iter().chain(user).take_while(fits).collect();
    let text = lines.iter().flat_map(|line| line.iter().copied());
    let mut entry: Vec<u8> = stack.as_bytes().iter().copied().chain(text).collect();
    entry.resize(entry.len().next_multiple_of(8), 0);
    let count = |lines: usize| u16::try_from(lines).unwrap_or(u16::MAX).into();
    let mut raw = *stack;
    raw.head.size = count(entry.len());
    raw.kernel = count(lines.len().min(kernel.len()));
    raw.user = count(lines.len().saturating_sub(kernel.len()));
    if user.len() >= USER || lines.len() < kernel.len() + user.len() {
        raw.head.flags = CUT;
    }
    entry[..size_of::<RawStack>()].copy_from_slice(raw.as_bytes());
    entry
}

#[cfg(test)]
mod tests {
    use mostrace_bundle::entry::EntryRef;
    use mostrace_bundle::entry::stack::Frame;
    use zerocopy::FromZeros;

    use super::*;

    const MAPS: &[u8] = b"\
        55d0c0000000-55d0c0001000 r--p 00000000 fe:01 77                         /a b/app\n\
        55d0c0001000-55d0c0002000 r-xp 00001000 fe:01 77                         /a b/app\n\
        7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n\
        7ffc00000000-7ffc00002000 r-xp 00000000 00:00 0                          [vdso]\n";

    fn recorded(user: &[(u64, i32, u64)]) -> Recorded {
        let none = UserPlace {
            status: 0,
            build_id: [0; 20],
            at: 0,
        };
        let mut recorded = Recorded {
            stack: RawStack::new_zeroed(),
            kernel: [0; KERNEL],
            user: [0; USER],
            places: [none; USER],
        };
        recorded.stack.head.kind = TYPE_STACK.into();
        recorded.stack.user = u16::try_from(user.len()).unwrap().into();
        for (nth, &(address, status, at)) in user.iter().enumerate() {
            let build_id = [7; 20];
            recorded.user[nth] = address;
            recorded.places[nth] = UserPlace {
                status,
                build_id,
                at,
            };
        }
        recorded
    }

    fn stacks(symbols: &str) -> Stacks {
        Stacks {
            functions: Symbols::of(symbols).functions(),
            paths: HashMap::new(),
        }
    }

    #[test]
    fn frames_are_in_the_files_that_are_mapped() {
        let stack = recorded(&[
            (0x55d0_c000_1234, VALID, 0x1234),
            (0x7f00_0000_0010, 2, 0x7f00_0000_0010),
            (0x7ffc_0000_0800, 2, 0x7ffc_0000_0800),
            (0x1000, 2, 0x1000),
        ]);
        let mappings = Mappings::parse(MAPS);
        assert!(mappings.agree_with(&stack));
        let mut stacks = stacks("");
        let lines: Vec<String> = stack
            .user()
            .map(|(address, place)| stacks.place(address, place, &mappings).line())
            .map(|line| String::from_utf8(line).unwrap())
            .collect();
        let first = format!("{} 0x1234 /a b/app\n", "07".repeat(20));
        assert_eq!(lines, [&*first, "- - \n", "- - [vdso]\n", "- - \n"]);
        // The process is gone; the file is known by its build id.
        let (address, place) = stack.user().next().unwrap();
        let again = stacks.place(address, place, &Mappings(Vec::new()));
        assert_eq!(again.line(), first.as_bytes());
    }

    /// A process that executes another program by now has other files at these addresses.
    #[test]
    fn other_mappings_than_the_kernel_saw_are_not_used() {
        let mappings = Mappings::parse(MAPS);
        assert!(!mappings.agree_with(&recorded(&[(0x55d0_c000_1234, VALID, 0x234)])));
        assert!(!mappings.agree_with(&recorded(&[(0x7f00_0000_0010, VALID, 0x10)])));
    }

    #[test]
    fn the_kernels_frames_begin_behind_the_tracing() {
        let symbols = "ffffffff81000000 t start_this_handle\n\
                       ffffffff81000100 t ext4_dirty_inode.isra.0\t[ext4]\n\
                       ffffffffa0000000 t bpf_prog_0123_cause_jbd2_handle_start\t[bpf]\n\
                       ffffffffa0000100 t __bpf_trace_jbd2_handle_start\n";
        let mut stack = recorded(&[]);
        let addresses = [
            0xa000_0010,
            0xa000_0110,
            0x8100_0010,
            0x8100_0100,
            0x8100_0105,
        ];
        for (to, low) in stack.kernel.iter_mut().zip(addresses) {
            *to = 0xffff_ffff_0000_0000 | low;
        }
        stack.stack.kernel = 5.into();
        let entry = stacks(symbols).entry(&stack);
        let Ok(EntryRef::Stack(entry)) = EntryRef::decode(&entry) else {
            panic!("{entry:?}");
        };
        let frames: Vec<Frame> = entry.frames().collect();
        // A call that is a function's last instruction returns to the next function.
        let names = ["start_this_handle", "start_this_handle", "ext4_dirty_inode"];
        assert_eq!(frames, names.map(|name| Frame::Kernel(name.into())));
        assert_eq!(entry.raw.head.flags.0, 0);
    }

    #[test]
    fn what_finds_no_room_is_missing_at_the_outer_end() {
        let stack = recorded(&[]).stack;
        let line = |len: usize| [vec![b'a'; len - 1], vec![b'\n']].concat();
        let entry = build(&stack, &[line(100)], &vec![line(5000); 20]);
        let Ok(EntryRef::Stack(entry)) = EntryRef::decode(&entry) else {
            panic!("no stack");
        };
        assert_eq!((entry.raw.kernel.get(), entry.raw.user.get()), (1, 11));
        assert_eq!((entry.frames().count(), entry.raw.head.flags), (12, CUT));
    }
}
