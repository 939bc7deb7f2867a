// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a page cannot be made.

use mostrace_tables::tables::calls;

/// A page cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The rows cannot be read.
    #[error("temporary files: {0}")]
    Rows(#[from] polars::prelude::PolarsError),
    /// A table of the bundle cannot be read.
    #[error(transparent)]
    Bundle(#[from] mostrace_bundle::Error),
    /// The calls cannot be read.
    #[error(transparent)]
    Analysis(#[from] mostrace_tables::analysis::Error),
    /// The template is invalid.
    #[error("the page: {0}")]
    Page(#[from] minijinja::Error),
    /// A figure cannot be represented in JSON.
    #[error("the page's data: {0}")]
    Data(#[from] serde_json::Error),
    /// The data cannot be compressed.
    #[error("the page's data: {0}")]
    Compression(#[from] std::io::Error),
}

impl From<calls::Error> for Error {
    fn from(error: calls::Error) -> Error {
        match error {
            calls::Error::Bundle(error) => Error::Bundle(error),
            calls::Error::Rows(error) => Error::Rows(error),
        }
    }
}
