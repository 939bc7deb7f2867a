# SPDX-License-Identifier: MIT OR Apache-2.0
"""Bytes over time."""

from __future__ import annotations

from datetime import datetime
import altair
import polars

from . import _series
from ._drawn import Drawn
from ._meaning import meaning

# Intervals, at most.
INTERVALS = 200
# A recording that is shorter has its seconds on the axis, ns.
SHORT_NS = 600 * 10**9
UNITS_US = {"us": 1, "ms": 10**3, "s": 10**6, "m": 60 * 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6}


def draw(run: Drawn, by: str | None, every: str | None) -> altair.Chart:
    """See Plots.timeline."""
    duration_ns = int(run.summary["duration_ns"])
    every = every or _interval(duration_ns)
    sums = run.by(*([by] if by else ["class", "role"]), every=every, where="op = 'write'")
    sums = sums.filter(polars.col("write_bytes") > 0)
    begin = sums["time_utc"].min()
    if sums["time_utc"].null_count() > 0 or not isinstance(begin, datetime):
        raise ValueError("the recording has no writes, or not the wall clock's time: use events() and its column time_ns")
    what = _series.text(by) if by else meaning()
    rows = sums.select("time_utc", what.alias("what"), polars.col("write_bytes").alias("bytes"))
    series = _series.of_column(rows, "bytes") if by else _series.of_meaning(rows)
    since_us = (polars.col("time_utc") - begin).dt.total_microseconds()
    length_us = _microseconds(every)
    frame = (
        series.frame.group_by("time_utc", "what", "rank")
        .agg(polars.col("bytes").sum())
        .with_columns(
            (since_us / 1e6).alias("from"),
            ((since_us + length_us) / 1e6).alias("to"),
            (polars.col("time_utc") + polars.duration(microseconds=length_us)).alias("to_utc"),
        )
        .sort("time_utc", "rank")
        # Vega-Lite stacks no bars that have two ends in time.
        .with_columns(polars.col("bytes").cum_sum().over("time_utc").alias("top"))
        .with_columns((polars.col("top") - polars.col("bytes")).alias("bottom"))
    )
    chart: altair.Chart = (
        altair.Chart(frame)
        .mark_rect()
        .encode(
            x=_time(begin if duration_ns < SHORT_NS else None),
            x2="to" if duration_ns < SHORT_NS else "to_utc",
            y=altair.Y("bottom:Q", title=f"bytes written in {every}", axis=_series.sizes()),
            y2="top",
            color=series.colour(by or "written", "square"),
            tooltip=[
                altair.Tooltip("what:N", title=by or "written"),
                altair.Tooltip("bytes:Q", format=","),
                altair.Tooltip("from:Q", title="from, s", format=",.6~f"),
            ],
        )
        .properties(width=640, height=240)
    )
    return chart


def _time(begin: datetime | None) -> altair.X:
    """The axis: seconds since a moment if there is one, else the time of day."""
    axis = altair.Axis(grid=False)
    if begin:
        return altair.X("from:Q", title=f"seconds since {begin:%Y-%m-%d %H:%M:%S} UTC", axis=axis)
    return altair.X("time_utc:T", title="time (UTC)", scale=altair.Scale(type="utc"), axis=axis)


def _interval(duration_ns: int) -> str:
    """The shortest of 1, 2, 5, 10, 20 … ms of which so long a time has at most INTERVALS."""
    ms = 1
    while duration_ns > ms * 10**6 * INTERVALS:
        ms = ms * 5 // 2 if str(ms).startswith("2") else ms * 2
    return f"{ms}ms"


def _microseconds(every: str) -> int:
    """The length of an interval as the program reads it: a number with a unit, seconds without one."""
    digits = every.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = every[len(digits) :].strip() or "s"
    return round(float(digits) * UNITS_US[unit])
