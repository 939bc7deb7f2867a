# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of a fleet: one Delta table, which delta-rs commits to.

Its rows are those of all tables of a data set; `relation` says of which, and is the first partition, `day` the second:

    TABLE/_delta_log/                                   which files count, and which recordings are in
    TABLE/relation=events/day=2026-11-25/UUID.parquet   rows of many recordings

One commit adds whole recordings of one day with all their tables, so no reader sees a part of one. With them it adds a row to
`sources` for each, and a transaction (`txn` in Delta's protocol) whose application is the day. Delta refuses a commit if another one
with that application was made since the version that the writer has read, from whichever writer. So what the writer has read about
the day in `sources` holds when it commits, and a recording counts once.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction
from pyarrow import fs

from .program import MostraceError

#: The tables of a data set, the days of ledgers, and a row for each recording and each day of a ledger: where it came from.
RELATIONS = ("sources", "events", "requests", "causes", "processes", "files", "calls", "transactions", "recordings", "ledger")
#: How Hive, Spark, DuckDB and Delta write an unknown value in a folder's name.
UNKNOWN = "__HIVE_DEFAULT_PARTITION__"
#: The version of the columns in a file's metadata.
SCHEMA = b"mostrace.schema"
#: How often a commit is tried again after others have changed what it depends on.
TRIES = 50
#: Bytes of files that a compacted file is made of, and rows of a part of it that is read at once.
LARGE, GROUP = 512 << 20, 1 << 18
#: The applications of the transactions by which two writers of a day, or two compactions, notice each other.
OF_DAY, COMPACTION = "mostrace-fleet/day=", "mostrace-fleet/compaction"

PARTITIONS = ["relation", "day"]
_FIRST = pa.schema([("relation", pa.string()), ("day", pa.date32())])


@dataclass(frozen=True)
class Part:
    """Rows of a file that is in no table yet, or is to be replaced."""

    relation: str
    #: None if unknown.
    day: str | None
    #: Its path or address.
    path: str
    #: The recording, or day of a ledger, that it is of; "" if of several.
    id: str = ""
    #: Its rows, if they were read already, because it is small and one of very many.
    rows: pa.Table | None = None


@dataclass(frozen=True)
class Added:
    """What a row of `sources` tells."""

    #: The identity of a recording, or of a day of a ledger.
    id: str
    #: Where it came from, and its packed bytes there.
    url: str
    bytes: int


@dataclass
class File:
    """A file of a version of the table."""

    relation: str
    day: str | None
    #: Path below the table, and the same with the table's address ahead.
    path: str
    uri: str
    bytes: int
    rows: int


@dataclass
class Compacted:
    """What a compaction did."""

    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    days: set[str] = field(default_factory=set)


class Table:
    """A version of a fleet's table. Methods that commit go on to the version that they made."""

    def __init__(self, url: str):
        """Opens a table by its folder or address. Raises MostraceError if there is none."""
        self.url = absolute(url)
        try:
            self.delta = DeltaTable(self.url)
        except TableNotFoundError:
            raise MostraceError(f"{self.url}: no table there: `mostrace-fleet ingest` makes one") from None
        if self.delta.metadata().partition_columns != PARTITIONS:
            raise MostraceError(f"{self.url}: a Delta table, but not one of mostrace-fleet")
        self.files_system, self.root = place(self.url)
        self._read: dict[str, set[str]] = {}

    @staticmethod
    def create(url: str) -> Table:
        """Opens a table and makes it before if it does not exist, however many do so at once."""
        url = absolute(url)
        if "://" not in url:
            os.makedirs(url, exist_ok=True)
        schema = Schema.from_arrow(_FIRST)
        with contextlib.suppress(CommitFailedError):
            DeltaTable.create(url, schema, mode="ignore", partition_by=PARTITIONS, name="mostrace")
        return Table(url)

    @property
    def version(self) -> int:
        """The number of the version."""
        return self.delta.version()

    def known(self, ids: Iterable[str], days: Iterable[str | None] | None = None) -> set[str]:
        """Which of these recordings the version has; `days` are those that they are of, if that is known."""
        days = None if days is None else set(days)
        asked, found = set(ids), set()
        for file in self.files("sources"):
            if days is None or file.day in days:
                found |= asked & self._ids(file)
        return found

    def _ids(self, file: File) -> set[str]:
        """The identities in a file of `sources`, which never changes."""
        if file.path not in self._read:
            with _opened(Part(file.relation, file.day, file.uri)) as parquet:
                self._read[file.path] = set(parquet.read(columns=["bundle_id"]).column(0).to_pylist())
        return self._read[file.path]

    def files(self, relation: str | None = None) -> list[File]:
        """The files of the version, of one table or of all."""
        uris = dict(zip(self._paths(), self.delta.file_uris(), strict=True))
        found = []
        for row in pa.table(self.delta.get_add_actions(flatten=True)).to_pylist():
            of, day = row["partition.relation"], row["partition.day"]
            if relation in (None, of):
                day = day and str(day)
                path, size, rows = row["path"], row["size_bytes"], row["num_records"]
                found.append(File(of, day, path, uris[path], size, rows))
        return sorted(found, key=lambda file: (file.relation, file.day or "", file.path))

    def _paths(self) -> Iterator[str]:
        for uri in self.delta.file_uris():
            yield uri[uri.rindex("relation=") :]

    def add(self, parts: list[Part], added: list[Added], day: str | None) -> bool:
        """Commits the rows of these recordings of a day, all of them or none.

        Returns False if the table has one of them already; then nothing is added. Raises MostraceError if it cannot be done."""
        written: list[tuple[AddAction, pa.Schema]] = []
        committed = False
        try:
            for (relation, day_), together in _by_partition([*parts, _sources(added, day)]).items():
                written.append(self._write(relation, day_, together))
            committed = self._commit_new(written, {one.id for one in added}, day)
            return committed
        finally:
            if not committed:
                self._remove_unused(action.path for action, _ in written)

    def _commit_new(self, written: list[tuple[AddAction, pa.Schema]], ids: set[str], day: str | None) -> bool:
        actions = [action for action, _ in written]
        for attempt in range(TRIES):
            if self.known(ids, [day]):
                return False
            lock = Transaction(f"{OF_DAY}{day or UNKNOWN}", self.version + 1)
            try:
                self._widen(schema for _, schema in written)
                self.delta.create_write_transaction(
                    actions,
                    "append",
                    self.delta.schema(),
                    PARTITIONS,
                    commit_properties=CommitProperties(app_transactions=[lock]),
                )
                self.delta.update_incremental()
                return True
            except (CommitFailedError, DeltaError) as error:
                self._again(attempt, error)
        raise AssertionError("unreachable")

    def _again(self, attempt: int, error: Exception) -> None:
        """Goes on to the newest version after somebody else's commit."""
        if attempt + 1 == TRIES:
            raise MostraceError(f"{self.url}: {_line(error)}")
        time.sleep(min(0.02 * 2**attempt, 1.0))
        self.delta = DeltaTable(self.url)

    def _widen(self, schemas: Iterable[pa.Schema]) -> None:
        """Adds columns that the table does not have yet. Columns are never removed and never change their type."""
        have = {one.name: one for one in self.delta.schema().fields}
        new = {}
        for one in Schema.from_arrow(_union(schemas)).fields:
            known = have.get(one.name)
            if known is None:
                new[one.name] = one
            elif known.type != one.type:
                raise MostraceError(f"{self.url}: the column {one.name} is {known.type}; in these files it is {one.type}")
        if new:
            self.delta.alter.add_columns(list(new.values()))
            self.delta.update_incremental()

    def _write(self, relation: str, day: str | None, parts: list[Part]) -> tuple[AddAction, pa.Schema]:
        """Writes the rows of several files into a new one of the table. It belongs to no version yet."""
        schema = _schema_of(parts)
        folder = f"relation={relation}/day={day or UNKNOWN}"
        path = f"{folder}/{uuid.uuid4()}.parquet"
        where = f"{self.root}/{path}"
        self.files_system.create_dir(f"{self.root}/{folder}", recursive=True)
        rows = 0
        with self.files_system.open_output_stream(where) as out, pq.ParquetWriter(out, schema, compression="zstd") as writer:
            for group in _groups(parts, schema):
                rows += group.num_rows
                writer.write_table(group, row_group_size=GROUP)
        size = self.files_system.get_file_info(where).size
        stats = json.dumps({"numRecords": rows})
        partition = {"relation": relation, "day": day}
        return AddAction(path, size, partition, int(time.time() * 1000), True, stats), schema

    def _remove_unused(self, paths: Iterable[str]) -> None:
        """Removes files that the newest version does not refer to: an error may be told of a commit that was made nevertheless."""
        used = {file.path for file in Table(self.url).files()}
        for path in set(paths) - used:
            with contextlib.suppress(OSError):
                self.files_system.delete_file(f"{self.root}/{path}")

    def compact(self, large: int = LARGE) -> Compacted:
        """Replaces the files of each partition by few that have about `large` bytes. The rows stay.

        Recordings may be added meanwhile. A second compaction at the same time fails, and changes nothing."""
        done = Compacted()
        small: dict[tuple[str, str | None], list[File]] = {}
        for file in self.files():
            if file.bytes < large // 2:
                small.setdefault((file.relation, file.day), []).append(file)
        for (relation, day), files in small.items():
            for together in _bins(files, large):
                self._replace(relation, day, together, done)
        return done

    def _replace(self, relation: str, day: str | None, files: list[File], done: Compacted) -> None:
        added, _ = self._write(relation, day, [Part(relation, day, file.uri) for file in files])
        now = int(time.time() * 1000)
        # delta-rs looks for conflicts only among removals that change data; without the mark, a row could stay twice.
        removed = [RemoveAction(file.path, True, now, file.bytes, {"relation": relation, "day": day}) for file in files]
        properties = CommitProperties(app_transactions=[Transaction(COMPACTION, self.version + 1)])
        try:
            self.delta.create_write_transaction(
                [added, *removed], "append", self.delta.schema(), PARTITIONS, commit_properties=properties
            )
        except (CommitFailedError, DeltaError) as error:
            self._remove_unused([added.path])
            raise MostraceError(f"{self.url}: another compaction is under way: {_line(error)}") from None
        self.delta.update_incremental()
        done.files_before += len(files)
        done.files_after += 1
        done.bytes_before += sum(file.bytes for file in files)
        done.bytes_after += added.size
        done.days.add(day or "unknown")

    def vacuum(self, hours: int) -> int:
        """Removes files that no version of the last hours refers to, also what killed writers left. Returns their number."""
        removed = self.delta.vacuum(retention_hours=hours, dry_run=False, enforce_retention_duration=False, full=True)
        self.delta.update_incremental()
        return len(removed)


def absolute(url: str) -> str:
    """The address, or the path from the root: workers run elsewhere."""
    return url if "://" in str(url) else os.path.abspath(url)


def place(url: str) -> tuple[fs.FileSystem, str]:
    """The filesystem of an address, and the path there."""
    return fs.FileSystem.from_uri(url if "://" in url else Path(url).absolute().as_uri())


@contextlib.contextmanager
def _opened(part: Part) -> Iterator[pq.ParquetFile]:
    files_system, path = place(part.path)
    # One after the other: a day may have more files than a process may have open.
    with files_system.open_input_file(path) as file, pq.ParquetFile(file) as parquet:
        yield parquet


def _line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]


