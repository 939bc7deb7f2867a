# SPDX-License-Identifier: MIT OR Apache-2.0
"""A recording."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars

from ._program import MostraceError, run, run_frame, run_json

if TYPE_CHECKING:
    from ._plot import Plots

Source = str | os.PathLike[str]


class Run:
    """A recording, or several that are read as one.

    The program reads the recording whenever a table is asked for; nothing but summaries is kept."""

    def __init__(self, *sources: Source) -> None:
        """Takes bundles, segments or globs, as `mostrace analyze` does."""
        self.sources = tuple(os.fspath(source) for source in sources)

    def __repr__(self) -> str:
        return f"mostrace.read({', '.join(map(repr, self.sources))})"

    def events(self, *columns: str, where: str | None = None) -> polars.DataFrame:
        """The rows: a run of a completed request's sectors with one answer each. docs/SCHEMA.md has the columns.

        `where` is an SQL condition over the columns, for example "role = 'wal' AND bytes > 4096"."""
        args = ["--columns", ",".join(columns)] if columns else []
        return run_frame("events", *self.sources, *args, *_where(where))

    def query(self, sql: str) -> polars.DataFrame:
        """The answer to a query in SQL over events, requests, causes, processes and files."""
        if len(self.sources) != 1:
            raise MostraceError("query takes one source; a glob may name several recordings")
        return run_frame("query", self.sources[0], sql)

    def requests(self) -> polars.DataFrame:
        """One row for each completed request."""
        return self.query("SELECT * FROM requests")

    def causes(self) -> polars.DataFrame:
        """One row for each share that a cause has in an event; the bytes of an event's shares sum to its own."""
        return self.query("SELECT * FROM causes")

    def processes(self) -> polars.DataFrame:
        """One row for each thread; the first one stands for unknown threads."""
        return self.query("SELECT * FROM processes")

    def files(self) -> polars.DataFrame:
        """One row for each file; the first one stands for blocks of no file."""
        return self.query("SELECT * FROM files")

    def by(self, *columns: str, every: str | None = None, where: str | None = None) -> polars.DataFrame:
        """Sums of the rows by columns, and by intervals of time such as "1s" if `every` is given."""
        intervals = ["--every", every] if every else []
        grouping = ["--by", ",".join(columns)] if columns else []
        sums = run_frame("analyze", *self.sources, *grouping, *intervals, *_where(where))
        if not every:
            return sums
        return sums.with_columns(polars.col("time_utc").str.to_datetime(time_zone="UTC"))

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Everything that `mostrace analyze --full --json` prints."""
        return run_json("analyze", *self.sources, "--full", "--json")

    @cached_property
    def tree(self) -> dict[str, Any]:
        """What was written, from its owners down to the kinds of blocks."""
        return run_json("analyze", *self.sources, "--tree", "--json")

    @property
    def finding(self) -> str:
        """The recording in one sentence."""
        return self.summary["finding"]

    @property
    def warnings(self) -> list[str]:
        """What is missing from the recording, or may mislead."""
        return self.summary["warnings"]

    def amplification(self) -> polars.DataFrame:
        """Bytes at each level: the application's payload, its files, the device."""
        return polars.DataFrame(self.summary.get("amplification", []))

    def report(self, output: Source) -> Path:
        """Writes the page, and returns its path."""
        run("report", *self.sources, "-o", os.fspath(output))
        return Path(output)

    @property
    def plot(self) -> Plots:
        """Charts, by Altair."""
        from ._plot import Plots

        return Plots(self)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(str(row['class']))}</td><td>{row['write_bytes']:,}</td><td>{row['writes']:,}</td></tr>"
            for row in self.summary["by_class"]
            if row["write_bytes"]
        )
        warnings = "".join(f"<p>⚠ {html.escape(text)}</p>" for text in self.warnings)
        head = "<tr><th>class</th><th>bytes written</th><th>writes</th></tr>"
        return f"<p><b>{html.escape(self.finding)}</b></p>{warnings}<table>{head}{rows}</table>"


def _where(where: str | None) -> Sequence[str]:
    return ["--where", where] if where else []
