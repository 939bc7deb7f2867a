// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several devices read as one image.

use std::io;

use crate::fs::read_at::ReadAt;

/// The devices of a filesystem that lies on several, one behind the other.
#[derive(Default)]
pub struct Joined {
    devices: Vec<Device>,
}

struct Device {
    /// First byte in the image.
    start: u64,
    bytes: u64,
    reader: Box<dyn ReadAt>,
}

impl Joined {
    /// Adds the next device, of which the filesystem has the first `bytes` bytes.
    #[must_use]
    pub fn with(mut self, bytes: u64, reader: impl ReadAt + 'static) -> Joined {
        self.devices.push(Device {
            start: self.bytes(),
            bytes,
            reader: Box::new(reader),
        });
        self
    }

    /// Returns the length of all of them in bytes.
    pub fn bytes(&self) -> u64 {
        let last = self.devices.last();
        last.map_or(0, |last| last.start.saturating_add(last.bytes))
    }
}

impl ReadAt for Joined {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let (mut rest, mut at) = (buf, offset);
        for device in &self.devices {
            let Some(within) = at.checked_sub(device.start) else {
                break;
            };
            let left = device.bytes.saturating_sub(within);
            let some = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let (here, behind) = rest.split_at_mut(some);
            if !here.is_empty() {
                device.reader.read_exact_at(here, within)?;
            }
            at = at.saturating_add(u64::try_from(some).unwrap_or(u64::MAX));
            rest = behind;
        }
        match rest.is_empty() {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_from_the_device_that_has_them() {
        let joined = Joined::default()
            .with(4, b"abcdXX".to_vec())
            .with(3, b"efg".to_vec());
        assert_eq!(joined.bytes(), 7);
        let read = |at, len| {
            let mut buf = vec![0; len];
            joined.read_exact_at(&mut buf, at).map(|()| buf).ok()
        };
        assert_eq!(read(0, 7), Some(b"abcdefg".to_vec()));
        assert_eq!(read(3, 2), Some(b"de".to_vec()));
        assert_eq!(read(4, 3), Some(b"efg".to_vec()));
        assert_eq!(read(6, 2), None);
        assert_eq!(read(7, 0), Some(vec![]));
    }
}
