// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fields of a protobuf message, in place.

use prost::encoding::{self, DecodeContext, WireType};

/// A message that is not read yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Message<'a>(pub &'a [u8]);

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    /// A string, bytes, or a message.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub fn number(self) -> Option<u64> {
        match self {
            Value::Number(number) => Some(number),
            Value::Bytes(_) => None,
        }
    }

    pub fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Value::Number(_) => None,
            Value::Bytes(bytes) => Some(bytes),
        }
    }
}

/// The numbers of messages' fields that are damaged end the iteration with an error.
impl<'a> Iterator for Message<'a> {
    type Item = Result<(u32, Value<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or_else(|| "a field of this packet is damaged".to_owned()))
    }
}

impl<'a> Message<'a> {
    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let (number, kind) = encoding::decode_key(&mut self.0).ok()?;
        let value = match kind {
            WireType::Varint => Value::Number(encoding::decode_varint(&mut self.0).ok()?),
            WireType::LengthDelimited => {
                let length = encoding::decode_varint(&mut self.0).ok()?;
                Value::Bytes(self.take(usize::try_from(length).ok()?)?)
            }
            WireType::SixtyFourBit => {
                Value::Number(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
            }
            WireType::ThirtyTwoBit => {
                Value::Number(u32::from_le_bytes(self.take(4)?.try_into().ok()?).into())
            }
            WireType::StartGroup | WireType::EndGroup => {
                let context = DecodeContext::default();
                encoding::skip_field(kind, number, &mut self.0, context).ok()?;
                Value::Bytes(&[])
            }
        };
        Some((number, value))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Returns the last value of a field.
    pub fn find(self, wanted: u32) -> Option<Value<'a>> {
        let mut found = None;
        for field in self {
            let (number, value) = field.ok()?;
            if number == wanted {
                found = Some(value);
            }
        }
        found
    }

    pub fn number(self, wanted: u32) -> Option<u64> {
        self.find(wanted)?.number()
    }

    pub fn bytes(self, wanted: u32) -> Option<&'a [u8]> {
        self.find(wanted)?.bytes()
    }

    /// Returns the messages of a field that may occur several times.
    pub fn all(self, wanted: u32) -> impl Iterator<Item = Message<'a>> {
        let fields = self.filter_map(Result::ok);
        fields.filter_map(move |(number, value)| match value {
            Value::Bytes(bytes) if number == wanted => Some(Message(bytes)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_until_the_damage() {
        let bytes = b"\x08\x96\x01\x12\x02hi\x1d\x01\0\0\0\x21\x02\0\0\0\0\0\0\0";
        let fields: Result<Vec<_>, _> = Message(bytes).collect();
        assert_eq!(
            fields.unwrap(),
            [
                (1, Value::Number(150)),
                (2, Value::Bytes(b"hi")),
                (3, Value::Number(1)),
                (4, Value::Number(2)),
            ]
        );
        assert_eq!(Message(bytes).number(4), Some(2));
        assert_eq!(Message(bytes).all(2).count(), 1);
        for damaged in [&b"\x12\x05hi"[..], b"\x08", b"\0", b"\x0b", b"\x1d\x01"] {
            assert!(Message(damaged).any(|field| field.is_err()), "{damaged:?}");
        }
    }
}
