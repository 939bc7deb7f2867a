# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a model of a drive writes to its flash, over levels of fill, and whose data it moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair
import polars

from ._meaning import COLOURS, of_layer
from ._series import Series

# What is not moved on the account of the recording.
GIVEN, BEFORE, EMPTY = "what the device is given", "what was there before", "left empty by flushes"
OTHERS = {GIVEN: "#c9ced4", BEFORE: "#5b6570", EMPTY: "#cc79a7"}


def draw(said: dict[str, Any]) -> altair.Chart:
    """See Plots.flash."""
    colours = {GIVEN: OTHERS[GIVEN], **COLOURS, **OTHERS}
    frame = polars.DataFrame([row for level in said["model"]["curve"] for row in _parts(level)])
    used = [what for what in colours if what in frame["what"]]
    rank = polars.DataFrame({"what": used, "rank": range(len(used))})
    series = Series(frame.join(rank, on="what"), used, [colours[what] for what in used])
    chart: altair.Chart = (
        altair.Chart(series.frame, title=altair.TitleParams(said["about"], anchor="start", fontSize=11, fontWeight="normal"))
        .mark_bar()
        .encode(
            x=altair.X("full:O", title="full, %", axis=altair.Axis(labelAngle=0)),
            y=altair.Y("times:Q", title="bytes on the flash for each byte at the device", stack=True),
            color=series.colour("what it writes", "square"),
            order=altair.Order("rank:Q"),
            tooltip=["full:O", "what:N", altair.Tooltip("times:Q", format=".2f"), altair.Tooltip("ratio:Q", format=".2f")],
        )
        .properties(width=640, height=280)
    )
    return chart


def _parts(level: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The parts of a level's ratio, which sum to it."""
    sums = {GIVEN: level["ratio"] - level["moved"] - level["padded"], EMPTY: level["padded"]}
    for part in level["parts"]:
        what = BEFORE if part["layer"] == BEFORE else of_layer(part["layer"])
        sums[what] = sums.get(what, 0.0) + part["moved"]
    for what, times in sums.items():
        if times > 0:
            yield {"full": round(level["fill"] * 100, 1), "what": what, "times": times, "ratio": level["ratio"]}
