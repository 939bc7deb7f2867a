// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats figures for both kinds of views.

use std::time::Duration;

use mostrace_map::class::Class;
use mostrace_trace::answer;
use mostrace_trace::live::{Amount, Latency};
use mostrace_trace::text;

/// Formats bytes.
pub fn bytes(bytes: u64) -> String {
    text::size(bytes as f64)
}

/// Formats bytes per second.
pub fn rate(bytes: u64, lasted: Duration) -> String {
    format!("{}/s", text::size(per_second(bytes, lasted) as f64))
}

/// Returns a count per second.
pub fn per_second(count: u64, lasted: Duration) -> u64 {
    let millis = lasted.as_millis().max(1);
    u64::try_from(u128::from(count) * 1000 / millis).unwrap_or(u64::MAX)
}

/// Formats an amplification; empty if it is unknown.
pub fn times(amplification: Option<f64>) -> String {
    amplification.map(answer::times).unwrap_or_default()
}

/// Formats the latency of requests, to follow their number; empty without requests.
pub fn latency(latency: &Latency) -> String {
    let Some(mean) = latency.mean() else {
        return String::new();
    };
    let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    format!(", {} each, {} at most", millis(mean), millis(latency.most))
}

/// Returns the bytes of one class.
pub fn of_class(amount: &Amount, class: Class) -> u64 {
    amount.classes[class as usize]
}
