// SPDX-License-Identifier: MIT OR Apache-2.0
//! Property tests of files under `tests/`.

use proptest::test_runner::{Config, FileFailurePersistence};

/// So many cases. The seed of one that fails is kept beside its source, as `NAME.proptest-regressions`, to be
/// committed: it is tried first ever after. (Tests within `src/` need none of this: proptest keeps theirs in the
/// crate's folder `proptest-regressions` by itself, but does not find a crate's root from `tests/`.)
///
/// `source` is `file!()`.
pub fn config(source: &'static str, cases: u32) -> Config {
    let kept = FileFailurePersistence::WithSource("proptest-regressions");
    Config {
        cases,
        source_file: Some(source),
        ..Config::with_failure_persistence(kept)
    }
}
