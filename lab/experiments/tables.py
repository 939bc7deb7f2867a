#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Prints every row of the results that lie here; docs/FIGURES.md has the most important ones.

usage: tables.py
"""
import pathlib

import experiment

HERE = pathlib.Path(__file__).parent
BYTES = ["write_bytes", "write_bytes_ci_percent", "journal_bytes", "metadata_bytes"]
SQLITE = ["syncs", "writes", "device_flushes", "called_bytes", *BYTES, "rollback_journal_bytes", "wal_bytes", "db_bytes", "rest_bytes", "unknown_bytes", "runs"]
FILES = ["writes", "device_flushes", *BYTES, "other_bytes", "rest_bytes", "unknown_bytes", "runs"]
TABLES = {
    "ext4-matrix": ["journal", "sync", "op", "control", *SQLITE, "amplification", "main_cause"],
    "shares": ["tables", "op", "control", *SQLITE],
    "journal-on-off": ["journal", "mkfs", *SQLITE],
    "encrypted": ["journal", "folder", *SQLITE],
    "file-modes": ["pattern", "mode", "control", *FILES],
    "file-threads": ["sync_mode", "threads", *FILES],
    "operations": ["mkfs", "operation", *FILES],
    "filesystems": ["filesystem", "journal", *SQLITE],
    "filesystem-syncs": ["filesystem", "operation", *FILES],
}


def results(name):
    """The definition, and what was measured of it."""
    definition = experiment.Definition.read(HERE / f"{name}.toml")
    return definition, experiment.Results(next(HERE.glob(f"{name}.*jsonl")), definition, to_write=False)


def shown(column, value):
    """Bytes are whole, all other quotients have two digits after the point."""
    if not isinstance(value, (int, float)):
        return value or "–"
    if column.endswith("_ci_percent"):
        return f"{value:.1f}"
    if column.endswith("_bytes"):
        return f"{value:,.0f}"
    return f"{value:,.2f}" if isinstance(value, float) else str(value)


def markdown(table):
    columns = list(table[0])
    print("|", " | ".join(columns), "|")
    print("|", " | ".join("---" for _ in columns), "|")
    for row in table:
        print("|", " | ".join(shown(*cell) for cell in row.items()), "|")
    print()


def cells(name, wanted):
    """The columns that are wanted and say anything."""
    table = experiment.table(*results(name))
    says = [column for column in wanted if any(row.get(column) not in (None, "", 0) for row in table)]
    return [{column: row[column] for column in says} for row in table]


def claims(kind):
    """Cells in which a claim comes to the same are one row."""
    groups = {}
    for name in TABLES:
        for _, row in experiment.judged(*results(name)):
            if row["kind"] == kind:
                groups.setdefault((name, *(v for c, v in row.items() if c != "cell")), []).append(row)
    for (name, *_), same in groups.items():
        row = same[0]
        # Of each parameter the values that it has in these cells.
        words = [dict(word.partition("=")[::2] for word in other["cell"].split(" ")) for other in same]
        values = {parameter: "|".join(dict.fromkeys(other[parameter] for other in words)) for parameter in words[0]}
        cell = row["cell"] if len(same) == 1 else " ".join(f"{p}={v}" for p, v in values.items())
        count = f" ({len(same)} cells)" if len(same) > 1 else ""
        slack = row["tolerance_percent"]
        control = f"{row['control']}: {row['control_ours']:,.2f}" if row["control_ours"] is not None else ""
        yield {
            "cell": f"{name}: {cell}{count}".replace("|", "/"),
            "figure": row["figure"],
            "unit": row["unit"],
            "claimed": row["claimed"] + (f" ± {slack:.0f} %" if slack else ""),
            "ours": row["ours"],
            "verdict": row["verdict"],
            "control cell": control,
            "why": row["why"],
            "source": row["source"],
        }


for name, columns in TABLES.items():
    print(f"## {name}\n")
    markdown(cells(name, columns))
for kind in ["published", "ours"]:
    print(f"## {kind}\n")
    markdown(list(claims(kind)))
