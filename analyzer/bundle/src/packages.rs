// SPDX-License-Identifier: MIT OR Apache-2.0
//! `packages.list`: the apps of an Android device by user id. Each app there has a user id of its own, or shares one.
//!
//! A line is `NAME UID`, as in Android's own `/data/system/packages.list`, whose further fields are dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The most bytes that are read; a phone's list has some 100 KiB.
pub const LIMIT: u64 = 16 << 20;
/// The longest name, bytes; Android's own have at most 223.
const NAME_LIMIT: usize = 255;

/// `AID_USER_OFFSET` in Android's android_filesystem_config.h: an app's uid is the person's number times this, plus the
/// app's number.
const USER_OFFSET: u32 = 100_000;

/// The numbers of isolated processes: `AID_APP_ZYGOTE_ISOLATED_START` to `AID_ISOLATED_END` in the same file.
const ISOLATED: RangeInclusive<u32> = 90_000..=99_999;

/// Returns the app's number, which is the same for every person who uses the device.
#[must_use]
pub fn app_of(uid: u32) -> u32 {
    uid % USER_OFFSET
}

/// Returns true for the user of an isolated process, which no app has.
#[must_use]
pub fn is_isolated(uid: u32) -> bool {
    ISOLATED.contains(&app_of(uid))
}

/// The names of the apps of each user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packages {
    by_user: BTreeMap<u32, BTreeSet<Box<[u8]>>>,
}

impl Packages {
    /// Parses the text of either file. Malformed lines are ignored.
    #[must_use]
    pub fn parse(text: &[u8]) -> Packages {
        let mut packages = Packages::default();
        for (name, uid) in text.split(|&b| b == b'\n').filter_map(line) {
            packages.by_user.entry(uid).or_default().insert(name.into());
        }
        packages
    }

    /// Returns the list as text, one line for each name and user.
    #[must_use]
    pub fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for (uid, names) in &self.by_user {
            for name in names {
                text.extend_from_slice(name);
                text.extend_from_slice(format!(" {uid}\n").as_bytes());
            }
        }
        text
    }

    /// Returns the names of a user's apps, sorted; apps that ask for it share a user. None if the user has no app.
    #[must_use]
    pub fn of_user(&self, uid: u32) -> Option<&BTreeSet<Box<[u8]>>> {
        self.by_user.get(&uid)
    }

    /// Returns the number of a user's app, which may be none on the list. None for an isolated process unless the recorder learned
    /// its app: then the list has that user too, with the person's number.
    #[must_use]
    pub fn app(&self, uid: u32) -> Option<u32> {
        if !is_isolated(uid) {
            return Some(app_of(uid));
        }
        let name = self.of_user(uid)?.first()?;
        let mut apps = self.by_user.iter();
        let app = apps.find(|(user, names)| !is_isolated(**user) && names.contains(name));
        app.map(|(user, _)| *user)
    }

    /// Returns the list with the app of further users.
    #[must_use]
    pub fn with<'n>(&self, users: impl Iterator<Item = (u32, &'n [u8])>) -> Packages {
        let mut all = self.clone();
        for (uid, name) in users {
            all.by_user.entry(uid).or_default().insert(name.into());
        }
        all
    }

    /// Returns each user with each of its apps.
    pub fn apps(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let by_user = self.by_user.iter();
        by_user.flat_map(|(uid, names)| names.iter().map(move |name| (*uid, &**name)))
    }

    /// Returns true if the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_user.is_empty()
    }

    /// Returns the list with every name replaced by `named(name)`.
    #[must_use]
    pub fn renamed(&self, named: impl Fn(&[u8]) -> Box<[u8]>) -> Packages {
        let of_user = |names: &BTreeSet<Box<[u8]>>| names.iter().map(|name| named(name)).collect();
        let by_user = self.by_user.iter();
        Packages {
            by_user: by_user.map(|(uid, names)| (*uid, of_user(names))).collect(),
        }
    }
}

/// Returns the name and the user id in a line; None if the line is malformed.
fn line(line: &[u8]) -> Option<(&[u8], u32)> {
    let mut fields = line.split(|&b| b == b' ');
    let name = fields.next()?;
    let uid = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    (!name.is_empty() && name.len() <= NAME_LIMIT).then_some((name, uid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(packages: &Packages, uid: u32) -> Vec<String> {
        let names = packages.of_user(uid).into_iter().flatten();
        names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect()
    }

    #[test]
    fn androids_own_list() {
        let packages = Packages::parse(
            b"com.example.b 10071 1 /data/user/0/com.example.b default:targetSdkVersion=30 3002,3003 0 7 1 @null\n\
              com.example.a 10071 0 /data/user/0/com.example.a platform none 0 7 1 @system\n\
              android 1000 0 /data/system platform none 0 30 1 @system\n\
              \n\
              com.example.cut",
        );
        assert_eq!(names(&packages, 10071), ["com.example.a", "com.example.b"]);
        assert_eq!(names(&packages, 1000), ["android"]);
        assert_eq!(packages.of_user(0), None);
        assert_eq!(
            packages.text(),
            b"android 1000\ncom.example.a 10071\ncom.example.b 10071\n"
        );
    }

    #[test]
    fn an_isolated_process_is_its_apps_if_that_was_learned() {
        let packages = Packages::parse(b"org.a 10001\norg.b 10001\n");
        let learned = packages.with([(1_099_002, &b"org.b"[..])].into_iter());
        for (uid, app) in [
            (10_001, Some(10_001)),
            (1_010_001, Some(10_001)),
            (10_007, Some(10_007)),
            (1_099_002, Some(10_001)),
            // It is another process with another person.
            (99_002, None),
            (90_000, None),
        ] {
            assert_eq!(learned.app(uid), app, "{uid}");
        }
        assert_eq!(packages.app(1_099_002), None);
        assert_eq!(Packages::parse(&learned.text()), learned);
        let apps: Vec<_> = learned.apps().collect();
        assert_eq!(
            apps,
            [
                (10_001, &b"org.a"[..]),
                (10_001, b"org.b"),
                (1_099_002, b"org.b")
            ]
        );
    }

    #[test]
    fn what_is_no_line_says_nothing() {
        let long = [&[b'a'; 256][..], b" 10001"].concat();
        for text in [
            &b""[..],
            b" 10001",
            b"a",
            b"a ",
            b"a -1",
            b"a 4294967296",
            b"a x",
            b"a \xff",
            &long,
        ] {
            assert!(Packages::parse(text).is_empty(), "{text:?}");
        }
        // A name may hold any byte except those that end it.
        let odd = b"\xff\x1b[31m\r 10001\n";
        assert_eq!(Packages::parse(odd).text(), odd);
    }

    proptest! {
        #[test]
        fn what_was_read_comes_back(text: Vec<u8>, lines: Vec<(String, u32)>) {
            let lines: String = lines.iter().map(|(name, uid)| format!("{name} {uid} x\n")).collect();
            let packages = Packages::parse(&[text, lines.into_bytes()].concat());
            prop_assert_eq!(Packages::parse(&packages.text()), packages);
        }
    }
}
