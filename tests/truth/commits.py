#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Usage: commits.py MOSTRACE

Holds what mostrace says of the causes of ext4's journal against what the journal itself contains, at full speed.

Processes append to files of their own and sync each byte, thousands of times a second; their inodes share blocks of the inode
table. Each copy in the journal is compared with the copy before it of the same block: whose inodes differ, changed it. The journal
is large enough to hold the whole run. Nothing of mostrace's is used for the truth.

Asked of every row: is a certain causer wrong or missing, how much is unknown, and has each fsync a commit that it waited for?
Exit status 0 if nothing certain is wrong, and little is unknown where nothing was lost.
"""
import collections
import csv
import io
import os
import re
import struct
import subprocess
import sys
import tempfile
import time

MOSTRACE = sys.argv[1]
MIB = 1 << 20
BLOCK = 4096
JBD2_MAGIC = 0xC03B3998
DESCRIPTOR, COMMIT = 1, 2
ESCAPE, SAME_UUID, LAST_TAG = 1, 2, 8
CSUM_V3 = 0x10

WRITER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>
/* writer FILE:TIMES...: after one another (with -p: at once), a process for each appends a byte and syncs, TIMES times. */
int main(int n, char **v) {
	int at_once = n > 1 && v[1][0] == '-';
	for (int i = 1 + at_once; i < n; i++) {
		if (!fork()) {
			char name[256]; int times;
			sscanf(v[i], "%255[^:]:%d", name, &times);
			int f = open(name, O_WRONLY | O_APPEND);
			for (int k = 0; k < times; k++)
				if (write(f, "x", 1) != 1 || fsync(f)) _exit(1);
			printf("%s %d\n", name, getpid());
			fflush(stdout);
			_exit(0);
		}
		if (!at_once) wait(0);
	}
	int status, bad = 0;
	while (wait(&status) > 0) bad |= status;
	return bad != 0;
}
"""


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode:
        raise SystemExit(f"commits: {' '.join(command)}: {done.stderr}")
    return done.stdout


def rows(*arguments):
    return list(csv.DictReader(io.StringIO(run(MOSTRACE, *arguments, "--format", "csv"))))


