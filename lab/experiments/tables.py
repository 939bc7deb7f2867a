#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Prints every row of the results that lie here; docs/FIGURES.md has the most important ones.

usage: tables.py [MOSTRACE]     the program that reads them; the one on PATH by default
"""
import csv
import io
import pathlib
import subprocess
import sys

MOSTRACE = sys.argv[1] if len(sys.argv) > 1 else "mostrace"
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


def rows(name, *options):
    """What `experiment` says, a dict for each row."""
    results = next(HERE.glob(f"{name}.*jsonl"))
    command = [MOSTRACE, "experiment", HERE / f"{name}.toml", "--results", results, "--no-run", "--format", "csv", *options]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return list(csv.DictReader(io.StringIO(text)))


def shown(column, value):
    """Bytes are whole, all other quotients have two digits after the point."""
    try:
        number = float(value)
    except ValueError:
        return value or "–"
    if column.endswith("_ci_percent"):
        return f"{number:.1f}"
    if column.endswith("_bytes"):
        return f"{number:,.0f}"
    return f"{number:,.2f}" if "." in value else value


def markdown(table):
    columns = list(table[0])
    print("|", " | ".join(columns), "|")
    print("|", " | ".join("---" for _ in columns), "|")
    for row in table:
        print("|", " | ".join(shown(*cell) for cell in row.items()), "|")
    print()


def cells(name, wanted):
    """The columns that are wanted and say anything."""
    table = rows(name)
    says = [column for column in wanted if any(row.get(column) not in (None, "", "0.0") for row in table)]
    return [{column: row[column] for column in says} for row in table]


def claims(kind):
    """Cells in which a claim comes to the same are one row."""
    groups = {}
    for name in TABLES:
        for row in rows(name, "--claims"):
            if row["kind"] == kind:
                groups.setdefault((name, *(v for c, v in row.items() if c != "cell")), []).append(row)
    for (name, *_), same in groups.items():
        row = same[0]
        # Of each parameter the values that it has in these cells.
        words = [dict(word.partition("=")[::2] for word in other["cell"].split(" ")) for other in same]
        values = {parameter: "|".join(dict.fromkeys(other[parameter] for other in words)) for parameter in words[0]}
        cell = row["cell"] if len(same) == 1 else " ".join(f"{p}={v}" for p, v in values.items())
        count = f" ({len(same)} cells)" if len(same) > 1 else ""
        slack = float(row["tolerance_percent"])
        control = f"{row['control']}: {float(row['control_ours']):,.2f}" if row["control_ours"] else ""
        yield {
            "cell": f"{name}: {cell}{count}".replace("|", "/"),
            "figure": row["figure"],
            "unit": row["unit"],
            "claimed": row["claimed"] + (f" ± {slack:.0f} %" if slack else ""),
            "ours": f"{float(row['ours']):.2f}",
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
