#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures every cell of a matrix, each on a fresh filesystem, and compares it with what was published.

usage: sudo lab/experiments/experiment.py FILE.toml [--only NAME=VALUE …]      measures what the results lack, and prints them
       lab/experiments/experiment.py FILE.toml --no-run [--claims]             prints what was measured before

FILE.toml defines the parameters and the command:

  name = "journal modes"
  before = "mostrace workload sqlite --prepare --journal {journal} x.db"
  command = "mostrace workload sqlite --keep --journal {journal} --transactions {count} x.db"
  [fixed]
  count = 200
  [matrix]
  journal = ["delete", "wal"]
  mkfs = ["", "-O ^has_journal"]

`filesystem`, `mkfs`, `mount_options`, `size`, `scheduler` and `max_sectors_kb` are options of `mostrace measure`. A cell is measured
at least three times, and then until half the width of the 95 % confidence interval of the mean bytes per transaction is at most 2 %
of that mean, or 20 times; [repeat] with `least`, `within_percent` and `most` changes this. Each measurement is appended to the
results (FILE.jsonl) at once, so after an interruption the same command goes on. Figures are per transaction or operation; with
per = "commit", per transaction of SQLite that changed a database.

[[published]] has what others have published, [[ours]] what is expected here. A claim can name a control cell, which is measured too:
if our figure differs, the claim's explanation is shown only if the control cell agrees.

The program is mostrace on PATH, or $MOSTRACE.
"""

import argparse
import csv
import fcntl
import itertools
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter

# Parameters that are options of `measure` instead of words of the command.
OF_THE_FILESYSTEM = ["filesystem", "mkfs", "mount_options", "size", "scheduler", "max_sectors_kb"]
# The attempts at a recording without losses.
TRIES = 3
# The most measurements of a cell: as far as the quantiles go.
MOST = 20
# The 0.975 quantiles of Student's t for 1, 2 … degrees of freedom: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
QUANTILES = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093,
]  # fmt: skip
# The answer's names of layers, as those of a filesystem whose name it does not know, by the names that figures have.
LAYERS = {
    "journal": "the filesystem's journal",
    "metadata": "the filesystem's metadata",
    "db": "the database",
    "rollback_journal": "SQLite's rollback journal",
    "wal": "SQLite's WAL",
    "super_journal": "SQLite's super-journal",
    "other": "other files",
    "unknown": "blocks of no known owner",
}
# Those that have a column of their own.
COLUMNS = [name for name in LAYERS if name != "super_journal"]
# What is added up over the runs of a cell.
SUMS = ["transactions", "payload_bytes", "called_bytes", "syncs", "writes", "write_bytes", "read_bytes", "flushes", "elapsed_ns"]
# Figures that can be claimed of a cell, and their units.
UNITS = {
    "syncs": "calls for durability a transaction",
    "writes": "write requests a transaction",
    "write_bytes": "bytes written a transaction",
    "called_bytes": "bytes passed to write() a transaction",
    "flushes": "cache flushes a transaction",
    "amplification": "bytes written a byte stored",
    "journal_percent": "% of bytes written",
    "journal_writes_percent": "% of write requests",
    "metadata_percent": "% of bytes written",
    "data_percent": "% of bytes written",
    "db_percent": "% of bytes written",
    "journaling_percent": "% of bytes written",
    "per_second": "transactions a second",
}


class Wrong(Exception):
    """What a user can mend: one line, and the exit status."""

    def __init__(self, line, status=1):
        super().__init__(line)
        self.status = status


def say(line):
    print(f"experiment: {line}", file=sys.stderr)


def words_of(values):
    return " ".join(f"{name}={value}" for name, value in values)


# --- the definition ---


class Cell:
    """One combination of the parameters' values. Of a control cell, `control` has the values in which it differs from [fixed]."""

    def __init__(self, definition, parameters, control=()):
        self.parameters, self.control = tuple(parameters), tuple(control)
        self.key = words_of(self.parameters + self.control)
        values = {**definition.fixed, **dict(self.parameters), **dict(self.control)}
        self.filesystem = {name: values[name] for name in sorted(values) if name in OF_THE_FILESYSTEM}
        self.before = None if definition.before is None else filled(definition.before, values)
        self.command = filled(definition.command, values)

    def has(self, values):
        return values.items() <= dict(self.parameters).items()


