#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares the tables of a recording by the module with those of a recording by the BPF probes of the same IO.

usage: conform.py NAME
NAME.module.csv and NAME.probes.csv are what `mostrace events` says of both; the probes recorded longer. NAME.misses is how many runs
of probes the kernel skipped, as it may from 7.2 on: what these would have told is unknown. Both are cut into sectors, and
the writes of each sector are matched by time. For each kind of block the bytes are counted by how the two descriptions agree, and
each way in which they differ is listed.

Exits with 1 if both know a thing and say something else (but for a few bytes that two tasks changed at one moment), if the probes lack
bytes that the module has, or if one of them knows far more causes than the other.
"""
import collections
import csv
import datetime
import sys

# How far apart the times of blktrace and of the probes may be for one completion, s: a busy machine may stop the guest's CPU between
# the two.
APART = 1
# Words for what is not known.
UNKNOWN = ("unknown", "unmapped", "")
# What both must say alike.
FACTS = ("class", "kind", "pid", "dirty_pid", "path", "jbd2_tid")
# The part of all bytes whose cause only one may know: those of the transaction in which the shorter recording began.
MOST_BY_ONE = 0.01
# What each says if two tasks changed a block at one moment and either recorder saw another of them first; and the part of all bytes of
# which they may.
SWAPPED = "each names another task as the first"
MOST_SWAPPED = 0.001
# Two causes must be the same if one task is named by both: the one that made every change, or the first that was seen.
CERTAIN = ("exact", "first")


def sectors(path):
    """Returns the writes of each sector, each as its time (s) and its row."""
    found = collections.defaultdict(list)
    with open(path, newline="") as f:
        for row in csv.DictReader(f):
            if row["op"] == "write":
                time = datetime.datetime.fromisoformat(row["time_utc"].replace("Z", "+00:00")).timestamp()
                first = int(row["sector"])
                for sector in range(first, first + int(row["bytes"]) // 512):
                    found[sector].append((time, row))
    for writes in found.values():
        writes.sort(key=lambda write: write[0])
    return found


def pairs(module, probes):
    """Yields each sector's writes by the module with the one of the probes at the same time, or None; every one of theirs is used once."""
    for sector, ours in module.items():
        theirs = probes.get(sector, [])
        # The probes have more, before and after: the place at which the times fit best.
        starts = range(max(len(theirs) - len(ours), 0) + 1)
        apart = lambda start: sum(abs(a[0] - b[0]) for a, b in zip(ours, theirs[start:]))
        start = min(starts, key=apart)
        for n, (time, row) in enumerate(ours):
            at = start + n
            is_there = at < len(theirs) and abs(theirs[at][0] - time) < APART
            yield row, theirs[at][1] if is_there else None


def compare_fact(fact, ours, theirs):
    """Returns in what way two descriptions differ in a fact; None if they do not."""
    # The module has the last component alone.
    ours_says, theirs_says = (row[fact].rsplit("/", 1)[-1] for row in (ours, theirs))
    if ours_says == theirs_says:
        return None
    if theirs_says in UNKNOWN or ours_says in UNKNOWN:
        return f"{fact}: only the {'module knows' if theirs_says in UNKNOWN else 'probes know'} it"
    # The module has no steps of f2fs: what a checkpoint dirties is of the thread that writes it.
    if fact == "dirty_pid" and ours["kind"].endswith("node") and ours["dirty_pid"] == ours["pid"]:
        return "dirty_pid: module says the checkpoint's own thread"
    return f"{fact}: {SWAPPED}" if fact == "dirty_pid" else f"WRONG {fact}"


def compare_cause(ours, theirs, are_all_seen):
    """Returns in what way two descriptions of a cause agree; the probes may not have seen the first change if the kernel skipped some."""
    known = ours["cause_known"], theirs["cause_known"]
    is_same = all(ours[c] == theirs[c] for c in ("cause_pid", "cause_op"))
    if known == ("unknown", "unknown"):
        return "cause: neither knows it"
    if "unknown" in known:
        return f"cause: only the {'probes know' if known[0] == 'unknown' else 'module knows'} it"
    if is_same:
        return "cause: the same"
    if all(k in CERTAIN for k in known) and (are_all_seen or known[1] == "exact"):
        return f"cause: {SWAPPED}"
    return f"cause: another, module {known[0]}, probes {known[1]}"


def compare(module, probes, are_all_seen):
    """Returns the bytes by kind of block and by how the two agree."""
    found = collections.Counter()
    for ours, theirs in pairs(module, probes):
        kind = ours["kind"] or "none"
        if theirs is None:
            found[kind, "WRONG: not in the probes' trace"] += 512
            continue
        for fact in FACTS:
            how = compare_fact(fact, ours, theirs)
            if how:
                found[kind, how] += 512
        found[kind, compare_cause(ours, theirs, are_all_seen)] += 512
    return found


def main(name):
    module, probes = sectors(f"{name}.module.csv"), sectors(f"{name}.probes.csv")
    with open(f"{name}.misses") as f:
        misses = int(f.read())
    found = compare(module, probes, misses == 0)
    label = name.rsplit("/", 1)[-1]
    print(f"info {label}: the kernel skipped {misses} runs of probes")
    total = sum(n for (_, how), n in found.items() if how.startswith("cause"))
    print(f"info {label}: {total} bytes by both")
    for (kind, how), size in sorted(found.items()):
        print(f"info {label}: {kind}: {how}: {size} bytes")
    wrong = {how for _, how in found if how.startswith("WRONG")}
    one = "cause: only the probes" if misses else "cause: only"
    by_one = sum(n for (_, how), n in found.items() if how.startswith(one))
    if by_one > total * MOST_BY_ONE or total == 0:
        wrong.add(f"{by_one} of {total} bytes have a cause in one of them alone")
    swapped = max(sum(n for (_, how), n in found.items() if how == f"{fact}: {SWAPPED}") for fact in ("dirty_pid", "cause"))
    if swapped > total * MOST_SWAPPED:
        wrong.add(f"of {swapped} of {total} bytes {SWAPPED}")
    if wrong:
        print(f"FAIL {label}: {', '.join(sorted(wrong))}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
