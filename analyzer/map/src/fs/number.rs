// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of blocks, clusters and inodes, each a type of its own, so that they cannot be confused.

/// Defines a newtype for an unsigned number that counts one kind of thing.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident($of:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $of);

        #[allow(dead_code, reason = "not every number is counted with in each way")]
        impl $name {
            /// Returns the number that is `n` larger, at most the type's maximum.
            pub fn plus(self, n: $of) -> $name {
                $name(self.0.saturating_add(n))
            }

            /// Returns the distance to `end`, 0 if `end` is smaller.
            pub fn up_to(self, end: $name) -> $of {
                end.0.saturating_sub(self.0)
            }

            /// Returns all numbers from this one to the one before `end`.
            pub fn until(self, end: $name) -> impl Iterator<Item = $name> {
                (self.0..end.0).map($name)
            }
        }

        impl From<$name> for u64 {
            fn from(number: $name) -> u64 {
                number.0.into()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

pub(super) use number;