class Claim:
    """A figure that others have published, or that is expected here."""

    KEYS = {"where", "figure", "value", "at_least", "at_most", "besides", "tolerance_percent", "to", "source", "control", "why"}

    def __init__(self, kind, written, parameters, fixed):
        known(written, self.KEYS, kind)
        self.kind = kind
        self.at, self.control = texts(written.get("where", {})), texts(written.get("control", {}))
        self.to = texts(written["to"]) if "to" in written else None
        self.figure, self.source, self.why = written["figure"], written["source"], written.get("why", "")
        self.bounds = [written.get(name) for name in ("value", "at_least", "at_most")]
        self.besides, self.tolerance = written.get("besides", 0), float(written.get("tolerance_percent", 0))
        if self.figure not in UNITS:
            raise Wrong(f"{kind}: `{self.figure}` is none of {', '.join(UNITS)}")
        for name in [*self.at, *(self.to or {})]:
            if name not in parameters:
                raise Wrong(f"{kind}: `{name}` is not a parameter of the matrix")
        for name in self.control:
            if name not in fixed:
                raise Wrong(f"{kind}: control: `{name}` is not in [fixed]")
        if self.bounds == [None] * 3:
            raise Wrong(f"{kind}: {self.figure}: nothing is claimed")
        if bool(self.why) != bool(self.control):
            raise Wrong(f"{kind}: `why` and `control` must be given together")

    def agrees(self, ours):
        # Figures are quotients of whole numbers; a smaller relative difference than 1e-9 is rounding.
        excess = zip([abs, lambda more: -more, lambda more: more], self.bounds)
        return all(
            bound is None or of(ours - bound) <= abs(bound) * self.tolerance / 100 + 1e-9 for of, bound in excess
        )

    def words(self):
        """The claim, such as `4`, `at least 11`, `1 and 7 in each run`."""
        told = zip(["", "at least ", "at most "], self.bounds)
        text = ", ".join(f"{word}{bound:g}" for word, bound in told if bound is not None)
        return text + (f" and {self.besides:g} in each run" if self.besides else "")


def texts(values):
    return {name: str(value) for name, value in sorted(values.items())}


def known(written, keys, where):
    for name in written:
        if name not in keys:
            raise Wrong(f"{where}: unknown field `{name}`")


def filled(template, values):
    """The words of a command. A text is split at spaces after its values are filled in; a word that becomes empty is dropped."""

    def fill(text):
        for name, value in sorted(values.items()):
            text = text.replace(f"{{{name}}}", value)
        return text

    if isinstance(template, str):
        return fill(template).split()
    return [word for word in map(fill, template) if word]


