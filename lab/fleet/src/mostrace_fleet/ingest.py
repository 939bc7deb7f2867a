# SPDX-License-Identifier: MIT OR Apache-2.0
"""From a folder of recordings to rows of the table.

It is done in two rounds, each of which is a list of tasks that may run anywhere, in any order, and more than once: in processes
of this machine, or in Spark's executors (spark.py).

1. `identify`: what is each recording known by, and of which day is it? Those that the table has are left out.
2. `ingest`: a batch of recordings of one day becomes one file for each table, and one commit.

A task that is repeated, because its worker died before or after the commit, finds in the table what it did before.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from .program import Identity, MostraceError, export, identify
from .table import RELATIONS, Added, Part, Table, absolute, place

#: About the largest batch: packed bytes, and recordings.
BATCH_BYTES, BATCH = 64 << 20, 40
#: The days of ledgers in a batch, whose rows are held in memory: a file of a few KB each.
BATCH_OF_LEDGERS = 5_000

_BUNDLE = re.compile(r"\.most(\.tar\.zst)?$")
_DAY = re.compile(r"^(\d{4}-\d\d-\d\d)\.parquet$")


@dataclass(frozen=True)
class Source:
    """A recording, or a day of a ledger, where it lies."""

    #: Its path or address.
    url: str
    bytes: int
    #: The identity, once it is known.
    identity: Identity | None = None
    #: The name of the ledger; None for a recording.
    ledger: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of one source."""

    source: Source
    #: Why it cannot be read; None if it can.
    error: str | None = None
    #: True if this run added it.
    added: bool = False


@dataclass
class Summary:
    """What became of all."""

    found: int = 0
    added: int = 0
    known: int = 0
    broken: list[Outcome] = field(default_factory=list)


#: Calls a function with each item, anywhere, and returns the results in any order.
Mapper = Callable[[Callable, list], Iterable]


def run(folder: str, table: str, mostrace: str, map_: Mapper, only_closed: str | None = None) -> Summary:
    """Adds all recordings and ledgers in a folder that the table does not have. Raises MostraceError if the folder or the table
    cannot be used; what cannot be read in the folder is in the summary. Of a ledger, days before `only_closed` are added: the day
    that still runs would be there with the hours of now, for good."""
    table = absolute(table)
    sources = find(folder, only_closed)
    recordings = [one for one in sources if one.ledger is None]
    ledgers = [one for one in sources if one.ledger is not None]
    outcomes = list(map_(Identify(mostrace), recordings))
    summary = Summary(found=len(sources), broken=[one for one in outcomes if one.error])
    opened = Table.create(table)
    new = _distinct([one.source for one in outcomes if not one.error] + ledgers)
    known = opened.known(one.identity.id for one in new) if new else set()
    summary.known = len(sources) - len(summary.broken) - len(new) + len(known)
    batches = _batches(one for one in new if one.identity.id not in known)
    for done in map_(Ingest(mostrace, table), batches):
        for outcome in done:
            summary.added += outcome.added
            summary.known += not outcome.added and not outcome.error
            summary.broken += [outcome] if outcome.error else []
    summary.broken.sort(key=lambda one: one.source.url)
    return summary


def find(folder: str, only_closed: str | None = None) -> list[Source]:
    """The recordings (NAME.most, NAME.most.tar.zst) and the ledgers (folders with a file a day) in a folder, which may be an address
    as pyarrow reads it, such as s3://bucket/traces. Raises MostraceError if it cannot be listed."""
    folder = absolute(folder)
    try:
        files_system, root = place(folder)
        entries = files_system.get_file_info(fs.FileSelector(root))
        ledgers = [one for one in entries if one.type == fs.FileType.Directory and not _BUNDLE.search(one.base_name)]
        days = [day for one in ledgers for day in files_system.get_file_info(fs.FileSelector(one.path))]
    except (OSError, pa.ArrowException) as error:
        raise MostraceError(f"{folder}: {error}") from None
    address = folder.split("://", 1)[0] + "://" if "://" in folder else ""
    found = [Source(address + one.path, one.size or 0) for one in entries if _BUNDLE.search(one.base_name)]
    for day in days:
        named = _DAY.match(day.base_name)
        if named and (only_closed is None or named[1] < only_closed):
            ledger = day.path.rsplit("/", 2)[1]
            # A ledger has a day once; hours are added to it only while it lasts.
            identity = Identity(f"ledger/{ledger}/{named[1]}", named[1])
            found.append(Source(address + day.path, day.size, identity, ledger))
    return sorted(found, key=lambda one: one.url)


