// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures as both kinds of views show them.

use std::time::Duration;

use indicatif::HumanBytes;
use mostrace::live::{Amount, Latency};
use mostrace_map::class::Class;

/// Bytes.
pub fn bytes(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}

/// Bytes in a second.
pub fn rate(bytes: u64, lasted: Duration) -> String {
    format!("{}/s", HumanBytes(per_second(bytes, lasted)))
}

/// So many in a second.
pub fn per_second(count: u64, lasted: Duration) -> u64 {
    let millis = lasted.as_millis().max(1);
    u64::try_from(u128::from(count) * 1000 / millis).unwrap_or(u64::MAX)
}

/// Whole per cent; 0 of nothing.
pub fn percent(part: u64, whole: u64) -> u64 {
    let percent = u128::from(part) * 100 / u128::from(whole.max(1));
    u64::try_from(percent).unwrap_or(u64::MAX)
}

/// How many times; nothing where that is not known.
pub fn times(amplification: Option<f64>) -> String {
    match amplification {
        Some(times) if times >= 100.0 => format!("{times:.0} ×"),
        Some(times) => format!("{times:.1} ×"),
        None => String::new(),
    }
}

/// How long requests took, behind their number; nothing where there were none.
pub fn latency(latency: &Latency) -> String {
    let Some(mean) = latency.mean() else {
        return String::new();
    };
    let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    format!(", {} each, {} at most", millis(mean), millis(latency.most))
}

/// The bytes of one class.
pub fn of_class(amount: &Amount, class: Class) -> u64 {
    amount.classes[class as usize]
}
