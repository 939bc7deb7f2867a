// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the replay that need nothing of the machine.

mod common;

mod hostile;
mod kinds;
mod numbers;
mod programs;
mod straces;
