// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads all rows of a trace one after the other, cut into the shares of their causers.

use mostrace_map::class::Kind;
use polars::prelude::{Column as Values, Expr, col};

use super::words::{Codes, LayerWord, Layers, Who, Words};
use mostrace_tables::facts::catalogue::Key;
use mostrace_tables::facts::row::Text;
use mostrace_tables::facts::{Column, Facts, NONE, Part, Rows, bits, stored_column as at};
use mostrace_tables::tables::Result;
use mostrace_trace::attribute::Op;
use mostrace_trace::causes::Known;

/// The properties of a share that are not numbers of its own: what it is, and whose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Cell {
    /// [`Op`]'s own code.
    pub op: u8,
    /// [`Known`]'s own code.
    pub known: u8,
    /// The process that caused it, or else its submitter.
    pub who: u32,
    /// The file that it was done to, or else the one that is written or read.
    pub file: u32,
    /// The number of the file that the blocks belong to plus one; 0 if that is `file`.
    pub own: u32,
    pub layer: u32,
    /// The operation that caused it.
    pub why: u32,
}

/// A share of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Number of the completion.
    pub request: u32,
    pub time_ns: u64,
    pub q_ns: Option<u64>,
    pub d_ns: Option<u64>,
    /// The start of the call that forced it.
    pub forced_ns: Option<u64>,
    pub sector: Option<u64>,
    pub bytes: u64,
    pub op: Op,
    pub cell: Cell,
    pub sequential: bool,
    pub fua: bool,
}

/// The words that the cells refer to.
#[derive(Default)]
pub(super) struct Dictionary {
    pub whos: Words,
    /// The package of each process, where it has one.
    pub packages: Vec<Option<String>>,
    pub files: Words,
    pub whys: Words,
    pub layers: Layers,
}

impl Dictionary {
    /// Returns the processes with their programs.
    pub fn whos(&self) -> Vec<Who> {
        let package = |at: usize| self.packages.get(at).and_then(Option::as_deref);
        let whos = self.whos.list().iter().enumerate();
        whos.map(|(at, name)| Who::new(name.as_deref(), package(at)))
            .collect()
    }
}

/// The rows of a trace.
pub(super) struct Scan<'f> {
    facts: &'f Facts,
    filesystem: &'f str,
    columns: Vec<Expr>,
    role: Codes,
    who: Codes,
    file: Codes,
    own: Codes,
    why: Codes,
    package: Codes,
    cause_package: Codes,
}

/// The columns of text, in the order in which they follow the numbers.
const TEXTS: [&str; 7] = [
    "role",
    "cause_or_submitter",
    "cause_or_file",
    "file",
    "cause_op",
    "package",
    "cause_package",
];
const NUMBERS: [&str; 8] = [
    at::request,
    at::time,
    at::q,
    at::d,
    at::sector,
    at::bytes,
    at::bits,
    at::forced_start,
];

