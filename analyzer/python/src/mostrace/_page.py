# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a notebook shows of a recording. Names in a recording may be anybody's, so every text is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import polars

from ._meaning import COLOURS, meaning

CELL = "padding:1px 12px 1px 0;text-align:left"
NUMBER = "padding:1px 12px 1px 0;text-align:right;font-variant-numeric:tabular-nums"


def page(finding: str, warnings: Sequence[str], written: polars.DataFrame) -> str:
    """Returns the finding, what is missing, and what the written bytes are. `written` are sums by class and role."""
    sums = written.group_by(meaning()).agg(polars.col("write_bytes", "writes").sum())
    rows = sums.filter(polars.col("write_bytes") > 0).sort("write_bytes", descending=True)
    whole = int(rows["write_bytes"].sum())
    lines = "".join(_row(what, size, writes, whole) for what, size, writes in rows.rows())
    head = "".join(
        f"<th style='{style}'>{title}</th>"
        for style, title in [(CELL, "written"), (NUMBER, "bytes"), (NUMBER, "writes"), (CELL, "")]
    )
    told = "".join(f"<div>⚠ {escape(line)}</div>" for line in warnings)
    table = f"<table style='border-collapse:collapse;margin-top:6px'><tr>{head}</tr>{lines}</table>" if lines else ""
    return f"<div style='max-width:72em'>{told}<div><b>{escape(finding)}</b></div>{table}</div>"


def _row(what: str, size: int, writes: int, whole: int) -> str:
    share = size / whole
    bar = f"<div style='background:{COLOURS[what]};height:0.8em;width:{max(share * 16, 0.1):.1f}em'></div>"
    cells = [(CELL, escape(what)), (NUMBER, f"{size:,}"), (NUMBER, f"{writes:,}"), (CELL, bar), (NUMBER, f"{share:.0%}")]
    return "<tr>" + "".join(f"<td style='{style}'>{cell}</td>" for style, cell in cells) + "</tr>"
