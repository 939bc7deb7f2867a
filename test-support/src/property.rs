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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;

    #[test]
    fn the_seed_of_a_failure_is_kept_and_tried_first() {
        let dir = tempfile::tempdir().unwrap();
        let source: &'static str =
            Box::leak(dir.path().join("some.rs").display().to_string().into());
        let first_case = || {
            let first = std::cell::Cell::new(None);
            let failure = TestRunner::new(super::config(source, 1000)).run(&any::<u64>(), |n| {
                first.set(first.get().or(Some(n)));
                prop_assert!(n < 1000);
                Ok(())
            });
            (failure.is_err(), first.get())
        };
        let (failed, _) = first_case();
        assert!(failed);
        let kept = dir.path().join("some.proptest-regressions");
        assert!(
            std::fs::read_to_string(kept)
                .unwrap()
                .contains("shrinks to 1000")
        );
        // That is the first of the cases of a later run; a passing one would have gone before it, if any.
        let (failed, first) = first_case();
        assert!(failed && first.is_some_and(|n| n >= 1000));
    }
}
