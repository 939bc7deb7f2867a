// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one loop by which a trace is read: each completed request with its rows and their causes.
//!
//! ```text
//! Completions ─ Attributor ─ rows ─┐
//!                   │              ├─ Step, one for each completed request ─ Fold
//! tables of causes ─┴─ Causer ─────┘
//! ```

use std::io::{self, Read};

use mostrace_bundle::Manifest;
use mostrace_bundle::entry::RawCall;
use mostrace_bundle::table::TableReader;

use crate::attribute::{Attributor, Names, Registry, Request, Row};
use crate::blktrace::{Ahead, Completions, Trace};
use crate::causes::{Cause, CauseId, Causer, Verdicts, are_whole};
use crate::origins::Base;
use crate::recording::Error;

/// Reads completions with the tables that belong to them.
pub struct Pipeline<'a, R> {
    completions: Ahead,
    attributor: Attributor<'a, R>,
    causer: Option<Causer<'a, R>>,
}

/// A completed request.
pub struct Step<'p, 'a> {
    /// The request.
    pub request: Request,
    /// Its rows, in the order of sectors; there is at least one.
    pub rows: &'p [Row],
    /// The causers of each row; None if causes are not wanted.
    pub verdicts: Option<&'p Verdicts>,
    /// The processes and files that the rows refer to, as far as they are known.
    pub registry: &'p Registry<'a>,
}

/// What is made of completed requests while they are read, such as rows or sums. The requests of several recordings follow one
/// another, and so do the segments of a recording that still runs. What names they refer to is known at the end.
pub trait Fold {
    /// Begins a recording, whose numbers of processes, files and causes begin at `base`. They also begin anew when too many are
    /// remembered of a recording that still runs.
    fn begin(&mut self, base: Base);

    /// Takes a system call of the segment that is read, ahead of its completions, and the registry that knows its process. Saved
    /// recordings tell none.
    fn call(&mut self, _: &RawCall, _: &Registry<'_>) {}

    /// Takes a completed request.
    ///
    /// # Errors
    /// Returns an error if it cannot be kept.
    fn step(&mut self, step: &Step<'_, '_>) -> io::Result<()>;

    /// Ends the recording, or the segment.
    ///
    /// # Errors
    /// Returns an error if what is left cannot be kept.
    fn end(&mut self, _: &Stretch<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// Two folds of what is read once.
pub struct Both<'f, A, B>(pub &'f mut A, pub &'f mut B);

impl<A: Fold, B: Fold> Fold for Both<'_, A, B> {
    fn begin(&mut self, base: Base) {
        self.0.begin(base);
        self.1.begin(base);
    }

    fn call(&mut self, raw: &RawCall, registry: &Registry<'_>) {
        self.0.call(raw, registry);
        self.1.call(raw, registry);
    }

    fn step(&mut self, step: &Step<'_, '_>) -> io::Result<()> {
        self.0.step(step)?;
        self.1.step(step)
    }

    fn end(&mut self, stretch: &Stretch<'_>) -> io::Result<()> {
        self.0.end(stretch)?;
        self.1.end(stretch)
    }
}

/// A fold that may not be wanted.
impl<F: Fold> Fold for Option<F> {
    fn begin(&mut self, base: Base) {
        self.iter_mut().for_each(|fold| fold.begin(base));
    }

    fn call(&mut self, raw: &RawCall, registry: &Registry<'_>) {
        self.iter_mut().for_each(|fold| fold.call(raw, registry));
    }

    fn step(&mut self, step: &Step<'_, '_>) -> io::Result<()> {
        self.iter_mut().try_for_each(|fold| fold.step(step))
    }

    fn end(&mut self, stretch: &Stretch<'_>) -> io::Result<()> {
        self.iter_mut().try_for_each(|fold| fold.end(stretch))
    }
}

/// A recording, or a segment of one that still runs, whose completions have all been read.
pub struct Stretch<'p> {
    /// Its manifest; None for the bare files of blktrace.
    pub manifest: Option<&'p Manifest>,
    /// The processes and files that are known so far.
    pub registry: &'p Registry<'p>,
    /// True if calls are told.
    pub has_calls: bool,
    cause: &'p dyn Fn(CauseId) -> Cause,
}

impl Stretch<'_> {
    /// Returns a cause by its number.
    pub fn cause(&self, id: CauseId) -> Cause {
        (self.cause)(id)
    }
}

