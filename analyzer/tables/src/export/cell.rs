// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats single values as text.

use chrono::{DateTime, SecondsFormat};
use indicatif::HumanCount;
use polars::prelude::AnyValue;

use crate::facts::catalogue::Type;
use mostrace_trace::text::harmless;

/// Formats a moment as in RFC 3339.
pub(super) fn moment(us: i64) -> String {
    match DateTime::from_timestamp_micros(us) {
        Some(moment) => moment.to_rfc3339_opts(SecondsFormat::Micros, true),
        None => us.to_string(),
    }
}

/// Formats a value for people: large numbers in groups of three, `-` for an unknown value.
pub(super) fn shown(value: &AnyValue<'_>, ty: Type) -> String {
    match value {
        AnyValue::Null => "-".into(),
        AnyValue::Boolean(v) => if *v { "yes" } else { "no" }.into(),
        AnyValue::Float64(v) => format!("{v:.2}"),
        AnyValue::Datetime(us, ..) => moment(*us),
        value => match (value.get_str(), value.extract::<i64>(), ty) {
            (Some(text), ..) => harmless(text).into_owned(),
            (None, Some(number), Type::Amount) => {
                let sign = if number < 0 { "-" } else { "" };
                format!("{sign}{}", HumanCount(number.unsigned_abs()))
            }
            _ => value.to_string(),
        },
    }
}

/// Returns true if a value is empty or zero: a column of only such values is not printed.
pub(super) fn says_nothing(value: &AnyValue<'_>, ty: Type) -> bool {
    match value {
        AnyValue::Null => true,
        AnyValue::Float64(v) => *v == 0.0,
        value => ty == Type::Amount && value.extract::<i64>() == Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_steers_a_terminal() {
        let shown = |text| shown(&AnyValue::String(text), Type::Text);
        assert_eq!(
            shown("a\u{9b}31m\n\u{202e}"),
            "a\\xc2\\x9b31m\\x0a\\xe2\\x80\\xae"
        );
        assert_eq!(shown("größe a"), "größe a");
    }

    #[test]
    fn thousands_are_apart_whatever_the_sign() {
        let shown = |number| shown(&AnyValue::Int64(number), Type::Amount);
        assert_eq!(
            [shown(0), shown(-999), shown(1_234_567), shown(-1_234_567)],
            ["0", "-999", "1,234,567", "-1,234,567"]
        );
    }
}
