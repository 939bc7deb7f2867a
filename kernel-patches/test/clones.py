#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks what the module recorded on a disk below a dm device, on one that has no requests, or on one that is throttled.

usage: clones.py NAME
NAME.stream is what was read from /dev/mostrace. NAME.table has the device's lines `start length lower`: its sectors, and their
place on the disk. NAME.extents has those of its files, `name first last sector`, in sectors of the file and of the device.
NAME.pids lists the processes that wrote a file, `name pid`.

Exits with 1 if a sector of a file is missing or has a wrong file, offset, submitter or dirtier, if a journal's copy has no home,
or if a worker is reported as submitter.
"""
import collections
import sys

from same import COPIES, DIRECT, FROM_FILE, JBD2, NONE, OFFSET, ORIGIN, SUBMITTER, from_stream, sectors, wrong_tids

HOME = 13
NO_SUBMITTER = 1
# The names of dm-crypt's threads and of workers.
WORKERS = (b"kworker", b"kcryptd", b"dmcrypt")


def read(path):
    with open(path) as f:
        return [line.split() for line in f]


def places(name):
    """Returns (file, sector of the file) by sector of the disk."""
    table = [tuple(map(int, line)) for line in read(f"{name}.table")]
    found = {}
    for file, first, last, at in read(f"{name}.extents"):
        for n in range(int(last) - int(first) + 1):
            sector = int(at) + n
            for start, length, lower in table:
                if start <= sector < start + length:
                    found[lower + sector - start] = (file, int(first) + n)
    return found


def main(name):
    entries = from_stream(f"{name}.stream")
    place = places(name)
    pids = collections.defaultdict(set)
    for file, pid in read(f"{name}.pids"):
        pids[file].add(int(pid))
    count = collections.Counter()
    submitters, told = {}, set()
    for time, e in entries:
        if e[0] == "process":
            submitters.update({(time, s): None if e[4] & NO_SUBMITTER else e[SUBMITTER] for s in sectors(e)})
            count["no submitter"] += bool(e[4] & NO_SUBMITTER)
            copy = e[ORIGIN] == 5 and e[JBD2] in COPIES
            count["copies"] += copy
            count["copies without a home"] += copy and e[5] == NONE
            count["homes of the device above"] += copy and e[HOME] == 1
    for time, e in entries:
        if e[0] == "file" and e[-3] in (DIRECT, FROM_FILE):
            file = e[-1].decode()
            if file not in pids:
                continue
            for n, s in enumerate(sectors(e)):
                told.add(s)
                if e[OFFSET] == NONE:
                    count["without a position"] += 1
                elif place.get(s) == (file, e[OFFSET] // 512 + n):
                    count["placed"] += 1
                else:
                    count["misplaced"] += 1
                if e[-3] == DIRECT and submitters[time, s] is not None:
                    count["direct" if submitters[time, s] in pids[file] else "direct of another"] += 1
        elif e[0] == "dirtier":
            for s in sectors(e):
                file = place.get(s, ("", 0))[0]
                if file in pids and e[8].rstrip(b"\0") == b"dd":
                    count["dirtied" if e[5] in pids[file] else "dirtied by another"] += 1
    count["not told"] = sum(s not in told for s in place)
    count["wrong tids"] = wrong_tids(entries)
    print(f"{name}: {len(entries)} entries;", ", ".join(f"{what}: {n}" for what, n in count.items()))
    wrong = ["misplaced", "direct of another", "dirtied by another", "copies without a home", "not told", "wrong tids"]
    needed = ["placed", "direct", "dirtied", "copies"]
    if name.endswith(("-linear", "-swapped", "-crypt")):
        needed.append("homes of the device above")
    else:
        wrong.append("homes of the device above")
    # Throttled bios have no submitter, and in direct IO no known position; no others may lack these.
    (needed if name.endswith("-throttled") else wrong).extend(("no submitter", "without a position"))
    return any(count[w] for w in wrong) or not all(count[n] for n in needed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
