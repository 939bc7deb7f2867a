#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Prints the tables of docs/EXPERIMENTS.md from the results that lie here.

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
CLAIMS = ["cell", "figure", "unit", "claimed", "tolerance_percent", "ours", "verdict", "control", "control_ours", "why", "source"]
TABLES = {
    "ext4-matrix": ["journal", "sync", "op", *SQLITE, "amplification", "main_cause"],
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
    if column == "write_bytes_ci_percent":
        return f"{number:.1f}"
    if column.endswith("_bytes"):
        return f"{number:,.0f}"
    return value if number.is_integer() and "." not in value else f"{number:,.2f}"


def markdown(columns, table):
    print("|", " | ".join(columns), "|")
    print("|", " | ".join("---" for _ in columns), "|")
    for row in table:
        print("|", " | ".join(shown(column, row[column]) for column in columns), "|")
    print()


for name, columns in TABLES.items():
    table = rows(name)
    print(f"## {name}\n")
    markdown([column for column in columns if any(row.get(column) not in (None, "", "0.0") for row in table)], table)

for kind in ["published", "ours"]:
    print(f"## {kind}\n")
    claims = [dict(row, cell=f"{name}: {row['cell']}") for name in TABLES for row in rows(name, "--claims")]
    markdown(CLAIMS, [row for row in claims if row["kind"] == kind])
