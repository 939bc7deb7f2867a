// SPDX-License-Identifier: MIT OR Apache-2.0
//! The running kernel: its version, its type information and its symbols.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use foldhash::fast::RandomState;
use libbpf_rs::btf::types::{Enum, Func, FuncProto, Ptr, Struct, Typedef};
use libbpf_rs::btf::{Btf, BtfType, ReferencesType};
use mostrace_bundle::manifest;

use crate::error::{At, Error, Result};
use crate::machine::kallsyms;

/// The file with the kernel's type information.
pub const VMLINUX_BTF: &str = "/sys/kernel/btf/vmlinux";

/// Returns what `uname` and the like report, for the manifest.
pub fn describe() -> manifest::Kernel {
    let uname = rustix::system::uname();
    let text = |s: &std::ffi::CStr| s.to_string_lossy().into_owned();
    manifest::Kernel {
        release: text(uname.release()),
        version: text(uname.version()),
        machine: text(uname.machine()),
        page_size: u32::try_from(rustix::param::page_size()).unwrap_or(4096),
        cpus: u32::try_from(libbpf_rs::num_possible_cpus().unwrap_or(1)).unwrap_or(1),
    }
}

/// Returns true if a task may be preempted within a program at a raw tracepoint. Meanwhile the kernel skips other runs of the
/// program on that CPU. This was seen with 7.2 but not with 6.18; no type and no symbol shows it, so the version decides.
pub fn preempts_probes() -> bool {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let major = release
        .split_once('.')
        .and_then(|(major, _)| major.parse().ok());
    major.is_none_or(|major: u32| major >= 7)
}

/// Returns kernel lockdown's mode, for example `integrity`; None without lockdown.
pub fn lockdown() -> Option<String> {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").ok()?;
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

/// Loads the kernel's own BTF.
///
/// # Errors
/// Returns an error if the kernel has no BTF.
pub fn btf() -> Result<Btf<'static>> {
    if !Path::new(VMLINUX_BTF).exists() {
        return Err(Error::NoBtf(VMLINUX_BTF));
    }
    Btf::from_vmlinux().map_err(Error::bpf)
}

/// Loads the BTF of a file, which is raw or in an ELF file.
///
/// # Errors
/// Returns an error if the file has no BTF.
pub fn btf_of(file: &Path) -> Result<Btf<'static>> {
    fs::metadata(file).at(file)?;
    Btf::from_path(file).map_err(|e| Error::malformed(file.display(), format!("no BTF: {e}")))
}

/// Returns true if the kernel has bpf_loop, which came with 5.17 (e6f2dd0f8067).
pub fn has_bpf_loop(btf: &Btf<'_>) -> bool {
    btf.type_by_name::<Enum<'_>>("bpf_func_id")
        .is_some_and(|functions| {
            functions
                .iter()
                .any(|f| f.name.is_some_and(|name| name == "BPF_FUNC_loop"))
        })
}

/// Returns true if the kernel's block tracer has version 8 of its events.
pub fn has_blk_io_trace2(btf: &Btf<'_>) -> bool {
    let event: Option<Struct<'_>> = btf.type_by_name("blk_io_trace2");
    event.is_some()
}

/// Returns true if a program can be attached to both ends of a function (`kprobe.session`), which came with 6.10 (535a3692ba72). The
/// enum may be there without the function that tells the program at which end it is.
pub fn has_sessions(btf: &Btf<'_>) -> bool {
    let is_return: Option<Func<'_>> = btf.type_by_name("bpf_session_is_return");
    is_return.is_some() && enum_value(btf, "BPF_TRACE_KPROBE_SESSION").is_ok()
}

