// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands that are run on each changed bundle.

use std::ffi::OsString;
use std::path::Path;

use super::random::Random;

/// The form of a run's output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Text for people.
    Text,
    Json,
    /// Data for programs only, or a page.
    Other,
}

/// The words of a command line: `B` is the changed bundle, `O` an unchanged one, `F` a file to write.
pub struct Verb {
    words: &'static [&'static str],
    pub form: Form,
}

macro_rules! verbs {
    ($($form:ident: $($word:literal)+;)+) => { &[$(Verb { words: &[$($word),+], form: Form::$form }),+] };
}

const VERBS: &[Verb] = verbs! {
    Text: "analyze" "B";
    Json: "analyze" "B" "--json";
    Text: "analyze" "B" "--where" "op = 'write' AND bytes > 4096";
    Text: "analyze" "B" "--partial" "--no-map";
    Text: "analyze" "B" "--tree";
    Json: "analyze" "B" "--tree" "--json";
    Text: "analyze" "B" "--tree" "--share" "equal" "--where" "class = 'journal'";
    Text: "analyze" "B" "--by" "file,kind" "--top" "5";
    Text: "analyze" "B" "--by" "process,class,role" "--where" "sector > 100 OR file LIKE '%db%'";
    Text: "analyze" "B" "--by" "cause_process,cause_op" "--share" "equal";
    Text: "analyze" "B" "--by" "cause_file,cause_known" "--columns" "cause_file,bytes,writes";
    Text: "analyze" "B" "--by" "cause_of_command,cause_process" "--where" "cause_of_command";
    Text: "analyze" "B" "--by" "cause_database,checkpoint_reason";
    Json: "analyze" "B" "--by" "class" "--percentiles" "--json";
    Text: "analyze" "B" "--by" "dirtier" "--percentiles" "--where" "d2c_ns > 1000";
    Text: "analyze" "B" "--by" "size,cause_package";
    Text: "events" "B";
    Text: "events" "B" "--format" "csv";
    Json: "events" "B" "--json" "--partial";
    Text: "events" "B" "--where" "op = 'write' AND cause_op = 'fsync'" "--columns" "time_utc,file,cause_process,file_offset,rewrite_ns";
    Other: "events" "B" "--format" "parquet" "-o" "F";
    Text: "analyze" "B" "--waits";
    Json: "analyze" "B" "--waits" "--by" "process,file" "--top" "5" "--json";
    Text: "query" "B" "SELECT call, sum(wait_flush_ns) FROM calls GROUP BY call";
    Text: "query" "B" "SELECT role, sum(bytes) FROM events WHERE op = 'write' GROUP BY role";
    Json: "query" "B" "SELECT * FROM events ORDER BY d2c_ns DESC LIMIT 100" "--json";
    Text: "query" "B" "SELECT path, write_bytes FROM files ORDER BY write_bytes DESC";
    Json: "query" "B" "SELECT * FROM requests JOIN causes ON requests.completion = causes.completion LIMIT 100" "--json";
    Text: "query" "B" "SELECT process, sum(write_bytes) FROM processes GROUP BY process";
    Text: "query" "B" "SELECT process, database, count(*) FROM transactions GROUP BY process, database";
    Text: "analyze" "O" "B" "--by" "bundle,file" "--top" "5";
    Other: "report" "B" "-o" "F";
    Other: "report" "O" "B" "-o" "F";
    Text: "diff" "O" "B";
    Text: "diff" "B" "O";
    Text: "diff" "O" "B" "O";
    Json: "diff" "B" "B" "--json";
    Text: "flash" "B" "--capacity" "256MiB" "--block" "256K";
    Json: "flash" "B" "--capacity" "256MiB" "--discard" "always" "--page" "16K" "--json";
    Text: "check" "B" "--max-write-bytes" "1" "--max-bytes-per-transaction" "1" "--max-amplification" "1" "--max-flushes-per-transaction" "1";
    Text: "check" "B" "--baseline" "O" "--tolerance" "5%" "--junit" "F";
    Text: "check" "O" "--baseline" "B" "--format" "github";
    Text: "map" "B";
    Json: "map" "B" "--json" "--sector" "0" "--sector" "100000";
    Text: "map" "B" "--where" "sectors > 8" "--start-sector" "9007199254740992";
    Text: "export" "B" "--format" "folded" "-o" "F";
    Other: "export" "B" "--format" "perfetto" "-o" "F";
    Other: "export" "B" "--format" "perfetto" "--anonymize" "-o" "F";
    Text: "export" "B" "--format" "blkparse";
    Text: "export" "B" "--format" "blkparse" "--anonymize";
    Other: "export" "B" "--format" "dataset" "-o" "F";
    Other: "export" "B" "--format" "dataset" "--anonymize" "--partial" "-o" "F";
    Text: "export" "B" "--format" "identity";
    Text: "export" "B" "--format" "iolog";
    Text: "export" "B" "--format" "alibaba";
    Text: "export" "B" "--format" "msr";
    Other: "export" "B" "--format" "oracle-general" "-o" "F";
};

/// Tables whose bytes must have the same sum.
const SUMS: &[Verb] = verbs! {
    Json: "analyze" "B" "--by" "class" "--json";
    Json: "analyze" "B" "--by" "process" "--json";
    Json: "analyze" "B" "--by" "file,role" "--json";
    Json: "analyze" "B" "--by" "cause_process" "--json";
    Json: "analyze" "B" "--by" "cause_op,cause_file" "--share" "equal" "--json";
    Json: "analyze" "B" "--by" "cause_of_command" "--json";
    Json: "analyze" "B" "--by" "rwbs,pid" "--json";
    Json: "events" "B" "--json";
};

/// Picks three of all verbs.
pub fn some(random: &mut Random) -> Vec<&'static Verb> {
    (0..3)
        .map(|_| &VERBS[random.below(VERBS.len() as u64) as usize])
        .collect()
}

/// Picks two tables that must have the same sum.
pub fn sums(random: &mut Random) -> [&'static Verb; 2] {
    let one = random.below(SUMS.len() as u64) as usize;
    let step = 1 + random.below(SUMS.len() as u64 - 1) as usize;
    [&SUMS[one], &SUMS[(one + step) % SUMS.len()]]
}

impl Verb {
    pub fn arguments(&self, bundle: &Path, other: &Path, file: &Path) -> Vec<OsString> {
        let word = |word: &&str| match *word {
            "B" => bundle.into(),
            "O" => other.into(),
            "F" => file.into(),
            word => word.into(),
        };
        self.words.iter().map(word).collect()
    }
}