class Definition:
    """An experiment. Its cells are in the order of the file: the last parameter changes first; control cells follow."""

    KEYS = {"name", "about", "before", "command", "per", "fixed", "matrix", "except", "repeat", "published", "ours"}

    def __init__(self, written):
        known(written, self.KEYS, "the file")
        for name in ("name", "command"):
            if name not in written:
                raise Wrong(f"has no `{name}`")
        self.name, self.command, self.before = written["name"], written["command"], written.get("before")
        self.per = written.get("per", "transaction")
        if self.per not in ("transaction", "commit"):
            raise Wrong(f"per: `{self.per}` is neither transaction nor commit")
        self.fixed = texts(written.get("fixed", {}))
        matrix = written.get("matrix", {})
        for name, values in matrix.items():
            if not isinstance(values, list):
                raise Wrong(f"matrix.{name}: is not a list of texts and numbers")
        self.parameters = list(matrix)
        self.check()
        self.set_repeat(written.get("repeat", {}))
        exceptions = [texts(values) for values in written.get("except", [])]
        values = ([(name, str(value)) for value in values] for name, values in matrix.items())
        cells = [Cell(self, parameters) for parameters in itertools.product(*values)]
        self.cells = [cell for cell in cells if not any(cell.has(values) for values in exceptions)]
        if not self.cells:
            raise Wrong("its matrix has no cell")
        kinds = [(kind, claim) for kind in ("published", "ours") for claim in written.get(kind, [])]
        self.claims = [Claim(kind, claim, self.parameters, self.fixed) for kind, claim in kinds]
        self.add_controls()

    @classmethod
    def read(cls, path):
        try:
            return cls(tomllib.loads(pathlib.Path(path).read_text()))
        except KeyError as error:
            raise Wrong(f"{path}: a claim has no {error}") from None
        except (OSError, ValueError, Wrong) as error:
            raise Wrong(f"{path}: {getattr(error, 'strerror', error)}") from None

    @property
    def identity(self):
        """A text of everything that decides what is measured: results with another identity do not belong to this experiment."""
        parts = [self.command, self.before, self.fixed, self.parameters]
        text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
        return text + (" per commit" if self.per == "commit" else "")

    def check(self):
        templates = [template for template in (self.command, self.before) if template is not None]
        text = " ".join(template if isinstance(template, str) else " ".join(template) for template in templates)
        used = re.findall(r"\{([^{}\s]*)\}", text)
        for name in used:
            if name not in self.fixed and name not in self.parameters:
                raise Wrong(f"{{{name}}} is neither in [fixed] nor in [matrix]")
        for name in [*self.fixed, *self.parameters]:
            if name not in used and name not in OF_THE_FILESYSTEM:
                raise Wrong(f"`{name}` is not used in the command")
        for name in self.parameters:
            if name in self.fixed:
                raise Wrong(f"`{name}` is in [fixed] and in [matrix]")

    def set_repeat(self, written):
        known(written, {"within_percent", "least", "most"}, "repeat")
        self.within_percent = written.get("within_percent", 2.0)
        self.least, self.most = written.get("least", 3), written.get("most", MOST)
        if not 1 <= self.most <= MOST:
            raise Wrong(f"repeat.most: a cell is measured at least once and at most {MOST} times")

    def add_controls(self):
        controls = {}
        for claim in self.claims:
            for cell in self.about(claim) if claim.control else []:
                # A claim about a ratio needs control cells on both sides.
                for side in (cell, self.beside(cell, claim.to) if claim.to else None):
                    control = side and Cell(self, side.parameters, claim.control.items())
                    if control:
                        controls.setdefault(control.key, control)
        self.cells += controls.values()

    def about(self, claim):
        return [cell for cell in self.cells if not cell.control and cell.has(claim.at)]

    def beside(self, cell, values):
        """The cell that differs from `cell` only in these values."""
        wanted = {**dict(cell.parameters), **values}
        return next((other for other in self.cells if other.control == cell.control and other.has(wanted)), None)

    def control_of(self, claim, cell):
        wanted = (cell.parameters, tuple(claim.control.items()))
        return next((other for other in self.cells if other.control and (other.parameters, other.control) == wanted), None)

    def is_enough(self, values):
        if len(values) >= self.most or len(values) < self.least:
            return len(values) >= self.most
        half = half_width_percent(values)
        return half is not None and half <= self.within_percent


def half_width_percent(values):
    """Half the width of the 95 % confidence interval of the mean, per cent of the mean. None for a single value, which does not show
    how the next one would differ."""
    count = len(values)
    if count < 2:
        return None
    mean = sum(values) / count
    error = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1) / count)
    # If all values are zero, so is the mean.
    return QUANTILES[count - 2] * error * 100 / abs(mean) if error else 0.0


# --- the results ---


