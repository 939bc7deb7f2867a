#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""usage: owners.py MOSTRACE OUT

Compares the causes in OUT/fat-N.most and OUT/f2fs-N.most with the truth. Every writer is a user of its own with a folder of its
own: a block of that folder, or of a file in it, belongs to that user (`owner`). For FAT's own blocks, OUT/fat-N.buffers has every
change of a buffer: a written sector belongs to the task that was the first to change it since it was last written (`first`). If
that was a kernel thread, or several tasks changed it, it counts as `led` or `shared`. Prints a line for each bundle, and fails
if less than 99 % of the causes called exact are right."""

import collections
import csv
import pathlib
import re
import subprocess
import sys

LINE = re.compile(r"^\s*(?P<comm>.+)-(?P<pid>\d+)\s+\[\d+\] \S+\s+(?P<s>\d+)\.(?P<us>\d{6}): block_dirty_buffer: \S+ sector=(?P<block>\d+) "
                  r"size=(?P<size>\d+)$")
COLUMNS = "time_ns,d2c_ns,q2d_ns,sector,bytes,kind,path,cause_pid,cause_uid,cause_known"
KERNEL = re.compile(r"^(kworker/|jbd2/|kswapd|f2fs_)")
# The kinds of blocks of a folder; on FAT the blocks of a folder that was removed are free.
OWNED = ("directory", "node", "hot_node", "warm_node", "cold_node", "fsync_node", "free")
FAT = ("fat", "directory", "free", "fsinfo", "boot_record")


def changes(path):
    """Returns lists of (ns, pid, whether it is a kernel thread) by sector, in time order."""
    found = collections.defaultdict(list)
    for line in path.read_text().splitlines():
        match = LINE.match(line)
        if not match:
            sys.exit(f"{path}: not understood: {line}")
        ns = int(match["s"]) * 10**9 + int(match["us"]) * 1000
        sectors = int(match["size"]) // 512
        first = int(match["block"]) * sectors
        for sector in range(first, first + sectors):
            found[sector].append((ns, int(match["pid"]), bool(KERNEL.match(match["comm"]))))
    return found


def rows(mostrace, bundle):
    """Returns the rows of written metadata."""
    command = [mostrace, "events", bundle, "--format", "csv", "--where", "op = 'write'", "--columns", COLUMNS]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [row for row in csv.DictReader(text.splitlines()) if row["kind"] in OWNED + FAT]


def owner(row, n):
    """Compares a row with the owner of its folder: whoever dirtied its page first."""
    match = re.match(r"^/w(\d+)(/|$)", row["path"])
    n["bytes"] += int(row["bytes"])
    if row["cause_known"] == "unknown":
        n["unknown"] += int(row["bytes"])
    if not match or row["cause_known"] != "first":
        return
    n["owned"] += 1
    n["owner"] += int(row["cause_uid"]) == 1000 + int(match[1])


def first(row, buffers, written, n):
    """Compares a row with the changes of buffers, sector by sector."""
    queued = int(row["time_ns"]) - int(row["d2c_ns"]) - int(row["q2d_ns"])
    for sector in range(int(row["sector"]), int(row["sector"]) + int(row["bytes"]) // 512):
        # The trace has a resolution of microseconds.
        since = [c for c in buffers[sector] if written.get(sector, 0) < c[0] <= queued + 1000]
        written[sector] = queued
        if row["cause_known"] != "first" or not since:
            continue
        if since[0][2]:
            n["led"] += 1
            continue
        n["shared"] += len({pid for _, pid, _ in since}) > 1
        n["sectors"] += 1
        n["first"] += int(row["cause_pid"]) == since[0][1]


def main(mostrace, out):
    head = ["set-up", "bytes", "unknown %", "owned", "right", "sectors", "right", "shared", "led"]
    print(f"{head[0]:10}" + "".join(f"{word:>11}" for word in head[1:]))
    failed = False
    bundles = sorted(out.glob("fat-*.most")) + sorted(out.glob("f2fs-*.most"))
    for bundle in bundles:
        n, written = collections.Counter(), {}
        buffers = changes(bundle.with_suffix(".buffers"))
        for row in rows(mostrace, bundle):
            owner(row, n)
            if bundle.name.startswith("fat"):
                first(row, buffers, written, n)
        unknown = 100 * n["unknown"] / max(n["bytes"], 1)
        numbers = [n["owned"], n["owner"], n["sectors"], n["first"], n["shared"], n["led"]]
        print(f"{bundle.stem:10}{n['bytes']:11}{unknown:11.1f}" + "".join(f"{number:11}" for number in numbers))
        failed |= n["owned"] == 0 or n["owner"] < n["owned"] * 0.99 or n["first"] < n["sectors"] * 0.99
    return not bundles or failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
