# SPDX-License-Identifier: MIT OR Apache-2.0
"""Charts of a recording. Each shows every byte, or every request: what is too small for a mark of its own is in one that says
so. Altair draws at most 5,000 rows, and no chart has more."""

from __future__ import annotations

try:
    import altair
except ImportError as error:
    raise ImportError("charts need Altair: pip install 'mostrace[plot]'") from error

from . import _cdf, _flash, _icicle, _timeline
from ._drawn import Drawn


class Plots:
    """Charts of a recording. Altair's methods go on from there: `.properties(width=…)`, `.save("chart.html")`."""

    def __init__(self, run: Drawn) -> None:
        self._run = run

    def timeline(self, by: str | None = None, every: str | None = None) -> altair.Chart:
        """Returns a chart of the bytes written in each interval of time, such as "100ms", stacked by a column, or by default
        by what they are. By default there are at most 200 intervals. Of a column, the eight values with the most bytes have a
        colour each.

        Raises ValueError if the recording does not have the wall clock's time.

        >>> chart = read("sample-traces/wal.most.tar.zst").plot.timeline(by="cause_process")
        >>> int(chart.data["bytes"].sum())
        30650368
        """
        return _timeline.draw(self._run, by, every)

    def cdf(self, column: str = "d2c_ns", by: str = "op", table: str = "requests") -> altair.Chart:
        """Returns a chart of the share of requests that took at most so long: from issue to completion, unless another column
        in ns is named. `table` may be another one that has such a column, such as "transactions" with "duration_ns".

        A line has at most 400 steps; each ends where the last of its requests does, so that no share is too high.

        >>> run = read("sample-traces/wal.most.tar.zst")
        >>> chart = run.plot.cdf("duration_ns", by="database", table="transactions")
        >>> float(chart.data["share"].max())
        1.0
        """
        return _cdf.draw(self._run, column, by, table)

    def icicle(self) -> altair.LayerChart:
        """Returns a chart of the bytes that reached the device: all of them, then by the programs and databases that caused
        them, by layers, and by kinds of blocks. Parts of less than a four-hundredth are drawn as one.

        >>> chart = read("sample-traces/wal.most.tar.zst").plot.icicle()
        >>> chart.data.filter(chart.data["depth"] == 1)["bytes"].max()
        30554661
        """
        return _icicle.draw(self._run.tree)

    def flash(self, **options: str | int) -> altair.Chart:
        """Returns a chart of what a model of a drive writes to its flash for each byte that it is given, over levels of fill: what it is given, and whose data it moves. Options are those of `Run.flash`.

        >>> chart = read("sample-traces/wal.most.tar.zst").plot.flash(capacity="512MiB", block="1M")
        >>> float(chart.data["ratio"].min())
        1.0
        """
        return _flash.draw(self._run.flash(**options))