class Results:
    """A file of JSON lines that only grows: a header, then a line for each measurement, synced before the next begins. An incomplete
    last line, left by a killed process, is removed once the lines before it prove to belong to the experiment."""

    def __init__(self, path, definition, to_write):
        self.path, self.file, self.runs = path, None, {}
        header = {"experiment": definition.name, "identity": definition.identity}
        if to_write:
            self.open()
        try:
            text = self.file.read() if self.file else pathlib.Path(path).read_bytes()
        except FileNotFoundError:
            text = b""
        whole = self.parse(text, header)
        if self.file:
            self.file.truncate(whole)
            if not whole:
                self.append(header)

    def open(self):
        """Opens the file, which others may have chosen: root follows no link, and writes to no file with another name."""
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise Wrong(f"{self.path}: {error.strerror}") from None
        self.file = os.fdopen(descriptor, "r+b", buffering=0)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise Wrong(f"{self.path}: is not a file, or has another name too")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Wrong(f"{self.path}: another experiment writes to it") from None

    def parse(self, text, header):
        """Reads the runs. Returns the length of the whole lines."""
        whole = text.rfind(b"\n") + 1
        foreign = Wrong(f"{self.path}: is not a file of an experiment's results")
        if not whole:
            # A killed process may have left a part of this experiment's header, but nothing else.
            if not line_of(header).startswith(text):
                raise foreign
            return 0
        try:
            first, *lines = text[:whole].decode().splitlines()
            found = json.loads(first)
        except ValueError:
            raise foreign from None
        if not isinstance(found, dict) or set(found) != set(header):
            raise foreign
        if found != header:
            raise Wrong(f"{self.path}: belongs to another experiment, or what is measured has changed: move it away")
        for number, line in enumerate(lines, 2):
            try:
                run = json.loads(line)
                self.runs.setdefault(run["cell"], []).append(run["figures"])
            except (ValueError, TypeError, KeyError) as error:
                raise Wrong(f"{self.path}: line {number}: is not a measurement ({error})") from None
        return whole

    def append(self, line):
        self.file.write(line_of(line))
        os.fsync(self.file.fileno())

    def of(self, cell):
        return self.runs.get(cell.key, [])

    def add(self, cell, figures):
        self.append({"cell": cell.key, "run": len(self.of(cell)), "figures": figures})
        self.runs.setdefault(cell.key, []).append(figures)

    def is_done(self, cell, definition):
        return definition.is_enough([run["write_bytes"] / max(run["transactions"], 1) for run in self.of(cell)])


