// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a recording that counts, and the words for it.

use mostrace_bundle::Manifest;
use serde_json::{Value, json};

use crate::answer::{percent, size};
use crate::text::grouped;

/// The part of a recording that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    /// Everything: nobody else used the filesystem, or there was no command.
    #[default]
    All,
    /// Everything, including others', because it is unknown what the command's processes caused.
    Undivided,
    /// Everything but what others caused.
    OfCommand {
        /// Bytes that others wrote, which do not count.
        others: u64,
        /// Flushes of the device for which only others waited, which do not count.
        others_flushes: u64,
        /// Bytes of which nobody is known to have written them, which count.
        unknown: u64,
    },
    /// What one app of a phone is known to have caused.
    OfApp {
        /// Bytes that anybody wrote.
        written: u64,
        /// Those that others caused, which do not count.
        others: u64,
        /// Those of which nobody is known to have written them, which do not count either.
        unknown: u64,
    },
}

impl Counted {
    /// Returns what counts without a division: everything does, unless others could write to the command's filesystem. None if
    /// what others wrote can be told apart.
    #[must_use]
    pub fn undivided(manifest: Option<&Manifest>, knows_family: bool) -> Option<Counted> {
        let command = manifest.and_then(|manifest| manifest.command.as_ref());
        match command.is_some_and(|command| command.alone == Some(false)) {
            false => Some(Counted::All),
            true => (!knows_family).then_some(Counted::Undivided),
        }
    }

    /// Says what does not count though it was written, and what counts though others may have written it; nothing if all is the
    /// command's.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let (others, flushes, unknown) = match *self {
            Counted::All => return None,
            Counted::Undivided => {
                let all = "all that was written to the filesystem counts, be it by others: the recording does not tell what the \
                           command's processes caused";
                return Some(all.into());
            }
            Counted::OfApp {
                written,
                others,
                unknown,
            } => return beside_app(written, others, unknown),
            Counted::OfCommand {
                others,
                others_flushes,
                unknown,
            } => (others, others_flushes, unknown),
        };
        let many = match flushes {
            1 => "1 flush of the device".to_owned(),
            _ => format!("{} flushes of the device", grouped(flushes)),
        };
        let theirs = match (others, flushes) {
            (0, 0) => None,
            (0, _) => Some(format!("others caused {many}: not counted")),
            (_, 0) => Some(format!("others wrote {}: not counted", size(others as f64))),
            _ => Some(format!(
                "others wrote {} and caused {many}: not counted",
                size(others as f64)
            )),
        };
        let nobodys = || {
            format!(
                "nobody is known who wrote {}: counted",
                size(unknown as f64)
            )
        };
        let all = [theirs, (unknown > 0).then(nobodys)];
        let all: Vec<String> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Returns the same for programs; null if everything counts.
    #[must_use]
    pub fn value(&self) -> Value {
        match self {
            Counted::All | Counted::Undivided | Counted::OfApp { .. } => Value::Null,
            Counted::OfCommand {
                others,
                others_flushes,
                unknown,
            } => json!({
                "others_bytes": others,
                "others_flushes": others_flushes,
                "counted_unknown_bytes": unknown,
            }),
        }
    }
}

/// Says what was written beside an app; nothing if nothing was written at all.
fn beside_app(written: u64, others: u64, unknown: u64) -> Option<String> {
    let part = |bytes| format!("{}, {} %", size(bytes as f64), percent(bytes, written));
    let nobodys = match unknown {
        0 => String::new(),
        _ => format!("; nobody is known who wrote {}", part(unknown)),
    };
    let all = size(written as f64);
    (written > 0).then(|| format!("others wrote {} of all {all}{nobodys}", part(others)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_an_app_others_have_a_line() {
        let said = |written, others, unknown| {
            let counted = Counted::OfApp {
                written,
                others,
                unknown,
            };
            counted.words().unwrap_or_default()
        };
        assert_eq!(
            said(10_000_000, 2_500_000, 100_000),
            "others wrote 2.5 MB, 25 % of all 10.0 MB; nobody is known who wrote 100.0 kB, 1 %"
        );
        assert_eq!(said(500, 0, 0), "others wrote 0 B, 0 % of all 500 B");
        assert_eq!(said(0, 0, 0), "");
    }

    #[test]
    fn what_is_not_counted_is_said() {
        let divided = |others, others_flushes, unknown| {
            let counted = Counted::OfCommand {
                others,
                others_flushes,
                unknown,
            };
            counted.words().unwrap_or_default()
        };
        assert_eq!(
            divided(2_800_000, 20, 400_000),
            "others wrote 2.8 MB and caused 20 flushes of the device: not counted; nobody is known who wrote 400.0 kB: counted"
        );
        assert_eq!(divided(5000, 0, 0), "others wrote 5.0 kB: not counted");
        assert_eq!(
            divided(0, 1, 0),
            "others caused 1 flush of the device: not counted"
        );
        assert_eq!(
            divided(0, 0, 5000),
            "nobody is known who wrote 5.0 kB: counted"
        );
        assert_eq!(divided(0, 0, 0), "");
        assert_eq!(Counted::All.words(), None);
        let undivided = Counted::Undivided.words().unwrap();
        assert!(undivided.starts_with("all that was written"));
    }
}