/// The result of a trace that has been read to its end.
pub struct End {
    /// The completions, with what they showed about the trace as a whole.
    pub completions: Completions,
    /// The processes and files that rows and causes refer to.
    pub names: Names,
    /// The causes, indexed by number; None if they were not wanted.
    pub causes: Option<Vec<Cause>>,
    /// How much was forgotten because there was no room for more, by what it was.
    pub cut_short: Vec<(&'static str, usize)>,
}

impl<'a, R: Read> Pipeline<'a, R> {
    /// Reads `completions` with an attributor and, if causes are wanted, a causer that have read nothing yet.
    pub fn new(
        completions: Completions,
        attributor: Attributor<'a, R>,
        causer: Option<Causer<'a, R>>,
    ) -> Pipeline<'a, R> {
        Pipeline {
            completions: Ahead::new(completions),
            attributor,
            causer,
        }
    }

    /// Returns the next completed request; None at the end.
    #[allow(clippy::should_implement_trait)] // an Iterator cannot lend
    pub fn next(&mut self) -> Result<Option<Step<'_, 'a>>, Error> {
        if !self.completions.step()? {
            return Ok(None);
        }
        let attributor = &mut self.attributor;
        attributor.rename(self.completions.renamed());
        let completion = self.completions.completion();
        if let Some(causer) = &mut self.causer {
            causer.pull(completion.time_ns, attributor.registry_mut())?;
        }
        let (request, _) = attributor.push(&completion)?;
        let (rows, registry) = (attributor.rows(), attributor.registry());
        let verdicts = self
            .causer
            .as_mut()
            .map(|causer| causer.push(&request, rows, attributor.pieces(), registry));
        Ok(Some(Step {
            request,
            rows,
            verdicts,
            registry,
        }))
    }

    /// Continues with the events of the next segment. The tables may have grown since, as the manifest of the newest segment says.
    pub fn go_on(&mut self, trace: Trace, newest: &Manifest) {
        self.attributor.go_on(&newest.losses);
        if let Some(causer) = &mut self.causer {
            causer.go_on(&newest.functions, are_whole(newest));
        }
        self.completions.go_on(trace);
    }

    /// Reads what the table of cgroups has become longer by, ahead of the events that it is about.
    pub fn learn_cgroups(&mut self, table: &mut TableReader<impl Read>) -> Result<(), Error> {
        Ok(self.attributor.learn_cgroups(table)?)
    }

    /// Reads what the table of the names of processes has become longer by, ahead of the events that it is about.
    pub fn learn_process_names(&mut self, table: &mut TableReader<impl Read>) -> Result<(), Error> {
        Ok(self.attributor.learn_process_names(table)?)
    }

    /// Returns the bytes of events that were read so far, and those that there are, 0 if unknown.
    pub fn progress(&self) -> (u64, u64) {
        self.completions.progress()
    }

