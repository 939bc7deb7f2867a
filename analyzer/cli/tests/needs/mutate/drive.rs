// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs bundle after bundle, two at a time, until the limit is reached.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use test_support::Need;

use super::random::Random;
use super::recount::recount;
use super::report::Report;
use super::specimen::{self, Specimen};
use super::verbs::{self, Verb};
use super::{judge, limits};

const AT_ONCE: usize = 2;
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// The limit of a run.
#[derive(Clone, Copy)]
enum Until {
    Time(Duration),
    Runs(u64),
    Only(u64),
}

/// What is done with each bundle.
#[derive(Clone, Copy)]
enum Task {
    /// Some verbs read it.
    Verbs,
    /// The numbers of its finding are computed once more, by another program.
    Recount,
}

/// The parameters of a run.
pub struct Drive {
    seed: u64,
    until: Until,
    task: Task,
}

/// The number of bundles whose finding is recounted, and in a long run.
const RECOUNTED: u64 = 40;
const RECOUNTED_LONG: u64 = 1000;

impl Drive {
    /// Reads the parameters from the environment.
    pub fn of_environment() -> Drive {
        let number = |name: &str| {
            let text = std::env::var(name).ok()?;
            Some(
                text.parse()
                    .unwrap_or_else(|_| panic!("{name}: `{text}` is no number")),
            )
        };
        let time = Need::Minutes.check().map_or(MINUTE, |()| HOUR);
        let only = number("MOSTRACE_MUTATIONS_BUNDLE").map(Until::Only);
        let runs = || number("MOSTRACE_MUTATIONS").map(Until::Runs);
        Drive {
            seed: number("MOSTRACE_MUTATIONS_SEED").unwrap_or(1),
            until: only.or_else(runs).unwrap_or(Until::Time(time)),
            task: Task::Verbs,
        }
    }

    /// Recounts findings instead: those of the samples first, then those of changed bundles.
    pub fn recounting(self) -> Drive {
        let until = match self.until {
            Until::Time(HOUR) => Until::Runs(RECOUNTED_LONG),
            Until::Time(_) => Until::Runs(RECOUNTED),
            until => until,
        };
        Drive {
            until,
            task: Task::Recount,
            ..self
        }
    }

    pub fn run(&self) -> Report {
        let scratch = tempfile::tempdir().unwrap();
        let specimens = Specimen::all(scratch.path());
        let report = Mutex::new(Report::of(self.seed));
        let next = AtomicU64::new(0);
        let start = Instant::now();
        if let Task::Recount = self.task {
            for (nth, specimen) in (0..).zip(&specimens) {
                recount(&specimen.folder, |what, command| {
                    let keep = || specimen.folder.clone();
                    report.lock().unwrap().fault(what, nth, command, keep);
                });
            }
        }
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| self.work(&specimens, &next, start, &report));
            }
        });
        report.into_inner().unwrap().at(start.elapsed())
    }

    /// Takes numbers until the limit is reached.
    fn work(
        &self,
        specimens: &[Specimen],
        next: &AtomicU64,
        start: Instant,
        report: &Mutex<Report>,
    ) {
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let runs = || report.lock().unwrap().runs;
            let nth = match self.until {
                Until::Time(most) if start.elapsed() >= most => return,
                Until::Runs(most) if runs() >= most => return,
                Until::Only(_) if nth > 0 => return,
                Until::Only(only) => only,
                Until::Time(_) | Until::Runs(_) => nth,
            };
            let bundle = Bundle::new(self.seed, nth, specimens);
            match self.task {
                Task::Verbs => bundle.judge(report),
                Task::Recount => bundle.recount(report),
            }
            report.lock().unwrap().tell(start.elapsed());
        }
    }
}

/// A changed bundle, with everything that belongs to it.
struct Bundle<'s> {
    seed: u64,
    nth: u64,
    random: Random,
    scratch: tempfile::TempDir,
    path: PathBuf,
    /// An unchanged bundle.
    other: &'s Path,
}

