// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several runs of one command: the typical one, and by how much they differ.

use super::Measured;
use crate::transactions::Sure;

/// The figures of several runs, at least one, sorted by the bytes written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs(Vec<Measured>);

impl Runs {
    /// Takes the runs; None if there is no run.
    #[must_use]
    pub fn new(mut runs: Vec<Measured>) -> Option<Runs> {
        runs.sort_by_key(|run| run.write_bytes);
        (!runs.is_empty()).then_some(Runs(runs))
    }

    /// Returns the number of runs.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the run with the median of bytes written; of an even number, the lower one of the two in the middle.
    #[must_use]
    pub fn typical(&self) -> &Measured {
        &self.0[self.0.len().saturating_sub(1) / 2]
    }

    /// Returns how certain the numbers of transactions are: as certain as the least certain one.
    #[must_use]
    pub fn sure(&self) -> Sure {
        let each = self.0.iter().map(|run| run.transactions.sure);
        each.max().unwrap_or_default()
    }

    /// Returns the runs, from the one that wrote least to the one that wrote most.
    pub fn each(&self) -> impl Iterator<Item = &Measured> {
        self.0.iter()
    }

    /// Returns the median, least and most of a figure; None if a run lacks the figure.
    #[must_use]
    pub fn figure(&self, of: impl Fn(&Measured) -> Option<f64>) -> Option<Spread> {
        let mut values: Vec<f64> = self.0.iter().map(of).collect::<Option<_>>()?;
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        // For an odd number, both are the same.
        let (lower, upper) = (values.len().saturating_sub(1) / 2, values.len() / 2);
        let median = f64::midpoint(values[lower], values[upper]);
        Some(Spread {
            runs: values.len(),
            median,
            least,
            most,
        })
    }
}

/// A figure over several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The number of runs.
    pub runs: usize,
    /// The median; of an even number, the mean of the two values in the middle.
    pub median: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

impl Spread {
    /// Returns the range (largest minus smallest) as a part of the median: 0.05 is 5 %. None for a single run, and if the
    /// median is 0 and other values are not.
    #[must_use]
    pub fn part(&self) -> Option<f64> {
        let range = self.most - self.least;
        match self.runs {
            ..=1 => None,
            _ if range == 0.0 => Some(0.0),
            _ => Some(range / self.median).filter(|part| part.is_finite()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(bytes: &[u64]) -> Runs {
        let run = |&write_bytes: &u64| Measured {
            write_bytes,
            ..Measured::default()
        };
        Runs::new(bytes.iter().map(run).collect()).unwrap()
    }

    fn bytes(of: &[u64]) -> Spread {
        runs(of).figure(|run| Some(run.write_bytes as f64)).unwrap()
    }

    #[test]
    fn the_median_and_how_far_the_others_lie() {
        let odd = bytes(&[30, 10, 20]);
        assert_eq!((odd.median, odd.least, odd.most), (20.0, 10.0, 30.0));
        assert_eq!(odd.part(), Some(1.0));
        let even = bytes(&[10, 40, 20, 30]);
        assert_eq!((even.median, even.part()), (25.0, Some(1.2)));
        assert_eq!(runs(&[10, 40, 20, 30]).typical().write_bytes, 20);
    }

    #[test]
    fn one_run_says_nothing_of_the_spread() {
        assert_eq!(bytes(&[10]).part(), None);
        assert_eq!(bytes(&[10, 10]).part(), Some(0.0));
        assert_eq!(bytes(&[0, 0]).part(), Some(0.0));
        assert_eq!(bytes(&[0, 0, 1]).part(), None);
        assert!(Runs::new(Vec::new()).is_none());
    }

    #[test]
    fn what_one_run_does_not_tell_is_not_told() {
        let told = runs(&[10, 20]).figure(|run| (run.write_bytes > 10).then_some(1.0));
        assert_eq!(told, None);
    }
}
