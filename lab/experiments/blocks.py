#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Replays a recorded fsync load on a loop device by `mostrace replay --blocks`, fio's iolog and btreplay, records each
replay, and prints what reached the device: blocks.py MOSTRACE [TRANSACTIONS]

Needs root, fio, and blktrace with btrecord and btreplay. blkparse reads what was recorded.
"""

import os
import subprocess
import sys
import tempfile
from collections import Counter

MOSTRACE = os.path.abspath(sys.argv[1])
TRANSACTIONS = sys.argv[2] if len(sys.argv) > 2 else "3000"


def run(*argv):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout


class Loop:
    """A loop device of 1 GiB whose requests are not merged again."""

    def __init__(self, name):
        with open(name, "wb") as image:
            image.truncate(1 << 30)
        self.device = run("losetup", "-f", "--show", name).strip()
        queue = f"/sys/block/{os.path.basename(self.device)}/queue/"
        with open(queue + "scheduler", "w") as scheduler:
            scheduler.write("none")

    def __enter__(self):
        return self.device

    def __exit__(self, *_):
        run("losetup", "-d", self.device)


def events(bundle):
    """The events of a recording: action, RWBS, sector, number of sectors, seconds."""
    run(MOSTRACE, "export", bundle, "--format", "blktrace", "-o", bundle)
    text = run("blkparse", "-q", "-i", bundle, "-f", "%a %d %S %n %T.%9t\n")
    for line in text.splitlines():
        words = line.split()
        if len(words) == 5 and words[0] in "QC":
            yield words[0], words[1], int(words[2]), int(words[3]), float(words[4])


def requests(bundle):
    """The multiset of requests, and the seconds from the first to the last event. A write with a preflush counts as a
    flush and a write, because no program can ask for it in one call."""
    found, times = Counter(), []
    for action, rwbs, sector, sectors, time in events(bundle):
        times.append(time)
        if action == "C" and sectors and "W" in rwbs:
            found["write", sector, sectors] += 1
        elif action == "C" and sectors:
            found["read", sector, sectors] += 1
        elif action == "Q" and rwbs.startswith("F"):
            found["flush",] += 1
        if action == "Q" and "W" in rwbs and "F" in rwbs.lstrip("F"):
            found["FUA", sector, sectors] += 1
    return found, max(times) - min(times)


def replay(name, device, command):
    record = [MOSTRACE, "record", "-q", "-d", device, "-o", f"{name}.most", "--", *command]
    ended = subprocess.run(record, stdout=subprocess.DEVNULL)
    if ended.returncode:
        print(f"{name} ended with {ended.returncode}", file=sys.stderr)
    return requests(f"{name}.most")


def row(name, found, elapsed, recorded):
    kinds = Counter()
    for key, count in found.items():
        kinds[key[0]] += count
    missing = sum((recorded - found).values())
    more = sum((found - recorded).values())
    figures = [kinds[kind] for kind in ("read", "write", "FUA", "flush")] + [missing, more]
    print(f"| {name} | " + " | ".join(f"{n:,}" for n in figures) + f" | {elapsed:.3f} |")


def main():
    with Loop("source.img") as source, Loop("target.img") as target:
        run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", source)
        os.mkdir("mnt")
        run("mount", source, "mnt")
        try:
            run("sync", "-f", "mnt")
            load = [MOSTRACE, "workload", "sqlite", "--transactions", TRANSACTIONS, "mnt/x.db"]
            run(MOSTRACE, "record", "-q", "-d", "mnt", "-o", "recorded.most", "--", *load)
        finally:
            run("umount", "mnt")
        recorded, elapsed = requests("recorded.most")
        print("| | reads | writes | writes with FUA | flushes | missing | too many | seconds |")
        print("| --- | --: | --: | --: | --: | --: | --: | --: |")
        row("recorded", recorded, elapsed, recorded)

        blocks = [MOSTRACE, "replay", "recorded.most", "--blocks", target, "--yes", target]
        row("mostrace", *replay("mostrace", target, blocks), recorded)

        run(MOSTRACE, "export", "recorded.most", "--format", "blktrace", "-o", "trace")
        run("blkparse", "-q", "-i", "trace", "-d", "trace.bin", "-o", "/dev/null")
        fio = ["fio", "--name=replay", "--read_iolog=trace.bin", f"--replay_redirect={target}", "--direct=1"]
        row("fio", *replay("fio", target, [*fio, "--ioengine=io_uring", "--iodepth=64"]), recorded)

        os.mkdir("records")
        run("btrecord", "-d", ".", "-D", "records", "trace")
        with open("devices", "w") as devices:
            devices.write(f"trace {os.path.basename(target)}\n")
        # btreplay does not always end by itself.
        btreplay = ["timeout", "-s", "KILL", "60", "btreplay", "-d", "records", "-M", "devices", "-W", "trace"]
        row("btreplay", *replay("btreplay", target, btreplay), recorded)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    main()
