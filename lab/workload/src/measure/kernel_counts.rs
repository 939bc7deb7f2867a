// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two numbers that the kernel counts for a thread and shows in a file of `/proc/thread-self`.

/// Declares a struct of two counts, each with the beginning of its line in the file.
macro_rules! kernel_counts {
    ($name:ident { $one:ident: $one_line:literal, $other:ident: $other_line:literal } in $file:literal) => {
        impl $name {
            /// Returns the counts of this thread since it began; None if the kernel does not show them.
            pub(super) fn of_this_thread() -> Option<Self> {
                let file = concat!("/proc/thread-self/", $file);
                Self::parse(&std::fs::read_to_string(file).ok()?)
            }

            fn parse(text: &str) -> Option<Self> {
                let field = |name: &str| {
                    text.lines()
                        .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
                };
                Some(Self {
                    $one: field($one_line)?,
                    $other: field($other_line)?,
                })
            }

            /// Returns the counts of this thread since `before`.
            pub(super) fn since(before: Option<Self>) -> Option<Self> {
                let (now, before) = (Self::of_this_thread()?, before?);
                Some(Self {
                    $one: now.$one.saturating_sub(before.$one),
                    $other: now.$other.saturating_sub(before.$other),
                })
            }

            /// Returns the sums of both.
            pub(crate) fn and(self, other: Self) -> Self {
                Self {
                    $one: self.$one.saturating_add(other.$one),
                    $other: self.$other.saturating_add(other.$other),
                }
            }
        }
    };
}

pub(super) use kernel_counts;
