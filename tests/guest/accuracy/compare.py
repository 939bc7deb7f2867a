#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""usage: compare.py MOSTRACE OUT

Judges the causes of ext4's blocks of metadata, and with data=journal of contents, in every OUT/NAME.most: of the copies in the
journal by all that the trace OUT/NAME.truth saw modify the block in that transaction, and of the blocks that were written home
by all that modified them since they were last written there. OUT/NAME.disk has the block size and, for each filesystem, its
device and first sector. Prints a line for each recording and kind of row, what was not asked and why, and the first wrong rows;
fails if a row that is called exact or shared is wrong, or if no row that was asked was right."""

import collections
import dataclasses
import json
import pathlib
import subprocess
import sys

from judge import RIGHT, UNASKED, WRONG, judge
from trace import Trace

EVENTS = """SELECT completion, time_ns, d2c_ns, q2d_ns, sector, bytes, class, kind, origin, jbd2_tid, home_sector, cause_pid, cause_op, cause_known
FROM events WHERE op = 'write' AND sector IS NOT NULL"""
CAUSES = "SELECT completion, sector, cause_pid, bytes FROM causes WHERE op = 'write' AND cause_pid IS NOT NULL"
ASKED = ("exact", "shared", "first")
OTHERS = ("set", "proportional", "unknown")
EXAMPLES = 1


@dataclasses.dataclass(frozen=True)
class Disk:
    """The filesystems' block size, and (first sector, device number as the kernel encodes it) of each in order."""

    block: int
    parts: list

    @staticmethod
    def read(path):
        lines = [line.split() for line in path.read_text().splitlines()]
        block = int(next(words[1] for words in lines if words[0] == "block"))
        parts = [(int(words[2]), device(words[1])) for words in lines if words[0] == "part"]
        return Disk(block, sorted(parts))

    def places(self, sector, length):
        """Returns (device, block) of each block in a range of sectors of the disk."""
        start, dev = max(part for part in self.parts if part[0] <= sector)
        first = (sector - start) * 512 // self.block
        return [(dev, first + at) for at in range(max(length // self.block, 1))]


def device(words):
    major, minor = map(int, words.split(":"))
    return major << 20 | minor


def query(mostrace, bundle, sql, *options):
    command = [mostrace, "query", bundle, sql, "--json", *options]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def rows(mostrace, bundle):
    """Returns the written rows in the order of their Q, each with the pids of its causers and the bytes charged to each."""
    charged = collections.defaultdict(dict)
    for share in query(mostrace, bundle, CAUSES):
        of_row = charged[share["completion"], share["sector"]]
        of_row[share["cause_pid"]] = of_row.get(share["cause_pid"], 0) + share["bytes"]
    causers = collections.defaultdict(set)
    for share in query(mostrace, bundle, CAUSES, "--share", "equal"):
        causers[share["completion"], share["sector"]].add(share["cause_pid"])
    found = query(mostrace, bundle, EVENTS)
    for row in found:
        key = row["completion"], row["sector"]
        row["causers"], row["charged"] = frozenset(causers[key]), charged[key]
        row["queued"] = row["time_ns"] - (row["d2c_ns"] or 0) - (row["q2d_ns"] or 0)
    return sorted(found, key=lambda row: row["queued"])


class Changes:
    """Finds the modifications of a row's bytes."""

    def __init__(self, disk, trace):
        self.disk, self.trace, self.written = disk, trace, {}

    def of(self, row):
        """Returns what the row is, "copy" or "home", and its modifications; None for a row of neither. Rows must come in the order
        of their Q."""
        if row["home_sector"] is not None:
            places = self.disk.places(row["home_sector"], row["bytes"])
            changes = [self.trace.in_transaction(place, row["jbd2_tid"]) for place in places]
            return "copy", in_order(changes)
        if row["class"] == "journal":
            return None
        places = self.disk.places(row["sector"], row["bytes"])
        since = [self.written.get(place, 0) for place in places]
        self.written.update((place, row["queued"]) for place in places)
        changes = [self.trace.between(place, from_ns, row["queued"]) for place, from_ns in zip(places, since)]
        # ext4 does not write contents by the journal unless mounted with data=journal.
        if row["class"] == "data" and not any(changes):
            return None
        return "home", in_order(changes)


def in_order(changes):
    return sorted((change for each in changes for change in each), key=lambda change: change.ns)


def compare(found, changes):
    """Returns the counts by kind of row, and lines about the first wrong rows."""
    counts, examples = collections.defaultdict(collections.Counter), []
    for row in found:
        asked = changes.of(row)
        if asked is None:
            continue
        kind, modified = asked
        n, known = counts[kind], row["cause_known"]
        n["rows"] += 1
        if known not in ASKED:
            n[known] += 1
            continue
        verdict, reason = judge(known, row["cause_pid"], row["causers"], modified)
        n[known, verdict] += 1
        if verdict == UNASKED:
            n[UNASKED] += 1
            n[UNASKED, reason] += 1
        everyone = frozenset().union(*(change.who for change in modified))
        if known != "first" and modified and all(change.who for change in modified):
            n["moved"] += sum(part for pid, part in row["charged"].items() if pid not in everyone)
        if verdict == WRONG:
            n[WRONG, known, reason] += 1
            if n[WRONG, known, reason] <= EXAMPLES:
                examples.append(f"  wrong: {kind} {known}: {reason}: {tell(row, modified)}")
    return counts, examples


def tell(row, modified):
    """Describes a row and those who modified it, as far as a line can."""
    causers, whose = sorted(row["causers"]), [sorted(change.who) for change in modified]
    return (f"sector {row['sector']}, {row['kind']}, transaction {row['jbd2_tid']}, {row['cause_op']} by {some(causers)}; "
            f"modified by {some(whose)}")


def some(values):
    more = f" and {len(values) - 6} more" if len(values) > 6 else ""
    return ", ".join(map(str, values[:6])) + more


HEAD = ["rows", "exact right", "wrong", "shared right", "wrong", "first right", "wrong", *OTHERS, "not asked", "bytes moved"]


def line(name, n):
    judged = [n[known, verdict] for known in ASKED for verdict in (RIGHT, WRONG)]
    numbers = [n["rows"], *judged, *(n[word] for word in OTHERS), n[UNASKED], n["moved"]]
    return f"{name:20}" + "".join(f"{number:>{max(len(word), 7) + 1}}" for word, number in zip(HEAD, numbers))


def main(mostrace, out):
    print(f"{'set-up':20}" + "".join(f"{word:>{max(len(word), 7) + 1}}" for word in HEAD))
    total = collections.Counter()
    for truth in sorted(out.glob("*.truth")):
        changes = Changes(Disk.read(truth.with_suffix(".disk")), Trace(truth.read_text().splitlines()))
        counts, examples = compare(rows(mostrace, truth.with_suffix(".most")), changes)
        for kind, n in sorted(counts.items()):
            print(line(f"{truth.stem} {kind}", n))
            total.update(n)
        for text in examples:
            print(text)
    print(line("all", total))
    for key, number in sorted((key, number) for key, number in total.items() if key[0] == UNASKED and key != UNASKED):
        print(f"  not asked: {number}: {key[1]}")
    right = sum(total[known, RIGHT] for known in ASKED)
    return right == 0 or total["exact", WRONG] + total["shared", WRONG] > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