impl<'f> Scan<'f> {
    pub fn new(facts: &'f Facts, filesystem: &'f str) -> Scan<'f> {
        let texts = TEXTS.map(|name| (name, words_of(facts, name)));
        let codes = texts
            .iter()
            .map(|(name, text)| text.code.clone().alias(*name));
        let columns = NUMBERS.map(col).into_iter().chain(codes).collect();
        let [role, who, file, own, why, package, cause_package] =
            texts.map(|(_, text)| Codes::new(text.words));
        Scan {
            facts,
            filesystem,
            columns,
            role,
            who,
            file,
            own,
            why,
            package,
            cause_package,
        }
    }

    /// Calls `see` with every share of every row, and adds the words that they need to the dictionary.
    pub fn each(&mut self, dictionary: &mut Dictionary, mut see: impl FnMut(Seen)) -> Result<()> {
        let columns = self.columns.clone();
        for view in self.facts.view(columns, Part::Any, None, Rows::Shares) {
            let frame = view?.collect()?;
            let columns: Vec<Values> = frame.columns().iter().map(Values::rechunk).collect();
            let long = |at: usize| columns[at].u64()?.cont_slice();
            let short = |at: usize| columns[at].u32()?.cont_slice();
            let (request, time) = (short(0)?, long(1)?);
            let (q, d, sector) = (long(2)?, long(3)?, long(4)?);
            let (bytes, word) = (short(5)?, long(6)?);
            let forced = long(7)?;
            let [role, who, file, own, why, package, cause_package] = [8, 9, 10, 11, 12, 13, 14];
            let (role, who, file, own) = (short(role)?, short(who)?, short(file)?, short(own)?);
            let (why, package, cause_package) =
                (short(why)?, short(package)?, short(cause_package)?);
            let known = |value: u64| (value != NONE).then_some(value);
            for row in 0..frame.height() {
                let op = Op::ALL.get(bits::OP.of(word[row]) as usize);
                let op = op.copied().unwrap_or_default();
                let packages = [cause_package[row], package[row]];
                let who = self.who(who[row], packages, dictionary);
                let layer = self.layer(op, word[row], role[row], dictionary);
                let file = self.file.number(file[row], &mut dictionary.files);
                let own = self.own.number(own[row], &mut dictionary.files);
                let cell = Cell {
                    op: op as u8,
                    known: bits::KNOWN.of(word[row]) as u8,
                    who,
                    file,
                    own: if own == file {
                        0
                    } else {
                        own.saturating_add(1)
                    },
                    layer,
                    why: self.why.number(why[row], &mut dictionary.whys),
                };
                see(Seen {
                    request: request[row],
                    time_ns: time[row],
                    q_ns: known(q[row]),
                    d_ns: known(d[row]),
                    forced_ns: known(forced[row]),
                    sector: known(sector[row]),
                    bytes: bytes[row].into(),
                    op,
                    cell,
                    sequential: bits::SEQUENTIAL.of(word[row]) != 0,
                    fua: bits::RWBS.of(word[row]) & FUA != 0,
                });
            }
        }
        Ok(())
    }

    fn who(&mut self, code: u32, packages: [u32; 2], dictionary: &mut Dictionary) -> u32 {
        let number = self.who.number(code, &mut dictionary.whos);
        let at = number as usize;
        if at >= dictionary.packages.len() {
            let [cause, submitter] = packages;
            let package = self.cause_package.word(cause);
            let package = package.or_else(|| self.package.word(submitter));
            dictionary.packages.resize(at.saturating_add(1), None);
            dictionary.packages[at] = package.map(str::to_owned);
        }
        number
    }

    fn layer(&self, op: Op, word: u64, role: u32, dictionary: &mut Dictionary) -> u32 {
        let kinds = [bits::KIND.of(word), bits::HOME_KIND.of(word)];
        let [kind, home] = kinds;
        if !op.carries_data() {
            return dictionary
                .layers
                .number((op, 0, 0, 0), || LayerWord::without_data(op));
        }
        // Reads and writes of the same blocks are one layer.
        dictionary.layers.number((Op::Write, kind, home, role), || {
            let of = |code: u64| Kind::ALL.get(code.checked_sub(1)? as usize).copied();
            LayerWord::of(of(kind), self.role.word(role), of(home), self.filesystem)
        })
    }
}

/// The place of blkparse's letter F among [`bits::RWBS`].
const FUA: u64 = 1 << 1;

/// Returns a column of a few words.
fn words_of(facts: &Facts, name: &str) -> Text {
    match Column::find(name).and_then(|column| column.key(facts)) {
        Some(Key::Text(text)) => text,
        _ => Text::new([at::bits], [None], |_| 0),
    }
}

/// Returns the words for how certain a cause is, by number.
pub(super) fn known_words() -> Vec<&'static str> {
    use strum::VariantArray;
    Known::VARIANTS
        .iter()
        .map(|known| (*known).into())
        .collect()
}
