#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recomputes every number of the finding from the rows: `finding.py MOSTRACE BUNDLE...`

The sentence is read clause by clause; what no clause explains is an error. Each number is compared with what the rows of `events`
and of the tables `causes`, `requests`, `calls` and `transactions` add up to, and all parts of a clause about a process have one base.
Prints a line for each bundle: `same N SENTENCE`, where N numbers were compared, `refused` if the bundle cannot be read, `unclear` if
the tables do not tell a causer's name, or `other` and what differs. The exit status is 1 if something differs.
"""

import collections
import csv
import io
import json
import math
import os
import re
import subprocess
import sys

csv.field_size_limit(1 << 30)
SUBMITTER = " (submitter)"
CERTAIN = ("exact", "shared")
SQLITES = ("db", "rollback_journal", "wal", "shm", "super_journal")
STORES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../map/src/stores.rs")


class Refused(Exception):
    """The bundle cannot be read."""


class Unclear(Exception):
    """The tables do not tell what is needed."""


def run(mostrace, *words):
    done = subprocess.run([mostrace, *words], capture_output=True, timeout=600)
    if done.returncode != 0:
        raise Refused(done.stderr.decode(errors="replace").strip()[:200])
    return done.stdout.decode()


def table(mostrace, *words):
    return list(csv.DictReader(io.StringIO(run(mostrace, *words, "--format", "csv"))))


def number(text):
    return int(text) if text else 0


def size(value):
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if value >= unit:
            return f"{value / unit:.1f} {name}"
    return f"{value:.0f} bytes"


def percent(part, whole):
    return str(math.floor(part * 100.0 / whole + 0.5))


def is_part(part, whole, of):
    return part * 100 >= whole * of


# A share of a row: the bytes of one causer. `requests` is 1 for the share with which its request is counted.
Share = collections.namedtuple("Share", "op bytes process known file database action role layer requests")


class Rows:
    """All shares of a recording, and its calls and transactions."""

    EVENTS = ("completion op sector bytes class kind role home_kind causes cause_or_submitter cause_or_file cause_database cause_op "
              "cause_role cause_process_known cause_tgid process comm file")

    def __init__(self, mostrace, bundle):
        ask = lambda sql: table(mostrace, "query", bundle, sql)
        self.sentence = run(mostrace, "analyze", bundle, "--json")
        self.sentence = json.loads(self.sentence)["finding"]
        self.tree = json.loads(run(mostrace, "analyze", bundle, "--tree", "--json"))
        events = table(mostrace, "events", bundle, "--columns", self.EVENTS.replace(" ", ","))
        causes = ask("SELECT completion, op, sector, bytes, cause_tgid, cause_op, cause_path, cause_inode, cause_role FROM causes")
        self.requests = ask("SELECT op, error FROM requests")
        self.calls = ask("SELECT call, tgid, bytes, error, wait_data_ns FROM calls")
        self.transactions = len(ask("SELECT start_ns FROM transactions"))
        labels = ask("SELECT tgid, process FROM processes")
        self.labels = collections.defaultdict(set)
        for row in labels:
            # A process that no entry described has its number in its label alone.
            self.labels[row["tgid"] or row["process"].rpartition(":")[2]].add(row["process"])
        files = ask("SELECT inode, path, database FROM files")
        self.databases = {(row["inode"], row["path"]): row["database"] for row in files}
        recording = ask("SELECT filesystem FROM recordings")
        self.filesystem = recording[0]["filesystem"] or "the filesystem"
        self.shares = list(self.cut(events, causes))

    def cut(self, events, causes):
        """Cuts each row into the shares of its causers, which follow each other in `causes` as the rows do."""
        self.submitters = {}
        for event in events:
            if not event["cause_tgid"]:
                self.submitters[event["process"], event["comm"]] = event["cause_or_submitter"]
        causes = collections.deque(causes)
        counted = set()
        for event in events:
            is_its = lambda: causes and all(causes[0][name] == event[name] for name in ("completion", "op", "sector"))
            parts, bytes_ = [], 0
            while is_its() and (bytes_ < number(event["bytes"]) or causes[0]["bytes"] == "0"):
                parts.append(causes.popleft())
                bytes_ += number(parts[-1]["bytes"])
            if not parts or bytes_ != number(event["bytes"]):
                raise AssertionError(f"{len(parts)} shares of {bytes_} bytes for {event}")
            for nth, part in enumerate(parts):
                yield self.share(event, part, len(parts), nth == 0 and self.is_first(event, counted))
        if causes:
            raise AssertionError(f"{len(causes)} shares of no row, such as {causes[0]}")

    @staticmethod
    def is_first(event, counted):
        """A flush has one row; it is counted with its first share."""
        key = event["completion"]
        is_new = key not in counted
        counted.add(key)
        return is_new

    def share(self, event, part, parts, is_counted):
        process, file, database = (event[name] for name in ("cause_or_submitter", "cause_or_file", "cause_database"))
        if parts > 1:
            process = self.process(part["cause_tgid"]) if part["cause_tgid"] else self.submitter(event)
            file = part["cause_path"] or (f"(inode {part['cause_inode']}" if part["cause_inode"] else "")
            if not part["cause_tgid"]:
                file = event["file"]
            database = self.databases.get((part["cause_inode"], part["cause_path"]), "")
        layer = tuple(event[name] for name in ("class", "kind", "role", "home_kind"))
        return Share(event["op"], number(part["bytes"]), process, event["cause_process_known"], file, database,
                     part["cause_op"], part["cause_role"], layer, int(is_counted))

    def process(self, tgid):
        """The name of a process; the table of causes has only its number."""
        if len(self.labels[tgid]) > 1:
            raise Unclear("a process that had several names")
        return next(iter(self.labels[tgid]), None)

    def submitter(self, event):
        """The name of the row's submitter, which stands for a cause that is not known."""
        if not event["process"]:
            return ""
        known = self.submitters.get((event["process"], event["comm"]))
        if known is None:
            raise Unclear("a submitter that has no row of its own")
        return known

    def total(self, *ops):
        return sum(share.bytes for share in self.shares if share.op in ops)

    def based(self, op):
        """The shares that count as a process's: all with a cause if one process caused nearly all of these, else the certain ones."""
        sums = collections.Counter()
        for share in self.shares:
            if share.op == op and share.process and not share.process.endswith(SUBMITTER):
                sums[share.process] += share.bytes
        is_likely = not sums or is_part(max(sums.values()), sum(sums.values()), 95)
        is_in = lambda share: is_likely or share.known in CERTAIN
        return [share for share in self.shares if share.process and (share.process.endswith(SUBMITTER) or is_in(share))]


