// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of a binary with `harness = false`, each with its requirements.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;
use std::thread;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use crate::need::{self, Need};
use crate::syncs;

/// A test: it passes when its function returns.
pub struct Test {
    name: String,
    needs: Vec<Need>,
    body: Box<dyn Fn() + Send>,
}

impl Test {
    /// Makes a test that needs all of `needs`.
    pub fn new(name: impl Into<String>, needs: &[Need], body: impl Fn() + Send + 'static) -> Self {
        Self {
            name: name.into(),
            needs: needs.to_vec(),
            body: Box::new(body),
        }
    }

    fn into_trial(self, module: &str) -> Trial {
        let Self { name, needs, body } = self;
        Trial::ignorable_test(format!("{module}::{name}"), move || {
            if let Some(reason) = left_out(&needs, need::is_set("MOSTRACE_NO_SKIP"))? {
                return Ok(Completion::ignored_with(reason));
            }
            if !needs.contains(&Need::NoSync) {
                tried(&body)?;
                return Ok(Completion::Completed);
            }
            let disturbed = tried_beside(&body, &syncs::watch)?;
            Ok(disturbed.map_or(Completion::Completed, |call| {
                Completion::ignored_with(format!("somebody calls sync() all the time: {call}"))
            }))
        })
    }
}

/// How often a test is tried on a machine that is too busy for it.
const TRIES: usize = 5;
/// How often one is tried that is disturbed.
const TRIES_BESIDE: usize = 3;

/// Why a test begins anew.
struct Again(String);

/// Ends this try of a test, which begins anew: what it saw may be so on a busy machine, and not five times in a row.
///
/// # Panics
/// Always does; in a thread of the test's own, `join` returns that as an error.
pub fn begin_anew(why: String) -> ! {
    resume_unwind(Box::new(Again(why)))
}

/// Begins the test anew if a recording lost something.
pub fn nothing_lost(losses: &BTreeMap<String, u64>) {
    let lost: Vec<_> = losses.iter().filter(|(_, lost)| **lost > 0).collect();
    if !lost.is_empty() {
        begin_anew(format!("lost {lost:?}"));
    }
}