impl<'s> Bundle<'s> {
    /// Makes the bundle of this seed and number, which is always the same.
    fn new(seed: u64, nth: u64, specimens: &'s [Specimen]) -> Bundle<'s> {
        let mut random = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ nth);
        // The first numbers of similar seeds are similar.
        for _ in 0..16 {
            random.below(2);
        }
        let scratch = tempfile::tempdir().unwrap();
        let path = specimen::changed(&mut random, specimens, scratch.path());
        let other = &specimens[random.below(specimens.len() as u64) as usize].folder;
        Bundle {
            seed,
            nth,
            random,
            scratch,
            path,
            other,
        }
    }

    fn judge(mut self, report: &Mutex<Report>) {
        report.lock().unwrap().bundles += 1;
        for verb in verbs::some(&mut self.random) {
            self.run(verb, report);
        }
        let [one, other] = verbs::sums(&mut self.random);
        let sums = [self.run(one, report), self.run(other, report)];
        if let [Some(one_sum), Some(other_sum)] = sums
            && one_sum != other_sum
        {
            let words = |verb| self.arguments(verb)[2..].join(" ".as_ref());
            let what = format!(
                "other sums of bytes: {:?} and {:?}",
                words(one),
                words(other)
            );
            self.fault(what, one, report);
        }
    }

    fn recount(self, report: &Mutex<Report>) {
        let end = recount(&self.path, |what, command| {
            let what = what.replace(self.scratch.path().to_str().unwrap(), "");
            let mut report = report.lock().unwrap();
            report.fault(what, self.nth, command, || self.keep());
        });
        let mut report = report.lock().unwrap();
        report.bundles += 1;
        report.ended(end);
    }

    /// Runs a verb; returns the sum of the bytes in its output, if it has one.
    fn run(&self, verb: &Verb, report: &Mutex<Report>) -> Option<u128> {
        let mut outcome = limits::run(&self.arguments(verb), self.scratch.path());
        // A virtual machine that is paused charges the pause to whoever was running: only what happens twice is a fault.
        if outcome.is_cut_short() {
            outcome = limits::run(&self.arguments(verb), self.scratch.path());
        }
        report.lock().unwrap().count(&outcome);
        if let Some(what) = judge::fault(&outcome, verb.form, self.scratch.path().parent()?) {
            self.fault(
                format!("{}: {what}", self.arguments(verb)[0].display()),
                verb,
                report,
            );
        }
        judge::sum(&outcome)
    }

    fn arguments(&self, verb: &Verb) -> Vec<OsString> {
        verb.arguments(&self.path, self.other, &self.output())
    }

    /// Returns an unused path, because not every verb overwrites an existing file.
    fn output(&self) -> PathBuf {
        let names = (0..).map(|n| self.scratch.path().join(format!("output-{n}")));
        names.into_iter().find(|path| !path.exists()).unwrap()
    }

    fn fault(&self, what: String, verb: &Verb, report: &Mutex<Report>) {
        let words = self
            .arguments(verb)
            .into_iter()
            .map(|word| format!("{word:?}"));
        let command = words.collect::<Vec<_>>().join(" ");
        // The bundle's path differs each time.
        let what = what.replace(self.scratch.path().to_str().unwrap(), "");
        report
            .lock()
            .unwrap()
            .fault(what, self.nth, command, || self.keep());
    }

    /// Copies the bundle to where it is kept.
    fn keep(&self) -> PathBuf {
        let name = self.path.file_name().unwrap().to_str().unwrap();
        let name = name.replace("changed", &format!("mutation-{}-{}", self.seed, self.nth));
        let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        if self.path.is_dir() {
            fs::create_dir_all(&to).unwrap();
            for entry in fs::read_dir(&self.path).unwrap().map(Result::unwrap) {
                fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
            }
        } else {
            fs::copy(&self.path, &to).unwrap();
        }
        to
    }
}
