// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configuration of property tests in files under `tests/`.

use proptest::test_runner::{Config, FileFailurePersistence};

/// Returns a configuration with this many cases. The seed of a case that fails is stored beside the test's source, as
/// `NAME.proptest-regressions`, to be committed; later runs try it first. Tests within `src/` need none of this:
/// proptest stores their seeds in the crate's folder `proptest-regressions`, but it does not find a crate's root from
/// `tests/`.
///
/// `source` must be `file!()`.
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
        // This is the first case of a later run; a case that passes would have come before it, if there were one.
        let (failed, first) = first_case();
        assert!(failed && first.is_some_and(|n| n >= 1000));
    }
}