thread_local! {
    /// What a program said of a loss during this try.
    static LOSS: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Takes what a program said. If it said that a recording lost something and the test fails, the test begins anew: a loss is no
/// failure on a busy machine, and most tests need not care.
pub fn heard(said: &str) {
    if let Some(line) = said.lines().find(|line| tells_of_a_loss(line)) {
        LOSS.set(Some(line.to_owned()));
    }
}

/// Returns true for `LOSSY: …`, `…, 3 lost` and `3 records lost`.
fn tells_of_a_loss(line: &str) -> bool {
    let counted = |(before, _): (&str, &str)| {
        let before = before.strip_suffix(" records").unwrap_or(before);
        let number = before.rsplit(' ').next()?.replace(',', "");
        Some(number.parse::<u64>().ok()? > 0)
    };
    let count = line.split_once(" lost").and_then(counted);
    line.contains("LOSSY") || count == Some(true)
}

/// Runs a test until it does not begin anew.
fn tried(body: &dyn Fn()) -> Result<(), Failed> {
    let mut last = String::new();
    for _ in 0..TRIES {
        LOSS.take();
        match catch_unwind(AssertUnwindSafe(body)) {
            Ok(()) => return Ok(()),
            Err(why) => match why.downcast::<Again>() {
                Ok(again) => last = again.0,
                Err(why) => match LOSS.take() {
                    Some(loss) => last = loss,
                    None => resume_unwind(why),
                },
            },
        }
        println!("once more: {last}");
    }
    Err(Failed::from(format!("{TRIES} times: {last}")))
}

/// Runs a test until it passes, or fails without a disturbance. `watch` begins to watch, and what it returns tells of a disturbance
/// since. Returns the last disturbance if there was one in each of several tries.
fn tried_beside<W: FnOnce() -> Option<String>>(
    body: &dyn Fn(),
    watch: &dyn Fn() -> W,
) -> Result<Option<String>, Failed> {
    let mut last = None;
    for _ in 0..TRIES_BESIDE {
        let disturbance = watch();
        let ended = catch_unwind(AssertUnwindSafe(|| tried(body)));
        if let Ok(Ok(())) = ended {
            return Ok(None);
        }
        last = disturbance();
        match &last {
            Some(seen) => println!("once more: {seen}"),
            None => {
                return ended
                    .unwrap_or_else(|why| resume_unwind(why))
                    .map(|()| None);
            }
        }
    }
    Ok(last)
}

/// Returns the reason why a test is ignored, if it is. It is an error if the test must not be ignored.
fn left_out(needs: &[Need], no_skip: bool) -> Result<Option<String>, Failed> {
    let missing: Vec<_> = needs.iter().filter_map(|need| need.check().err()).collect();
    // A requirement that cannot be met here leaves the test out, whatever else is missing.
    let reason = missing
        .iter()
        .find(|missing| !missing.is_mendable())
        .or(missing.first());
    match reason {
        Some(missing) if missing.is_mendable() && no_skip => Err(Failed::from(format!(
            "MOSTRACE_NO_SKIP is set, and {missing}"
        ))),
        reason => Ok(reason.map(ToString::to_string)),
    }
}

/// Lists tests by the names of their functions; `needs` is left out for tests without requirements.
#[macro_export]
macro_rules! tests {
    ($($name:ident $(needs $needs:expr)?),* $(,)?) => {
        vec![$($crate::Test::new(stringify!($name), &$crate::tests!(@needs $($needs)?), $name)),*]
    };
    (@needs) => { [] };
    (@needs $needs:expr) => { $needs };
}

/// The tests of a module.
pub struct Suite {
    tests: Vec<Test>,
    at_once: bool,
}

/// Makes a suite of tests of which several run at once, as those of `cargo test` do.
pub fn at_once(tests: Vec<Test>) -> Suite {
    Suite {
        tests,
        at_once: true,
    }
}

/// Makes a suite of tests that run one after the other: each makes its own load, or uses things of which a machine or a
/// process has only one. Tests of other suites do not run meanwhile either.
pub fn one_by_one(tests: Vec<Test>) -> Suite {
    Suite {
        tests,
        at_once: false,
    }
}

/// Lists the suites of modules: each has a function `suite`.
#[macro_export]
macro_rules! suites {
    ($($module:ident),* $(,)?) => {
        vec![$((stringify!($module), $module::suite())),*]
    };
}

/// Runs the suites of modules with the arguments of `cargo test`. A test's name is `MODULE::NAME`.
pub fn run(suites: Vec<(&str, Suite)>) -> ExitCode {
    let (mut at_once, mut one_by_one) = (Vec::new(), Vec::new());
    for (module, suite) in suites {
        let trials = suite.tests.into_iter().map(|test| test.into_trial(module));
        match suite.at_once {
            true => at_once.extend(trials),
            false => one_by_one.extend(trials),
        }
    }
    let arguments = Arguments::from_args();
    let with = |threads| Arguments {
        test_threads: Some(threads),
        ..arguments.clone()
    };
    // Many tests wait for most of their time.
    let many = thread::available_parallelism().map_or(1, |cpus| 2 * cpus.get());
    let many = arguments.test_threads.unwrap_or(many);
    // Both run, whatever the first says.
    let conclusions = [(at_once, with(many)), (one_by_one, with(1))]
        .into_iter()
        .filter(|(trials, _)| !trials.is_empty())
        .map(|(trials, arguments)| libtest_mimic::run(&arguments, trials))
        .collect::<Vec<_>>();
    match conclusions.iter().any(|conclusion| conclusion.has_failed()) {
        true => ExitCode::from(101),
        false => ExitCode::SUCCESS,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const ABSENT: Need = Need::Tool("no-such-program", "no-such-package");
    const OTHER_KERNEL: Need = Need::Scheduler("no-such");

    fn reason(needs: &[Need], no_skip: bool) -> Result<Option<String>, String> {
        left_out(needs, no_skip).map_err(|failed| failed.message().unwrap_or_default().to_owned())
    }

    #[test]
    fn what_can_be_installed_may_not_be_missing_under_no_skip() {
        let absent = "no program no-such-program: install package no-such-package".to_owned();
        assert_eq!(reason(&[ABSENT], false), Ok(Some(absent.clone())));
        let says = format!("MOSTRACE_NO_SKIP is set, and {absent}");
        assert_eq!(reason(&[ABSENT], true), Err(says));
    }

    #[test]
    fn a_test_whose_recordings_lose_begins_anew() {
        let losing = |times: usize| {
            let tries = Cell::new(0);
            let ended = tried(&|| {
                tries.set(tries.get() + 1);
                let lost = u64::from(tries.get() <= times);
                nothing_lost(&BTreeMap::from([("ring".into(), lost)]));
            });
            (tries.get(), ended.is_ok())
        };
        assert_eq!(losing(0), (1, true));
        assert_eq!(losing(2), (3, true));
        assert_eq!(losing(9), (TRIES, false));
        let wrong = catch_unwind(|| tried(&|| panic!("wrong")));
        assert!(wrong.is_err());
    }

    #[test]
    fn what_fails_after_a_loss_begins_anew() {
        let hearing = |line: &'static str| {
            let tries = Cell::new(0);
            let test = || {
                tries.set(tries.get() + 1);
                heard(line);
                assert!(tries.get() > 2);
            };
            let ended = catch_unwind(AssertUnwindSafe(|| tried(&test)));
            (tries.get(), ended.is_ok_and(|ended| ended.is_ok()))
        };
        for line in [
            "mostrace: x.most: 9 events (bpf), 1,204 lost",
            "mostrace: watched for 9 s; 3 records lost",
            "mostrace: warn: x.most: LOSSY: records were lost",
        ] {
            assert_eq!(hearing(line), (3, true), "{line}");
        }
        for line in [
            "",
            "9 events (bpf), 0 lost",
            "0 records lost",
            "all is lost",
        ] {
            assert_eq!(hearing(line), (1, false), "{line}");
        }
    }

    #[test]
    fn what_fails_beside_a_disturbance_begins_anew() {
        let trying = |fails: usize, disturbed: usize| {
            let tries = Cell::new(0);
            let test = || {
                tries.set(tries.get() + 1);
                assert!(tries.get() > fails);
            };
            let watch = || || (tries.get() <= disturbed).then(|| "seen".to_owned());
            let ended = catch_unwind(AssertUnwindSafe(|| tried_beside(&test, &watch)));
            (tries.get(), ended.ok().map(|ended| ended.ok().flatten()))
        };
        assert_eq!(trying(0, 9), (1, Some(None)));
        assert_eq!(trying(2, 2), (3, Some(None)));
        assert_eq!(trying(9, 9), (TRIES_BESIDE, Some(Some("seen".into()))));
        // Nobody disturbs it the second time.
        assert_eq!(trying(9, 1), (2, None));
    }

    #[test]
    fn what_another_kernel_has_may() {
        let other = "this kernel has no scheduler no-such".to_owned();
        for needs in [&[OTHER_KERNEL][..], &[ABSENT, OTHER_KERNEL]] {
            assert_eq!(reason(needs, false), Ok(Some(other.clone())));
            assert_eq!(reason(needs, true), Ok(Some(other.clone())));
        }
    }

    #[test]
    fn a_test_whose_needs_are_met_runs() {
        assert_eq!(reason(&[Need::Tool("sh", "dash")], true), Ok(None));
    }
}
