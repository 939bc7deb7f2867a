#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""usage: compare.py MOSTRACE OUT

Compares the cause of every metadata copy in OUT/*.most with OUT/*.truth, in which a kprobe on jbd2_journal_dirty_metadata
recorded task, transaction and block: the first task that dirtied a block in a transaction caused the copy. mostrace
attributes the work of a kernel thread to another task (the one that dirtied the pages, or that unlinked), so such copies are
counted separately. Prints a line for each bundle, and fails if less than 99 % of the causes called exact are right. `moved` is
the share of bytes, sets included, that are charged to another task than the first one."""

import collections
import csv
import pathlib
import re
import subprocess
import sys

LINE = re.compile(r"^\s*(?P<comm>.+)-(?P<pid>\d+)\s+\[\d+\].* tid=(?P<tid>\d+) block=(?P<block>\d+)$")
COLUMNS = "kind,bytes,jbd2_tid,home_sector,cause_pid,cause_known,causes"
KERNEL = re.compile(r"^(kworker/|jbd2/|kswapd)")


def first_dirtiers(path):
    """Returns (pid, whether it is a kernel thread) by (tid, block)."""
    first = {}
    for line in path.read_text().splitlines():
        match = LINE.match(line)
        if not match:
            sys.exit(f"{path}: not understood: {line}")
        key = int(match["tid"]), int(match["block"])
        first.setdefault(key, (int(match["pid"]), bool(KERNEL.match(match["comm"]))))
    return first


def copies(mostrace, bundle):
    """Returns the rows of metadata copies, each of one block."""
    command = [mostrace, "events", bundle, "--format", "csv", "--where", "kind = 'metadata_copy'", "--columns", COLUMNS]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return csv.DictReader(text.splitlines())


def main(mostrace, out):
    print(f"{'set-up':16} {'copies':>7} {'exact':>7} {'right':>7} {'set':>6} {'unknown':>8} {'delegated':>10} {'no truth':>9} "
          f"{'moved %':>8}")
    failed = False
    bundles = sorted(truth.with_suffix(".most") for truth in out.glob("*.truth"))
    for bundle in bundles:
        truth = first_dirtiers(bundle.with_suffix(".truth"))
        n = collections.Counter()
        for row in copies(mostrace, bundle):
            n["copies"] += 1
            block = int(row["home_sector"]) * 512 // int(row["bytes"])
            pid, kernel = truth.get((int(row["jbd2_tid"]), block), (None, False))
            known = row["cause_known"]
            if pid is not None and not kernel:
                n["bytes"] += int(row["bytes"])
                n["moved"] += int(row["bytes"]) * (row["cause_pid"] != str(pid))
            if pid is None:
                n["no truth"] += 1
            elif known in ("set", "unknown"):
                n[known] += 1
            elif kernel:
                n["delegated"] += 1
            else:
                n["exact"] += 1
                n["right"] += int(row["cause_pid"]) == pid
        print(f"{bundle.stem:16} {n['copies']:7} {n['exact']:7} {n['right']:7} {n['set']:6} {n['unknown']:8} "
              f"{n['delegated']:10} {n['no truth']:9} {100 * n['moved'] / max(n['bytes'], 1):8.2f}")
        failed |= n["exact"] == 0 or n["right"] < n["exact"] * 0.99
    return not bundles or failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
