# SPDX-License-Identifier: MIT OR Apache-2.0
"""Questions to a fleet's table, or to the folder of a data set, in SQL. DuckDB answers them in this process; no server is needed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import duckdb

from .program import MostraceError
from .table import RELATIONS, Table


def views() -> dict[str, str]:
    """The SQL of each view by its name. It is the same for DuckDB and Spark."""
    folder = resources.files(__package__) / "views"
    found = {one.name.removesuffix(".sql"): one.read_text() for one in folder.iterdir() if one.name.endswith(".sql")}
    return dict(sorted(found.items()))


def view(name: str) -> str:
    """The SQL of a view. Raises MostraceError if there is none of the name."""
    known = views()
    if name not in known:
        raise MostraceError(f"{name}: no such view; there are {', '.join(known)}")
    return known[name]


def connect(where: str) -> duckdb.DuckDBPyConnection:
    """DuckDB with the tables of a fleet's newest version, or of a data set (`mostrace export --format dataset`), as views: events,
    requests, causes … Files of older versions of the columns have nulls in the others."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    is_table = _is_table(where)
    # `relation` is a folder of the table, and no column of the rows.
    columns, types = ("* EXCLUDE (relation)", "DATE, 'relation': VARCHAR") if is_table else ("*", "DATE")
    for relation, files in _files(where):
        listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
        connection.execute(
            f"CREATE VIEW {relation} AS SELECT {columns} FROM read_parquet([{listed}], union_by_name = true, "
            f"hive_partitioning = true, hive_types = {{'day': {types}}})"
        )
    return connection


def _is_table(where: str) -> bool:
    return "://" in where or (Path(where) / "_delta_log").is_dir()


def _files(where: str) -> Iterator[tuple[str, list[str]]]:
    """The files of each table that has any."""
    if _is_table(where):
        table = Table(where)
        found = {relation: [file.uri for file in table.files(relation)] for relation in RELATIONS}
    else:
        found = {relation: sorted(map(str, Path(where).glob(f"{relation}/day=*/*.parquet"))) for relation in RELATIONS}
    if not any(found.values()):
        raise MostraceError(f"{where}: neither a table of mostrace-fleet nor a data set of mostrace export: it has no rows")
    return ((relation, files) for relation, files in found.items() if files)
