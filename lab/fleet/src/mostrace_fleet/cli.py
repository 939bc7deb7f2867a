# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command `mostrace-fleet`."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from datetime import datetime, timezone

from . import ingest, report
from .program import MostraceError, program
from .table import Table

EXAMPLES = """\
Examples:
  mostrace-fleet ingest traces/ fleet/                      # on this machine, as many at once as it has cores
  mostrace-fleet report fleet/ --view worst_files           # DuckDB, in this process
  mostrace-fleet report fleet/ --sql "SELECT kernel, count(*) FROM recordings GROUP BY kernel"
  mostrace-fleet compact fleet/                             # few large files instead of many small ones
  mostrace-fleet ingest s3://bucket/traces fleet/ --spark spark://master:7077
"""


def main(arguments: list[str] | None = None) -> int:
    """Runs the command and returns its exit status: 1 if something could not be done or read, 2 for a wrong command line."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except MostraceError as error:
        print(f"mostrace-fleet: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mostrace-fleet",
        description="Thousands of mostrace's recordings as one table. docs/FLEET.md describes it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)

    verb = verbs.add_parser("ingest", help="add the recordings and ledgers in a folder that the table does not have")
    verb.add_argument("folder", help="where NAME.most.tar.zst, NAME.most and folders of ledgers lie; also s3://… and the like")
    verb.add_argument("table", help="the table; it is made if it does not exist")
    verb.add_argument("--workers", type=int, metavar="N", help="recordings that are analysed at once (by default the number of cores)")
    verb.add_argument(
        "--spark",
        nargs="?",
        const="",
        metavar="MASTER",
        help="let Spark's executors do it: spark://…, yarn, local-cluster[2,1,1024]; without MASTER, as spark-submit says",
    )
    verb.set_defaults(run=_ingest)

    verb = verbs.add_parser("report", help="answer a question about the table, or about a data set of `mostrace export`")
    verb.add_argument("table")
    question = verb.add_mutually_exclusive_group(required=True)
    question.add_argument("--view", choices=report.views(), help="one of the questions that come with this program")
    question.add_argument("--sql", help="a question of your own, over events, requests, causes, processes, files, calls, transactions, recordings, ledger, sources")
    verb.add_argument("--limit", type=int, default=40, metavar="N", help="rows of the table for people (40)")
    verb.add_argument("--csv", action="store_true", help="all rows, as CSV")
    verb.add_argument("--spark", nargs="?", const="", metavar="MASTER", help="let Spark answer instead of DuckDB")
    verb.set_defaults(run=_report)

    verb = verbs.add_parser("compact", help="replace many small files by few large ones; the rows stay")
    verb.add_argument("table")
    verb.add_argument(
        "--vacuum",
        type=int,
        metavar="HOURS",
        help="remove the files that were replaced, or that killed writers left, more than HOURS ago; longer than any reader or writer takes",
    )
    verb.set_defaults(run=_compact)

    verb = verbs.add_parser("views", help="print the SQL of the questions that come with this program")
    verb.set_defaults(run=_views)
    return parser


def _ingest(options: argparse.Namespace) -> int:
    mostrace = program()
    today = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    with contextlib.ExitStack() as stack:
        if options.spark is None:
            mapper = ingest.in_processes(options.workers)
        else:
            from . import spark

            session = stack.enter_context(spark.session(options.spark or None))
            mapper = spark.in_executors(session, mostrace)
        done = ingest.run(options.folder, options.table, mostrace, mapper, only_closed=today)
    for one in done.broken:
        print(f"mostrace-fleet: {one.source.url}: left out: {one.error}", file=sys.stderr)
    print(f"{done.found} found: {done.added} added, {done.known} already there, {len(done.broken)} left out")
    return 1 if done.broken else 0


def _report(options: argparse.Namespace) -> int:
    sql = report.view(options.view) if options.view else options.sql
    if options.spark is None:
        names, rows = _by_duckdb(options.table, sql)
    else:
        from . import spark

        with spark.session(options.spark or None) as session:
            names, rows = spark.ask(session, Table(options.table), sql)
    if options.csv:
        import csv

        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
    else:
        _print(names, rows, options.limit)
    return 0


def _by_duckdb(table: str, sql: str) -> tuple[list[str], list[tuple]]:
    import duckdb

    try:
        answer = report.connect(table).execute(sql)
        return [one[0] for one in answer.description], answer.fetchall()
    except duckdb.Error as error:
        raise MostraceError(str(error).split("\n", 1)[0]) from None


def _print(names: list[str], rows: list[tuple], limit: int) -> None:
    """Prints a table for people: numbers to the right, in groups of three."""

    def text(value: object) -> str:
        if value is None:
            return "-"
        return f"{value:,}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)

    shown = [[text(value) for value in row] for row in rows[:limit]]
    widths = [max(map(len, column)) for column in zip(names, *shown, strict=True)]
    right = [all(isinstance(row[at], (int, float, type(None))) for row in rows[:limit]) for at in range(len(names))]
    for line in [list(names), *shown]:
        cells = [cell.rjust(width) if to else cell.ljust(width) for cell, width, to in zip(line, widths, right, strict=True)]
        print("  ".join(cells).rstrip())
    if len(rows) > limit:
        print(f"… and {len(rows) - limit:,} more rows (--limit, --csv)")


def _compact(options: argparse.Namespace) -> int:
    table = Table(options.table)
    done = table.compact()
    print(
        f"{done.files_before} files of {done.bytes_before:,} bytes became {done.files_after} of {done.bytes_after:,} bytes, "
        f"on {len(done.days)} days"
    )
    if options.vacuum is not None:
        print(f"{table.vacuum(options.vacuum)} files removed")
    return 0


def _views(_: argparse.Namespace) -> int:
    for name, sql in report.views().items():
        print(f"-- {name}\n{sql}")
    return 0
