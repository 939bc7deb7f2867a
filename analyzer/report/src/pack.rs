// SPDX-License-Identifier: MIT OR Apache-2.0
//! The data for the page's scripts: words and columns of numbers, compressed, as text.
//!
//! ```text
//! base64( gzip( length of the head, u32 LE │ head, JSON │ column │ column │ … ) )
//! ```
//! A column is a LEB128 number for each value, or for each difference from the value before; the sign is in the lowest bit.
//! The head says the length and the coding of each column. `page/js/unpack.js` is the reader.

use std::io::Write;

use base64::prelude::{BASE64_STANDARD, Engine};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use super::error::Error;

/// Values are divided by this if all of them are its multiples.
const SECTOR: i64 = 512;

/// The way in which a column's values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Coding {
    /// Each value.
    Plain,
    /// Each value's difference from the one before.
    Delta,
}

/// A column of numbers.
#[derive(Debug)]
struct Column {
    name: &'static str,
    coding: Coding,
    values: Vec<i64>,
}

impl Column {
    fn scale(&self) -> i64 {
        match self.values.iter().all(|value| value % SECTOR == 0) {
            true => SECTOR,
            false => 1,
        }
    }

    fn bytes(&self, scale: i64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.values.len().saturating_mul(2));
        let mut before = 0_i64;
        for value in &self.values {
            let value = value.checked_div(scale).unwrap_or(0);
            let written = match self.coding {
                Coding::Plain => value,
                Coding::Delta => value.saturating_sub(before),
            };
            before = value;
            // The sign goes to the lowest bit.
            let mut left = (written.wrapping_shl(1) ^ (written >> 63)) as u64;
            while left > 0x7f {
                bytes.push(left as u8 | 0x80);
                left >>= 7;
            }
            bytes.push(left as u8);
        }
        bytes
    }
}

/// A table of columns of equal length.
#[derive(Debug)]
pub(super) struct Table {
    name: &'static str,
    columns: Vec<Column>,
}

impl Table {
    /// Returns an empty table. The values of the columns `by_difference` are written as differences.
    pub fn new(
        name: &'static str,
        columns: &[&'static str],
        by_difference: &[&'static str],
    ) -> Table {
        let column = |name: &&'static str| Column {
            name,
            coding: match by_difference.contains(name) {
                true => Coding::Delta,
                false => Coding::Plain,
            },
            values: Vec::new(),
        };
        Table {
            name,
            columns: columns.iter().map(column).collect(),
        }
    }

    /// Appends a row.
    pub fn push<const N: usize>(&mut self, row: [i64; N]) {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.values.push(value);
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }
}

/// Returns a number as a table has it. One that does not fit becomes the largest that does.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[derive(Serialize)]
struct Head<'h, W> {
    words: &'h W,
    tables: Vec<TableHead>,
}

#[derive(Serialize)]
struct TableHead {
    name: &'static str,
    rows: usize,
    columns: Vec<ColumnHead>,
}

#[derive(Serialize)]
struct ColumnHead {
    name: &'static str,
    coding: Coding,
    scale: i64,
    bytes: usize,
    /// The largest value, so that the reader can take the smallest array.
    most: i64,
    least: i64,
}

/// Packs words and tables.
pub(super) fn packed<'t>(
    words: &impl Serialize,
    tables: impl Iterator<Item = &'t Table>,
) -> Result<String, Error> {
    let mut bodies = Vec::new();
    let mut head_of = |column: &Column| {
        let scale = column.scale();
        let bytes = column.bytes(scale);
        let head = ColumnHead {
            name: column.name,
            coding: column.coding,
            scale,
            bytes: bytes.len(),
            most: column.values.iter().copied().max().unwrap_or(0),
            least: column.values.iter().copied().min().unwrap_or(0),
        };
        bodies.push(bytes);
        head
    };
    let heads = tables.map(|table| TableHead {
        name: table.name,
        rows: table.len(),
        columns: table.columns.iter().map(&mut head_of).collect(),
    });
    let head = Head {
        words,
        tables: heads.collect(),
    };
    let head = serde_json::to_vec(&head)?;
    let mut out = GzEncoder::new(Vec::new(), Compression::new(6));
    let length = u32::try_from(head.len()).unwrap_or(u32::MAX);
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&head)?;
    for body in bodies {
        out.write_all(&body)?;
    }
    Ok(BASE64_STANDARD.encode(out.finish()?))
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Read;

    use serde_json::Value;

    use super::*;

    /// Opens what was packed: the head, and the bytes behind it.
    pub fn unpacked(packed: &str) -> (Value, Vec<u8>) {
        let packed = BASE64_STANDARD.decode(packed).unwrap();
        let mut bytes = Vec::new();
        let mut gzip = flate2::read::GzDecoder::new(&packed[..]);
        gzip.read_to_end(&mut bytes).unwrap();
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        let rest = bytes.split_off(4 + length);
        (serde_json::from_slice(&bytes[4..]).unwrap(), rest)
    }

    /// Adds up a column of plain numbers that are not negative.
    pub fn sum_of((head, body): &(Value, Vec<u8>), table: &str, column: &str) -> u64 {
        let mut from = 0;
        for of in head["tables"].as_array().unwrap() {
            for one in of["columns"].as_array().unwrap() {
                let to = from + one["bytes"].as_u64().unwrap() as usize;
                if of["name"] == table && one["name"] == column {
                    let scale = one["scale"].as_u64().unwrap();
                    let numbers = body[from..to].split_inclusive(|byte| byte & 0x80 == 0);
                    let number = |bytes: &[u8]| {
                        let bits = bytes.iter().rev();
                        bits.fold(0, |all, byte| all << 7 | u64::from(byte & 0x7f)) / 2
                    };
                    return numbers.map(|bytes| number(bytes) * scale).sum();
                }
                from = to;
            }
        }
        panic!("no {table}.{column}")
    }

    fn bytes(coding: Coding, values: &[i64]) -> Vec<u8> {
        let column = Column {
            name: "a",
            coding,
            values: values.to_vec(),
        };
        column.bytes(column.scale())
    }

    #[test]
    fn small_numbers_take_a_byte_each() {
        assert_eq!(bytes(Coding::Plain, &[0, 1, -1, 64]), [0, 2, 1, 0x80, 1]);
        assert_eq!(bytes(Coding::Delta, &[300, 301, 300]), [0xd8, 4, 2, 1]);
        // All are multiples of a sector.
        assert_eq!(bytes(Coding::Plain, &[512, 4096]), [2, 16]);
    }

    #[test]
    fn any_number_is_written() {
        assert_eq!(bytes(Coding::Delta, &[i64::MIN, i64::MAX]).len(), 20);
    }
}
