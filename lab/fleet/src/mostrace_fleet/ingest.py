# SPDX-License-Identifier: MIT OR Apache-2.0
"""From a folder of recordings and ledgers to a data set, as `mostrace export --format dataset` writes it.

Each recording is a task of its own, which may run anywhere, at the same time as others, and more than once: a file's name in the data
set is the hash of the recording's contents, a file gets its name when it is whole, and that of `recordings` comes last.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import duckdb

#: How Hive, Spark and DuckDB write an unknown value in a folder's name.
UNKNOWN = "__HIVE_DEFAULT_PARTITION__"

_BUNDLE = re.compile(r"\.most(\.tar\.zst)?$")
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)\.parquet")


class MostraceError(RuntimeError):
    """Something that the user can do something about; the text is one line."""


@dataclass(frozen=True)
class Source:
    """A recording, or a day of a ledger."""

    path: str
    #: The name of the ledger and the day; None for a recording.
    ledger: tuple[str, str] | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of one source."""

    source: Source
    #: Why it cannot be read; None if it can.
    error: str | None = None
    #: The name of its files if this task added it; None if it was there before.
    added: str | None = None


def program() -> str:
    """The path of the program: $MOSTRACE, or `mostrace` in $PATH. Raises MostraceError if there is none."""
    found = os.environ.get("MOSTRACE") or shutil.which("mostrace")
    if not found:
        raise MostraceError("the program mostrace is not found: put it into $PATH, or its path into $MOSTRACE")
    return os.path.abspath(found)


def find(folder: str, today: str) -> list[Source]:
    """The recordings (NAME.most, NAME.most.tar.zst) and the ledgers (folders with a file a day) in a folder. Of a ledger, days before
    `today`: the day that still runs would be there with the hours of now, for good. Raises MostraceError if it cannot be listed."""
    try:
        entries = sorted(Path(folder).absolute().iterdir())
        ledgers = [one for one in entries if one.is_dir() and not _BUNDLE.search(one.name)]
        days = [(ledger, day) for ledger in ledgers for day in sorted(ledger.iterdir())]
    except OSError as error:
        raise MostraceError(f"{folder}: {error.strerror}") from None
    found = [Source(str(one)) for one in entries if _BUNDLE.search(one.name)]
    for ledger, path in days:
        day = _DAY.fullmatch(path.name)
        if day and day[1] < today:
            found.append(Source(str(path), (ledger.name, day[1])))
    return found


@dataclass(frozen=True)
class Add:
    """The task: adds one source to a data set."""

    mostrace: str
    data_set: str

    def __call__(self, source: Source) -> Outcome:
        try:
            return Outcome(source, added=self._ledger(source) if source.ledger else self._recording(source))
        except (MostraceError, OSError, duckdb.Error) as error:
            return Outcome(source, str(error).split("\n", 1)[0])

    def _recording(self, source: Source) -> str | None:
        id_, day, _ = self._export(source, "identity").split(" ", 2)
        there = Path(self.data_set, "recordings", f"day={UNKNOWN if day == '-' else day}", f"{id_}.parquet")
        if not there.exists():
            self._export(source, "dataset", "-o", self.data_set)
            return id_
        return None

    def _ledger(self, source: Source) -> str | None:
        ledger, day = source.ledger
        there = Path(self.data_set, "ledger", f"day={day}", f"{ledger}.parquet")
        if there.exists():
            return None
        columns = {row[0] for row in duckdb.execute("DESCRIBE SELECT * FROM read_parquet(?)", [source.path]).fetchall()}
        if "ledger" in columns or not {"hour", "command", "write_bytes"} <= columns:
            raise MostraceError("not a day of a ledger: it has other columns")
        there.parent.mkdir(parents=True, exist_ok=True)
        aside = there.with_name(f".{ledger}.{uuid.uuid4()}.tmp")
        shutil.copyfile(source.path, aside)
        aside.rename(there)
        return str(there)

    def _export(self, source: Source, form: str, *more: str) -> str:
        """Runs the analyser on one recording, so that a broken one harms no other."""
        command = [self.mostrace, "export", source.path, "--format", form, *more]
        # A recording may come from anybody, and so may the names in what is said about it.
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if ended.returncode == 0:
            return ended.stdout.decode(errors="backslashreplace")
        if ended.returncode < 0:
            raise MostraceError(f"the analyser was killed by {signal.Signals(-ended.returncode).name}")
        lines = [line for line in ended.stderr.decode(errors="backslashreplace").splitlines() if line.strip()]
        # Notices precede the error.
        raise MostraceError(lines[-1] if lines else f"the analyser ended with {ended.returncode}")


#: Calls a task with each item, anywhere, and returns the results in any order.
Mapper = Callable[[Add, list[Source]], Iterable[Outcome]]


def in_processes(workers: int | None = None) -> Mapper:
    """Runs tasks on this machine, by default as many at once as it has cores. The work is the analyser's, in processes of its own."""

    def map_(task: Add, items: list[Source]) -> Iterable[Outcome]:
        with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
            yield from pool.map(task, items)

    return map_