class Journal:
    """The copies in the journal of an image that was not mounted since, in the order of the transactions."""

    def __init__(self, image):
        text = run("dumpe2fs", image)
        field = lambda name: re.search(rf"^{name}:\s*(.*)$", text, re.M)[1]
        self.inode_size = int(field("Inode size"))
        tables = re.findall(r"Inode table at (\d+)-(\d+)", text)
        self.tables = [range(int(first), int(last) + 1) for first, last in tables]
        self.inodes_per_group = int(field("Inodes per group"))
        blocks = run("debugfs", "-R", "blocks <8>", image).split()
        self.blocks = [int(block) for block in blocks]
        self.image = open(image, "rb")

    def read(self, block):
        self.image.seek(block * BLOCK)
        return self.image.read(BLOCK)

    def copies(self):
        """Yields (tid, home block, contents), those of one transaction after the other; asserts that the log did not wrap."""
        is_csum_v3 = struct.unpack(">I", self.read(self.blocks[0])[40:44])[0] & CSUM_V3
        assert is_csum_v3, "a journal with tags of checksum v3 is expected"
        position, found = 1, collections.defaultdict(list)
        while position < len(self.blocks):
            head = self.read(self.blocks[position])
            magic, kind, tid = struct.unpack(">III", head[:12])
            position += 1
            if magic != JBD2_MAGIC:
                break
            if kind != DESCRIPTOR:
                continue
            at = 12
            while True:
                low, flags, high, _ = struct.unpack(">IIII", head[at : at + 16])
                at += 16 if flags & SAME_UUID else 32
                contents = self.read(self.blocks[position])
                if flags & ESCAPE:
                    contents = struct.pack(">I", JBD2_MAGIC) + contents[4:]
                found[tid].append((high << 32 | low, contents))
                position += 1
                if flags & LAST_TAG:
                    break
        for tid in sorted(found):
            for home, contents in found[tid]:
                yield tid, home, contents

    def inodes_of(self, block):
        """The first inode number of a block of an inode table; None for another block."""
        for group, table in enumerate(self.tables):
            if block in table:
                return group * self.inodes_per_group + (block - table.start) * (BLOCK // self.inode_size) + 1
        return None


def changers(journal, before, owners):
    """Of each copy of a block of the inode table: whose inodes differ from the copy before; {(tid, home): processes}."""
    truth, last = {}, {}
    for tid, home, contents in journal.copies():
        first = journal.inodes_of(home)
        if first is None:
            continue
        old = last.get(home) or before(home)
        last[home] = contents
        size = journal.inode_size
        changed = {first + at // size for at in range(0, BLOCK, size) if contents[at : at + size] != old[at : at + size]}
        truth[tid, home] = {owners.get(inode) for inode in changed}
    return truth


class Scene:
    """A fresh ext4 in memory, on a loop device."""

    def __init__(self, folder, files):
        self.image, self.mount = f"{folder}/image", f"{folder}/mount"
        with open(self.image, "wb") as image:
            image.truncate(1536 * MIB)
        run("mkfs.ext4", "-q", "-F", "-b", "4096", "-J", "size=256", "-E", "lazy_itable_init=0,lazy_journal_init=0", self.image)
        os.mkdir(self.mount)
        # An own writer's folder each would put its inode into another group: the files shall share a block of the table.
        self.device = run("losetup", "-f", "--show", self.image).strip()
        run("mount", self.device, self.mount)
        for name in files:
            with open(f"{self.mount}/{name}", "w") as file:
                file.write("0")
        self.inodes = {name: os.stat(f"{self.mount}/{name}").st_ino for name in files}
        # The journal begins anew, with nothing to be written home.
        run("umount", self.mount)
        self.before = open(self.image, "rb").read(64 * MIB)
        run("mount", self.device, self.mount)
        time.sleep(0.2)

    def close(self):
        subprocess.run(["umount", self.mount], stderr=subprocess.DEVNULL)
        subprocess.run(["losetup", "-d", self.device], stderr=subprocess.DEVNULL)

    def block_before(self, block):
        at = block * BLOCK
        assert at + BLOCK <= len(self.before)
        return self.before[at : at + BLOCK]


class Verdict:
    """What was wrong, and how much was asked."""

    def __init__(self):
        self.asked = self.wrong = self.unknown = self.bytes = 0
        self.examples = []

    def judge(self, row, known, claimed, true, is_whole):
        """All of `true` must be claimed if all causers are said to be known (`is_whole`: and nobody else); of `true` must be who is said
        to be the first."""
        self.asked += 1
        size = int(row["bytes"])
        self.bytes += size
        if known == "unknown":
            self.unknown += size
        if known in ("exact", "shared"):
            fits = claimed == true if is_whole else true <= claimed
        else:
            fits = known != "first" or claimed <= true
        if not fits:
            self.wrong += 1
            self.examples.append(f"{row['kind']} of {row['jbd2_tid']} at {row['sector']}: {known} {claimed}, true {true}")


def judge(bundle, truth, start):
    """Compares the rows of the journal and of the inode tables at home with the truth."""
    columns = "completion, sector, bytes, kind, jbd2_tid, home_sector, time_ns, d2c_ns, q2d_ns, cause_known, cause_process_known"
    events = rows("query", bundle, f"SELECT {columns} FROM events WHERE op = 'write' ORDER BY time_ns")
    causes = collections.defaultdict(set)
    for share in rows("query", bundle, "SELECT completion, sector, cause_tgid FROM causes WHERE op = 'write'", "--share", "equal"):
        causes[share["completion"], share["sector"]].add(int(share["cause_tgid"] or 0))
    of_transaction = collections.defaultdict(set)
    for (tid, _), true in truth.items():
        of_transaction[tid] |= true
    verdict, commit_ns, home_ns = Verdict(), {}, {}
    for row in events:
        if row["kind"] == "commit":
            commit_ns[int(row["jbd2_tid"])] = int(row["time_ns"])
    for row in events:
        claimed = causes[row["completion"], row["sector"]]
        tid = int(row["jbd2_tid"] or 0)
        if row["kind"] == "metadata_copy":
            true = truth.get((tid, (int(row["home_sector"]) - start) // 8))
            if true is not None:
                verdict.judge(row, row["cause_known"], claimed, true, True)
        elif row["kind"] in ("descriptor", "commit", "revoke") and tid in of_transaction:
            verdict.judge(row, row["cause_process_known"], claimed, of_transaction[tid], False)
        elif row["kind"] == "inode_table":
            home = (int(row["sector"]) - start) // 8
            now = int(row["time_ns"]) - int(row["d2c_ns"] or 0) - int(row["q2d_ns"] or 0)
            committed = {t for t, at in commit_ns.items() if home_ns.get(home, 0) < at < now}
            true = set().union(*(truth.get((t, home), set()) for t in committed))
            home_ns[home] = now
            verdict.judge(row, row["cause_known"], claimed, true, False)
    return verdict


def trial(writer, what, at_once=False):
    """Records one run; returns True if nothing was wrong. A recording that lost something is made again."""
    for _ in range(5):
        with tempfile.TemporaryDirectory(prefix="commits.", dir="/dev/shm") as folder:
            scene = Scene(folder, [name for name, _ in what])
            try:
                bundle = f"{folder}/run.most"
                jobs = [f"{name}:{times}" for name, times in what]
                command = [writer, *(["-p"] if at_once else []), *jobs]
                began = time.monotonic()
                done = subprocess.run(
                    [MOSTRACE, "record", "-d", scene.device, "--sync", "-o", bundle, "--", *command],
                    cwd=scene.mount, capture_output=True, text=True)
                seconds = time.monotonic() - began
                if done.returncode:
                    raise SystemExit(f"commits: {done.stderr}")
                owners = {scene.inodes[line.split()[0]]: int(line.split()[1]) for line in done.stdout.splitlines()}
                subprocess.run(["umount", scene.mount], check=True)
                journal = Journal(scene.image)
                truth = changers(journal, scene.block_before, owners)
                first = done.stderr.splitlines()[0]
                if " 0 lost" not in done.stderr:
                    print(f"commits: recorded again: {first}")
                    continue
                verdict = judge(bundle, truth, 0)
                # Of callers at once, some find their transaction committed.
                waits = rows("query", bundle, "SELECT wait_commit_ns AS ns FROM calls WHERE call = 'fsync'")
                without = sum(1 for wait in waits if not int(wait["ns"] or 0))
                calls = sum(times for _, times in what)
                tids = len({tid for tid, _ in truth})
                print(f"commits: {' '.join(jobs)}{' at once' if at_once else ''}: {tids} transactions in {seconds:.1f} s; "
                      f"{verdict.asked} rows asked, {verdict.wrong} wrong, {100 * verdict.unknown / max(1, verdict.bytes):.1f} % of the bytes unknown; "
                      f"{len(waits)} of {calls} fsyncs, {without} without a commit")
                for example in verdict.examples[:3]:
                    print(f"commits:   {example}")
                return verdict.asked >= tids > 0 and verdict.wrong == 0 and verdict.unknown * 20 <= verdict.bytes and len(waits) == calls and (at_once or without == 0)
            finally:
                scene.close()
    print("commits: five recordings lost something")
    return False


def main():
    with tempfile.TemporaryDirectory() as folder:
        writer = f"{folder}/writer"
        subprocess.run(["cc", "-O1", "-x", "c", "-o", writer, "-"], input=WRITER, text=True, check=True)
        good = [
            trial(writer, [("w", 60), ("a", 1), ("b", 600)]),
            trial(writer, [("w", 3000), ("a", 1), ("b", 3000)]),
            trial(writer, [("a", 1000), ("b", 1000), ("c", 1000), ("d", 1000)], at_once=True),
        ]
    sys.exit(not all(good))


main()
