# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables as frames of polars, pandas or Arrow. Each library reads the program's Parquet itself, so that nothing is converted:
integers stay integers, also where some are unknown, and times have their zone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import polars

if TYPE_CHECKING:
    import pandas
    import pyarrow

Frame = TypeVar("Frame")


@dataclass(frozen=True)
class Frames(Generic[Frame]):
    """How tables become one library's frames."""

    read: Callable[[Path], Frame]
    """Reads a Parquet file."""
    of: Callable[[polars.DataFrame], Frame]
    """Takes a small table that is in memory already."""


def of_polars() -> Frames[polars.DataFrame]:
    """Frames of polars."""
    return Frames(read=polars.read_parquet, of=lambda frame: frame)


def of_arrow() -> Frames[pyarrow.Table]:
    """Tables of Arrow."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Arrow's tables need pyarrow: pip install 'mostrace[arrow]'") from error
    return Frames(read=_read_arrow, of=lambda frame: frame.to_arrow())


def of_pandas() -> Frames[pandas.DataFrame]:
    """Frames of pandas, whose columns are Arrow's (`pandas.ArrowDtype`): the default of pandas would make integers of which
    some are unknown floating-point numbers."""
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError("frames of pandas need pandas and pyarrow: pip install 'mostrace[pandas]'") from error
    # The columns are the table's own memory.
    return Frames(
        read=lambda path: _read_arrow(path).to_pandas(types_mapper=pandas.ArrowDtype),
        of=lambda frame: frame.to_arrow().to_pandas(types_mapper=pandas.ArrowDtype),
    )


def _read_arrow(path: Path) -> pyarrow.Table:
    """Reads texts as Arrow's strings. The file says that they were views of strings when it was written, but few libraries can
    compare, sort or group views."""
    import pyarrow.parquet

    schema = pyarrow.parquet.read_schema(path)
    is_text = pyarrow.types.is_string_view
    fields = [field.with_type(pyarrow.large_string()) if is_text(field.type) else field for field in schema]
    return pyarrow.parquet.read_table(path, schema=pyarrow.schema(fields))