    /// Returns the processes and files that are known so far.
    pub fn registry(&self) -> &Registry<'a> {
        self.attributor.registry()
    }

    /// Returns the number of processes, files and causes that are remembered.
    pub fn named(&self) -> usize {
        let causes = self.causer.as_ref().map_or(0, Causer::count);
        self.registry().named().saturating_add(causes)
    }

    /// Returns a cause by its number; the unknown one if causes are not wanted.
    pub fn cause(&self, id: CauseId) -> Cause {
        self.causer
            .as_ref()
            .map_or(Cause::default(), |causer| causer.cause(id))
    }

    /// Tells the fold that all completions at hand have been read.
    pub fn end(
        &self,
        fold: &mut impl Fold,
        manifest: Option<&Manifest>,
        has_calls: bool,
    ) -> Result<(), Error> {
        Ok(fold.end(&Stretch {
            manifest,
            registry: self.registry(),
            has_calls,
            cause: &|id| self.cause(id),
        })?)
    }

    /// Reads the tables to their end.
    pub fn finish(self) -> Result<End, Error> {
        let completions = self.completions.into_completions();
        let names = self.attributor.finish(Some(completions.names()))?;
        let cut_short = self.causer.as_ref().map(Causer::cut_short);
        Ok(End {
            cut_short: cut_short.unwrap_or_default(),
            completions,
            names,
            causes: self.causer.map(Causer::finish),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes what it is told, and fails at a completion if it is to.
    #[derive(Debug, Default, PartialEq)]
    struct Told {
        events: Vec<(&'static str, u64)>,
        fails: bool,
    }

    impl Fold for Told {
        fn begin(&mut self, base: Base) {
            self.events.push(("begin", base.origin.into()));
        }

        fn call(&mut self, raw: &RawCall, _: &Registry<'_>) {
            self.events.push(("call", raw.ino.get()));
        }

        fn step(&mut self, step: &Step<'_, '_>) -> io::Result<()> {
            self.events.push(("step", step.request.sector));
            match self.fails {
                true => Err(io::ErrorKind::StorageFull.into()),
                false => Ok(()),
            }
        }

        fn end(&mut self, stretch: &Stretch<'_>) -> io::Result<()> {
            self.events.push(("end", stretch.has_calls.into()));
            match self.fails {
                true => Err(io::ErrorKind::StorageFull.into()),
                false => Ok(()),
            }
        }
    }

    /// Tells a fold one thing of each kind. Returns whether the step and the end failed.
    fn tell(fold: &mut impl Fold) -> [bool; 2] {
        let attributor = Attributor::<&[u8]>::new(vec![], None);
        let registry = attributor.registry();
        fold.begin(Base {
            origin: 2,
            ..Base::default()
        });
        let call = RawCall {
            ino: 12.into(),
            ..RawCall::default()
        };
        fold.call(&call, registry);
        let step = fold.step(&Step {
            request: Request {
                sector: 64,
                ..Request::default()
            },
            rows: &[],
            verdicts: None,
            registry,
        });
        let end = fold.end(&Stretch {
            manifest: None,
            registry,
            has_calls: true,
            cause: &|_| Cause::default(),
        });
        [step.is_err(), end.is_err()]
    }

    const ALL: [(&str, u64); 4] = [("begin", 2), ("call", 12), ("step", 64), ("end", 1)];

    #[test]
    fn a_fold_that_is_wanted_is_told_everything() {
        let mut wanted = Some(Told::default());
        assert_eq!(tell(&mut wanted), [false; 2]);
        assert_eq!(wanted.unwrap().events, ALL);
        let mut failing = Some(Told {
            fails: true,
            ..Told::default()
        });
        assert_eq!(tell(&mut failing), [true; 2]);
        assert_eq!(tell(&mut None::<Told>), [false; 2]);
    }

    #[test]
    fn both_folds_are_told_everything() {
        let (mut one, mut other) = (Told::default(), Told::default());
        assert_eq!(tell(&mut Both(&mut one, &mut other)), [false; 2]);
        assert_eq!((&one.events[..], &other.events[..]), (&ALL[..], &ALL[..]));
        // Either one's failure is that of both.
        for fails in [[true, false], [false, true]] {
            let [mut one, mut other] = fails.map(|fails| Told {
                fails,
                ..Told::default()
            });
            assert_eq!(tell(&mut Both(&mut one, &mut other)), [true; 2]);
        }
    }
}