/// Returns the names of a tracepoint's argument types, such as `["request", "unsigned int"]`; None if the kernel has no such
/// tracepoint.
fn arguments(btf: &Btf<'_>, tracepoint: &str) -> Option<Vec<String>> {
    let typedef: Typedef<'_> = btf.type_by_name(&format!("btf_trace_{tracepoint}"))?;
    let pointer = Ptr::try_from(typedef.referenced_type()).ok()?;
    let proto = FuncProto::try_from(pointer.referenced_type()).ok()?;
    let name = |t: BtfType<'_>| {
        let target = Ptr::try_from(t).map_or(t, |p| p.referenced_type().skip_mods_and_typedefs());
        target
            .name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    // The first parameter is the probe's own data.
    Some(
        proto
            .iter()
            .skip(1)
            .filter_map(|p| btf.type_by_id::<BtfType<'_>>(p.ty))
            .map(name)
            .collect(),
    )
}

/// Waits until every BPF program, and every tracepoint's handler, that is now running has ended: each is a read-side critical section of
/// RCU, and this membarrier(2) returns after a grace period.
#[allow(unsafe_code)]
pub fn wait_for_programs() {
    // SAFETY: the call takes no pointer.
    let waited =
        unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_GLOBAL, 0, 0) } == 0;
    if !waited {
        // With nohz_full= the kernel refuses. A program takes microseconds, but its CPU may be taken away.
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// Returns true if the kernel has a tracepoint.
pub fn has_tracepoint(btf: &Btf<'_>, tracepoint: &str) -> bool {
    arguments(btf, tracepoint).is_some()
}

/// Returns the index of a tracepoint's argument of type `struct WANTED *`.
///
/// # Errors
/// Returns an error if the kernel has no such tracepoint, or if it takes no such argument.
pub fn argument_index(btf: &Btf<'_>, tracepoint: &str, wanted: &str) -> Result<u8> {
    arguments(btf, tracepoint)
        .and_then(|args| args.iter().position(|a| a == wanted))
        .and_then(|i| u8::try_from(i).ok())
        .ok_or_else(|| {
            Error::bpf(format!(
                "tracepoint {tracepoint} with a struct {wanted} is missing"
            ))
        })
}

/// Returns true if a tracepoint passes a `struct WANTED *`.
pub fn passes(btf: &Btf<'_>, tracepoint: &str, wanted: &str) -> bool {
    argument_index(btf, tracepoint, wanted).is_ok()
}

/// Returns true if block_rq_complete passes a blk_status_t (u8) rather than a negative errno.
pub fn completes_with_errno(btf: &Btf<'_>) -> bool {
    arguments(btf, "block_rq_complete")
        .and_then(|args| args.get(1).cloned())
        .is_some_and(|t| t == "int")
}

/// Returns the value of a constant that the kernel names in an anonymous enum, such as BIO_TRACE_COMPLETION.
///
/// # Errors
/// Returns an error if there is no constant of this name.
pub fn enum_value(btf: &Btf<'_>, wanted: &str) -> Result<u32> {
    (1..u32::try_from(btf.len()).unwrap_or(u32::MAX))
        .filter_map(|id| btf.type_by_id::<Enum<'_>>(id.into()))
        .find_map(|e| {
            let mut members = e.iter();
            let member = members.find(|m| m.name.is_some_and(|name| name == wanted))?;
            u32::try_from(member.value).ok()
        })
        .ok_or_else(|| Error::bpf(format!("the kernel's types know no {wanted}")))
}

/// The kernel's symbols, as /proc/kallsyms lists them.
pub struct Symbols(String);

/// A line of the list. Reading them all takes a good part of the time in which a recording begins.
#[derive(Clone, Copy)]
struct Line<'s> {
    /// The address, in hexadecimal.
    address: &'s str,
    /// A letter of nm(1).
    kind: &'s str,
    name: &'s str,
}

impl<'s> Line<'s> {
    /// Takes `ADDRESS KIND NAME`, behind which a tab and a module may follow.
    fn of(line: &'s str) -> Option<Line<'s>> {
        let (address, rest) = line.split_once(' ')?;
        let (kind, rest) = rest.split_once(' ')?;
        let name = rest.split_once('\t').map_or(rest, |(name, _)| name);
        Some(Line {
            address,
            kind,
            name,
        })
    }

    fn address(&self) -> Option<u64> {
        u64::from_str_radix(self.address, 16).ok()
    }
}

/// A function or variable.
struct Symbol<'s> {
    name: &'s str,
    line: Line<'s>,
    /// True if it is the symbol's entry in a jump table. Kernels with clang's control-flow integrity up to 5.18 (Android's 5.10 and
    /// 5.15) have one for each function whose address is taken, and pointers hold the address of this entry.
    is_jump: bool,
}

/// The suffix that the linker puts behind the name of such an entry.
const JUMP: &str = "cfi_jt";

impl Symbols {
    /// Reads the symbols; there are none if they cannot be read.
    pub fn read() -> Symbols {
        Symbols(kallsyms::read())
    }

    #[cfg(test)]
    pub fn of(text: &str) -> Symbols {
        Symbols(text.to_owned())
    }

    /// Returns the functions, for the names of many addresses.
    pub fn functions(&self) -> Functions {
        let functions = self.lines().filter_map(|line| {
            let is_code = matches!(line.kind, "t" | "T" | "w" | "W");
            let address = line.address().filter(|_| is_code)?;
            // Where the kernel hides its addresses, all are 0.
            (address != 0).then(|| (address, plain(line.name).into()))
        });
        let mut begins: Vec<(u64, Box<str>)> = functions.collect();
        begins.sort_unstable();
        Functions(begins)
    }

    fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.0.lines().filter_map(Line::of)
    }

    /// Returns each symbol, without the suffixes of the compiler (`.llvm.…`; with ThinLTO and control-flow integrity also `$` and a
    /// number). A part of a function that the compiler split off (`.cold`) is left out.
    fn iter(&self) -> impl Iterator<Item = Symbol<'_>> {
        self.lines().filter_map(|line| {
            let (whole, suffix) = line.name.split_once('.').unwrap_or((line.name, ""));
            let is_jump = suffix == JUMP || suffix.ends_with(".cfi_jt");
            let is_whole = is_jump || suffix.is_empty() || suffix.starts_with("llvm.");
            is_whole.then(|| Symbol {
                name: plain(whole),
                line,
                is_jump,
            })
        })
    }

    /// Returns true if the kernel hides all addresses (kptr_restrict): every symbol is 0.
    pub fn are_hidden(&self) -> bool {
        self.lines()
            .filter_map(|line| line.address())
            .all(|at| at == 0)
    }

    /// Returns true if the kernel has a symbol, whether or not it shows its address.
    pub fn has(&self, wanted: &str) -> bool {
        self.iter().any(|symbol| symbol.name == wanted)
    }

    /// Returns the names of the functions that contain these addresses; `unknown` if the kernel hides them.
    pub fn around(&self, addresses: &[u64]) -> Vec<String> {
        let mut best = vec![(0, "unknown"); addresses.len()];
        for line in self.lines() {
            let Some(begins) = line.address() else {
                continue;
            };
            for (best, address) in best.iter_mut().zip(addresses) {
                if begins <= *address && begins > best.0 {
                    *best = (begins, line.name);
                }
            }
        }
        let names = best.into_iter().map(|(_, name)| plain(name));
        names.map(str::to_owned).collect()
    }

    /// Fills in the addresses that pointers to functions have, and those of variables. Symbols that the kernel lacks or hides are
    /// not changed.
    pub fn fill(&self, wanted: &mut [(&str, &mut u64)]) {
        let mut found: HashMap<&str, [Option<u64>; 2], RandomState> = HashMap::default();
        found.extend(wanted.iter().map(|(name, _)| (*name, [None; 2])));
        for symbol in self.iter() {
            if let Some(addresses) = found.get_mut(symbol.name) {
                let address = &mut addresses[usize::from(!symbol.is_jump)];
                *address = address.or_else(|| symbol.line.address().filter(|at| *at != 0));
            }
        }
        for (name, address) in wanted {
            let [of_jump, of_function] = found.get(name).copied().unwrap_or_default();
            **address = of_jump.or(of_function).unwrap_or(**address);
        }
    }
}

