# SPDX-License-Identifier: MIT OR Apache-2.0
"""Charts of a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair
import polars

if TYPE_CHECKING:
    from ._recording import Run


# Altair refuses to draw more than 5,000 rows.
STEPS = 1000
INTERVALS = 200


class Plots:
    """Charts of a recording; Altair's methods go on from there (`.properties(width=…)`, `.save(…)`)."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def timeline(self, by: str = "class", every: str | None = None) -> altair.Chart:
        """Bytes written in each interval of time, such as "100ms", stacked by a column. By default there are at most 200
        intervals."""
        every = every or _interval(self._run.summary["duration_ns"])
        sums = self._run.by(by, every=every, where="op = 'write'")
        sums = sums.with_columns(polars.col(by).fill_null("unknown"))
        return (
            altair.Chart(sums)
            .mark_bar()
            .encode(
                x=altair.X("time_utc:T", title="time (UTC)"),
                y=altair.Y("write_bytes:Q", title=f"bytes written in {every}", axis=altair.Axis(format="~s")),
                color=altair.Color(f"{by}:N", title=by),
                tooltip=[by, "time_utc:T", altair.Tooltip("write_bytes:Q", format=",")],
            )
        )

    def cdf(self, column: str = "d2c_ns", by: str = "op") -> altair.Chart:
        """The share of requests that took at most so long, from issue to completion unless another column is named. Steps are
        at most a thousandth high, and end where the last of their requests does."""
        requests = self._run.query(f'SELECT "{by}", "{column}" FROM requests WHERE "{column}" IS NOT NULL')
        steps = (
            requests.sort(column)
            .with_columns((polars.int_range(1, polars.len() + 1) / polars.len()).over(by).alias("share"))
            .group_by(by, (polars.col("share") * STEPS).ceil().alias("step"))
            .agg(polars.col("share").max(), polars.col(column).max())
            .with_columns((polars.col(column) / 1e6).alias("ms"))
            .sort(by, "ms")
        )
        return (
            altair.Chart(steps)
            .mark_line(interpolate="step-after")
            .encode(
                x=altair.X("ms:Q", scale=altair.Scale(type="log"), title=f"{column.removesuffix('_ns')} (ms)"),
                y=altair.Y("share:Q", title="share of requests", axis=altair.Axis(format="%")),
                color=altair.Color(f"{by}:N"),
            )
        )

    def icicle(self) -> altair.LayerChart:
        """The bytes that reached the device, from their owners down to the kinds of blocks."""
        parts: list[dict[str, Any]] = []
        begin = 0.0
        for owner in self._run.tree["owners"]:
            top = {**owner["device"], "name": _owner(owner)}
            begin = _lay(parts, top, begin, 0)
        frame = polars.DataFrame(parts, schema=["name", "bytes", "from", "to", "depth", "under"], orient="row")
        base = altair.Chart(frame).encode(
            x=altair.X("from:Q", title="bytes written", axis=altair.Axis(format="~s")),
            x2="to:Q",
            y=altair.Y("depth:O", title=None, axis=None),
        )
        bars = base.mark_bar(stroke="white").encode(
            color=altair.Color("under:N", title=None),
            tooltip=["name", altair.Tooltip("bytes:Q", format=",")],
        )
        middle = "(datum.from + datum.to) / 2"
        wide = f"datum.bytes > {begin / 8}"
        names = base.transform_filter(wide).transform_calculate(middle=middle)
        return bars + names.mark_text(limit=150).encode(x="middle:Q", x2=altair.Undefined, text="name")


def _interval(duration_ns: int) -> str:
    """The shortest of 1, 2, 5, 10, 20 … ms of which so long a time has at most INTERVALS."""
    ms = 1
    while duration_ns > ms * 1_000_000 * INTERVALS:
        ms = ms * 5 // 2 if str(ms).startswith("2") else ms * 2
    return f"{ms}ms"


def _owner(owner: dict[str, Any]) -> str:
    return str(owner.get("database") or owner.get("program") or owner.get("name") or "other")


def _lay(parts: list[dict[str, Any]], part: dict[str, Any], begin: float, depth: int, under: str | None = None) -> float:
    """Places a part and those below it; returns where it ends."""
    name = part["name"]
    under = under or (name if depth == 1 else None)
    end = begin + part["bytes"]
    parts.append(
        {"name": name, "bytes": part["bytes"], "from": begin, "to": end, "depth": depth, "under": under or "all"}
    )
    for below in part["parts"]:
        begin = _lay(parts, below, begin, depth + 1, under)
    return end