def layer_of(share, filesystem, has_stores, called):
    kind_of, kind, role, home = share.layer
    files = {"db": "the database", "rollback_journal": "SQLite's rollback journal", "wal": "SQLite's WAL",
             "shm": "SQLite's index of the WAL", "super_journal": "SQLite's super-journal"}
    if kind_of == "data" and kind == "regular":
        role = role or "unknown"
        if not has_stores and role != "unknown":
            return "file contents"
        return {"unknown": "files without a known name", **files}.get(role) or called.get(role, "other files")
    if kind_of == "data":
        return "symbolic links" if kind == "symlink" else "directories"
    return {"metadata": f"{filesystem}'s metadata", "journal": f"{filesystem}'s journal"}.get(kind_of, "blocks of no known owner")


PLURALS = {"superblock": "the superblock", "jbd2_superblock": "its superblock", "group_desc": "group descriptors",
           "inode_table": "inode tables", "extent_tree": "extent trees", "xattr": "extended attributes", "quota": "quota files",
           "orphan_file": "the orphan file", "descriptor": "descriptors", "commit": "commit blocks", "revoke": "revoke blocks",
           "fast_commit": "fast commits", "journal_block": "blocks of the journal", "directory": "directories",
           "symlink": "symbolic links", "free": "free blocks", "unmapped": "unmapped blocks"}


