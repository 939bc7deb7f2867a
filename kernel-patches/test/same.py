#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares what the module recorded with what the BPF probes recorded of the same IO.

usage: same.py NAME
NAME.most is a bundle of `mostrace record --entries bpf --files all`. NAME.stream is what was read from /dev/mostrace with
names=all, over a longer time. NAME.extents is `filefrag -e -b512` of the file that was written and read by direct IO, against
which offsets are checked. NAME.writers lists files and the one process that dirtied each: `name pid`.

Exits with 1 if an entry is in one and not in the other, or if an offset, a transaction or a dirtier is wrong. Dirtiers are
compared sector by sector; for pages that were dirtied before the probes began, only the module can know the dirtier.
"""
import collections
import json
import re
import struct
import sys

HEAD = struct.Struct("<HHIQQIHBB")
PROCESS = struct.Struct("<QQIIIIIBBBx16s")
FILE = struct.Struct("<QQQIIIHBB")
DIRTIER = struct.Struct("<QIII4x16s")
STREAM = struct.Struct("<8sHHHHHHIQII")
INO_PASSING = 64
# MOSTRACE_MOUNTS and MOSTRACE_UNMOUNTS, of a process or a dirtier.
MOUNTING = 32 | 64
NONE = 2**64 - 1
# REQ_NOMERGE, which parts of a bio have and the bio itself had not.
NOMERGE = 1 << 14
# Position of the offset in a file entry.
OFFSET = 6
FROM_FILE, DIRECT, JOURNAL = 1, 3, 5
COPIES = (16, 17)
# Positions of these fields in a process entry.
SUBMITTER, TID, ORIGIN, JBD2 = 6, 10, 11, 12
# The probes give a file entry the time at which they make it; the module gives it the time of its bio.
SLACK_NS = 20_000_000


def entries(data):
    """Yields each entry as (time, its fields that do not depend on the moment)."""
    at = 0
    while at + HEAD.size <= len(data):
        kind, size, dev, time, sector, length, _, _, flags = HEAD.unpack_from(data, at)
        assert size >= HEAD.size and size % 8 == 0, (at, size)
        if at + size > len(data):
            break
        body = at + HEAD.size
        if kind in (1, 4):
            # The module does not tell of mounting.
            flags &= ~MOUNTING
        head = (dev, sector, length, flags)
        if kind == 1:
            submit, home_sector, pid, tgid, uid, opf, *rest = PROCESS.unpack_from(data, body)
            assert submit or flags & 1, (submit, flags)
            yield time, ("process", *head, home_sector, pid, tgid, uid, opf & ~NOMERGE, *rest)
        elif kind == 2:
            ino, offset, parent, *rest, name_len, origin, what = FILE.unpack_from(data, body)
            name = data[body + FILE.size : body + FILE.size + name_len]
            # The probes report the whole path, the module the last component.
            name = name.rsplit(b"/", 1)[-1]
            assert size == (72 + name_len + 7) // 8 * 8, (size, name_len)
            yield time, ("file", *head, ino, offset, parent, *rest, origin, what, name)
        else:
            assert (kind, size) == (4, 72), (kind, size)
            dirtied, *rest = DIRTIER.unpack_from(data, body)
            assert 0 < dirtied <= time and length, (dirtied, time, length)
            yield time, ("dirtier", *head, *rest, dirtied)
        at += size


def from_bundle(path):
    for table in ("process", "file", "dirtier"):
        with open(f"{path}/{table}.entries", "rb") as f:
            data = f.read()
        assert data[:8] == b"MOSTENT\n", data[:8]
        yield from entries(data[16:])


def from_stream(path):
    with open(path, "rb") as f:
        data = f.read()
    magic, order, version, header, entry, process, file, *_ = STREAM.unpack_from(data)
    assert (magic, order, version) == (b"MOSTDEV\n", 0x1234, 1), (magic, order, version)
    assert (entry, process, file) == (32, 88, 72), (entry, process, file)
    return list(entries(data[header:]))


def without_unknown(entry, passing):
    """Returns an entry without what the probes cannot know here: they report FAT's numbers as i_pos, the module as those in memory."""
    if entry[0] == "process":
        return entry
    kind, dev, sector, length, flags, ino, offset, parent, *rest = entry
    if rest[-3] == DIRECT:
        offset = None
    if passing:
        flags, ino, parent = flags & ~INO_PASSING, None, None
    return (kind, dev, sector, length, flags, ino, offset, parent, *rest)


def without_tid(entry):
    """Returns an entry without a copy's transaction, which the probes do not know on 5.10, where jbd2 has no BTF."""
    if entry[0] == "process" and entry[JBD2] in COPIES:
        return (*entry[:TID], 0, *entry[TID + 1 :])
    return entry


def wrong_tids(module):
    """Returns the number of copies with a transaction that no descriptor has."""
    blocks = [e for _, e in module if e[0] == "process" and e[ORIGIN] == JOURNAL]
    known = {e[TID] for e in blocks if e[JBD2] == 1}
    return sum(1 for e in blocks if e[JBD2] in COPIES and e[TID] not in known)


def wrong_offsets(module, path):
    """Returns the numbers of direct IO entries with a wrong offset, with the right one (by the file's extents), and with none."""
    extents = []
    with open(path) as f:
        for line in f:
            found = re.match(r" *\d+: +(\d+)\.\. +\d+: +(\d+)\.\. +\d+: +(\d+):", line)
            if found:
                extents.append(tuple(map(int, found.groups())))
    wrong = right = none = 0
    for _, e in module:
        if e[0] == "file" and e[-3] == DIRECT:
            place = e[OFFSET] // 512
            if e[OFFSET] == NONE:
                none += 1
            elif any(l <= place < l + n and e[2] == p + place - l for l, p, n in extents):
                right += 1
            else:
                wrong += 1
    return wrong, right, none


