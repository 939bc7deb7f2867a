// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes one manifest for several recordings: what all have in common, and the sums of their counters.

use std::collections::BTreeMap;

use mostrace_bundle::Manifest;
use mostrace_bundle::manifest::{Command, Filesystem, State};

use crate::tally::Tally;

/// Returns the manifest of several recordings. Fields that differ are left empty. None if there is no recording.
pub(super) fn of(all: &[&Manifest], names: &[String]) -> Option<Manifest> {
    let first = all.first()?;
    let is_whole = all.iter().all(|one| one.state == State::Complete);
    let notes = all.iter().zip(names).flat_map(|(one, name)| {
        let notes = one.notes.iter();
        notes.map(move |note| format!("{name}: {note}"))
    });
    // The bytes of all recordings can be compared with a payload only if every recording has one.
    let payloads: Option<Vec<_>> = all.iter().map(|one| one.payload.clone()).collect();
    let payload = payloads.and_then(|all| all.into_iter().reduce(|sum, more| sum.and(&more)));
    Some(Manifest {
        schema: first.schema,
        tool: same(all, |one| &one.tool),
        label: same(all, |one| &one.label),
        state: match is_whole {
            true => State::Complete,
            false => State::Recording,
        },
        kernel: same(all, |one| &one.kernel),
        device: same(all, |one| &one.device),
        filesystem: filesystem(all),
        sources: same(all, |one| &one.sources),
        losses: sums(all, |one| &one.losses),
        counts: sums(all, |one| &one.counts),
        command: command(all),
        payload,
        notes: notes.collect(),
        ..Manifest::default()
    })
}

/// Returns the kind of filesystem if all recordings have the same one, and nothing else of it.
fn filesystem(all: &[&Manifest]) -> Option<Filesystem> {
    let kind = |one: &&Manifest| Some(one.filesystem.as_ref()?.kind.clone());
    let mut kinds = all.iter().map(kind);
    let first = kinds.next().flatten()?;
    let is_same = kinds.all(|kind| kind.as_ref() == Some(&first));
    is_same.then(|| Filesystem {
        kind: first,
        ..Filesystem::default()
    })
}

/// Returns the value that all manifests have, or else the default.
fn same<T: Clone + Default + PartialEq>(all: &[&Manifest], of: fn(&Manifest) -> &T) -> T {
    let mut values = all.iter().map(|one| of(one));
    let first = values.next();
    match first.filter(|first| values.all(|value| value == *first)) {
        Some(first) => first.clone(),
        None => T::default(),
    }
}

fn sums(all: &[&Manifest], of: fn(&Manifest) -> &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (name, n) in all.iter().flat_map(|one| of(one)) {
        sums.entry(name.clone()).or_default().tally(*n);
    }
    sums
}

/// Returns the command if all recordings ran the same one; its exit status is a failed one if any run failed.
fn command(all: &[&Manifest]) -> Option<Command> {
    let of_all: Option<Vec<&Command>> = all.iter().map(|one| one.command.as_ref()).collect();
    let of_all = of_all?;
    let first = of_all.first()?;
    let is_same = of_all.iter().all(|one| one.argv == first.argv);
    let failed = of_all.iter().find(|one| one.exit_status != Some(0));
    is_same.then(|| Command {
        argv: first.argv.clone(),
        exit_status: failed.unwrap_or(first).exit_status,
        pid: None,
        copied: first
            .copied
            .filter(|_| of_all.iter().all(|one| one.copied == first.copied)),
        alone: of_all
            .iter()
            .map(|one| one.alone)
            .reduce(|one, other| Some(one? && other?))
            .flatten(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mostrace_bundle::manifest::Payload;

    fn manifest(kind: &str, lost: u64, status: Option<i32>) -> Manifest {
        Manifest {
            filesystem: Some(Filesystem {
                kind: kind.into(),
                ..Filesystem::default()
            }),
            losses: [("events_ring".to_owned(), lost)].into(),
            state: State::Complete,
            command: Some(Command {
                argv: vec!["a".into()],
                exit_status: status,
                ..Command::default()
            }),
            payload: Some(Payload {
                payload_bytes: 7,
                ..Payload::default()
            }),
            notes: vec!["a note".into()],
            ..Manifest::default()
        }
    }

    #[test]
    fn what_differs_is_nobodys_and_what_was_counted_is_added_up() {
        let names = ["x".to_owned(), "y".to_owned()];
        let (a, b) = (manifest("ext4", 1, Some(0)), manifest("ext4", 2, Some(3)));
        let both = of(&[&a, &b], &names).unwrap();
        assert_eq!(both.filesystem.unwrap().kind, "ext4");
        assert_eq!(both.losses["events_ring"], 3);
        assert_eq!(both.payload.unwrap().payload_bytes, 14);
        assert_eq!(both.command.unwrap().exit_status, Some(3));
        assert_eq!(both.notes, ["x: a note", "y: a note"]);
        let mut c = manifest("f2fs", 0, Some(0));
        c.payload = None;
        let both = of(&[&a, &c], &names).unwrap();
        assert_eq!((both.filesystem, both.payload), (None, None));
    }
}
