// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers for devices that a format knows by name.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::seen::Taker;

/// The most devices; the largest public traces have some 5,600.
const MANY: usize = 1 << 16;

/// The names met so far, numbered from 0.
#[derive(Default)]
pub(super) struct Devices(HashMap<Vec<u8>, u32, RandomState>);

impl Devices {
    /// Returns the number of a name, which is new to `to` if it occurs for the first time.
    ///
    /// # Errors
    /// Returns an error if there are too many.
    pub fn number(&mut self, name: &[u8], to: &mut dyn Taker) -> Result<u32, String> {
        if let Some(number) = self.0.get(name) {
            return Ok(*number);
        }
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        if self.0.len() >= MANY {
            return Err(format!("more than {MANY} devices"));
        }
        self.0.insert(name.to_vec(), next);
        to.device(next, name);
        Ok(next)
    }
}
