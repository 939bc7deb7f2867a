// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides how often a cell is measured: until its mean is known precisely enough.

use serde::{Deserialize, Serialize};

/// The conditions for having measured a cell often enough.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Repeat {
    /// The largest accepted half width of the 95 % confidence interval of the mean bytes per transaction, in per cent of
    /// that mean.
    pub within_percent: f64,
    /// The least number of measurements.
    pub least: usize,
    /// The greatest number of measurements.
    pub most: usize,
}

impl Default for Repeat {
    fn default() -> Self {
        Repeat {
            within_percent: 2.0,
            least: 3,
            most: MOST,
        }
    }
}

impl Repeat {
    /// Returns an error if the values are invalid.
    pub(super) fn check(&self) -> Result<(), String> {
        match self.most {
            0 => Err("repeat.most: a cell is measured at least once".into()),
            1..=MOST => Ok(()),
            _ => Err(format!(
                "repeat.most: a cell is measured at most {MOST} times"
            )),
        }
    }

    /// Returns true if these measurements are enough.
    pub fn is_enough(&self, values: &[f64]) -> bool {
        let is_known =
            || half_width_percent(values).is_some_and(|percent| percent <= self.within_percent);
        values.len() >= self.most || (values.len() >= self.least && is_known())
    }
}

/// The most measurements for which the table of quantiles suffices.
const MOST: usize = 20;

/// The 0.975 quantiles of Student's t for 1, 2 … degrees of freedom: NIST/SEMATECH e-Handbook of Statistical Methods,
/// section 1.3.6.7.2.
const QUANTILES: [f64; MOST - 1] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093,
];

/// Returns half the width of the 95 % confidence interval of the mean, per cent of the mean. None for a single value, which
/// does not show how the next one would differ.
pub(super) fn half_width_percent(values: &[f64]) -> Option<f64> {
    let quantile = QUANTILES.get(values.len().checked_sub(2)?)?;
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    // If all values are zero, so is the mean.
    Some(match error == 0.0 {
        true => 0.0,
        false => quantile * error * 100.0 / mean.abs(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Integrates the density of Student's t, which with t = √n · tan θ is that of cosⁿ⁻¹ θ, by Simpson's rule.
    fn integral(degrees: i32, to: f64) -> f64 {
        const STEPS: i32 = 2000;
        let step = to / f64::from(STEPS);
        let at = |n: i32| (f64::from(n) * step).cos().powi(degrees - 1);
        let weight = |n: i32| match n {
            0 | STEPS => 1.0,
            n if n % 2 == 1 => 4.0,
            _ => 2.0,
        };
        (0..=STEPS).map(|n| weight(n) * at(n)).sum::<f64>() * step / 3.0
    }

    #[test]
    fn quantiles_leave_five_per_cent_outside() {
        for (degrees, quantile) in (1..).zip(QUANTILES) {
            let angle = (quantile / f64::from(degrees).sqrt()).atan();
            let inside = integral(degrees, angle) / integral(degrees, std::f64::consts::FRAC_PI_2);
            // The table has three digits after the decimal point.
            assert!((inside - 0.95).abs() < 5e-5, "{degrees}: {inside}");
        }
    }

    #[test]
    fn intervals_of_known_samples() {
        let percent = |values: &[f64]| half_width_percent(values).unwrap();
        // The standard deviation is 1 and the mean is 2: 4.303 / √3 / 2.
        assert!((percent(&[1.0, 2.0, 3.0]) - 124.217).abs() < 0.001);
        // The standard deviation is √2.5 and the mean is 10: 2.776 · √(2.5 / 5) / 10.
        let five = [8.0, 9.0, 10.0, 11.0, 12.0];
        assert!((percent(&five) - 19.629).abs() < 0.001);
        assert_eq!(percent(&[7.0, 7.0]), 0.0);
        assert_eq!(percent(&[0.0, 0.0, 0.0]), 0.0);
        assert_eq!(half_width_percent(&[7.0]), None);
        assert_eq!(half_width_percent(&[]), None);
    }

    #[test]
    fn enough_is_when_the_mean_is_known_or_patience_ends() {
        let repeat = Repeat::default();
        assert!(!repeat.is_enough(&[100.0, 100.0]), "three at least");
        assert!(repeat.is_enough(&[100.0, 100.0, 100.0]));
        // The half width is 2.48 % with three values of standard deviation 1, and 1.84 % with four.
        assert!(!repeat.is_enough(&[99.0, 100.0, 101.0]));
        assert!(repeat.is_enough(&[99.0, 100.0, 101.0, 100.0]));
        let wide = [100.0, 200.0].repeat(10);
        assert!(!repeat.is_enough(&wide[..19]));
        assert!(repeat.is_enough(&wide), "20 at most");
    }
}
