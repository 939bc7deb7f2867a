// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the formats of other tools: simulators, replayers, flame graphs.
//!
//! | format | a record is | time |
//! | --- | --- | --- |
//! | folded | `process;stack…;file;role;class;kind bytes` of writes, summed up | – |
//! | alibaba | `device_id,opcode,offset,length,timestamp` of a read or a write | arrival, µs |
//! | msr | `timestamp,host,disk,type,offset,size,response time` | arrival, 100 ns since 1601 |
//! | oracle-general | 24 bytes for each 4 KiB block of a read or a write: u32 time, u64 block, u32 size, i64 next access | arrival, s |
//! | perfetto | [slices, counters and flows](super::perfetto) | ns |
//! | iolog | [fio's version 3](super::iolog): reads, writes, trims, and a sync for each flush of the device | arrival, µs |

use std::io::{self, BufWriter, Write};

use super::error::{Error, Result};
use super::iolog;
use super::left_out::LeftOut;
use super::oracle::{Access, next_accesses};
use super::perfetto;
use super::requests::{self, SECTOR};
use crate::analysis::Analysis;
use crate::facts::Facts;
use crate::tables::{Grouping, summed};
use mostrace_trace::attribute::Op;
use mostrace_trace::output::Output;
use mostrace_trace::sums::Label;

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Foreign {
    /// Stacks for flame graphs (flamegraph.pl, speedscope): process;file;role;class;kind, and bytes written; if stacks were
    /// recorded, their frames follow the process
    Folded,
    /// fio's iolog, version 3, for --read_iolog
    Iolog,
    /// Block traces as Alibaba publishes them
    Alibaba,
    /// Block traces as Microsoft Research Cambridge publishes them
    Msr,
    /// libCacheSim's oracleGeneral, a record for each block of 4 KiB
    OracleGeneral,
    /// Perfetto's trace format, for ui.perfetto.dev and trace_processor: calls, requests, counters, and flows between them
    Perfetto,
}

/// Bytes of an object in oracleGeneral.
const BLOCK: u64 = 4096;
/// Blocks that oracleGeneral has room for: some for each request, as long as a device's are on average at most (4 MiB), and
/// some for all. A small bundle can tell of requests of 4 GiB.
const BLOCKS_A_REQUEST: u64 = 1 << 10;
const BLOCKS: u64 = 1 << 20;
/// The time from 1601 to 1970, in units of 100 ns.
const FILETIME_OF_UNIX: u64 = 116_444_736_000_000_000;

impl Foreign {
    /// Returns true if the format has causes.
    pub fn has_causes(self) -> bool {
        matches!(self, Foreign::Folded | Foreign::Perfetto)
    }

    /// Returns true if the format consists of sums, so that several recordings can be added up; the other formats are of one
    /// disk's time.
    pub fn adds_up(self) -> bool {
        self == Foreign::Folded
    }

    /// Returns true if the format is binary and must not be shown on a terminal.
    pub fn is_binary(self) -> bool {
        matches!(self, Foreign::OracleGeneral | Foreign::Perfetto)
    }

    /// Writes the trace; returns lines about what the format cannot hold. `target` is the file that fio is to write to.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written or the trace lacks what the format needs.
    pub fn write(self, analysis: &Analysis, target: &str, out: &mut Output) -> Result<Vec<String>> {
        let facts = &analysis.facts;
        let mut left_out = LeftOut::default();
        let written = match self {
            Foreign::Folded => folded(facts, out),
            Foreign::Iolog => iolog::write(facts, target, out, &mut left_out),
            Foreign::Alibaba => alibaba(facts, out, &mut left_out),
            Foreign::Msr => msr(facts, out, &mut left_out),
            Foreign::OracleGeneral => oracle_general(facts, out, &mut left_out),
            Foreign::Perfetto => perfetto::write(analysis, out),
        };
        match written {
            // The output knows which file it was.
            Err(Error::Io(error)) => out.end(Err(error))?,
            Err(other) => return Err(other),
            Ok(()) => out.end(Ok::<(), io::Error>(()))?,
        }
        Ok(left_out.words())
    }
}

