// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map builders, one folder per filesystem.
