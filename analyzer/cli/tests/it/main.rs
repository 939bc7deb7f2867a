// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the program that need nothing of the machine.

#[path = "../run/mod.rs"]
mod run;
#[path = "../../../trace/tests/scene/mod.rs"]
mod scene;
#[path = "../../../trace/tests/support/mod.rs"]
mod support;

mod bounds;
mod brought;
mod causes;
mod cli_errors;
mod cli_map;
mod cli_tables;
mod diff;
mod exports;
mod f2fs_16k;
mod flash;
mod floors;
mod import;
mod intervals;
mod opened;
mod pages;
mod readme;
mod report;
