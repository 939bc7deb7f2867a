// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings as options: those with a few named values, the defaults, and the table of settings in the manifest.

use std::collections::BTreeMap;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use serde_json::Value;

/// A setting with a few named values, spelled the same on a command line and in a table of settings.
pub trait Choice: Copy + 'static {
    /// Every value, in the order of the help text.
    const ALL: &'static [Self];

    /// Returns the value's name in lower case.
    fn name(self) -> &'static str;

    /// Returns the value with this name.
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.name() == name)
    }
}

/// Declares an enum and its [`Choice`].
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $value:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name {
            $($(#[$doc])* $value),+
        }

        impl crate::Choice for $name {
            const ALL: &'static [Self] = &[$(Self::$value),+];

            fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $text),+
                }
            }
        }
    };
}

pub(crate) use choice;

/// Returns a parser for the names of a setting's values.
pub(crate) fn named<T: Choice + Send + Sync>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::ALL.iter().map(|value| value.name()))
        .try_map(|name| T::from_name(&name).ok_or("no such value"))
}

/// Returns the settings of a command line without any option, so that defaults are written only where the options are.
pub(crate) fn defaults<T: clap::Args>() -> T {
    let command = T::augment_args(clap::Command::new("defaults"));
    let matches = command.get_matches_from([""]);
    T::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Returns settings by name as texts, as stored in the manifest, without those named in `except`.
pub(crate) fn table(settings: &impl Serialize, except: &[&str]) -> BTreeMap<String, String> {
    let Ok(Value::Object(settings)) = serde_json::to_value(settings) else {
        return BTreeMap::new();
    };
    let text = |value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let settings = settings.into_iter();
    let kept = settings.filter(|(name, _)| !except.contains(&name.as_str()));
    kept.map(|(name, value)| (name, text(value))).collect()
}
