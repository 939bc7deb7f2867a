#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares what the module recorded with what the BPF probes did, of the same IO.

usage: compare.py BUNDLE STREAM EXTENTS

BUNDLE is `mostrace record --files all`, STREAM what /dev/mostrace gave meanwhile, with names=all, for longer,
EXTENTS `filefrag -e -b512` of the file that was written and read by direct IO: its offsets are checked with that.
Ends with 1 if an entry is in one and not in the other, the times apart, or an offset or a transaction is wrong.
"""
import collections
import re
import struct
import sys

HEAD = struct.Struct("<HHIQQIHBB")
PROCESS = struct.Struct("<QQIIIIIBB2x16s")
FILE = struct.Struct("<QQQIIIHBB")
STREAM = struct.Struct("<8sHHHHHHIQII")
INO_PASSING = 64
NONE = 2**64 - 1
DIRECT, JOURNAL = 3, 5
COPIES = (16, 17)
# Where a process entry has them.
TID, ORIGIN, JBD2 = 11, 12, 13
# The probes give a time to a file's entry when they make it, the module that of its bio.
SLACK_NS = 20_000_000


def entries(data):
    """Each entry as (time, what does not depend on the moment)."""
    at = 0
    while at + HEAD.size <= len(data):
        kind, size, dev, time, sector, length, _, stage, flags = HEAD.unpack_from(data, at)
        assert size >= HEAD.size and size % 8 == 0, (at, size)
        if at + size > len(data):
            break
        body = at + HEAD.size
        if kind == 1:
            submit, *rest = PROCESS.unpack_from(data, body)
            assert (submit == 0) == bool(flags & 1), (submit, flags)
            yield time, ("process", dev, sector, length, stage, flags, *rest)
        else:
            ino, offset, parent, *rest, name_len, origin, what = FILE.unpack_from(data, body)
            name = data[body + FILE.size : body + FILE.size + name_len]
            assert size == (72 + name_len + 7) // 8 * 8, (size, name_len)
            yield time, ("file", dev, sector, length, stage, flags, ino, offset, parent, *rest, origin, what, name)
        at += size


def from_bundle(path):
    for table in ("process", "file"):
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
    return entries(data[header:])


def without_unknown(entry, passing):
    """Without what the probes cannot know here: FAT's numbers are i_pos to them, and to the module those in memory."""
    if entry[0] == "process":
        return entry
    kind, dev, sector, length, stage, flags, ino, offset, parent, *rest = entry
    if rest[-3] == DIRECT:
        offset = None
    if passing:
        flags, ino, parent = flags & ~INO_PASSING, None, None
    return (kind, dev, sector, length, stage, flags, ino, offset, parent, *rest)


def without_tid(entry):
    """5.10 has no BTF of jbd2: the probes do not know a copy's transaction."""
    if entry[0] == "process" and entry[JBD2] in COPIES:
        return (*entry[:TID], 0, *entry[TID + 1 :])
    return entry


def wrong_tids(module):
    """Copies of a transaction that no descriptor has."""
    blocks = [e for e in module if e[0] == "process" and e[ORIGIN] == JOURNAL]
    known = {e[TID] for e in blocks if e[JBD2] == 1}
    return sum(1 for e in blocks if e[JBD2] in COPIES and e[TID] not in known)


def wrong_offsets(module, path):
    """Direct IO whose offset is not where the file has its sector; and how many have the right one."""
    extents = []
    with open(path) as f:
        for line in f:
            found = re.match(r" *\d+: +(\d+)\.\. +\d+: +(\d+)\.\. +\d+: +(\d+):", line)
            if found:
                extents.append(tuple(map(int, found.groups())))
    wrong = right = 0
    for e in module:
        if e[0] == "file" and e[-3] == DIRECT and e[7] != NONE:
            place = e[7] // 512
            if any(l <= place < l + n and e[2] == p + place - l for l, p, n in extents):
                right += 1
            else:
                wrong += 1
    return wrong, right


def main(bundle, stream, extents):
    probes = list(from_bundle(bundle))
    module = list(from_stream(stream))
    fat = any(e[0] == "file" and e[5] & INO_PASSING for _, e in module)
    first = min(t for t, _ in probes) - SLACK_NS
    last = max(t for t, _ in probes) + SLACK_NS
    theirs = [without_unknown(e, fat) for _, e in probes]
    ours = [without_unknown(e, fat) for t, e in module if first <= t <= last]
    if not any(e[0] == "process" and e[JBD2] in COPIES and e[TID] for e in theirs):
        theirs, ours = map(without_tid, theirs), map(without_tid, ours)
    theirs, ours = collections.Counter(theirs), collections.Counter(ours)
    for name, rest in (("only the probes", theirs - ours), ("only the module", ours - theirs)):
        for entry, n in sorted(rest.items(), key=str)[:10]:
            print(f"  {name}: {n} × {entry}")
    missing, extra = sum((theirs - ours).values()), sum((ours - theirs).values())
    tids = wrong_tids([e for _, e in module])
    wrong, right = wrong_offsets([e for _, e in module], extents)
    print(
        f"{bundle}: {sum((theirs & ours).values())} the same, {missing} only of the probes, {extra} only of the module;"
        f" direct offsets: {right} right, {wrong} wrong; wrong tids: {tids}"
    )
    return 1 if missing or extra or tids or wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
