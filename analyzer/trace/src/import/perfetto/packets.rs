// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets of a trace, one after the other, in bounded memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use prost::encoding::decode_varint;

use super::wire::Message;

/// The longest packet that is read. Those of ftrace have some pages of a CPU's buffer, at most 1 MiB.
pub(super) const LONGEST: u64 = 8 << 20;
/// Trace.packet: field 1, with a length.
const PACKET: u8 = 1 << 3 | 2;
/// The longest key and length.
const HEAD: usize = 1 + 10;

pub(super) struct Packets {
    file: BufReader<File>,
    left: u64,
    pub at: u64,
    packet: Vec<u8>,
}

/// What follows in the file.
pub(super) enum Next<'a> {
    Packet(Message<'a>),
    /// A packet that is too long to be of ftrace was skipped.
    Skipped,
    /// The file ends within a packet.
    Cut,
    End,
}

impl Packets {
    pub fn open(path: &Path) -> io::Result<Packets> {
        let file = File::open(path)?;
        Ok(Packets {
            left: file.metadata()?.len(),
            file: BufReader::with_capacity(256 << 10, file),
            at: 0,
            packet: Vec::new(),
        })
    }

    /// Reads the next packet. `at` is then its place.
    ///
    /// # Errors
    /// Returns an error of the system, or None within if no packet is there.
    pub fn next(&mut self) -> io::Result<Option<Next<'_>>> {
        self.at = self.at.saturating_add(self.packet.len() as u64);
        self.packet.clear();
        if self.left == 0 {
            return Ok(Some(Next::End));
        }
        let Some(length) = self.head()? else {
            return Ok(None);
        };
        if length > self.left {
            return Ok(Some(Next::Cut));
        }
        self.left = self.left.saturating_sub(length);
        if length > LONGEST {
            let skipped = i64::try_from(length).map_err(io::Error::other)?;
            self.file.seek_relative(skipped)?;
            self.at = self.at.saturating_add(length);
            return Ok(Some(Next::Skipped));
        }
        let mut packet = std::mem::take(&mut self.packet);
        let read = (&mut self.file).take(length).read_to_end(&mut packet)?;
        self.packet = packet;
        Ok(Some(match read as u64 == length {
            true => Next::Packet(Message(&self.packet)),
            false => Next::Cut,
        }))
    }

    /// Reads a packet's key and length.
    fn head(&mut self) -> io::Result<Option<u64>> {
        let mut head = Vec::with_capacity(HEAD);
        while head.len() < HEAD {
            let Some(&byte) = self.file.fill_buf()?.first() else {
                // The file ends here.
                return Ok(Some(u64::MAX));
            };
            self.file.consume(1);
            self.left = self.left.saturating_sub(1);
            self.at = self.at.saturating_add(1);
            head.push(byte);
            if head.len() > 1 && byte < 0x80 {
                break;
            }
        }
        Ok(match head.split_first() {
            Some((&PACKET, mut length)) => decode_varint(&mut length).ok(),
            _ => None,
        })
    }
}

/// Returns true if the file begins with packets, or with one that is its all.
pub(in crate::import) fn begins(path: &Path) -> io::Result<bool> {
    let mut packets = Packets::open(path)?;
    for number in 0..2 {
        match packets.next()? {
            Some(Next::Packet(mut packet)) => {
                let is_empty = packet.0.is_empty();
                if is_empty || packet.any(|field| field.is_err()) {
                    return Ok(false);
                }
            }
            Some(Next::End) => return Ok(number > 0),
            _ => return Ok(false),
        }
    }
    Ok(true)
}
