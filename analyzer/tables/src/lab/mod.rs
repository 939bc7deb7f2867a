// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measurements: [`budget`] holds recordings against limits and sums up repeated runs, [`experiment`] defines a matrix of them and
//! keeps its results.

pub mod budget;
pub mod experiment;