def line_of(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


# --- one measurement ---


class Program:
    """mostrace, by which everything is measured."""

    def __init__(self, guest=None):
        name = os.environ.get("MOSTRACE") or "mostrace"
        self.path = shutil.which(name)
        if not self.path:
            raise Wrong(f"{name}: not found; MOSTRACE=PATH names the program")
        self.path, self.guest = os.path.abspath(self.path), guest
        # Scripts find it too.
        self.environment = {**os.environ, "PATH": f"{os.path.dirname(self.path)}:{os.environ.get('PATH', '')}"}

    def own(self, words):
        return words if self.guest else [self.path if word == "mostrace" else word for word in words]

    def measure(self, cell, bundle):
        """Measures a cell into `bundle`. Returns what `measure --json` says of it."""
        options = [f"--guest={self.guest}"] if self.guest else ["--empty"]
        for name, value in cell.filesystem.items():
            option = "fs" if name == "filesystem" else name.replace("_", "-")
            options += [f"--{option}={value}"] if value else []
        if cell.before is not None:
            options.append(f"--before={shlex.join(self.own(cell.before))}")
        command = [self.path, "measure", "--json", *options, "-o", bundle, "--", *self.own(cell.command)]
        told = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if told.returncode:
            lines = [line for line in told.stderr.splitlines() if line.strip()]
            raise Wrong(lines[-1].removeprefix("mostrace: ") if lines else "nothing was said")
        return json.loads(told.stdout)["runs"][0]

    def rows(self, bundle, by):
        told = subprocess.run([self.path, "analyze", bundle, "--by", by, "--format", "json"], capture_output=True, text=True)
        if told.returncode:
            raise Wrong(told.stderr.strip())
        return json.loads(told.stdout)

    def figures(self, cell, definition, folder):
        """Makes one measurement that lost nothing. Returns its figures, which are sums, and its recording."""
        for attempt in range(TRIES):
            bundle = f"{folder}/{attempt}.most"
            run = self.measure(cell, bundle)
            if not run["warnings"]:
                return self.sums(run["tree"], definition, bundle), bundle
        raise Wrong(f"{TRIES} recordings lost something: {run['warnings'][0]}")

    def sums(self, tree, definition, bundle):
        causers = self.rows(bundle, "cause_tgid,cause_of_command")
        of_command = {row["cause_tgid"] for row in causers if row["cause_of_command"] == "yes"}
        owners = [owner for owner in tree["owners"] if process_id(owner) in of_command]
        calls = [call for owner in owners for call in owner["write_calls"]]
        payload = tree["payload"] or {}
        transactions, sure = tree["transactions"], tree["transactions_sure"]
        if definition.per == "commit":
            transactions = sum(owner["transactions"] for owner in owners)
            sure = next((o["transactions_sure"] for o in owners if o["transactions_sure"] != "exact"), "exact")
        requests, classes = self.rows(bundle, "op"), self.rows(bundle, "class")
        return {
            "transactions": transactions,
            "transactions_sure": sure,
            "payload_bytes": payload.get("payload_bytes", 0),
            "called_bytes": sum(call["bytes"] for call in calls),
            "syncs": sum(call["syncs"] for call in calls),
            "writes": sum(row["writes"] for row in requests),
            "journal_writes": sum(row["writes"] for row in classes if row["class"] == "journal"),
            "write_bytes": sum(row["write_bytes"] for row in requests),
            "read_bytes": sum(row["read_bytes"] for row in requests),
            "flushes": sum(row["device_flushes"] for row in requests),
            "elapsed_ns": payload.get("elapsed_ns", 0),
            "layers": layers(tree, manifest(bundle)["filesystem"]["kind"]),
            "causes": parts((cause(row), row["write_bytes"]) for row in self.rows(bundle, "cause_op,cause_role")),
        }


def process_id(owner):
    """The number in `mostrace:3753`, as the tables have it."""
    return (owner["process"] or "").rpartition(":")[2]


def manifest(bundle):
    with open(f"{bundle}/manifest.json") as file:
        return json.load(file)


def parts(named):
    """Bytes written, by name."""
    found = Counter()
    for name, written in named:
        found[name] += written
    return {name: written for name, written in sorted(found.items()) if written}


def layers(tree, filesystem):
    """The bytes of all owners by the answer's layers, so named that cells of several filesystems can be added up."""
    of_all = (part for owner in tree["owners"] for part in owner["device"]["parts"])
    own = f"{filesystem}'s "
    return parts((re.sub(f"^{re.escape(own)}", "the filesystem's ", part["name"]), part["bytes"]) for part in of_all)


def cause(row):
    return " ".join(row[name] for name in ("cause_op", "cause_role") if row[name]) or "unknown"


# --- cells and claims as tables ---


class Summary:
    """The runs of a cell, summed up."""

    def __init__(self, runs):
        self.runs = len(runs)
        self.sum = {name: sum(run[name] for run in runs) for name in SUMS}
        # If it is unknown for one run, as in older results, it is unknown for all.
        journal = [run.get("journal_writes") for run in runs]
        self.journal_writes = None if None in journal else sum(journal)
        sures = {run.get("transactions_sure", "exact") for run in runs}
        self.sure = next((sure for sure in sorted(sures) if sure != "exact"), "exact")
        self.layers, self.causes = (sum((Counter(run[name]) for run in runs), Counter()) for name in ("layers", "causes"))
        self.interval_percent = half_width_percent([run["write_bytes"] / max(run["transactions"], 1) for run in runs])

    def each(self, value, besides=0.0):
        """An amount per transaction, without what occurs `besides` once in each run."""
        return (value - besides * self.runs) / max(self.sum["transactions"], 1)

    def layer(self, name):
        """The bytes of one of LAYERS."""
        return self.layers[LAYERS[name]]

    def percent(self, *names):
        return sum(map(self.layer, names)) * 100 / max(self.sum["write_bytes"], 1)

    def rest(self, names):
        return sum(self.layers.values()) - sum(map(self.layer, names))

    def per_second(self):
        return self.sum["transactions"] / (self.sum["elapsed_ns"] / 1e9) if self.sum["elapsed_ns"] else None

    def amplification(self):
        return self.sum["write_bytes"] / self.sum["payload_bytes"] if self.sum["payload_bytes"] else None

    def main_cause(self):
        """The cause of most bytes, of equal ones the last by name, and its share."""
        name = max(self.causes, key=lambda name: (self.causes[name], name), default=None)
        return name, name and self.causes[name] * 100 / max(self.sum["write_bytes"], 1)

    def figure(self, name, besides=0.0):
        """A figure in the terms of a claim; None if it is unknown."""
        if name in ("amplification", "per_second"):
            return getattr(self, name)()
        if name == "journal_writes_percent":
            return None if self.journal_writes is None else self.journal_writes * 100 / max(self.sum["writes"], 1)
        if name == "data_percent":
            return self.rest(["journal", "metadata", "unknown"]) * 100 / max(self.sum["write_bytes"], 1)
        if name == "journaling_percent":
            return self.percent("journal", "rollback_journal", "wal", "super_journal")
        if name.endswith("_percent"):
            return self.percent(name.removesuffix("_percent"))
        return self.each(self.sum[name], besides)


def table(definition, results):
    """A row for each cell that was measured, with its parameters and, over all of its runs, sums per transaction. The layers' columns
    and `rest_bytes` add up to the bytes written: the rest are layers without a column."""
    measured = [(cell, Summary(results.of(cell))) for cell in definition.cells if results.of(cell)]
    has_controls = any(cell.control for cell, _ in measured)
    rows = []
    for cell, of in measured:
        row = dict(cell.parameters)
        if has_controls:
            row["control"] = words_of(cell.control) or None
        row |= {"runs": of.runs, "transactions": of.sum["transactions"], "transactions_sure": of.sure}
        row |= {name: of.each(of.sum[name]) for name in ("syncs", "writes")}
        row["journal_writes"] = None if of.journal_writes is None else of.each(of.journal_writes)
        row["device_flushes"] = of.each(of.sum["flushes"])
        row |= {name: of.each(of.sum[name]) for name in ("payload_bytes", "called_bytes", "write_bytes")}
        row["write_bytes_ci_percent"] = of.interval_percent
        row |= {f"{name}_bytes": of.each(of.layer(name)) for name in COLUMNS}
        row["rest_bytes"] = of.each(of.rest(COLUMNS))
        row["read_bytes"] = of.each(of.sum["read_bytes"])
        row |= {"amplification": of.amplification(), "per_second": of.per_second()}
        row["main_cause"], row["main_cause_percent"] = of.main_cause()
        rows.append(row)
    return rows


def judged(definition, results):
    """A row for each claim and each measured cell of the matrix that it is about, with the claim."""

    def ours(claim, cell):
        if cell is None or not results.of(cell):
            return None
        own = Summary(results.of(cell)).figure(claim.figure, claim.besides)
        if claim.to is None or own is None:
            return own
        other = definition.beside(cell, claim.to)
        other = other and results.of(other) and Summary(results.of(other)).figure(claim.figure, claim.besides)
        return own / other if other else None

    for claim in definition.claims:
        for cell in definition.about(claim):
            own = ours(claim, cell)
            if own is None:
                continue
            control = ours(claim, definition.control_of(claim, cell))
            agrees, is_shown = claim.agrees(own), control is not None and claim.agrees(control)
            yield claim, {
                "kind": claim.kind,
                "cell": cell.key,
                "figure": claim.figure + (f" to that of {words_of(claim.to.items())}" if claim.to is not None else ""),
                "unit": ("ratio of " if claim.to is not None else "") + UNITS[claim.figure],
                "claimed": claim.words(),
                "tolerance_percent": claim.tolerance,
                "ours": own,
                "verdict": "agrees" if agrees else "differs",
                "source": claim.source,
                "control": words_of(claim.control.items()) or None,
                "control_ours": control,
                "why": None if agrees else claim.why if is_shown else "not known",
            }


def tally(kind, verdicts):
    """How many claims of a kind agree in all of their cells, and of how many."""
    claims = {}
    for claim, row in verdicts:
        if claim.kind == kind:
            claims[claim] = claims.get(claim, True) and row["verdict"] == "agrees"
    return f"{sum(claims.values())} of {len(claims)}"


def write(rows, form, out):
    if form == "json":
        json.dump(rows, out, ensure_ascii=False, indent=1)
        out.write("\n")
    elif form == "csv":
        writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        shown = [list(rows[0]) if rows else [], *([text_of(value) for value in row.values()] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*shown)]
        for line in shown:
            out.write("  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip() + "\n")


def text_of(value):
    if value is None:
        return "-"
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value


# --- the command ---


def arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.add_argument("file", help="the definition")
    parser.add_argument("--results", metavar="FILE.jsonl", help="by default FILE.jsonl beside FILE.toml")
    parser.add_argument("--only", metavar="NAME=VALUE", action="append", default=[], help="these cells; several times: alternatives")
    parser.add_argument("--no-run", action="store_true", help="measure nothing")
    parser.add_argument("--list", action="store_true", help="print the cells, and how often each was measured; measure nothing")
    parser.add_argument("--keep", metavar="DIR", help="keep the last recording of each cell in this folder")
    parser.add_argument("--guest", metavar="KERNEL", help="measure in an emulated machine with this Debian kernel, such as 6.12; the "
                        "results are in FILE.KERNEL.jsonl by default")  # fmt: skip
    parser.add_argument("--columns", metavar="COLUMN,…", help="the columns, in this order")
    parser.add_argument("--format", choices=["table", "csv", "json"], default="table")
    parser.add_argument("--claims", action="store_true", help="print what was claimed, what was measured, and whether they agree")
    return parser.parse_args(words)


def select(definition, only):
    """Keeps the cells that were asked for. Several values of one parameter are alternatives."""
    wanted = {}
    for word in only:
        name, is_pair, value = word.partition("=")
        if not is_pair:
            raise Wrong(f"--only {word}: is not NAME=VALUE", 2)
        if name not in definition.parameters:
            raise Wrong(f"--only {name}: the parameters are {', '.join(definition.parameters)}", 2)
        values = sorted({dict(cell.parameters)[name] for cell in definition.cells})
        if value not in values:
            raise Wrong(f"--only {word}: the values are {', '.join(values)}", 2)
        wanted.setdefault(name, set()).add(value)
    definition.cells = [
        cell for cell in definition.cells if all(dict(cell.parameters)[name] in values for name, values in wanted.items())
    ]
    if not definition.cells:
        raise Wrong("--only: no cell has all of these values", 2)


def measure(definition, results, args):
    """Measures the cells that are not done; reports one that cannot be measured and goes on. Returns the cells that were measured,
    the number of measurements, and how many cells failed."""
    program, measured, runs, failed = Program(args.guest), set(), 0, 0
    missing = [cell for cell in definition.cells if not results.is_done(cell, definition)]
    for number, cell in enumerate(missing, 1):
        say(f"cell {number} of {len(missing)}: {cell.key}")
        try:
            while not results.is_done(cell, definition):
                with tempfile.TemporaryDirectory(prefix="experiment-") as folder:
                    figures, bundle = program.figures(cell, definition, folder)
                    results.add(cell, figures)
                    measured.add(cell.key)
                    runs += 1
                    if args.keep:
                        keep(bundle, args.keep, cell)
        except Wrong as error:
            say(f"error: {cell.key}: {error}")
            failed += 1
    return measured, runs, failed


def keep(bundle, folder, cell):
    """Keeps a recording, in the place of an earlier one of the cell and of nothing else."""
    name = re.sub(r"[^a-zA-Z0-9=.-]", "_", cell.key) + ".most"
    place = pathlib.Path(folder, name)
    os.makedirs(folder, exist_ok=True)
    if place.is_symlink() or place.exists() and not (place / "manifest.json").is_file():
        raise Wrong(f"{place}: is not a bundle, and is not overwritten")
    if place.exists():
        shutil.rmtree(place)
    shutil.copytree(bundle, place)


def run(args):
    definition = Definition.read(args.file)
    select(definition, args.only)
    ending = f".{args.guest}.jsonl" if args.guest else ".jsonl"
    path = args.results or str(pathlib.Path(args.file).with_suffix(ending))
    # Reading does not lock the file, so that results can be read while they grow.
    results = Results(path, definition, to_write=not (args.no_run or args.list))
    if args.list:
        for cell in definition.cells:
            print(len(results.of(cell)), cell.key)
        return 0
    measured, runs, failed = (set(), 0, 0) if args.no_run else measure(definition, results, args)
    read = sum(bool(results.of(cell)) and cell.key not in measured for cell in definition.cells)
    verdicts = list(judged(definition, results))
    rows = [row for _, row in verdicts] if args.claims else table(definition, results)
    if args.columns and rows:
        columns = args.columns.split(",")
        for column in columns:
            if column not in rows[0]:
                raise Wrong(f"--columns {column}: the columns are {', '.join(rows[0])}", 2)
        rows = [{column: row[column] for column in columns} for row in rows]
    write(rows, args.format, sys.stdout)
    say(f"measured {count(len(measured), 'cell')} now ({count(runs, 'run')}), read {count(read, 'cell')} from {path}")
    if verdicts and not args.claims:
        say(f"{tally('published', verdicts)} published figures agree, {tally('ours', verdicts)} of our own (--claims shows them)")
    if failed:
        raise Wrong(f"{count(failed, 'cell')} could not be measured")
    return 0


def count(number, what):
    return f"{number} {what}" + ("" if number == 1 else "s")


def main():
    try:
        sys.exit(run(arguments()))
    except Wrong as error:
        say(str(error))
        sys.exit(error.status)
    except BrokenPipeError:
        os._exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
