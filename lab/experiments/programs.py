#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Replays real programs, and prints a row for each: docs/FIGURES.md has the most important columns.

usage: sudo lab/experiments/programs.py MOSTRACE [NAME ...]

Each program runs five times under `measure --operations` on a fresh ext4, and the first recording is replayed. Then it runs
once more on a filesystem of its own, and is replayed on another; the trees that both leave are compared: names, kinds, sizes,
numbers of links, targets. Owners and modes are not: a replay does not know who the application was, nor its umask. A program that is not installed is left out, and named.
"""

import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile

RUNS = 5
SOURCES = pathlib.Path(tempfile.gettempdir(), "mostrace-programs")

GIT = """
export HOME=/nonexistent GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git -c init.defaultBranch=main init -q r; cd r
for c in 1 2 3 4 5 6 7 8 9 10; do
    for i in $(seq 1 100); do echo "$c $i $(seq 1 $i | tr '\\n' ' ')" >f$i; done
    git add -A; git commit -qm "c$c"
done
git gc -q; cd ..; git clone -q r s; rm -rf r
"""
NPM = """
export HOME=$PWD npm_config_cache=$PWD/.npm npm_config_update_notifier=false npm_config_audit=false npm_config_fund=false
echo '{"name":"app","version":"1.0.0"}' >package.json
npm install --offline SOURCES/npm/*.tgz >/dev/null 2>&1
npm uninstall p1 p2 >/dev/null 2>&1
"""
ROCKSDB = """
db_bench --db=$PWD/db --benchmarks=fillsync,overwrite,compact --num=3000 --value_size=400 --threads=1 \
    --write_buffer_size=300000 --target_file_size_base=200000 >/dev/null 2>&1
"""
LMDB = """
/usr/bin/python3 -c "
import lmdb
e = lmdb.open('db', map_size=64 << 20, writemap=WRITEMAP)
for i in range(300):
    with e.begin(write=True) as t:
        for j in range(4):
            t.put(b'%08d' % ((i * 7919 + j * 104729) % 5000), b'v' * 200)
e.close()"
"""
PGBENCH = """
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1); export LC_ALL=C
$bin/initdb -D $PWD/pg -A trust -U u >/dev/null
$bin/pg_ctl -D $PWD/pg -o "-h '' -k $PWD/pg" -w start >/dev/null
$bin/pgbench -h $PWD/pg -U u -i -q postgres >/dev/null 2>&1
$bin/pgbench -h $PWD/pg -U u -c 2 -t 300 postgres >/dev/null 2>&1
$bin/pg_ctl -D $PWD/pg -m fast stop >/dev/null
"""
DPKG = """
mkdir -p r/var/lib/dpkg/info r/var/lib/dpkg/updates r/var/lib/dpkg/triggers; : >r/var/lib/dpkg/status
for deb in SOURCES/debs/*.deb; do
    dpkg --root=$PWD/r --force-not-root --force-depends --force-script-chrootless -i $deb >/dev/null 2>&1 || true
done
"""
SQLITE = "MOSTRACE workload sqlite --journal JOURNAL --transactions 300 x.db >/dev/null"
THREADS = "MOSTRACE workload file --threads 8 --mode fsync --pattern random-write --file-size 1M >/dev/null"

# Its name, the program that it needs, the script, and the user if not root.
PROGRAMS = [
    ("SQLite, DELETE", "true", SQLITE.replace("JOURNAL", "delete"), None),
    ("SQLite, WAL", "true", SQLITE.replace("JOURNAL", "wal"), None),
    ("Mobibench's files, 8 threads", "true", THREADS, None),
    ("git", "git", GIT, None),
    ("npm install", "npm", NPM, None),
    ("RocksDB", "db_bench", ROCKSDB, None),
    ("LMDB", "/usr/bin/python3", LMDB.replace("WRITEMAP", "False"), None),
    ("LMDB, writable map", "/usr/bin/python3", LMDB.replace("WRITEMAP", "True"), None),
    ("PostgreSQL, pgbench", "pgbench", PGBENCH, "postgres"),
    ("dpkg -i of six packages", "dpkg", DPKG, None),
]


def run(*args, **named):
    done = subprocess.run([str(arg) for arg in args], capture_output=True, text=True, check=False, **named)
    if done.returncode:
        raise RuntimeError(f"{args[:3]}: {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


def make_sources():
    """Packages for npm and dpkg, made or fetched once."""
    npm = SOURCES / "npm"
    for n in range(1, 7):
        lib = npm / f"p{n}" / "package" / "lib"
        lib.mkdir(parents=True, exist_ok=True)
        (lib.parent / "package.json").write_text(json.dumps({"name": f"p{n}", "version": "1.0.0"}))
        for m in range(1, 61):
            (lib / f"m{m}.js").write_text("".join(f"{line}\n" for line in range(m * 40)))
        run("tar", "-czf", npm / f"p{n}.tgz", "-C", npm / f"p{n}", "package")
    debs = SOURCES / "debs"
    debs.mkdir(exist_ok=True)
    if not list(debs.glob("*.deb")):
        names = ["hello", "bc", "tzdata", "lmdb-utils", "sed", "grep"]
        subprocess.run(["apt-get", "download", "-q", *names], cwd=debs, capture_output=True, check=False)


class Disk:
    """An ext4 on a loop device, without lost+found."""

    def __init__(self, folder, name):
        self.image, self.mount = folder / f"{name}.img", folder / name
        self.mount.mkdir()
        run("truncate", "-s", "1G", self.image)
        run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", self.image)
        run("mount", "-o", "loop", self.image, self.mount)
        (self.mount / "lost+found").rmdir()

    def close(self):
        run("umount", self.mount)
        self.image.unlink()

    def tree(self):
        found = {}
        for folder, folders, files in os.walk(self.mount):
            for name in folders + files:
                path = pathlib.Path(folder, name)
                s = path.lstat()
                size = 0 if stat.S_ISDIR(s.st_mode) else s.st_size
                target = os.readlink(path) if stat.S_ISLNK(s.st_mode) else ""
                found[path.relative_to(self.mount)] = (stat.S_IFMT(s.st_mode), s.st_nlink, size, target)
        return found


def bytes_by_class(mostrace, recording):
    rows = json.loads(run(mostrace, "analyze", recording, "--by", "class", "--format", "json"))
    return {row["class"]: row["write_bytes"] for row in rows if row["write_bytes"]}


def compare_trees(mostrace, folder, as_user, script, user):
    """Returns the number of files that differ, and of files."""
    disks = [Disk(folder, name) for name in ("original", "replayed")]
    try:
        if user:
            shutil.chown(disks[0].mount, user)
        recording = folder / "tree.most"
        run(mostrace, "measure", *as_user, "--operations", "-q", "--in", disks[0].mount, "-o", recording, "--", "sh", "-ec", script)
        run(mostrace, "replay", recording, "--json", "--in", disks[1].mount)
        original, replayed = (disk.tree() for disk in disks)
        wrong = [name for name in original.keys() | replayed.keys() if original.get(name) != replayed.get(name)]
        for name in sorted(wrong)[:5]:
            print(f"  {name}: {original.get(name)}, replayed {replayed.get(name)}", file=sys.stderr)
        return len(wrong), len(original)
    finally:
        for disk in disks:
            disk.close()


def row(mostrace, name, script, user):
    folder = pathlib.Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        script = script.replace("SOURCES", str(SOURCES)).replace("MOSTRACE", str(mostrace))
        as_user = ["-u", user] if user else []
        run(mostrace, "measure", *as_user, "--operations", "--empty", "-q", "--runs", RUNS, "-o", folder / "o.most", "--", "sh", "-ec", script)
        runs = [bytes_by_class(mostrace, folder / f"o-{n}.most") for n in range(1, RUNS + 1)]
        told = json.loads(run(mostrace, "replay", folder / "o-1.most", "--json", "-o", folder / "again"))
        replayed = bytes_by_class(mostrace, folder / "again" / "ext4.most.tar.zst")
        outcome = told["replays"]["ext4"]
        calls = outcome["calls"].items()
        made, same = (sum(kind[what] for _, kind in calls) for what in ("made", "same"))
        others = ", ".join(f"{kind} {figures['made'] - figures['same']}" for kind, figures in calls if figures["made"] != figures["same"])
        totals = [sum(of.values()) for of in runs]
        total = sum(replayed.values())
        change = (total - totals[0]) / totals[0] * 100
        spread = (max(totals) - min(totals)) / totals[0] * 100
        parts = []
        for part in ("data", "journal", "metadata"):
            one, two = runs[0].get(part, 0), replayed.get(part, 0)
            inside = min(r.get(part, 0) for r in runs) <= two <= max(r.get(part, 0) for r in runs)
            parts.append("same" if one == two else f"{(two - one) / max(one, 1) * 100:+.1f} %{'' if inside else ' (outside)'}")
        wrong, files = compare_trees(mostrace, folder, as_user, script, user)
        cells = [name, f"{made:,}", f"{made - same}" + (f" ({others})" if others else ""), f"{totals[0]:,}", f"{total:,}",
                 f"{change:+.2f} %", f"{spread:.2f} %", *parts, f"{wrong} of {files:,}"]
        print("| " + " | ".join(cells) + " |", flush=True)
    finally:
        shutil.rmtree(folder)


def main():
    mostrace, names = pathlib.Path(sys.argv[1]).absolute(), sys.argv[2:]
    make_sources()
    print("| program | calls | other results | bytes recorded | replayed | change | spread of five runs | data | journal | metadata | wrong in the final tree |")
    print("| --- " * 11 + "|")
    for name, needs, script, user in PROGRAMS:
        if names and name not in names:
            continue
        if not shutil.which(needs):
            print(f"{name}: {needs} is not installed", file=sys.stderr)
            continue
        try:
            row(mostrace, name, script, user)
        except RuntimeError as error:
            print(f"{name}: {error}", file=sys.stderr)


main()
