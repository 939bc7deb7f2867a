# SPDX-License-Identifier: MIT OR Apache-2.0
"""How long requests took, as a cumulative distribution."""

from __future__ import annotations

import altair
import polars

from . import _series
from ._drawn import Drawn

# Steps of a line, at most.
STEPS = 400
# An axis of logarithms has no place for 0, and a µs is less than any device takes.
LEAST_NS = 1000
NAMES = {
    "q2d_ns": "from queueing to issue",
    "d2c_ns": "from issue to completion",
    "q2c_ns": "from queueing to completion",
}
EMPTY = {"ns": polars.Int64, "share": polars.Float64, "what": polars.String, "order": polars.Int32}
SHARES = [0, 0.25, 0.5, 0.75, 0.9, 1]


def draw(run: Drawn, column: str, by: str, table: str) -> altair.Chart:
    """See Plots.cdf."""
    by_, column_, table_ = (_quoted(name) for name in (by, column, table))
    took = run.query(f"SELECT {by_} AS what, {column_} AS ns FROM {table_} WHERE {column_} IS NOT NULL")
    series = _series.of_column(took.with_columns(_series.text("what"), polars.lit(1).alias("count")), "count")
    lines = [_steps(rows).with_columns(what=polars.lit(what), order=order) for order, (what, rows) in enumerate(_lines(series))]
    frame = polars.concat(lines) if lines else polars.DataFrame(schema=EMPTY)
    frame = frame.with_columns((polars.col("ns").clip(LEAST_NS) / 1e6).alias("ms"))
    counted = _series.Series(frame, frame["what"].unique(maintain_order=True).to_list(), series.colours)
    name = NAMES.get(column, column.removesuffix("_ns").replace("_", " "))
    chart: altair.Chart = (
        altair.Chart(frame)
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=altair.X("ms:Q", title=f"{name}, ms", scale=altair.Scale(type="log"), axis=altair.Axis(format="~g", tickCount=6)),
            y=altair.Y(
                "share:Q",
                title=f"share of {table}",
                scale=altair.Scale(domain=[0, 1]),
                axis=altair.Axis(format="%", values=SHARES),
            ),
            color=counted.colour(by, "stroke"),
            order=altair.Order("share:Q"),
            tooltip=[
                altair.Tooltip("what:N", title=by),
                altair.Tooltip("ms:Q", format=",.6~g"),
                altair.Tooltip("share:Q", format=".1%"),
            ],
        )
        .properties(width=640, height=280)
    )
    return chart


def _lines(series: _series.Series) -> list[tuple[str, polars.Series]]:
    """The times of each value, under its name with their number."""
    of = [series.frame.filter(polars.col("what") == what)["ns"] for what in series.values]
    return [(f"{what} ({times.len():,})", times) for what, times in zip(series.values, of, strict=True)]


def _steps(times: polars.Series) -> polars.DataFrame:
    """The line's corners: the share of the times that are at most `ns`, from 0 to 1."""
    ordered = times.sort()
    count = ordered.len()
    ends = sorted({-(-count * step // STEPS) for step in range(1, STEPS + 1)})
    corners = polars.DataFrame({"ns": ordered.gather([end - 1 for end in ends]), "share": [end / count for end in ends]})
    return polars.concat([polars.DataFrame({"ns": ordered.head(1), "share": [0.0]}), corners])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