def kind_of(share):
    _, kind, _, home = share.layer
    if home in ("block_bitmap", "inode_bitmap"):
        return "bitmaps"
    if home == "regular":
        return "file contents"
    if home:
        return PLURALS.get(home, home)
    return "copies of unknown blocks" if kind.endswith("_copy") else PLURALS.get(kind, kind)


WHOSE = {"db": "the database's", "rollback_journal": "the rollback journal's", "wal": "the WAL's"}
ACTS = {"create": "creation", "mkdir": "creation", "unlink": "deletion", "truncate": "truncation", "rename": "renaming",
        "allocate": "growth", "write": "writing", "time": "times", "xattr": "attributes"}
CALLED = {"allocate": "growth", "time": "times", "atomic_write": "atomic write", "lazy_init": "lazy initialisation",
          "orphan_cleanup": "orphan cleanup"}


def deed_of(share):
    if not share.action or share.role == "unknown":
        return None
    if not share.role:
        return ("directories'", "creation") if share.action == "mkdir" else None
    return WHOSE.get(share.role, "files'"), ACTS.get(share.action, "other changes")


class Other(Exception):
    """A number is another one."""


class Reader:
    """Reads the sentence from left to right. Names may hold any text, so that they are sought among those of the rows."""

    def __init__(self, rows):
        self.rows = rows
        self.text = rows.sentence
        self.at = 0
        self.compared = 0
        text = open(STORES, encoding="utf-8").read()
        self.called = dict(re.findall(r'\bfile\(\s*"(\w+)",\s*"([^"]+)"', text))

    def left(self):
        return self.text[self.at:]

    def word(self, text):
        if self.left().startswith(text):
            self.at += len(text)
            return True
        return False

    def must(self, text):
        if not self.word(text):
            raise Other(f"`{text}` expected before `{self.left()[:80]}`")

    def found(self, pattern):
        match = re.match(pattern, self.left())
        if match:
            self.at += match.end()
        return match

    def name(self, names):
        """The longest of the names that comes next."""
        names = [name for name in names if name and self.left().startswith(name)]
        if not names:
            raise Other(f"an unknown name: `{self.left()[:80]}`")
        self.must(max(names, key=len))
        return max(names, key=len)

    def same(self, what, said, true):
        self.compared += 1
        if said != true:
            raise Other(f"{what}: said {said}, the rows have {true}")

    SIZE = r"\d+(?:\.\d)? (?:bytes|KB|MB|GB|TB)"
    COUNT = r"\d{1,3}(?:,\d{3})*"

    def size(self, what, value):
        match = self.found(self.SIZE)
        if not match:
            raise Other(f"{what}: no size in `{self.left()[:60]}`")
        self.same(what, match[0], size(value))

    def count(self, what, value):
        match = self.found(self.COUNT)
        if not match:
            raise Other(f"{what}: no count in `{self.left()[:60]}`")
        self.same(what, match[0], f"{value:,}")

    # The sentence.

    def read(self):
        rows = self.rows
        written, read = rows.total("write"), rows.total("read")
        if not rows.requests:
            self.must("No IO was seen: was this the device?")
        elif written == 0:
            self.must("Nothing was written, and ")
            if read == 0:
                self.must("nothing read")
            else:
                self.reads(read)
            self.beside()
        else:
            if re.match(rf"{self.SIZE} were read", self.left()):
                self.reads(read)
                self.must("; ")
            self.subject(written)
            self.must(": ")
            self.parts(written)
            if re.match(rf"; {self.SIZE} were read", self.left()):
                self.must("; ")
                self.reads(read)
            self.durable()
            self.beside()
        if self.left():
            raise Other(f"an unknown clause: `{self.left()}`")
        return self.compared

    def reads(self, read):
        self.size("bytes read", read)
        self.must(" were read")
        self.culprits("read", read)

    def subject(self, written):
        count = self.transactions()
        one = re.match(rf"{self.COUNT} (?:transaction|operation)s? of ", self.left())
        if one:
            stored = self.rows.tree["payload"]["payload_bytes"]
            self.count("transactions", count)
            self.found(" (?:transaction|operation)s? of ")
            self.size("bytes stored each", stored / count)
            self.must(" wrote ")
            self.size("bytes written each", written / count)
            self.word(" each")
            self.must(" (")
            times = self.found(r"\d+")[0]
            self.same("bytes written for each stored", times, f"{written / stored:.0f}")
            self.must(" ×)")
            return
        self.size("bytes written", written)
        self.must(" were written")
        if self.word(" for "):
            asked = sum(number(call["bytes"]) for call in self.rows.calls if call["error"] == "0")
            self.size("bytes passed to write()", asked)
            self.must(" passed to write()")
            times = self.found(r" \((\d+(?:\.\d)?) ×\)")
            if times:
                digits = 1 if "." in times[1] else 0
                self.same("bytes written for each passed", times[1], f"{written / asked:.{digits}f}")
        self.culprits("write", written)
        if not (self.word(", while ") or self.word(" while ")):
            return
        self.word("at least ")
        self.count("transactions", count)
        if not self.found(r" of SQLite's transactions (was|were) committed"):
            if not self.found(r" (transactions?|operations?) (was|were) (committed|done)"):
                raise Other(f"no transactions in `{self.left()[:60]}`")
        if self.word(" ("):
            self.word("at most ")
            self.size("bytes written each", written / count)
            self.must(" each)")

    def transactions(self):
        tree = self.rows.tree
        if tree["transactions_source"] == "application":
            return tree["payload"]["transactions"]
        return self.rows.transactions

    def culprits(self, op, whole):
        """`, 85 % by dd:17 for /film and 10 % by 3 processes called sh`: share, file and operations are of the same bytes."""
        base = [share for share in self.rows.based(op) if share.op == op and share.bytes > 0]
        sums = collections.Counter()
        for share in base:
            sums[share.process] += share.bytes
        if not re.match(rf", (?:\d+ % by |by {self.COUNT} processes, none)", self.left()):
            return
        self.must(", ")
        if self.word("by "):
            self.count("processes", len(sums))
            self.must(" processes, none with 10 % of it")
            if max(sums.values()) * 10 >= whole:
                raise Other("a process has 10 % of it")
        else:
            self.culprit(base, sums, whole)
        while True:
            before = self.at
            if not (self.found(r", (?=\d+ % by )") or self.found(r" and (?=\d+ % by )")):
                self.at = before
                return
            self.culprit(base, sums, whole)

    def culprit(self, base, sums, whole):
        share = self.found(r"(\d+) % by ")
        if not share:
            raise Other(f"no share in `{self.left()[:60]}`")
        if self.word("nobody known for certain"):
            self.same("bytes by nobody", share[1], percent(whole - sum(sums.values()), whole))
            return
        many = self.found(rf"({self.COUNT}) processes called ")
        if many:
            programs = {program(process) for process in sums}
            name = self.name(programs)
            own = {process for process in sums if program(process) == name}
            self.same(f"processes called {name}", many[1], f"{len(own):,}")
        else:
            own = {self.name(sums)}
        its = [row for row in base if row.process in own]
        bytes_ = sum(row.bytes for row in its)
        self.same(f"share of {sorted(own)[:3]}", share[1], percent(bytes_, whole))
        self.target(its, bytes_)
        self.operations(its, bytes_)

    def target(self, its, whole):
        """95 % of the process's bytes are for what is named; with `mostly`, half of them."""
        mostly = self.word(" mostly for ")
        if not mostly and not self.word(" for "):
            return
        least = 50 if mostly else 95
        in_folder = self.word("files in ")
        files = collections.Counter()
        all_files = {row.file for row in its}
        for row in its:
            target = row.database if row.database and row.database in all_files else row.file
            files[target] += row.bytes
        if in_folder:
            folders = {file[:at] for file in files for at in range(1, len(file)) if file[0] == "/" and file[at] == "/"}
            name = self.name(folders)
            bytes_ = sum(value for file, value in files.items() if file.startswith(name + "/"))
        else:
            name = self.name(self.readable(files))
            bytes_ = sum(value for file, value in files.items() if name.startswith(file) and (file == name or file.startswith("(inode")))
        self.compared += 1
        if not is_part(bytes_, whole, least):
            raise Other(f"{name} has {bytes_} of {whole} bytes, fewer than {least} %")

    def readable(self, files):
        """A file without a name is called by its inode; the table of causes has no generation."""
        names = set(files)
        match = re.match(r"\(inode \d+(?:, generation \d+)?\)", self.left())
        return names | ({match[0]} if match else set())

    def operations(self, its, whole):
        if not re.match(rf" \([a-z_ ]+ {self.SIZE}", self.left()):
            return
        sums = collections.Counter()
        for row in its:
            sums[row.action] += row.bytes
        sums = {CALLED.get(name, name): value for name, value in sums.items()}
        self.must(" (")
        while True:
            name = self.name(sums)
            self.must(" ")
            self.size(f"bytes by {name}", sums[name])
            if not is_part(sums[name], whole, 10):
                raise Other(f"{name} is named for less than 10 %")
            if not self.word(", "):
                break
        self.must(")")

    def parts(self, written):
        shares = [share for share in self.rows.shares if share.op == "write" and share.bytes > 0]
        roles = {share.layer[2] for share in shares if share.layer[:2] == ("data", "regular")}
        has_stores = any(role in SQLITES or role in self.called for role in roles)
        layers, journal = collections.Counter(), []
        for share in shares:
            name = layer_of(share, self.rows.filesystem, has_stores, self.called)
            layers[name] += share.bytes
            if share.layer[0] == "journal":
                journal.append(share)
        left = written
        while True:
            part = self.found(r"(\d+) % ")
            if not part:
                raise Other(f"no part in `{self.left()[:60]}`")
            if self.word("others"):
                self.same("others' share", part[1], percent(left, written))
            else:
                name = self.name(layers)
                self.same(f"share of {name}", part[1], percent(layers[name], written))
                left -= layers[name]
                if name.endswith("'s journal") and self.word(" of "):
                    self.kinds(journal)
            if not self.found(r", (?=\d+ % )"):
                return

    def kinds(self, journal):
        """`of bitmaps and inode tables that the WAL's growth dirtied, and of descriptors and others`"""
        base = {id(share) for share in self.rows.based("write")}
        sums = collections.Counter()
        for share in journal:
            sums[kind_of(share)] += share.bytes
        whole = sum(sums.values())
        names = self.names(sums)
        dirtied = []
        if self.word(" that "):
            dirtied = list(names)
            mostly = self.word("mostly ")
            whose = self.name([*WHOSE.values(), "files'", "directories'"])
            self.must(" ")
            acts = self.names([*ACTS.values(), "other changes"])
            self.must(" dirtied")
            is_its = lambda share: id(share) in base and share.layer[3] and deed_of(share) in [(whose, act) for act in acts]
            own = collections.Counter()
            for share in filter(is_its, journal):
                own[kind_of(share)] += share.bytes
            for name in dirtied:
                self.compared += 1
                if not is_part(own[name], sums[name], 50):
                    raise Other(f"{whose} {acts} dirtied {own[name]} of {sums[name]} bytes of {name}")
            if not mostly and not is_part(sum(own[name] for name in dirtied), sum(sums[name] for name in dirtied), 90):
                raise Other(f"{whose} {acts} dirtied less than 90 % of {dirtied}")
            if self.word(", and of "):
                names += self.names(sums)
        others = "others" in names
        names = [name for name in names if name != "others"]
        for name in names:
            self.compared += 1
            if not is_part(sums[name], whole, 10):
                raise Other(f"{name} has {sums[name]} of the journal's {whole} bytes")
        if not others and not is_part(sum(sums[name] for name in names), whole, 90):
            raise Other(f"{names} are less than 90 % of the journal")

    def names(self, known):
        names = [self.name([*known, "others"])]
        while True:
            before = self.at
            if self.word(", and of ") or not (self.word(", ") or self.word(" and ")):
                self.at = before
                return names
            try:
                names.append(self.name([*known, "others"]))
            except Other:
                self.at = before
                return names

    def durable(self):
        if not re.match(rf"; {self.COUNT} calls for durability", self.left()):
            return
        written = self.rows.total("write")
        base = self.rows.based("write")
        sums = collections.Counter()
        for share in base:
            if share.op == "write":
                sums[share.process] += share.bytes
        # The first culprit: a process, or all of one name.
        self.must("; ")
        said = self.found(self.COUNT)[0]
        self.must(" calls for durability")
        first = self.first(sums, written)
        if self.word(" by "):
            self.name({program(process) for process in first})
        tgids = {process.rsplit(":", 1)[-1] for process in first}
        calls = [call for call in self.rows.calls if call["tgid"] in tgids and call["error"] == "0" and call["wait_data_ns"]]
        self.same("calls for durability", said, f"{len(calls):,}")
        self.must(": ")
        self.word("at least ")
        self.size("bytes for each", sum(sums[process] for process in first) / len(calls))
        self.must(" and ")
        self.word("at least ")
        flushes = sum(share.requests for share in base if share.op == "flush" and share.process in first)
        each = f"{flushes / len(calls):.1f}".removesuffix(".0")
        self.same("flushes for each", self.found(r"\d+(?:\.\d)?")[0], each)
        self.found(" flush(?:es)? each") or self.must(" flushes each")

    @staticmethod
    def first(sums, whole):
        names = collections.defaultdict(list)
        for process, bytes_ in sorted(sums.items(), key=lambda item: (-item[1], item[0])):
            names[program(process)].append((process, bytes_))
        culprits = []
        for of_name in names.values():
            large = [item for item in of_name if is_part(item[1], whole, 10)][:3]
            if is_part(sum(item[1] for item in large), sum(item[1] for item in of_name), 95):
                culprits += [([process], bytes_) for process, bytes_ in large]
            else:
                culprits.append(([process for process, _ in of_name], sum(item[1] for item in of_name)))
        culprits = [culprit for culprit in culprits if is_part(culprit[1], whole, 10)]
        if not culprits:
            raise Other("calls for durability of nobody")
        return max(culprits, key=lambda culprit: culprit[1])[0]

    def beside(self):
        rows = self.rows
        plain = ("write", "read", "flush", "device_flush", "discard", "write_zeroes")
        others = sum(share.bytes for share in rows.shares if share.op not in plain)
        for bytes_, what in ((rows.total("discard"), "discarded"), (rows.total("write_zeroes"), "zeroed"),
                             (others, "moved by passthrough or zone commands")):
            if bytes_:
                self.must("; ")
                self.size(what, bytes_)
                self.must(f" were {what}")
        if re.match(rf"; {self.COUNT} flushes were", self.left()):
            self.must("; ")
            self.count("flushes", sum(request["op"] == "flush" for request in rows.requests))
            self.must(" flushes were asked for")
        failed = sum(request["error"] not in ("", "0") for request in rows.requests)
        if failed:
            self.must("; requests that failed: ")
            self.count("failed requests", failed)


def program(process):
    if process.endswith(SUBMITTER):
        return process
    return process.rsplit(":", 1)[0] if ":" in process else process


def main(mostrace, *bundles):
    status = 0
    for bundle in bundles:
        try:
            rows = Rows(mostrace, bundle)
        except Refused as why:
            print("refused", why)
            continue
        except Unclear as why:
            print("unclear", why)
            continue
        except AssertionError as why:
            print("other", why)
            status = 1
            continue
        try:
            print("same", Reader(rows).read(), rows.sentence)
        except Other as why:
            print("other", why, "|", rows.sentence)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
