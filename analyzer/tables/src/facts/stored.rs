// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stored columns of a row: numbers, and numbers of names. The [catalogue](super::catalogue) computes the visible
//! columns from them. Their names begin with `_`, unlike those of the catalogue.

use polars::prelude::{Column, DataFrame, IdxSize, NamedFrom, PolarsResult, Series};

use mostrace_map::ELSEWHERE;
use mostrace_map::class::Provenance;

use super::field::Field;
use super::rewrites::Rewrites;
use super::values::Values;
use mostrace_trace::attribute::{FileId, Request, Row};
use mostrace_trace::blktrace::action;
use mostrace_trace::causes::{CauseId, Known, Share, Verdicts};
use mostrace_trace::labels::kind_code;
use mostrace_trace::origins::Base;
use mostrace_trace::tally::Tally;

/// Stands for an unknown value in columns of 64 bits.
pub const NONE: u64 = u64::MAX;
/// Stands for an unknown value in columns of 32 bits.
pub const NONE_32: u32 = u32::MAX;

/// The fields of `_bits`. A field of an enum has 0 for None and else the enum's own code plus one, unless its comment says
/// otherwise.
pub mod bits {
    use super::Field;

    /// [`Op`](mostrace_trace::attribute::Op)'s own code.
    pub const OP: Field = Field::first(4);
    /// [`Part`](super::Part)'s own code.
    pub const PART: Field = OP.then(2);
    /// The [`Kind`](mostrace_map::class::Kind) of block: its [`kind_code`](mostrace_trace::labels::kind_code).
    pub const KIND: Field = PART.then(6);
    /// When the entry was made, see `entry_stage`.
    pub const STAGE: Field = KIND.then(3);
    /// The maker of the entry, see `entry_origin`.
    pub const ORIGIN: Field = STAGE.then(5);
    /// How the file was found: a [`Provenance`](mostrace_map::class::Provenance).
    pub const FOUND: Field = ORIGIN.then(3);
    /// The kind of the block that a journal's block is a copy of.
    pub const HOME_KIND: Field = FOUND.then(6);
    /// [`LETTERS`](super::LETTERS) and whether the request has bytes, as blkparse's letters need them.
    pub const RWBS: Field = HOME_KIND.then(8);
    /// 1 if the request begins where the one before it ended.
    pub const SEQUENTIAL: Field = RWBS.then(1);
    /// 1 if the device reported an error.
    pub const FAILED: Field = SEQUENTIAL.then(1);
    /// [`Known`](mostrace_trace::causes::Known)'s own code; 0 also if causes were not asked for.
    pub const KNOWN: Field = FAILED.then(3);
    /// 1 for every share of a row but its first.
    pub const LATER_SHARE: Field = KNOWN.then(1);
    /// [`Reason`](mostrace_trace::causes::Reason)'s own code; 0 is none.
    pub const REASON: Field = LATER_SHARE.then(5);
    /// 1 if all its causers belong to one process.
    pub const ONE_PROCESS: Field = REASON.then(1);
    /// [`Force`](mostrace_trace::causes::Force)'s own code; 0 is none.
    pub const FORCE: Field = ONE_PROCESS.then(4);
}

/// The categories that blkparse has letters for, in [`bits::RWBS`] from the lowest bit on; the highest bit says whether the
/// request has bytes.
pub(super) const LETTERS: [u64; 7] = [
    action::BLK_TC_SYNC,
    action::BLK_TC_FUA,
    action::BLK_TC_FLUSH,
    action::BLK_TC_META,
    action::BLK_TC_WRITE,
    action::BLK_TC_DISCARD,
    action::BLK_TC_AHEAD,
];

/// The position of a row among its request's rows, by which a request is counted once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RowPosition {
    /// The only row.
    Whole,
    /// The first of several rows.
    First,
    /// A later row.
    Later,
}

