# SPDX-License-Identifier: MIT OR Apache-2.0
"""What written bytes are, in the words and colours of `mostrace report`."""

from __future__ import annotations

import polars

# Okabe and Ito's palette, told apart by people who are colour-blind.
COLOURS = {
    "databases": "#0072b2",
    "SQLite's journals": "#56b4e9",
    "other files": "#009e73",
    "filesystem metadata": "#e69f00",
    "filesystem journal": "#d55e00",
    "unknown": "#8d939c",
}
# Roles of the files that SQLite keeps beside a database.
BESIDE = ["rollback_journal", "wal", "shm", "super_journal"]


def meaning() -> polars.Expr:
    """What the bytes of a row are, by its columns `class` and `role`."""
    kind, role = polars.col("class"), polars.col("role")
    is_data = kind == "data"
    return (
        polars.when(is_data & (role == "db"))
        .then(polars.lit("databases"))
        .when(is_data & role.is_in(BESIDE))
        .then(polars.lit("SQLite's journals"))
        .when(is_data)
        .then(polars.lit("other files"))
        .when(kind == "metadata")
        .then(polars.lit("filesystem metadata"))
        .when(kind == "journal")
        .then(polars.lit("filesystem journal"))
        .otherwise(polars.lit("unknown"))
        .alias("what")
    )


def of_layer(layer: str) -> str:
    """What the bytes of one of the tree's layers are."""
    if layer in ("blocks of no known owner", "files without a known name"):
        return "unknown"
    if layer == "the database":
        return "databases"
    if layer.startswith("SQLite's "):
        return "SQLite's journals"
    if layer.endswith("'s journal"):
        return "filesystem journal"
    if layer.endswith("'s metadata"):
        return "filesystem metadata"
    return "other files"
