# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command `mostrace-fleet`."""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import sys
from datetime import datetime, timezone

from . import ingest, report
from .ingest import MostraceError

EXAMPLES = """\
Examples:
  mostrace-fleet ingest traces/ fleet/                      # on this machine, as many at once as it has cores
  mostrace-fleet report fleet/ --view worst_files           # DuckDB, in this process
  mostrace-fleet report fleet/ --sql "SELECT kernel, count(*) FROM recordings GROUP BY kernel"
  mostrace-fleet ingest traces/ /shared/fleet --spark spark://master:7077
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
        description="Thousands of mostrace's recordings as one data set. docs/FLEET.md describes it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    spark = {"nargs": "?", "const": "", "metavar": "MASTER"}

    verb = verbs.add_parser("ingest", help="add the recordings and ledgers in a folder that the data set does not have")
    verb.add_argument("folder", help="where NAME.most.tar.zst, NAME.most and folders of ledgers lie")
    verb.add_argument("data_set", help="the folder of the data set; it is made if it does not exist")
    verb.add_argument("--workers", type=int, metavar="N", help="recordings that are analysed at once (by default the number of cores)")
    verb.add_argument(
        "--spark",
        help="let Spark's executors do it, which see both folders: spark://…, yarn, local-cluster[2,1,1024]; without MASTER, as "
        "spark-submit says",
        **spark,
    )
    verb.set_defaults(run=_ingest)

    verb = verbs.add_parser("report", help="answer a question about a data set")
    verb.add_argument("data_set")
    question = verb.add_mutually_exclusive_group(required=True)
    question.add_argument("--view", choices=report.views(), help="one of the questions that come with this program")
    question.add_argument("--sql", help=f"a question of your own, over {', '.join(report.RELATIONS)}")
    verb.add_argument("--limit", type=int, default=40, metavar="N", help="rows of the table for people (40)")
    verb.add_argument("--csv", action="store_true", help="all rows, as CSV")
    verb.add_argument("--spark", help="let Spark answer instead of DuckDB", **spark)
    verb.set_defaults(run=_report)

    verb = verbs.add_parser("views", help="print the SQL of the questions that come with this program")
    verb.set_defaults(run=_views)
    return parser


def _ingest(options: argparse.Namespace) -> int:
    mostrace = ingest.program()
    sources = ingest.find(options.folder, datetime.now(timezone.utc).strftime("%Y-%m-%d"))
    task = ingest.Add(mostrace, os.path.abspath(options.data_set))
    with contextlib.ExitStack() as stack:
        if options.spark is None:
            mapper = ingest.in_processes(options.workers)
        else:
            from . import spark

            mapper = spark.in_executors(stack.enter_context(spark.session(options.spark or None)), mostrace)
        outcomes = list(mapper(task, sources))
    for one in sorted(outcomes, key=lambda one: one.source.path):
        if one.error:
            print(f"mostrace-fleet: {one.source.path}: left out: {one.error}", file=sys.stderr)
    left_out = sum(one.error is not None for one in outcomes)
    # The same recording may lie there twice.
    added = len({one.added for one in outcomes} - {None})
    print(f"{len(sources)} found: {added} added, {len(sources) - left_out - added} already there, {left_out} left out")
    return 1 if left_out else 0


def _report(options: argparse.Namespace) -> int:
    sql = report.views()[options.view] if options.view else options.sql
    data_set = os.path.abspath(options.data_set)
    if options.spark is None:
        names, rows = report.ask(data_set, sql)
    else:
        from . import spark

        with spark.session(options.spark or None) as session:
            names, rows = spark.ask(session, data_set, sql)
    if options.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
    else:
        _print(names, rows, options.limit)
    return 0


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


def _views(_: argparse.Namespace) -> int:
    for name, sql in report.views().items():
        print(f"-- {name}\n{sql}")
    return 0
