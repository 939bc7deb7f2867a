// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings with a few named values.

/// A setting with a few named values, as a command line and a table of settings spell them.
pub trait Choice: Copy + 'static {
    /// Every value, in the order of a help text.
    const ALL: &'static [Self];

    /// The value's name, lower case.
    fn name(self) -> &'static str;

    /// The value of that name.
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
