// SPDX-License-Identifier: MIT OR Apache-2.0
//! The name in a file entry. Thousands of files take turns, so most kept names are in no cache, and a short one is kept in place of
//! a pointer to it.

use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// The longest name that is kept in place: with it, a name is as large as a slice and its length.
const SHORT: usize = 22;

/// A name, raw bytes.
pub(super) enum Name<'e> {
    /// In an entry.
    Read(&'e [u8]),
    /// Kept in place, with its length.
    Short(u8, [u8; SHORT]),
    /// Kept elsewhere.
    Long(Box<[u8]>),
}

impl Name<'_> {
    /// Returns the same, which may outlive the entry.
    pub fn kept(&self) -> Name<'static> {
        let mut short = [0; SHORT];
        match (short.get_mut(..self.len()), u8::try_from(self.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(self);
                Name::Short(len, short)
            }
            _ => Name::Long((**self).into()),
        }
    }
}

impl Deref for Name<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Name::Read(name) => name,
            Name::Short(len, name) => name.get(..usize::from(*len)).unwrap_or_default(),
            Name::Long(name) => name,
        }
    }
}

impl PartialEq for Name<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Name<'_> {}

impl Hash for Name<'_> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (**self).hash(hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_name_is_the_same_however_long() {
        for len in [0, 1, SHORT - 1, SHORT, SHORT + 1, 300] {
            let bytes: Vec<u8> = (0..len).map(|n| n as u8).collect();
            let read = Name::Read(&bytes);
            let kept = read.kept();
            assert!(kept == read && *kept == bytes[..]);
            assert_eq!(matches!(kept, Name::Short(..)), len <= SHORT);
            assert!(kept != Name::Read(&[&bytes[..], b"x"].concat()));
        }
    }
}