fn folded(facts: &Facts, out: &mut Output) -> Result<()> {
    const CAUSED: [&str; 7] = [
        "cause_process",
        "cause_stack",
        "cause_file",
        "role",
        "class",
        "kind",
        "home_kind",
    ];
    let groups = summed(facts, Grouping::by(&CAUSED), None)?;
    let mut stacks: Vec<(String, u64)> = Vec::new();
    for (labels, totals) in groups.groups.iter().filter(|(_, t)| t.write_bytes > 0) {
        let frames = labels.iter().zip(CAUSED).filter_map(|(label, column)| {
            match (column, label) {
                ("cause_stack", Label::Text(frames)) => Some(frames.clone()),
                ("cause_stack", _) => facts.has_stacks().then(|| "[unknown]".to_owned()),
                // A copy in the journal is followed by the kind that it is a copy of.
                ("home_kind", Label::Empty) => None,
                _ => Some(frame(label)),
            }
        });
        let frames: Vec<String> = frames.collect();
        stacks.push((frames.join(";"), totals.write_bytes));
    }
    stacks.sort();
    for (stack, bytes) in stacks {
        writeln!(out, "{stack} {bytes}")?;
    }
    Ok(())
}

/// Escapes semicolons, which end a frame.
fn frame(label: &Label) -> String {
    let text = label.text().unwrap_or_else(|| "-".into());
    text.replace(';', "\\x3b")
}

fn alibaba(facts: &Facts, out: &mut Output, left_out: &mut LeftOut) -> Result<()> {
    let mut out = BufWriter::new(out);
    left_out.late = requests::each(facts, |request| {
        if left_out.moves(request) {
            let opcode = if request.op == Op::Read { 'R' } else { 'W' };
            let offset = request.sector.unwrap_or(0).saturating_mul(SECTOR);
            let (device, bytes) = (request.device, request.bytes);
            let time_us = request.arrived_ns / 1000;
            writeln!(out, "{device},{opcode},{offset},{bytes},{time_us}")?;
        }
        Ok::<_, Error>(())
    })?;
    Ok(out.flush()?)
}

fn msr(facts: &Facts, out: &mut Output, left_out: &mut LeftOut) -> Result<()> {
    let (mono_ns, unix_ns) = facts.clock().ok_or(Error::NoClock)?;
    let filetime = |time_ns: u64| {
        let since_ns = i128::from(time_ns).saturating_sub(mono_ns.into());
        // Times before 1970 are as wrong as those beyond the format's range.
        let unix_ns = since_ns.saturating_add(unix_ns.into()).max(0);
        u64::try_from(unix_ns / 100)
            .unwrap_or(u64::MAX)
            .saturating_add(FILETIME_OF_UNIX)
    };
    let mut out = BufWriter::new(out);
    left_out.late = requests::each(facts, |request| {
        if left_out.moves(request) {
            let kind = if request.op == Op::Read {
                "Read"
            } else {
                "Write"
            };
            let offset = request.sector.unwrap_or(0).saturating_mul(SECTOR);
            let took = request.completed_ns.saturating_sub(request.arrived_ns) / 100;
            let (time, disk, bytes) = (filetime(request.arrived_ns), request.device, request.bytes);
            writeln!(out, "{time},host,{disk},{kind},{offset},{bytes},{took}")?;
        }
        Ok::<_, Error>(())
    })?;
    Ok(out.flush()?)
}

fn oracle_general(facts: &Facts, out: &mut Output, left_out: &mut LeftOut) -> Result<()> {
    let mut accesses: Vec<Access> = Vec::new();
    let mut number = 0_u64;
    let start_ns = facts.span_ns().map_or(0, |(first, _)| first);
    left_out.late = requests::each(facts, |request| {
        if left_out.moves(request) {
            let from = request.sector.unwrap_or(0).saturating_mul(SECTOR);
            let seconds = request.arrived_ns.saturating_sub(start_ns) / 1_000_000_000;
            let (block, end) = (
                from / BLOCK,
                from.saturating_add(request.bytes).div_ceil(BLOCK),
            );
            let blocks = end.saturating_sub(block);
            accesses.push(Access {
                seconds: u32::try_from(seconds).unwrap_or(u32::MAX),
                block: u64::from(request.device) << 52 | block,
                blocks,
                number,
            });
            number = number.saturating_add(blocks);
        }
        Ok::<_, Error>(())
    })?;
    let requests = u64::try_from(accesses.len()).unwrap_or(u64::MAX);
    if number
        > requests
            .saturating_mul(BLOCKS_A_REQUEST)
            .saturating_add(BLOCKS)
    {
        return Err(Error::TooLong {
            requests: accesses.len(),
            blocks: number,
        });
    }
    let mut out = BufWriter::new(out);
    for (access, next) in accesses.iter().zip(next_accesses(&accesses)) {
        for next in next {
            for block in next.blocks.clone() {
                out.write_all(&access.seconds.to_le_bytes())?;
                out.write_all(&block.to_le_bytes())?;
                out.write_all(&(BLOCK as u32).to_le_bytes())?;
                out.write_all(&next.of(block).to_le_bytes())?;
            }
        }
    }
    Ok(out.flush()?)
}
