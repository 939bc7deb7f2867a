// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the program that need root, a tracer or programs of the machine.

mod judged;
mod mutate;
#[path = "../run/mod.rs"]
mod run;
#[path = "../../../trace/tests/scene/mod.rs"]
mod scene;

mod background;
mod blkparse;
mod blocks;
mod changes;
mod durability;
mod experiment;
mod filesystems;
mod forced;
mod imported;
mod killed;
mod ledger;
mod ledger_week;
mod measure;
mod mounts;
mod mutations;
mod names;
mod others;
mod phone;
mod record;
mod renames;
mod replay;
mod replayed;
mod samples;
mod several;
mod stacks;
mod stores;
mod top;
mod transactions;
mod typed;
mod waits;

use record::{ends as record_ends, users as record_users};

fn main() -> std::process::ExitCode {
    test_support::run(test_support::suites![
        background,
        blkparse,
        blocks,
        changes,
        durability,
        experiment,
        filesystems,
        forced,
        imported,
        killed,
        ledger,
        ledger_week,
        measure,
        mounts,
        mutations,
        names,
        others,
        phone,
        record,
        record_ends,
        record_users,
        renames,
        replay,
        replayed,
        samples,
        several,
        stacks,
        stores,
        top,
        transactions,
        typed,
        waits,
    ])
}
