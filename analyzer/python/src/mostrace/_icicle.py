# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where the bytes went, from the device up to the kinds of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair
import polars

from ._meaning import COLOURS, of_layer
from ._series import safe, size, sizes

WIDTH = 720
# Widths of a letter, of a digit and of the space beside them in the same unit, and the height of a level.
LETTER, DIGIT, BESIDE = 6.8, 5.8, 8
LEVEL = 48
LEVELS = 4
# Parts with a smaller share are drawn as one.
NARROW = 1 / 400
# What belongs to no layer.
GROUND = ["#d9d6cf", "#e9e7e1"]
DARK, LIGHT = "#101214", "#ffffff"

# A part of the program's tree: its name, its bytes, its parts.
Part = dict[str, Any]
Cell = dict[str, Any]


def draw(tree: Part) -> altair.LayerChart:
    """See Plots.icicle."""
    owners = [{**owner["device"], "name": _owner(owner)} for owner in tree["owners"]]
    whole: Part = {"name": "the device", "bytes": sum(owner["bytes"] for owner in owners), "parts": owners}
    cells = polars.DataFrame(list(_laid(whole, 0, 0, max(whole["bytes"], 1), "")), infer_schema_length=None)
    x = altair.Scale(domain=[0, max(whole["bytes"], 1)], nice=False)
    base = altair.Chart(cells).encode(
        x=altair.X("from:Q", title="bytes written", scale=x, axis=_axis()),
        y=altair.Y("depth:Q", axis=None, scale=altair.Scale(domain=[LEVELS, 0], nice=False)),
        tooltip=["name:N", altair.Tooltip("bytes:Q", format=","), altair.Tooltip("percent:Q", title="%", format=".2~f")],
    )
    boxes = base.encode(x2="to", y2="below").mark_rect(stroke="white", strokeWidth=1)
    used = [what for what in COLOURS if what in cells["what"]]
    scale = altair.Scale(domain=used, range=[COLOURS[what] for what in used])
    legend = altair.Legend(title="written", orient="top", symbolType="square")
    layers = boxes.transform_filter("datum.what").encode(
        color=altair.Color("what:N", scale=scale, legend=legend),
        opacity=altair.condition("datum.depth == 3", altair.value(0.72), altair.value(1)),
    )
    grounds = [
        boxes.transform_filter(f"!datum.what && datum.depth == {depth}").encode(color=altair.value(colour))
        for depth, colour in enumerate(GROUND)
    ]
    ink = altair.condition("datum.what == 'databases' && datum.depth == 2", altair.value(LIGHT), altair.value(DARK))
    names = base.mark_text(align="left", baseline="top", dx=5, dy=9, fontSize=11, fontWeight="bold").encode(
        text="label:N", color=ink
    )
    numbers = base.mark_text(align="left", baseline="top", dx=5, dy=25, fontSize=11).encode(text="size:N", color=ink)
    return altair.LayerChart(layer=[*grounds, layers, names, numbers]).properties(width=WIDTH, height=LEVEL * LEVELS)


def _axis() -> altair.Axis:
    axis = sizes()
    axis.grid = False
    return axis


def _owner(owner: Part) -> str:
    process, database = owner["process"] or "unknown", owner["database"]
    return safe(f"{process} for {database}" if database else process)


def _laid(part: Part, begin: int, depth: int, whole: int, what: str) -> Iterator[Cell]:
    """The places of a part and of those in it, which lie side by side from its beginning on."""
    name, count = part["name"], part["bytes"]
    share = count / whole
    room = share * WIDTH - BESIDE
    yield {
        "name": name,
        "bytes": count,
        "percent": share * 100,
        "from": begin,
        "to": begin + count,
        "depth": depth,
        "below": depth + 1,
        "what": what,
        "label": _fitting(name, int(room / LETTER)),
        "size": size(count) if len(size(count)) * DIGIT <= room else "",
    }
    if depth + 1 < LEVELS:
        # A layer says what it is, and so are its parts.
        parts = [(below, of_layer(below["name"]) if depth == 1 else what) for below in part["parts"]]
        for below, its in _wide(parts, whole):
            yield from _laid(below, begin, depth + 1, whole, its)
            begin += below["bytes"]


def _wide(parts: list[tuple[Part, str]], whole: int) -> list[tuple[Part, str]]:
    """The parts with what they are; those that are too narrow are one for each of what they are."""
    wide = [(part, what) for part, what in parts if part["bytes"] >= whole * NARROW]
    narrow: dict[str, list[Part]] = {}
    for part, what in parts:
        if 0 < part["bytes"] < whole * NARROW:
            narrow.setdefault(what, []).append(part)
    return wide + [(_together(few), what) for what, few in narrow.items()]


def _together(parts: list[Part]) -> Part:
    """Several parts as one, whose own parts are theirs, by name."""
    if len(parts) == 1:
        return parts[0]
    below: dict[str, list[Part]] = {}
    for part in parts:
        for one in part["parts"]:
            below.setdefault(one["name"], []).append(one)
    merged = [{**_together(same), "name": name} for name, same in below.items()]
    merged.sort(key=lambda part: -int(part["bytes"]))
    return {"name": f"{len(parts)} others", "bytes": sum(part["bytes"] for part in parts), "parts": merged}


def _fitting(name: str, room: int) -> str:
    """As much of a name as there is room for; nothing if that says nothing."""
    if len(name) <= room:
        return name
    name = name.removeprefix("copies of ")
    if len(name) <= room:
        return name
    return f"{name[: room - 1]}…" if room >= 5 else ""
