# SPDX-License-Identifier: MIT OR Apache-2.0
"""The values of a column, each with its colour in a chart."""

from __future__ import annotations

from dataclasses import dataclass

import altair
import polars

from ._meaning import COLOURS

# Okabe and Ito's palette in the order in which it is used.
COLOURS_OF_VALUES = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#8f2f66", "#b8a800"]
REST = "#8d939c"


@dataclass(frozen=True)
class Series:
    """Rows, each with its value in `what`, and the value's place in the legend in `rank`."""

    frame: polars.DataFrame
    values: list[str]
    colours: list[str]

    def colour(self, title: str, symbol: str) -> altair.Color:
        """The channel of the colour, with a legend of the values."""
        legend = altair.Legend(labelLimit=260, symbolType=symbol)
        scale = altair.Scale(domain=self.values, range=self.colours)
        return altair.Color("what:N", scale=scale, title=safe(title), legend=legend)


def of_column(frame: polars.DataFrame, weight: str) -> Series:
    """Takes rows with their values in `what`; those values that have the largest sums of `weight` have a colour each, and
    the others one together."""
    sums = frame.group_by("what").agg(polars.col(weight).sum()).sort(weight, "what", descending=[True, False])
    most = len(COLOURS_OF_VALUES)
    own = sums["what"].head(most).to_list()
    rest = f"{sums.height - most} others"
    values = own + [rest] if sums.height > most else own
    ranked = polars.DataFrame({"what": sums["what"], "rank": [min(at, most) for at in range(sums.height)]})
    named = frame.join(ranked, on="what").with_columns(
        polars.when(polars.col("rank") < most).then("what").otherwise(polars.lit(rest)).alias("what")
    )
    return Series(named, values, [*COLOURS_OF_VALUES, REST][: len(values)])


def of_meaning(frame: polars.DataFrame) -> Series:
    """Takes rows with what they are in `what`, as `_meaning.meaning()` says it."""
    values = [what for what in COLOURS if what in frame["what"]]
    ranked = polars.DataFrame({"what": values, "rank": range(len(values))}, schema_overrides={"what": polars.String})
    return Series(frame.join(ranked, on="what"), values, [COLOURS[what] for what in values])


def text(column: str) -> polars.Expr:
    """A column's values as the texts of a chart; what is null is unknown."""
    return safe_of(polars.col(column).cast(polars.String).fill_null("unknown"))


def safe_of(texts: polars.Expr) -> polars.Expr:
    """As `safe`."""
    return texts.str.replace_all("<", r"\x3c", literal=True)


def safe(text: str) -> str:
    """A text that does not end the script in which Altair puts a chart's data: names in a recording may be anybody's. It is
    escaped as the program escapes what might do harm."""
    return text.replace("<", r"\x3c")


def sizes() -> altair.Axis:
    """An axis of bytes, in the program's units."""
    number = "replace(format(datum.value, '~s'), /([kMGTP]?)$/, ' $1B')"
    return altair.Axis(labelExpr=f"datum.value == 0 ? '0' : replace({number}, 'k', 'K')", tickCount=6)


def size(count: int) -> str:
    """Bytes as the program prints them: 58.6 MB."""
    number = float(count)
    for unit in ["B", "KB", "MB", "GB", "TB"]:
        if number < 1000 or unit == "TB":
            break
        number /= 1000
    return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
