# SPDX-License-Identifier: MIT OR Apache-2.0
"""A recording."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

import polars

from . import _frames
from ._frames import Frame, Frames
from ._page import page
from ._program import Source, option, path_of, run, run_frame, run_json

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from ._plot import Plots


class Bundles:
    """Recordings as the program's verbs take them, and what the program says of them, which is kept."""

    def __init__(self, sources: Sequence[Source], options: Sequence[str] = (), folder: str | None = None) -> None:
        """`folder` is removed when nobody uses the recording any more."""
        self.paths = tuple(path_of(source) for source in sources)
        self.options = tuple(options)
        if folder:
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    @property
    def args(self) -> tuple[str, ...]:
        """The arguments that name them."""
        return (*self.options, *self.paths)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """See Run.summary."""
        said: dict[str, Any] = run_json("analyze", *self.args, "--full", "--json")
        return said

    @cached_property
    def tree(self) -> dict[str, Any]:
        """See Run.tree."""
        said: dict[str, Any] = run_json("analyze", *self.args, "--tree", "--json")
        return said


class Run(Generic[Frame]):
    """A recording, or several that are read as one: `mostrace.read` opens it.

    Tables are frames of polars; those of `run.pandas` and `run.arrow` are frames of pandas and tables of Arrow. A value that
    is unknown or does not apply is null, and integers stay integers. The program reads the recording whenever a table is
    asked for; nothing but summaries is kept."""

    def __init__(self, bundles: Bundles, frames: Frames[Frame]) -> None:
        self._bundles = bundles
        self._frames = frames

    def __repr__(self) -> str:
        return f"mostrace.read({', '.join(map(repr, self.sources))})"

    @property
    def sources(self) -> tuple[str, ...]:
        """The paths of the bundles, as they were given."""
        return self._bundles.paths

    @property
    def polars(self) -> Run[polars.DataFrame]:
        """The same recording with frames of polars."""
        return Run(self._bundles, _frames.of_polars())

    @property
    def pandas(self) -> Run[pandas.DataFrame]:
        """The same recording with frames of pandas. Their columns are Arrow's, so that integers stay integers where some are
        unknown.

        >>> str(read("sample-traces/wal.most.tar.zst").pandas.events("inode").dtypes["inode"])
        'int64[pyarrow]'
        """
        return Run(self._bundles, _frames.of_pandas())

    @property
    def arrow(self) -> Run[pyarrow.Table]:
        """The same recording with tables of Arrow."""
        return Run(self._bundles, _frames.of_arrow())

    def events(self, *columns: str, where: str | None = None) -> Frame:
        """Returns the rows: one is a run of a completed request's sectors with one answer. The columns are in docs/SCHEMA.md;
        by default they are all but the derived ones.

        `where` is an SQL condition over the columns.

        >>> run = read("sample-traces/wal.most.tar.zst")
        >>> journal = run.events("kind", "bytes", where="class = 'journal' AND op = 'write'")
        >>> int(journal["bytes"].sum())
        21852160
        """
        chosen = option("columns", ",".join(columns)) if columns else []
        return run_frame(self._frames, "events", *self._bundles.args, *chosen, *option("where", where))

    def query(self, sql: str) -> Frame:
        """Returns the answer to a query in SQL over events, requests, causes, processes, files, recordings and transactions.

        >>> run = read("sample-traces/wal.most.tar.zst")
        >>> run.query("SELECT sum(bytes) AS bytes FROM events WHERE role = 'wal' AND op = 'write'").item()
        8577024
        """
        return run_frame(self._frames, "query", *self._bundles.args, "--", sql)

    def requests(self) -> Frame:
        """Returns a row for each completed request."""
        return self.query("SELECT * FROM requests")

    def causes(self) -> Frame:
        """Returns a row for each share that a cause has in an event; the bytes of an event's shares sum to its own."""
        return self.query("SELECT * FROM causes")

    def processes(self) -> Frame:
        """Returns a row for each name of a thread; the first one stands for unknown threads."""
        return self.query("SELECT * FROM processes")

    def files(self) -> Frame:
        """Returns a row for each file; the first one stands for blocks of no file."""
        return self.query("SELECT * FROM files")

    def recordings(self) -> Frame:
        """Returns a row for each recording, with its kernel, its disk and its filesystem."""
        return self.query("SELECT * FROM recordings")

    def transactions(self) -> Frame:
        """Returns a row for each committed transaction of SQLite's that the calls show, in the order of the commits.
        `summary` says whether there may be more.

        >>> run = read("sample-traces/wal.most.tar.zst")
        >>> run.transactions()["database"].unique().to_list()
        ['/app/test.db']
        """
        return self.query("SELECT * FROM transactions")

    def by(self, *columns: str, every: str | None = None, where: str | None = None) -> Frame:
        """Returns the sums of the rows by columns, and by intervals of time such as "1s" if `every` is given. `time_utc` is
        the beginning of an interval; it is null if the recording does not have the wall clock's time.

        >>> run = read("sample-traces/wal.most.tar.zst")
        >>> run.by("class")["class", "write_bytes"].rows()
        [('journal', 21852160), ('data', 8765440), ('metadata', 32768), (None, 0)]
        """
        grouping = option("by", ",".join(columns)) if columns else []
        args = (*self._bundles.args, *grouping, *option("every", every), *option("where", where))
        if not every:
            return run_frame(self._frames, "analyze", *args)
        sums = run_frame(_frames.of_polars(), "analyze", *args)
        return self._frames.of(sums.with_columns(polars.col("time_utc").str.to_datetime(time_zone="UTC")))

    @property
    def summary(self) -> dict[str, Any]:
        """Everything that `mostrace analyze --full --json` prints."""
        return self._bundles.summary

    @property
    def tree(self) -> dict[str, Any]:
        """What was written, from its owners down to the kinds of blocks: what `mostrace analyze --tree --json` prints.

        >>> tree = read("sample-traces/wal.most.tar.zst").tree
        >>> [(owner["database"], owner["device"]["bytes"]) for owner in tree["owners"][:1]]
        [('/app/test.db', 30554661)]
        """
        return self._bundles.tree

    @property
    def finding(self) -> str:
        """What the recording shows, in one line. `summary["finding"]` has its parts.

        >>> print(read("sample-traces/wal.most.tar.zst").finding)
        Each of 1,000 transactions stored 108 B and wrote 30.7 kB: 284 × what was stored, 6.6 × what was passed to write().
        """
        return str(self.summary["finding"]["headline"])

    @property
    def warnings(self) -> list[str]:
        """What is missing from the recording, or may mislead."""
        return list(self.summary["warnings"])

    def amplification(self) -> Frame:
        """Returns the bytes at each level: the application's payload, its files, the device. There is no row if the
        application did not say what it stored."""
        return self._frames.of(polars.DataFrame(self.summary.get("amplification") or []))

    def flash(self, **options: str | int) -> dict[str, Any]:
        """Returns what a model of a drive writes to its flash if the recording is repeated on it: everything that
        `mostrace flash --json` prints. Options are those of `mostrace flash`, by their names with `_` for `-`.

        >>> said = read("sample-traces/wal.most.tar.zst").flash(capacity="512MiB", block="1M", fill="50%")
        >>> said["model"]["at"]["ratio"]
        1.0
        """
        given = [word for name, value in options.items() for word in option(name.replace("_", "-"), value)]
        said: dict[str, Any] = run_json("flash", *self._bundles.args, *given, "--json")
        return said

    def report(self, output: Source) -> Path:
        """Writes the page of `mostrace report`, and returns its path."""
        run("report", *self._bundles.args, f"--output={output}")
        return Path(output)

    @property
    def plot(self) -> Plots:
        """Charts, by Altair."""
        from ._plot import Plots

        return Plots(self.polars)

    def _repr_html_(self) -> str:
        return page(self.finding, self.warnings, self.polars.by("class", "role", where="op = 'write'"))
