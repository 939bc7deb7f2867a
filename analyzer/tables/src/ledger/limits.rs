// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits on what an application may write in an hour or a day.

use std::path::Path;

use mostrace_bundle::units;
use serde::{Deserialize, Deserializer};

use super::{COLUMNS, Days, Error, Result, Sums};

/// The limits of a file:
///
/// ```toml
/// [[limit]]
/// by = "package"             # each package, command, uid …; by default each command
/// of = "org.example.chat"    # only this one
/// per = "day"                # or "hour"; by default a day
/// max_write_bytes = "500M"
/// max_flushes = 10000
/// ```
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    #[serde(default)]
    limit: Vec<Limit>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    #[serde(default = "command")]
    by: String,
    of: Option<String>,
    #[serde(default)]
    per: Per,
    #[serde(default, deserialize_with = "size")]
    max_write_bytes: Option<u64>,
    max_flushes: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Per {
    #[default]
    Day,
    Hour,
}

/// A limit that was exceeded. It displays as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    /// The day or hour.
    pub when: String,
    /// The group to which the limit applies, for example a command.
    pub whose: String,
    /// `bytes` or `flushes`.
    pub unit: &'static str,
    /// The figure.
    pub found: u64,
    /// The limit.
    pub most: u64,
}

impl std::fmt::Display for Over {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Over {
            when,
            whose,
            unit,
            found,
            most,
        } = self;
        write!(f, "{when}: {whose} wrote {found} {unit}, more than {most}")
    }
}

fn command() -> String {
    "command".into()
}

fn size<'d, D: Deserializer<'d>>(from: D) -> std::result::Result<Option<u64>, D::Error> {
    let text = String::deserialize(from)?;
    units::amount(&text)
        .map(Some)
        .map_err(serde::de::Error::custom)
}

impl Limits {
    /// Reads a file of limits.
    ///
    /// # Errors
    /// Returns an error if it cannot be read or is malformed.
    pub fn read(path: &Path) -> Result<Limits> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Io {
            path: path.to_owned(),
            source,
        })?;
        let malformed = |what: String| Error::Limits {
            path: path.to_owned(),
            what,
        };
        let limits: Limits = toml::from_str(&text)
            .map_err(|why| malformed(why.to_string().trim_end().replace('\n', " ")))?;
        for limit in &limits.limit {
            if !COLUMNS.contains(&limit.by.as_str()) {
                let known = COLUMNS.join(", ");
                return Err(malformed(format!(
                    "by = \"{}\" is none of {known}",
                    limit.by
                )));
            }
        }
        match limits.limit.is_empty() {
            true => Err(malformed("no [[limit]] in it".into())),
            false => Ok(limits),
        }
    }

    /// Returns the limits that the ledger exceeds.
    pub fn check(&self, days: &Days) -> Result<Vec<Over>> {
        let mut over = Vec::new();
        for limit in &self.limit {
            let per = match limit.per {
                Per::Day => "day",
                Per::Hour => "hour",
            };
            let sums = Sums::new(days, [None, None], &[per, &limit.by])?;
            for (key, sum) in sums.groups() {
                let [when, whose] = key else { continue };
                if limit.of.is_some() && limit.of != *whose {
                    continue;
                }
                let held = [
                    ("bytes", sum.write_bytes, limit.max_write_bytes),
                    ("flushes", sum.flushes, limit.max_flushes),
                ];
                let held = held
                    .into_iter()
                    .filter_map(|(unit, found, most)| Some((unit, found, most?)));
                for (unit, found, most) in held.filter(|(_, found, most)| found > most) {
                    over.push(Over {
                        when: when.clone().unwrap_or_default(),
                        whose: whose.clone().unwrap_or_else(|| "unknown".into()),
                        unit,
                        found,
                        most,
                    });
                }
            }
        }
        Ok(over)
    }
}