macro_rules! stored {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)+) => {
        #[derive(Default)]
        struct Columns {
            rows: usize,
            $($name: Values<$type>,)+
        }

        /// One stored row.
        struct Stored { $($name: $type,)+ }

        /// The names of the columns.
        pub mod column {
            $($(#[$doc])* #[allow(non_upper_case_globals)] pub const $name: &str = concat!("_", stringify!($name));)+
        }

        impl Columns {
            fn push(&mut self, row: Stored) {
                $(self.$name.push(row.$name, self.rows);)+
                self.rows.tally(1);
            }

            /// Removes all rows and returns them as a frame.
            fn take(&mut self) -> PolarsResult<DataFrame> {
                let rows = std::mem::take(&mut self.rows);
                let columns: Vec<Column> = vec![
                    $(self.$name.take(column::$name, rows),)+
                ];
                DataFrame::new(rows, columns)
            }
        }
    };
}

stored! {
    /// Number of the completion.
    request: u32,
    /// Time of C, ns in the trace's clock.
    time: u64,
    /// Time of D, or NONE.
    d: u64,
    /// Time of Q, or NONE.
    q: u64,
    /// Time when the first page became dirty, or NONE.
    dirty: u64,
    /// The first sector of the row.
    sector: u64,
    /// Bytes of the row.
    bytes: u32,
    /// Bytes of the whole request.
    size: u32,
    /// See [`bits`].
    bits: u64,
    /// Number in [`Builder::devices`].
    device: u32,
    /// The errno that the device reported.
    error: u32,
    /// Number of the process that submitted it.
    process: u32,
    /// Number of the process that dirtied the pages.
    dirtier: u32,
    /// Number of the file.
    file: u32,
    /// Offset in the file, bytes, or NONE.
    offset: u64,
    /// Number of the jbd2 transaction, or NONE_32.
    tid: u32,
    /// The sector that a journal's block is a copy of, or NONE.
    home_sector: u64,
    /// Number of the file that the copied block belongs to.
    home_file: u32,
    /// Bytes that were written before in the trace, or NONE_32.
    rewritten: u32,
    /// Time since that write, ns, or NONE.
    rewrite: u64,
    /// Number of the completion of the device flush that was waited for, or NONE_32.
    device_flush: u32,
    /// The cause of the largest share.
    cause: u32,
    /// Number of causers.
    causers: u32,
    /// Time since the call that was waited for it began, ns, or NONE.
    waited: u64,
    /// The thread of the call that forced it, or NONE_32.
    forced_pid: u32,
    /// The start of that call, or NONE.
    forced_start: u64,
    /// Index of the recording.
    origin: u32,
}

/// Collects rows.
#[derive(Default)]
pub(super) struct Builder {
    columns: Columns,
    requests: u32,
    /// The device numbers seen so far.
    pub devices: Vec<u32>,
    /// The bases of the current recording's numbers.
    pub base: Base,
    /// The blocks that were written before, if that is tracked.
    pub rewrites: Option<Rewrites>,
    /// The shares of rows with several causers.
    shares: Shares,
}

impl Builder {
    pub fn new(rewrites: Option<Rewrites>) -> Builder {
        Builder {
            rewrites,
            ..Builder::default()
        }
    }

    /// Returns the number of rows that wait to be [taken](Self::take).
    pub fn len(&self) -> usize {
        self.columns.rows
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Removes all rows and returns them as a frame, with the shares of those with several causers.
    pub fn take(&mut self) -> PolarsResult<(DataFrame, Option<DataFrame>)> {
        Ok((self.columns.take()?, self.shares.take()?))
    }

    /// Adds a request with its rows, and their causers if causes were asked for.
    pub fn push(&mut self, request: &Request, rows: &[Row], verdicts: Option<&Verdicts>) {
        let mut verdicts = verdicts.into_iter().flat_map(Verdicts::iter);
        let device = self.device(request.device);
        let base = self.base;
        let flush = request.device_flush;
        let flush = flush.map(|number| number.saturating_add(base.requests));
        let shared = bits::OP.word(request.op as u64)
            | bits::RWBS.word(letters(request))
            | bits::SEQUENTIAL.word(request.sequential.into())
            | bits::FAILED.word((request.error != 0).into());
        for (at, row) in rows.iter().enumerate() {
            let part = match (rows.len(), at) {
                (1, _) => RowPosition::Whole,
                (_, 0) => RowPosition::First,
                _ => RowPosition::Later,
            };
            let (rewritten, rewrite) = self
                .rewrites
                .as_mut()
                .map_or((None, None), |rewrites| rewrites.see(request, row));
            let (verdict, shares) = verdicts.next().unzip();
            let shares = shares.unwrap_or_default();
            let forced = verdict.and_then(|v| v.forced);
            let call = forced.and_then(|f| f.call);
            let first = shares.first();
            if shares.len() > 1 {
                self.shares.push(self.columns.rows, shares, self.base);
            }
            let cause = first.map_or(CauseId::UNKNOWN, |share| share.cause);
            let journal = row.journal;
            let home_kind = journal.and_then(|j| j.home_kind);
            let packed = shared
                | bits::PART.word(part as u64)
                | bits::KIND.word(row.kind.map_or(0, kind_code))
                | bits::STAGE.word(row.stage.map_or(0, |s| 1 + u64::from(s.0)))
                | bits::ORIGIN.word(row.origin.map_or(0, |o| 1 + u64::from(o.0)))
                | bits::FOUND.word(row.found.map_or(0, found_code))
                | bits::HOME_KIND.word(home_kind.map_or(0, kind_code))
                | bits::REASON.word(verdict.and_then(|v| v.reason).map_or(0, |r| r as u64))
                | bits::FORCE.word(forced.map_or(0, |f| f.by as u64))
                | bits::ONE_PROCESS.word(verdict.is_some_and(|v| v.is_one_process).into())
                | bits::KNOWN.word(verdict.map_or(Known::Unknown, |v| v.known) as u64);
            self.columns.push(Stored {
                request: self.requests,
                time: request.time_ns,
                d: request.d_ns.unwrap_or(NONE),
                q: row.q_ns.unwrap_or(NONE),
                dirty: row.dirty_ns.unwrap_or(NONE),
                sector: row.sector,
                bytes: row.bytes,
                size: request.bytes,
                bits: packed,
                device,
                error: request.error.into(),
                process: base.process(row.process).0,
                dirtier: base.process(row.dirtier).0,
                file: base.file(row.file).0,
                offset: row.file_offset.unwrap_or(NONE),
                tid: journal.and_then(|j| j.tid).unwrap_or(NONE_32),
                home_sector: journal
                    .and_then(|j| j.home_sector)
                    .filter(|&sector| sector < ELSEWHERE)
                    .unwrap_or(NONE),
                home_file: base.file(journal.map_or(FileId::NONE, |j| j.home_file)).0,
                rewritten: rewritten.unwrap_or(NONE_32),
                rewrite: rewrite.unwrap_or(NONE),
                device_flush: flush.unwrap_or(NONE_32),
                cause: base.cause(cause).0,
                causers: verdict.map_or(0, |verdict| verdict.causers),
                waited: verdict.and_then(|v| v.latency_ns).unwrap_or(NONE),
                forced_pid: call.map_or(NONE_32, |(pid, _)| pid),
                forced_start: call.map_or(NONE, |(_, start_ns)| start_ns),
                origin: base.origin,
            });
        }
        self.requests.tally(1);
    }

    /// Returns the index of a device; a trace has few.
    fn device(&mut self, device: u32) -> u32 {
        let at = self.devices.iter().position(|&d| d == device);
        let at = at.unwrap_or_else(|| {
            let number = self.devices.len();
            self.devices.push(device);
            number
        });
        at as u32
    }
}

/// The column of the row that a share is of.
pub(super) const ROW: &str = "_row";
/// The column of the fields in which a share differs from its row.
pub(super) const SHARE_BITS: &str = "_share_bits";

/// The collected shares, grouped by row, the first share of each row first.
#[derive(Default)]
struct Shares {
    /// The row's index in its batch.
    row: Vec<IdxSize>,
    bytes: Vec<u32>,
    cause: Vec<u32>,
    /// The fields of [`bits`] in which a share differs from its row.
    bits: Vec<u64>,
}

impl Shares {
    /// Adds the shares of a row; `base` is where its recording's numbers begin.
    fn push(&mut self, row: usize, shares: &[Share], base: Base) {
        for (nth, share) in shares.iter().enumerate() {
            // A batch has fewer rows than fit.
            self.row.push(row as IdxSize);
            self.bytes.push(share.bytes);
            self.cause.push(base.cause(share.cause).0);
            let later = bits::LATER_SHARE.word((nth > 0).into());
            self.bits.push(bits::KNOWN.word(share.known as u64) | later);
        }
    }

    /// Removes all shares and returns them as a frame; None if there are none.
    fn take(&mut self) -> PolarsResult<Option<DataFrame>> {
        let Shares {
            row,
            bytes,
            cause,
            bits,
        } = std::mem::take(self);
        if row.is_empty() {
            return Ok(None);
        }
        let columns: Vec<Column> = vec![
            Series::new(ROW.into(), row).into(),
            Series::new(column::bytes.into(), bytes).into(),
            Series::new(column::cause.into(), cause).into(),
            Series::new(SHARE_BITS.into(), bits).into(),
        ];
        DataFrame::new_infer_height(columns).map(Some)
    }
}

/// Returns the code of a provenance in [`bits::FOUND`].
pub(super) const fn found_code(found: Provenance) -> u64 {
    (found as u64).saturating_add(1)
}

fn letters(request: &Request) -> u64 {
    let mut code = u64::from(request.bytes != 0) << LETTERS.len();
    for (at, letter) in LETTERS.iter().enumerate() {
        code |= u64::from(request.action & letter != 0) << at;
    }
    code
}
