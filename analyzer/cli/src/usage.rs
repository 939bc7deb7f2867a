// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments that are each valid but cannot be combined.

/// Says what is wrong with the arguments; the exit status is 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Returns from the function with an error about such arguments.
macro_rules! usage {
    ($($text:tt)*) => {
        return Err($crate::usage::UsageError(format!($($text)*)).into())
    };
}
pub(crate) use usage;