class _Here:
    """A source as a path of this machine: it is copied into a temporary folder if it lies elsewhere."""

    def __init__(self, source: Source):
        self.source = source
        self.folder: str | None = None

    def __enter__(self) -> Path:
        url = self.source.url
        if "://" not in url:
            return Path(url)
        files_system, path = place(url)
        self.folder = tempfile.mkdtemp(prefix="mostrace-fleet-")
        target = Path(self.folder) / path.rstrip("/").rsplit("/", 1)[-1]
        fs.copy_files(path, str(target), source_filesystem=files_system, destination_filesystem=fs.LocalFileSystem())
        return target

    def __exit__(self, *_: object) -> None:
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True)
class Identify:
    """The task of the first round."""

    mostrace: str

    def __call__(self, source: Source) -> Outcome:
        try:
            with _Here(source) as path:
                known_by = identify(self.mostrace, path)
        except (MostraceError, OSError) as error:
            return Outcome(source, error=_line(error))
        return Outcome(Source(source.url, source.bytes, known_by))


@dataclass(frozen=True)
class Ingest:
    """The task of the second round."""

    mostrace: str
    table: str

    def __call__(self, batch: list[Source]) -> list[Outcome]:
        table = Table(self.table)
        by_id = {one.identity.id: one for one in batch}
        [day] = {one.identity.day for one in batch}
        for id_ in table.known(by_id, [day]):
            del by_id[id_]
        broken: list[Outcome] = []
        parts: list[Part] = []
        with tempfile.TemporaryDirectory(prefix="mostrace-fleet-") as aside:
            for source in list(by_id.values()):
                try:
                    parts += self._rows(source, Path(aside))
                except (MostraceError, OSError, pa.ArrowException) as error:
                    broken.append(Outcome(source, error=_line(error)))
                    del by_id[source.identity.id]
            while by_id and not self._add(table, parts, list(by_id.values()), day):
                # Somebody else was faster with some of them.
                for id_ in table.known(by_id, [day]):
                    del by_id[id_]
        given = {id(one.source) for one in broken}
        others = [one for one in batch if id(one) not in given]
        return broken + [Outcome(one, added=one.identity.id in by_id) for one in others]

    def _add(self, table: Table, parts: list[Part], sources: list[Source], day: str | None) -> bool:
        added = [Added(one.identity.id, one.url, one.bytes) for one in sources]
        ids = {one.id for one in added}
        return table.add([part for part in parts if part.id in ids], added, day)

    def _rows(self, source: Source, aside: Path) -> list[Part]:
        """The files of a source's rows."""
        identity = source.identity
        if source.ledger is not None:
            return [Part("ledger", identity.day, source.url, identity.id, _ledger(source))]
        # Each recording has its own folder: what a broken one leaves is not taken for rows.
        folder = aside / identity.id
        with _Here(source) as path:
            export(self.mostrace, path, folder)
        return [
            Part(relation, identity.day, str(path), identity.id)
            for relation in RELATIONS
            for path in folder.glob(f"{relation}/day=*/*.parquet")
        ]


def _ledger(source: Source) -> pa.Table:
    """The rows of a ledger's day, with the name of the ledger, since they are to lie beside those of others."""
    files_system, path = place(source.url)
    with files_system.open_input_file(path) as file, pq.ParquetFile(file) as parquet:
        rows = parquet.read()
    if "ledger" in rows.column_names or not {"hour", "command", "write_bytes"} <= set(rows.column_names):
        raise MostraceError(f"{source.url}: not a day of a ledger: it has other columns")
    return rows.append_column("ledger", pa.repeat(source.ledger, len(rows)))


def _line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]


def _distinct(sources: list[Source]) -> list[Source]:
    """The first of each identity: the same recording may lie there twice."""
    first: dict[str, Source] = {}
    for one in sources:
        first.setdefault(one.identity.id, one)
    return list(first.values())


def _batches(sources: Iterable[Source]) -> list[list[Source]]:
    """Groups sources of one day and kind into batches of about the same size."""
    of_day: dict[tuple[bool, str], list[Source]] = {}
    for one in sorted(sources, key=lambda one: one.url):
        of_day.setdefault((one.ledger is not None, one.identity.day or ""), []).append(one)
    batches = []
    for (is_ledger, _), sources_ in sorted(of_day.items()):
        most = BATCH_OF_LEDGERS if is_ledger else BATCH
        count = max(-(-len(sources_) // most), -(-sum(one.bytes for one in sources_) // BATCH_BYTES))
        batches += [sources_[nth::count] for nth in range(min(count, len(sources_)))]
    return batches


def in_processes(workers: int | None = None) -> Mapper:
    """Runs tasks in processes of this machine, by default as many as it has cores."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    def map_(task: Callable, items: list) -> Iterable:
        # A forked process would lack the threads of delta-rs and Arrow.
        most = min(workers or os.cpu_count() or 1, max(len(items), 1))
        with ProcessPoolExecutor(most, mp_context=get_context("spawn")) as pool:
            yield from pool.map(task, items, chunksize=1)

    return map_
