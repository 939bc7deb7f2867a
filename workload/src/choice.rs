// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings with a few named values.

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