def _sources(added: list[Added], day: str | None) -> Part:
    rows = {
        "bundle_id": pa.array([one.id for one in added], pa.string()),
        "source": pa.array([one.url for one in added], pa.string()),
        "packed_bytes": pa.array([one.bytes for one in added], pa.int64()),
    }
    return Part("sources", day, "", rows=pa.table(rows))


def _by_partition(parts: Iterable[Part]) -> dict[tuple[str, str | None], list[Part]]:
    found: dict[tuple[str, str | None], list[Part]] = {}
    for part in sorted(parts, key=lambda part: part.path):
        found.setdefault((part.relation, part.day), []).append(part)
    return found


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type in the table: one for each kind of value, whoever wrote it. Delta has no unsigned numbers."""
    types = pa.types
    if types.is_dictionary(kind):
        return _plain(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_integer(kind):
        return pa.int64()
    if types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC")
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    return kind


def _union(schemas: Iterable[pa.Schema]) -> pa.Schema:
    plain = [pa.schema([pa.field(one.name, _plain(one.type)) for one in schema]) for schema in schemas]
    return pa.unify_schemas(plain)


def _schema_of(parts: list[Part]) -> pa.Schema:
    """The columns of all files by name, and as its metadata the newest version of them."""
    schemas, version = {}, b"0"
    for part in parts:
        schema, told = _look(part)
        # Most are alike.
        schemas[schema.to_string(show_schema_metadata=False)] = schema
        version = max(version, told.get(SCHEMA, b"0"), key=int)
    return _union(schemas.values()).with_metadata({SCHEMA: version})


def _look(part: Part) -> tuple[pa.Schema, dict[bytes, bytes]]:
    """The columns of a file, and what its metadata tells."""
    if part.rows is not None:
        return part.rows.schema, {}
    with _opened(part) as file:
        return file.schema_arrow, file.metadata.metadata or {}


def _groups(parts: list[Part], schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of all files in groups of about GROUP; a column that a file does not have is null."""
    held: list[pa.Table] = []
    rows = 0
    for piece in _pieces(parts):
        held.append(pa.table([_column(piece, one) for one in schema], schema=schema))
        rows += len(piece)
        if rows >= GROUP:
            yield pa.concat_tables(held)
            held, rows = [], 0
    if held:
        yield pa.concat_tables(held)


def _pieces(parts: list[Part]) -> Iterator[pa.Table | pa.RecordBatch]:
    for part in parts:
        if part.rows is not None:
            yield part.rows
            continue
        with _opened(part) as file:
            yield from file.iter_batches(batch_size=GROUP)


def _column(piece: pa.Table | pa.RecordBatch, of: pa.Field) -> pa.Array | pa.ChunkedArray:
    if of.name in piece.schema.names:
        return piece.column(of.name).cast(of.type)
    return pa.nulls(len(piece), of.type)


def _bins(files: list[File], large: int) -> Iterator[list[File]]:
    """Groups of two files and more that have about `large` bytes together."""
    group: list[File] = []
    for file in files:
        group.append(file)
        if sum(one.bytes for one in group) >= large:
            if len(group) > 1:
                yield group
            group = []
    if len(group) > 1:
        yield group
