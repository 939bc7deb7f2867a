// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `format` of a tracepoint's event: its number, and the places of its fields.
//!
//! ```text
//! name: block_bio_queue
//! ID: 1094
//! format:
//!  field:dev_t dev; offset:8; size:4; signed:0;
//!  field:__data_loc char[] cmd; offset:44; size:4; signed:0;
//!
//! print fmt: "… flags %s", …, __print_flags(REC->flags, "|", { 0x0004, "DELALLOC" }, …)
//! ```

use std::fs;
use std::path::Path;

use crate::error::{At, Error, Result};

/// The format of one event.
#[derive(Debug, Default)]
pub(super) struct Format {
    pub id: u16,
    fields: Vec<(String, Field)>,
    print: String,
}

/// The place of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    offset: usize,
    size: usize,
    /// True if the field holds the offset and the length of its bytes (`__data_loc`).
    is_dynamic: bool,
}

impl Format {
    /// Parses the format of `system/event` in a tracefs.
    ///
    /// # Errors
    /// Returns an error if the kernel has no such event, or describes it in another form.
    pub fn read(tracefs: &Path, event: &str) -> Result<Format> {
        let path = tracefs.join("events").join(event).join("format");
        let text = fs::read_to_string(&path).at(&path)?;
        Format::parse(&text).ok_or_else(|| Error::malformed(path.display(), "not a format"))
    }

    fn parse(text: &str) -> Option<Format> {
        let mut format = Format::default();
        let mut has_id = false;
        for line in text.lines() {
            if let Some(id) = line.strip_prefix("ID: ") {
                format.id = id.trim().parse().ok()?;
                has_id = true;
            } else if let Some(field) = line.trim_start().strip_prefix("field:") {
                format.fields.push(field_of(field)?);
            } else if let Some(print) = line.strip_prefix("print fmt: ") {
                print.clone_into(&mut format.print);
            }
        }
        has_id.then_some(format)
    }

    /// Returns the place of a field, if the event has it.
    pub fn find(&self, name: &str) -> Option<Field> {
        let of_name = |(named, _): &&(String, Field)| named == name;
        Some(self.fields.iter().find(of_name)?.1)
    }

    /// Returns the place of a field.
    ///
    /// # Errors
    /// Returns an error if the event has no field of this name.
    pub fn field(&self, name: &str) -> Result<Field> {
        let missing = || Error::malformed(format!("event {}", self.id), format!("no field {name}"));
        self.find(name).ok_or_else(missing)
    }

    /// Returns the bits of a set of flags that are printed as one of these names.
    pub fn flags(&self, names: &[&str]) -> u64 {
        let pairs = self.print.split('{').skip(1);
        pairs
            .filter_map(|pair| {
                let (number, name) = pair.split('}').next()?.split_once(',')?;
                let number = number.trim().strip_prefix("0x")?;
                let is_wanted = names.contains(&name.trim().trim_matches('"'));
                let bits = u64::from_str_radix(number, 16).ok()?;
                is_wanted.then_some(bits)
            })
            .fold(0, |all, bits| all | bits)
    }
}

/// Parses a line such as `type name[size]; offset:8; size:4; signed:0;`.
fn field_of(text: &str) -> Option<(String, Field)> {
    let mut parts = text.split(';').map(str::trim);
    let declared = parts.next()?;
    let mut field = Field {
        is_dynamic: declared.starts_with("__data_loc"),
        ..Field::default()
    };
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => field.offset = number.parse().ok()?,
            Some(("size", number)) => field.size = number.parse().ok()?,
            _ => {}
        }
    }
    let name = declared.split_ascii_whitespace().next_back()?;
    let name = name.split('[').next()?;
    Some((name.trim_start_matches('*').to_owned(), field))
}

impl Field {
    /// Returns the bytes of the field in a record.
    pub fn bytes(self, record: &[u8]) -> Option<&[u8]> {
        let fixed = record.get(self.offset..self.offset.checked_add(self.size)?)?;
        if !self.is_dynamic {
            return Some(fixed);
        }
        let [a, b, c, d] = *fixed.first_chunk()?;
        let (at, len) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        let at = usize::from(at);
        record.get(at..at.checked_add(len.into())?)
    }

    /// Returns an unsigned number of up to 8 bytes.
    pub fn number(self, record: &[u8]) -> Option<u64> {
        let bytes = self.bytes(record).filter(|bytes| bytes.len() <= 8)?;
        let mut whole = [0; 8];
        whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(whole))
    }

    /// Returns a signed number of 4 bytes.
    pub fn signed(self, record: &[u8]) -> Option<i32> {
        Some(i32::from_le_bytes(*self.bytes(record)?.first_chunk()?))
    }

    /// Returns a text up to its NUL.
    pub fn text(self, record: &[u8]) -> Option<&[u8]> {
        self.bytes(record)?.split(|&byte| byte == 0).next()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "name: ext4_x\nID: 1204\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:char rwbs[8];\toffset:12;\tsize:8;\tsigned:0;\n\
        \tfield:__data_loc char[] pathbuf;\toffset:20;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"flags %s\", __print_flags(REC->flags, \"|\", { 0x0001, \"CREATE\" }, { 0x0004, \"DELALLOC\" }, { 0x0400,\"IO_SUBMIT\" })\n";

    #[test]
    fn fields_are_found_by_their_names() {
        let format = Format::parse(TEXT).unwrap();
        assert_eq!(format.id, 1204);
        let mut record = vec![0; 24];
        record[4..8].copy_from_slice(&(-5i32).to_le_bytes());
        record[8..12].copy_from_slice(&7u32.to_le_bytes());
        record[12..15].copy_from_slice(b"WS\0");
        record[20..24].copy_from_slice(&[24, 0, 5, 0]);
        record.extend(b"/a/b\0");
        let field = |name| format.field(name).unwrap();
        assert_eq!(field("common_pid").signed(&record), Some(-5));
        assert_eq!(field("dev").number(&record), Some(7));
        assert_eq!(field("rwbs").text(&record), Some(&b"WS"[..]));
        assert_eq!(field("pathbuf").text(&record), Some(&b"/a/b"[..]));
        assert_eq!(field("pathbuf").text(&record[..26]), None);
        assert!(format.field("cmd").is_err());
        assert_eq!(format.flags(&["DELALLOC", "IO_SUBMIT", "ZERO"]), 0x404);
    }

    proptest! {
        #[test]
        fn any_text_and_any_record_come_to_an_end(text: String, record in prop::collection::vec(any::<u8>(), 0..64)) {
            Format::parse(&text);
            let format = Format::parse(TEXT).unwrap();
            for (_, field) in &format.fields {
                let _ = (field.number(&record), field.signed(&record), field.text(&record));
            }
        }
    }
}
