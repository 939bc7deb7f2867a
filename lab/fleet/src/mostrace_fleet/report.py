# SPDX-License-Identifier: MIT OR Apache-2.0
"""Questions to a data set, in SQL. DuckDB answers them in this process; no server is needed."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import duckdb

from .ingest import MostraceError

#: The tables of a data set. `recordings` is the first: a recording without a row there is not whole yet.
RELATIONS = ("recordings", "events", "requests", "causes", "processes", "files", "calls", "transactions", "ledger")


def views() -> dict[str, str]:
    """The SQL of each view by its name. It is the same for DuckDB and Spark."""
    folder = resources.files(__package__) / "views"
    found = {one.name.removesuffix(".sql"): one.read_text() for one in folder.iterdir() if one.name.endswith(".sql")}
    return dict(sorted(found.items()))


def relations(data_set: str) -> list[str]:
    """The tables that have a file. Raises MostraceError if there are none."""
    found = [name for name in RELATIONS if any(Path(data_set).glob(f"{name}/day=*/*.parquet"))]
    if "recordings" not in found:
        found = [name for name in found if name == "ledger"]
    if not found:
        raise MostraceError(f"{data_set}: not a data set of `mostrace-fleet ingest` or `mostrace export`: it has no rows")
    return found


def connect(data_set: str) -> duckdb.DuckDBPyConnection:
    """DuckDB with the tables of a data set as views: events, requests, causes … Files of older versions of the columns have nulls in
    the others."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name in relations(data_set):
        files = f"{data_set}/{name}/day=*/*.parquet".replace("'", "''")
        read = f"read_parquet('{files}', union_by_name = true, hive_partitioning = true, hive_types = {{'day': DATE}}, filename = true)"
        columns = "* EXCLUDE (filename)"
        if name == "ledger":
            columns += ", parse_filename(filename, true) AS ledger"
        whole = "" if name in ("recordings", "ledger") else "WHERE bundle_id IN (SELECT bundle_id FROM recordings)"
        connection.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM {read} {whole}")
    return connection


def ask(data_set: str, sql: str) -> tuple[list[str], list[tuple]]:
    """The names of the columns and the rows of the answer to a query. Raises MostraceError if it cannot be understood."""
    try:
        answer = connect(data_set).execute(sql)
        return [one[0] for one in answer.description], answer.fetchall()
    except duckdb.Error as error:
        raise MostraceError(str(error).split("\n", 1)[0]) from None
