#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recomputes every number of the answer from the rows: `answer.py MOSTRACE BUNDLE...`

The headline is read from left to right; what no clause explains is an error. Each number is compared with what the rows of `events`
and of the tables `causes`, `requests`, `calls` and `transactions` add up to. Prints a line for each bundle: `same N HEADLINE`, where N
numbers were compared, `refused` if the bundle cannot be read, `unclear` if the tables do not tell a causer's name, or `other` and
what differs. The exit status is 1 if something differs.
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
STORES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../map/src/stores.rs")


class Refused(Exception):
    """The bundle cannot be read."""


class Unclear(Exception):
    """The tables do not tell what is needed."""


class Other(Exception):
    """A number is another one."""


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
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= unit:
            return f"{value / unit:.1f} {name}"
    return f"{value:.0f} B"


def percent(part, whole):
    return (part * 100 + whole // 2) // whole if whole else 0


def times(ratio):
    return f"{ratio:.0f} ×" if ratio >= 100 else f"{ratio:.1f} ×"


def program(process):
    if process.endswith(SUBMITTER):
        name, _, tgid = process.removesuffix(SUBMITTER).rpartition(":")
        return name + SUBMITTER if name and tgid.isdigit() else process
    return process.rsplit(":", 1)[0] if ":" in process else process


# A share of a row: the bytes of one causer.
Share = collections.namedtuple("Share", "op bytes process known action role layer")


class Rows:
    """All shares of a recording, and its calls and transactions."""

    EVENTS = "completion op sector bytes class kind role home_kind causes cause_or_submitter cause_op cause_role cause_known cause_tgid process comm"

    def __init__(self, mostrace, bundle):
        ask = lambda sql: table(mostrace, "query", bundle, sql)
        self.answer = json.loads(run(mostrace, "analyze", bundle, "--json"))["finding"]
        self.tree = json.loads(run(mostrace, "analyze", bundle, "--tree", "--json"))
        events = table(mostrace, "events", bundle, "--columns", self.EVENTS.replace(" ", ","))
        causes = ask("SELECT completion, op, sector, bytes, cause_tgid, cause_op, cause_role, cause_known FROM causes")
        self.requests = ask("SELECT op, error FROM requests")
        self.calls = ask("SELECT call, tgid, bytes, error, wait_data_ns FROM calls")
        self.transactions = len(ask("SELECT start_ns FROM transactions"))
        labels = ask("SELECT tgid, process FROM processes")
        self.labels = collections.defaultdict(set)
        for row in labels:
            # A process that no entry described has its number in its label alone.
            self.labels[row["tgid"] or row["process"].rpartition(":")[2]].add(row["process"])
        # One that only caused has no row there; the rows of events name it where it caused most.
        for event in events:
            if event["cause_tgid"]:
                self.labels[event["cause_tgid"]].add(event["cause_or_submitter"])
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
        for event in events:
            is_its = lambda: causes and all(causes[0][name] == event[name] for name in ("completion", "op", "sector"))
            parts, bytes_ = [], 0
            while is_its() and (bytes_ < number(event["bytes"]) or causes[0]["bytes"] == "0"):
                parts.append(causes.popleft())
                bytes_ += number(parts[-1]["bytes"])
            if not parts or bytes_ != number(event["bytes"]):
                raise AssertionError(f"{len(parts)} shares of {bytes_} bytes for {event}")
            for part in parts:
                yield self.share(event, part, len(parts))
        if causes:
            raise AssertionError(f"{len(causes)} shares of no row, such as {causes[0]}")

    def share(self, event, part, parts):
        process = event["cause_or_submitter"]
        if parts > 1:
            process = self.process(part["cause_tgid"]) if part["cause_tgid"] else self.submitter(event)
        layer = tuple(event[name] for name in ("class", "kind", "role", "home_kind"))
        return Share(event["op"], number(part["bytes"]), process, part["cause_known"], part["cause_op"], part["cause_role"], layer)

    def process(self, tgid):
        """The name of a process; the table of causes has only its number."""
        if len(self.labels[tgid]) != 1:
            raise Unclear("a process that had several names, or none")
        return next(iter(self.labels[tgid]))

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

    def written(self):
        return [share for share in self.shares if share.op == "write" and share.bytes]


class Layers:
    """The names of layers, and why the filesystem wrote them."""

    FILES = {"db": "the database", "rollback_journal": "SQLite's rollback journal", "wal": "SQLite's WAL",
             "shm": "SQLite's index of the WAL", "super_journal": "SQLite's super-journal"}
    WHOSE = {"db": "the database", "rollback_journal": "the rollback journal", "wal": "the WAL"}
    ACTS = {"create": "created", "mkdir": "created", "unlink": "deleted", "rmdir": "deleted", "truncate": "truncated",
            "rename": "renamed", "allocate": "grew", "write": "written", "time": "times", "xattr": "attributes"}

    def __init__(self, rows):
        text = open(STORES, encoding="utf-8").read()
        self.called = dict(re.findall(r'\bfile\(\s*"(\w+)",\s*"([^"]+)"', text))
        self.filesystem = rows.filesystem
        stores = set(self.FILES) | set(self.called)
        self.has_stores = any(s.layer[:2] == ("data", "regular") and s.layer[2] in stores for s in rows.written())

    def of(self, share):
        of, kind, role, _ = share.layer
        if not kind:
            return None
        if of == "data" and kind == "regular":
            role = role or "unknown"
            if not self.has_stores and role != "unknown":
                return "the files' contents"
            return {"unknown": "files without a known name", **self.FILES}.get(role) or self.called.get(role, "other files")
        if of == "data":
            return "symbolic links" if kind == "symlink" else "directories"
        names = {"metadata": f"{self.filesystem}'s metadata", "journal": f"{self.filesystem}'s journal"}
        return names.get(of, "blocks of no known owner")

    def deed(self, share):
        act = self.ACTS.get(share.action)
        if share.layer[:2] == ("data", "regular") or not act or share.role == "unknown":
            return None
        if not share.role:
            return ("directories", act) if share.action in ("mkdir", "rmdir") else None
        return self.WHOSE.get(share.role, "files"), act

    def shares_of(self, because, shares):
        """The bytes of the deeds that a reason names."""
        clause = re.fullmatch(r"(?:mostly )?because (.*)", because)[1]
        names = [*self.WHOSE.values(), "files", "directories"]
        owner = next(name for name in names if re.search(rf"\b{name}\b", clause))
        acts = [act for act in set(self.ACTS.values()) if re.search(rf"\b{act}\b", clause)]
        if not acts:
            raise Other(f"no deed in `{because}`")
        return sum(share.bytes for share in shares if self.deed(share) in [(owner, act) for act in acts])


class Reader:
    """Reads the headline from left to right. Names may hold any text, so that they are sought among those of the rows."""

    SIZE = r"\d+(?:\.\d)? (?:B|kB|MB|GB|TB)"
    COUNT = r"\d{1,3}(?:,\d{3})*"

    def __init__(self, rows):
        self.rows = rows
        self.text = rows.answer["headline"]
        self.at = 0
        self.compared = 0

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

    def same(self, what, said, true):
        self.compared += 1
        if said != true:
            raise Other(f"{what}: said {said}, the rows have {true}")

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

    def programs(self, op):
        """Bytes and processes by program."""
        bytes_, processes = collections.Counter(), collections.defaultdict(set)
        for share in self.rows.shares:
            if share.op == op and share.process and share.bytes:
                processes[program(share.process)].add(share.process)
                bytes_[program(share.process)] += share.bytes
        return +bytes_, processes

    def name(self, names):
        """The program that comes next; a long name is cut."""
        names = [name for name in names if self.left().startswith(name)] or \
            [name for name in names if "…" in self.left() and name.startswith(self.left().split("…")[0])]
        if not names:
            raise Other(f"an unknown name: `{self.left()[:80]}`")
        name = max(names, key=len)
        self.must(name if self.left().startswith(name) else self.left().split("…")[0] + "…")
        return name

    def read(self):
        rows = self.rows
        if len(self.text) > 120:
            raise Other(f"a headline of {len(self.text)} characters")
        written, read = rows.total("write"), rows.total("read")
        if not rows.requests:
            self.must("No IO was seen: was this the device?")
        elif written == 0:
            self.must("Nothing was written, and ")
            if read == 0:
                self.must("nothing read.")
            else:
                self.size("bytes read", read)
                self.must(" were read")
                self.by("read", read)
                self.must(".")
        elif read >= 10 * written:
            self.size("bytes read", read)
            self.must(" were read")
            self.by("read", read)
            self.must(", and ")
            self.size("bytes written", written)
            self.must(" were written.")
        else:
            self.writes(written)
        if self.left():
            raise Other(f"an unknown clause: `{self.left()}`")
        self.parts(written)
        self.flushes()
        self.certainty(written)
        return self.compared

    def writes(self, written):
        each = self.found(r"Each of (?:at least )?(?=\d)") or re.match(rf"1 (?:SQLite )?(?:transaction|operation) ", self.left())
        if each:
            count = self.transactions()
            self.count("transactions", count)
            self.found(r" (?:SQLite )?(?:transaction|operation)s?") or self.must("transactions")
            if self.word(" stored "):
                self.size("bytes stored each", self.rows.tree["payload"]["payload_bytes"] / count)
                self.must(" and")
            self.must(" wrote ")
            self.word("at most ")
            self.size("bytes written each", written / count)
        elif self.found(rf"(?={self.SIZE} were written)"):
            self.size("bytes written", written)
            self.must(" were written")
            self.by("write", written)
        else:
            bytes_, processes = self.programs("write")
            name = self.name(bytes_)
            if self.word(" ("):
                self.count(f"processes of {name}", len(processes[name]))
                self.must(" processes)")
            self.must(" wrote ")
            part = self.found(r"(\d+) % of ")
            self.same(f"{name}'s share", int(part[1]) if part else 100, percent(bytes_[name], written))
            self.size("bytes written", written)
            self.same(f"{name} wrote nearly all", bytes_[name] * 100 >= written * 95, True)
        self.clauses(written)

    def clauses(self, written):
        rows = self.rows
        while not self.word("."):
            self.found(r"[:;,] ") or self.must(".")
            if self.found(r"(?=\S+ × what was stored)"):
                self.ratio("what was stored", written / rows.tree["payload"]["payload_bytes"])
            elif self.found(r"(?=\S+ × what was passed)"):
                asked = sum(number(call["bytes"]) for call in rows.calls if call["error"] == "0")
                self.ratio("what was passed to write()", written / asked)
            elif self.word("with "):
                self.word("at least ")
                self.count("transactions", self.transactions())
                self.found(r" (?:SQLite )?(?:transaction|operation)s?") or self.must(" transactions")
            else:
                bytes_, _ = self.programs("write")
                name = max(bytes_, key=lambda name: bytes_[name])
                tgids = {tgid for tgid, labels in rows.labels.items() if any(program(label) == name for label in labels)}
                is_its = lambda call: call["tgid"] in tgids and call["error"] == "0" and call["wait_data_ns"]
                calls = sum(map(is_its, rows.calls))
                self.size("bytes for each call", bytes_[name] / calls)
                self.must(" for each of ")
                self.count("calls for durability", calls)
                self.must(" calls for durability")

    def ratio(self, base, true):
        self.same(f"times {base}", self.found(r"\S+ ×")[0], times(true))
        self.must(f" {base}")

    def transactions(self):
        tree = self.rows.tree
        if tree["transactions_source"] == "application":
            return tree["payload"]["transactions"]
        return self.rows.transactions

    def by(self, op, whole):
        bytes_, _ = self.programs(op)
        if self.word(" by "):
            self.count("programs", len(bytes_))
            self.must(" programs, none with 10 %")
            self.same("the largest share", max(bytes_.values()) * 10 < whole, True)
            return
        while self.found(r"(?:, | and )(?=\d+ % by )"):
            share = int(self.found(r"(\d+) % by ")[1])
            if self.word("nobody known"):
                self.same("bytes by nobody", share, percent(whole - sum(bytes_.values()), whole))
                return
            name = self.name(bytes_)
            self.same(f"share of {name}", share, percent(bytes_[name], whole))

    def parts(self, written):
        rows, layers = self.rows, Layers(self.rows)
        sums = collections.defaultdict(list)
        for share in rows.written():
            sums[layers.of(share)].append(share)
        said = rows.answer["parts"]
        for part in said:
            if part["layer"] == "others":
                true = written - sum(other["bytes"] for other in said if other is not part)
            else:
                true = sum(share.bytes for share in sums[part["layer"]])
            self.same(f"bytes of {part['layer']}", part["bytes"], true)
            self.same(f"share of {part['layer']}", part["percent"], percent(true, written))
            if part["because"]:
                because = part["because"]
                caused = layers.shares_of(because, sums[part["layer"]])
                least = 50 if because.startswith("mostly") else 95
                self.same(f"`{because}`", caused * 100 >= true * least, True)
        if written and sum(part["bytes"] for part in said) * 100 < written * 99:
            raise Other("parts that are not all")

    def flushes(self):
        count = lambda op: sum(request["op"] == op for request in self.rows.requests)
        asked, done = count("flush"), count("device_flush")
        said = self.rows.answer["flushes"]
        if said is None:
            self.same("flushes", asked + done, 0)
            return
        each = re.fullmatch(r"(\d+\.\d) flush(?:es)? per (?:transaction|operation) asked for, (\d+\.\d) executed\.", said)
        if each:
            true = tuple(f"{flushes / self.transactions():.1f}" for flushes in (asked, done))
            self.same("flushes per transaction", each.groups(), true)
            return
        all_ = re.fullmatch(rf"({self.COUNT}) flush(?:es)? asked for, ({self.COUNT}) executed\.", said)
        if not all_:
            raise Other(f"flushes: `{said}`")
        self.same("flushes", all_.groups(), (f"{asked:,}", f"{done:,}"))

    def certainty(self, written):
        said = self.rows.answer["certainty"]
        if not written:
            self.same("certainty", said, None)
            return
        of = lambda *words: sum(share.bytes for share in self.rows.written() if share.known in words)
        if said == "No cause is known.":
            self.same("bytes without a cause", of("unknown"), written)
        elif said == "The cause is certain for all bytes.":
            self.same("certain bytes", of(*CERTAIN), written)
        else:
            match = re.fullmatch(r"The cause is certain for (.*?) % of the bytes(?:, unknown for (.*?) %)?\.", said)
            shares = [(match[1], of(*CERTAIN))] + ([(match[2], of("unknown"))] if match[2] else [])
            for share, bytes_ in shares:
                edge = {"< 1": percent(bytes_, written) == 0 < bytes_, "> 99": percent(bytes_, written) == 100 and bytes_ < written}
                self.same("certainty", edge.get(share, share == str(percent(bytes_, written))), True)


def main(mostrace, *bundles):
    status = 0
    for bundle in bundles:
        try:
            rows = Rows(mostrace, bundle)
            print("same", Reader(rows).read(), rows.answer["headline"])
        except Refused as why:
            print("refused", why)
        except Unclear as why:
            print("unclear", why)
        except (AssertionError, Other) as why:
            print("other", why)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