def sectors(entry):
    return range(entry[2], entry[2] + entry[3] // 512)


def wrong_dirtiers(module, path):
    """Returns the numbers of sectors of the known files written by the page cache, by their dirtier: wrong, right, unknown, and jbd2
    (which is nobody's dirtier); and how many of the right ones another process submitted."""
    with open(path) as f:
        writers = {name.encode(): int(pid) for name, pid in map(str.split, f)}
    dirtiers, submitters = {}, {}
    for time, e in module:
        if e[0] == "dirtier":
            dirtiers.update({(time, s): "jbd2" if e[8].startswith(b"jbd2/") else e[6] for s in sectors(e)})
        elif e[0] == "process":
            submitters.update({(time, s): e[SUBMITTER + 1] for s in sectors(e)})
    found = collections.Counter()
    for time, e in module:
        if e[0] == "file" and e[-3] == FROM_FILE and e[-1] in writers:
            for s in sectors(e):
                who = dirtiers.get((time, s))
                right = writers[e[-1]]
                found["none" if who is None else "right" if who == right else "jbd2" if who == "jbd2" else "wrong"] += 1
                found["late"] += who == right != submitters[time, s]
    return found


def dirtied(entries, since):
    """Returns each sector with its dirtier, if it was dirtied after `since`."""
    return [("dirtied", s, *e[5:-1]) for e in entries if e[0] == "dirtier" and e[-1] > since for s in sectors(e)]


def by_sector(entry):
    """Splits an entry into its sectors: one bio may have one entry, or several."""
    kind, dev, sector, length, *rest = entry
    if kind == "process":
        return [(kind, dev, s, *rest) for s in sectors(entry)] if length else [entry]
    flags, ino, offset, *rest = rest
    at = [offset if offset in (None, NONE) else offset + 512 * (s - sector) for s in sectors(entry)]
    return [(kind, dev, s, flags, ino, o, *rest) for s, o in zip(sectors(entry), at)]


def differences(probes, module):
    """Returns how many entries are in both, and how many in only one; prints some of those."""
    fat = any(e[0] == "file" and e[4] & INO_PASSING for _, e in module)
    since = min(t for t, _ in probes)
    module = [e for t, e in module if since - SLACK_NS <= t <= max(t for t, _ in probes) + SLACK_NS]
    probes = [e for _, e in probes]
    theirs = [without_unknown(e, fat) for e in probes if e[0] != "dirtier"]
    ours = [without_unknown(e, fat) for e in module if e[0] != "dirtier"]
    if not any(e[0] == "process" and e[JBD2] in COPIES and e[TID] for e in theirs):
        theirs, ours = [*map(without_tid, theirs)], [*map(without_tid, ours)]
    theirs = collections.Counter([s for e in theirs for s in by_sector(e)] + dirtied(probes, since))
    ours = collections.Counter([s for e in ours for s in by_sector(e)] + dirtied(module, since))
    missing, extra = theirs - ours, ours - theirs
    # If a page is dirtied again between block_bio_queue and its entry, the module reports both tasks and the probes
    # neither.
    known = {e[:2] for e in missing}
    alone = collections.Counter({e: n for e, n in extra.items() if e[0] == "dirtied" and e[:2] not in known})
    extra -= alone
    for name, rest in (("only the probes", missing), ("only the module", extra)):
        for entry, n in sorted(rest.items(), key=str)[:10]:
            print(f"  {name}: {n} × {entry}")
    return tuple(sum(part.values()) for part in (theirs & ours, missing, extra, alone))


def version(name):
    """Returns the version of the kernel."""
    with open(f"{name}.most/manifest.json") as f:
        return tuple(map(int, json.load(f)["kernel"]["release"].split(".")[:2]))


def tells_positions(name):
    """Returns true if the filesystem's direct IO goes through iomap, whose bios alone have a position: FAT's never does."""
    return not name.endswith("vfat") and not (name.endswith("f2fs") and version(name) < (5, 17))


def tells_dirtiers(name):
    """Returns true if a writer dirties its file's pages. Under data=journal, before 6.4, jbd2 does once the journal has them."""
    return not name.endswith("data-journal") or version(name) >= (6, 4)


def probes_tell_dirtiers(name):
    """Returns true if the probes look for dirtiers, which they do not from 7.0 on."""
    return version(name) < (7, 0)


def main(name):
    module = from_stream(f"{name}.stream")
    same, missing, extra, alone = differences(list(from_bundle(f"{name}.most")), module)
    tids = wrong_tids(module)
    wrong, right, none = wrong_offsets(module, f"{name}.extents")
    dirty = wrong_dirtiers(module, f"{name}.writers")
    print(
        f"{name}: {same} the same, {missing} only of the probes, {extra} only of the module;"
        f" sectors whose dirtier the module knows alone: {alone};"
        f" direct offsets: {right} right, {wrong} wrong, {none} not known; wrong tids: {tids};"
        f" sectors by their dirtier: {dirty['right']} right ({dirty['late']} submitted by another), {dirty['wrong']} wrong,"
        f" {dirty['jbd2']} by jbd2, {dirty['none']} not known"
    )
    bad = missing or extra or tids or wrong or (none and tells_positions(name)) or dirty["wrong"] or dirty["jbd2"]
    # This may happen to a page now and then, but not to all.
    bad = bad or (probes_tell_dirtiers(name) and alone * 20 > same)
    # `late` is written back by another task than its writer.
    return 1 if bad or (tells_dirtiers(name) and not dirty["late"]) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
