// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path of a file within a filesystem.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use mostrace_bundle::operation::normal_path;

/// A path from the root of a filesystem: components without `.`, `..` and NULs, joined by single slashes, with no leading slash.
/// The root is the empty path. Such a path cannot lead out of the folder to which it is joined, except through a symbolic link
/// there.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Box<[u8]>);

impl Name {
    /// Normalises a path: drops leading slashes, double slashes and `.`, and lets `..` drop the component before it. Returns None
    /// if the path leads above the root, holds a NUL, or is longer than the kernel allows.
    pub fn new(path: &[u8]) -> Option<Name> {
        normal_path(path).map(|path| Name(path.into()))
    }

    /// Returns true for the root of the filesystem.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the path's bytes; they are empty for the root.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the path, relative to the root; `.` for the root.
    pub fn as_path(&self) -> &Path {
        match self.is_root() {
            true => Path::new("."),
            false => Path::new(OsStr::from_bytes(&self.0)),
        }
    }

    /// Returns the folder that the last component lies in; None for the root.
    pub fn parent(&self) -> Option<Name> {
        let parent = match self.0.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => self.0.get(..slash)?,
            None if self.is_root() => return None,
            None => &[],
        };
        Some(Name(parent.into()))
    }

    /// Returns the last component; it is empty for the root.
    pub fn last(&self) -> &[u8] {
        let parts = self.0.rsplit(|&byte| byte == b'/');
        parts.into_iter().next().unwrap_or_default()
    }

    /// Returns true if `self` is `folder` or lies below it.
    pub fn is_in(&self, folder: &Name) -> bool {
        self.below(folder).is_some()
    }

    /// Returns the path relative to `folder`; None if it is not below it.
    pub fn below(&self, folder: &Name) -> Option<Name> {
        let rest = self.0.strip_prefix(folder.as_bytes())?;
        let rest = match rest {
            [b'/', rest @ ..] => rest,
            rest if rest.is_empty() || folder.is_root() => rest,
            _ => return None,
        };
        Some(Name(rest.into()))
    }
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "/{}", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(path: &str) -> Name {
        Name::new(path.as_bytes()).unwrap()
    }

    #[test]
    fn paths_are_normalised() {
        assert_eq!(name("//a/./b//c/").as_bytes(), b"a/b/c");
        assert_eq!(name("a/../b").as_bytes(), b"b");
        assert!(name("/").is_root() && name("a/..").is_root());
        for bad in ["..", "a/../../..", "a\0b"] {
            assert_eq!(Name::new(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(Name::new(&[b'x'; 256]), None);
    }

    #[test]
    fn parents_and_last_components() {
        assert_eq!(name("a/b").parent(), Some(name("a")));
        assert_eq!(name("a").parent(), Some(name("")));
        assert_eq!(name("").parent(), None);
        assert_eq!((name("a/b").last(), name("").last()), (&b"b"[..], &b""[..]));
        assert!(name("a/b").is_in(&name("a")) && name("a").is_in(&name("")));
        assert!(!name("ab").is_in(&name("a")));
    }

    proptest! {
        #[test]
        fn no_name_leads_out(path in proptest::collection::vec(prop_oneof![Just(b'/'), Just(b'.'), any::<u8>()], 0..40)) {
            if let Some(name) = Name::new(&path) {
                prop_assert!(!name.as_bytes().starts_with(b"/"));
                let mut parts = name.as_path().components();
                let inside = parts.all(|part| matches!(part, std::path::Component::Normal(_)));
                prop_assert!(name.is_root() || inside);
                prop_assert_eq!(Name::new(name.as_bytes()), Some(name));
            }
        }
    }
}
