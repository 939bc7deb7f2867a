// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measurements: [`budget`] holds recordings against limits and sums up repeated runs.

pub mod budget;
