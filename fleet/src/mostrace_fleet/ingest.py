# SPDX-License-Identifier: MIT OR Apache-2.0
"""From a folder of recordings to rows of the table.

It is done in two rounds, each of which is a list of tasks that may run anywhere, in any order, and more than once: in threads of this
process, or in Spark's executors (spark.py).

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
from .table import RELATIONS, UNKNOWN, Part, Table, absolute, place

#: The largest batch: packed bytes, and recordings.
BATCH_BYTES, BATCH = 64 << 20, 32
#: The days of ledgers in a batch: a file of a few KB each.
BATCH_OF_LEDGERS = 20_000

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
    known = opened.known(one.identity.id for one in new)
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
            return Outcome(source, error=str(error))
        return Outcome(Source(source.url, source.bytes, known_by))


@dataclass(frozen=True)
class Ingest:
    """The task of the second round."""

    mostrace: str
    table: str

    def __call__(self, batch: list[Source]) -> list[Outcome]:
        table = Table(self.table)
        by_id = {one.identity.id: one for one in batch}
        for id_ in table.known(by_id):
            del by_id[id_]
        broken: list[Outcome] = []
        with tempfile.TemporaryDirectory(prefix="mostrace-fleet-") as aside:
            for source in list(by_id.values()):
                try:
                    self._rows(source, Path(aside))
                except (MostraceError, OSError, pa.ArrowException) as error:
                    broken.append(Outcome(source, error=str(error)))
                    del by_id[source.identity.id]
            parts = _parts(Path(aside))
            while by_id and not table.add([part for part, id_ in parts if id_ in by_id], list(by_id)):
                # Somebody else was faster with some of them.
                for id_ in table.known(by_id):
                    del by_id[id_]
        given = {id(one.source) for one in broken}
        others = [one for one in batch if id(one) not in given]
        return broken + [Outcome(one, added=one.identity.id in by_id) for one in others]

    def _rows(self, source: Source, aside: Path) -> None:
        with _Here(source) as path:
            if source.ledger is None:
                # Each recording has its own folder: what a broken one leaves is not taken for rows.
                export(self.mostrace, path, aside / source.identity.id)
            else:
                _ledger(source, path, aside)


def _ledger(source: Source, path: Path, aside: Path) -> None:
    """Adds the name of the ledger to its rows, since they are to lie beside those of others."""
    rows = pq.read_table(path, partitioning=None)
    for name in ("ledger", "bundle_id"):
        if name in rows.column_names:
            raise MostraceError(f"{path}: not a day of a ledger: it has a column {name}")
    if "command" not in rows.column_names or "hour" not in rows.column_names:
        raise MostraceError(f"{path}: not a day of a ledger: it has no columns hour and command")
    names = pa.array([source.ledger] * len(rows), pa.string())
    folder = aside / source.identity.id.replace("/", "_") / "ledger" / f"day={source.identity.day}"
    folder.mkdir(parents=True)
    (folder / "id").write_text(source.identity.id)
    pq.write_table(rows.append_column("ledger", names), folder / "0.parquet", compression="zstd")


def _parts(aside: Path) -> list[tuple[Part, str]]:
    """The files that the analyser made, each with the identity of its recording."""
    found = []
    for relation in RELATIONS:
        for path in aside.glob(f"*/{relation}/day=*/*.parquet"):
            day = path.parent.name.removeprefix("day=")
            marked = path.parent / "id"
            id_ = marked.read_text() if marked.exists() else path.stem
            found.append((Part(relation, None if day == UNKNOWN else day, path), id_))
    return found


def _distinct(sources: list[Source]) -> list[Source]:
    """The first of each identity: the same recording may lie there twice."""
    first: dict[str, Source] = {}
    for one in sources:
        first.setdefault(one.identity.id, one)
    return list(first.values())


def _batches(sources: Iterable[Source]) -> list[list[Source]]:
    """Groups sources of one day and kind."""
    batches: list[list[Source]] = []
    last = None
    size = 0
    for one in sorted(sources, key=lambda one: (one.ledger is not None, one.identity.day or "", one.url)):
        kind = (one.ledger is not None, one.identity.day)
        most = BATCH if one.ledger is None else BATCH_OF_LEDGERS
        if kind != last or len(batches[-1]) >= most or size + one.bytes > BATCH_BYTES:
            batches.append([])
            last, size = kind, 0
        batches[-1].append(one)
        size += one.bytes
    return batches


def in_threads(workers: int | None = None) -> Mapper:
    """Runs tasks in threads of this process, which wait for the analyser's processes."""
    from concurrent.futures import ThreadPoolExecutor

    def map_(task: Callable, items: list) -> Iterable:
        with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
            yield from pool.map(task, items)

    return map_
