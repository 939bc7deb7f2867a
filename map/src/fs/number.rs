// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of blocks, clusters, inodes: each a type of its own, so that none stands for another.

/// A newtype over an unsigned number that counts one kind of thing.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident($of:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $of);

        impl $name {
            /// The one that is `n` further on; the last one there can be where that is too far.
            #[allow(dead_code, reason = "some numbers only name a thing")]
            pub fn plus(self, n: $of) -> $name {
                $name(self.0.saturating_add(n))
            }

            /// How far `end` is from here, 0 where it is before.
            #[allow(dead_code, reason = "some numbers only name a thing")]
            pub fn up_to(self, end: $name) -> $of {
                end.0.saturating_sub(self.0)
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
