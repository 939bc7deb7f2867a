// SPDX-License-Identifier: MIT OR Apache-2.0
//! The apps of isolated processes on Android. Such a process has a user of its own, which is not on the list of apps, but Android
//! names it after its app: its command line begins with `PACKAGE:`.
//!
//! A user is an app's only if all of its processes that have entries were read, and all are of that app: Android gives a user to
//! another process later.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use mostrace_bundle::Packages;
use mostrace_bundle::packages::is_isolated;

use super::tables::time_of;
use super::{named, owner};

/// The most processes that are remembered; Android has 1,000 such users for each person.
const MOST: usize = 1 << 12;
/// A new process has its name only after its user.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// A process that was seen.
struct Seen {
    app: Option<Box<[u8]>>,
    tried: Instant,
}

/// The isolated processes that have entries.
pub(super) struct Isolated {
    packages: Packages,
    /// By user and process.
    seen: HashMap<(u32, u32), Seen, RandomState>,
    /// True if there was no room for a process.
    is_full: bool,
}

impl Isolated {
    pub fn new(packages: Packages) -> Isolated {
        Isolated {
            packages,
            seen: HashMap::default(),
            is_full: false,
        }
    }

    /// Takes an entry; reads the name of its process if it is isolated.
    #[inline]
    pub fn see(&mut self, entry: &[u8]) {
        if let Some(thread) = named::of(entry).filter(|thread| is_isolated(thread.uid)) {
            self.learn(thread.tgid, thread.uid, time_of(entry));
        }
    }

    fn learn(&mut self, tgid: u32, uid: u32, time_ns: u64) {
        let now = Instant::now();
        if let Some(seen) = self.seen.get(&(uid, tgid)) {
            if seen.app.is_some() || now.duration_since(seen.tried) < TRY_AGAIN {
                return;
            }
        } else if self.seen.len() == MOST {
            self.is_full = true;
            return;
        }
        let app = app_of(&self.packages, tgid, uid, time_ns);
        self.seen.insert((uid, tgid), Seen { app, tried: now });
    }

    /// Returns the list of apps with the users of isolated processes whose app is known; None if there are none.
    pub fn packages(&self) -> Option<Packages> {
        let mut apps: BTreeMap<u32, Option<&[u8]>> = BTreeMap::new();
        for ((uid, _), seen) in &self.seen {
            let app = seen.app.as_deref();
            let known = apps.entry(*uid).or_insert(app);
            *known = known.filter(|known| Some(*known) == app);
        }
        let known = apps.iter().filter_map(|(uid, app)| Some((*uid, (*app)?)));
        let packages = self.packages.with(known);
        (!self.is_full && packages != self.packages).then_some(packages)
    }
}

/// Returns the listed app whose name the process has; None if the process that had the entry at `time_ns` has ended.
fn app_of(packages: &Packages, tgid: u32, uid: u32, time_ns: u64) -> Option<Box<[u8]>> {
    let command = fs::read(format!("/proc/{tgid}/cmdline")).ok()?;
    let name = package_in(&command)?;
    let is_listed = packages.apps().any(|(_, listed)| listed == name);
    let is_same = owner::uid_at(tgid, time_ns)? == uid;
    (is_listed && is_same).then(|| name.into())
}

/// Returns the package that a command line begins with. Only Android's own names of processes have a colon.
fn package_in(command: &[u8]) -> Option<&[u8]> {
    let colon = command.iter().position(|&byte| byte == b':' || byte == 0)?;
    let name = command.get(..colon)?;
    (command.get(colon) == Some(&b':') && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use mostrace_bundle::entry::{RawCall, RawHead, TYPE_CALL};

    use super::*;

    #[test]
    fn a_name_begins_with_its_package() {
        let of = |command: &'static [u8]| package_in(command);
        assert_eq!(
            of(b"org.a:sandboxed_process0:org.b:0\0\0"),
            Some(&b"org.a"[..])
        );
        for other in [
            &b"org.a\0"[..],
            b"org.a\0x:y\0",
            b":x\0",
            b"zygote64\0",
            b"",
        ] {
            assert_eq!(of(other), None);
        }
    }

    /// A user belongs to an app if every process that had it does.
    #[test]
    fn a_user_with_an_unknown_process_is_unknown() {
        let mut isolated = Isolated::new(Packages::parse(b"org.a 10001\norg.b 10002\n"));
        let mut seen = |uid: u32, tgid: u32, app: Option<&[u8]>| {
            let seen = Seen {
                app: app.map(Into::into),
                tried: Instant::now(),
            };
            isolated.seen.insert((uid, tgid), seen);
            isolated.packages().map(|packages| packages.text())
        };
        assert_eq!(seen(99_001, 7, None), None);
        let known = b"org.a 10001\norg.b 10002\norg.a 1099002\n";
        assert_eq!(seen(1_099_002, 8, Some(b"org.a")), Some(known.to_vec()));
        assert_eq!(seen(99_001, 9, Some(b"org.a")), Some(known.to_vec()));
        assert_eq!(seen(1_099_002, 10, Some(b"org.b")), None);
    }

    #[test]
    fn only_isolated_processes_are_read() {
        let mut isolated = Isolated::new(Packages::default());
        let mut call = RawCall {
            head: RawHead {
                kind: TYPE_CALL.into(),
                ..RawHead::default()
            },
            tgid: 1.into(),
            ..RawCall::default()
        };
        for (uid, seen) in [
            (0, 0),
            (10_001, 0),
            (89_999, 0),
            (90_000, 1),
            (1_099_999, 2),
        ] {
            call.uid = uid.into();
            isolated.see(zerocopy::IntoBytes::as_bytes(&call));
            assert_eq!(isolated.seen.len(), seen);
        }
    }
}