/// The name of a function, without what the compiler put behind it.
fn plain(name: &str) -> &str {
    name.split(['.', '$']).next().unwrap_or(name)
}

/// The kernel's functions, by their first addresses.
pub struct Functions(Vec<(u64, Box<str>)>);

impl Functions {
    /// The function that a call returns to, and the place in it, as `ext4_create+0x5b`; `unknown` where the kernel hides its
    /// symbols.
    pub fn place(&self, address: u64) -> String {
        // The call may be the function's last instruction.
        let behind = self.0.partition_point(|(begin, _)| *begin < address);
        let function = behind.checked_sub(1).and_then(|at| self.0.get(at));
        function.map_or("unknown".into(), |(begin, name)| {
            format!("{name}+{:#x}", address - begin)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_known_by_their_names() {
        let symbols = Symbols(
            "ffffffff81000010 t clone_endio.llvm.1234567890\t[dm_mod]\n\
             ffffffff81000020 t bio_chain_endio.cold\n\
             ffffffff81000030 t bio_chain_endio\n\
             ffffffff81000040 t bio_chain_endio\n"
                .into(),
        );
        let (mut clone, mut chain, mut absent) = (0, 0, 7);
        symbols.fill(&mut [
            ("clone_endio", &mut clone),
            ("bio_chain_endio", &mut chain),
            ("crypt_endio", &mut absent),
        ]);
        assert_eq!(
            (clone, chain, absent),
            (0xffff_ffff_8100_0010, 0xffff_ffff_8100_0030, 7)
        );
        assert!(symbols.has("clone_endio") && !symbols.has("crypt_endio"));
        assert!(!symbols.are_hidden());
    }

    /// These lists are like those of Android's kernels, with and without link-time optimisation.
    #[test]
    fn a_pointer_has_the_address_of_the_jump() {
        let symbols = Symbols(
            "ffffffc010000010 t clone_endio\t[dm_mod]\n\
             ffffffc010000020 t bio_chain_endio.llvm.12345\n\
             ffffffc010000030 t bio_chain_endio.llvm.12345.cfi_jt\n\
             ffffffc010000040 t clone_endio.cfi_jt\t[dm_mod]\n\
             ffffffc010000050 D vmemmap_base\n"
                .into(),
        );
        let (mut clone, mut chain, mut base) = (0, 0, 0);
        symbols.fill(&mut [
            ("clone_endio", &mut clone),
            ("bio_chain_endio", &mut chain),
            ("vmemmap_base", &mut base),
        ]);
        assert_eq!(
            (clone, chain, base),
            (
                0xffff_ffc0_1000_0040,
                0xffff_ffc0_1000_0030,
                0xffff_ffc0_1000_0050
            )
        );
    }

    /// These names are like those of Android's 5.4 with ThinLTO.
    #[test]
    fn a_number_behind_a_name_is_not_part_of_it() {
        let symbols = Symbols(
            "ffffffc010000010 t clone_endio$5c0f4a8e17d2\t[dm_mod]\n\
             ffffffc010000020 t bio_chain_endio$b4dfc2e6\n\
             ffffffc010000030 t bio_chain_endio$b4dfc2e6.cfi_jt\n\
             ffffffc010000040 t bio_chain_endio$b4dfc2e6.cold\n"
                .into(),
        );
        let (mut clone, mut chain) = (0, 0);
        symbols.fill(&mut [("clone_endio", &mut clone), ("bio_chain_endio", &mut chain)]);
        assert_eq!(
            (clone, chain),
            (0xffff_ffc0_1000_0010, 0xffff_ffc0_1000_0030)
        );
        assert!(symbols.has("clone_endio"));
        assert_eq!(
            symbols.around(&[0xffff_ffc0_1000_0021]),
            ["bio_chain_endio"]
        );
        let place = symbols.functions().place(0xffff_ffc0_1000_0014);
        assert_eq!(place, "clone_endio+0x4");
    }

    #[test]
    fn an_address_lies_in_the_function_that_begins_before_it() {
        let symbols = Symbols(
            "ffffffff81000100 t ext4_unlink.isra.0\t[ext4]\n\
             ffffffff81000000 t ext4_create\n"
                .into(),
        );
        let addresses = [0xffff_ffff_8100_00ff, 0xffff_ffff_8100_0100, 7];
        assert_eq!(
            symbols.around(&addresses),
            ["ext4_create", "ext4_unlink", "unknown"]
        );
    }

    #[test]
    fn hidden_symbols_have_names_alone() {
        let hidden =
            Symbols("0000000000000000 T bio_iov_iter_bounce\n0000000000000000 t a.cold\n".into());
        assert!(hidden.are_hidden() && hidden.has("bio_iov_iter_bounce"));
        let mut address = 0;
        hidden.fill(&mut [("bio_iov_iter_bounce", &mut address)]);
        assert_eq!(address, 0);
    }
}
