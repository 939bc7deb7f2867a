# SPDX-License-Identifier: MIT OR Apache-2.0
"""A ledger: what each application caused, hour by hour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic

from . import _frames
from ._frames import Frame, Frames
from ._program import run_frame

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Ledger(Generic[Frame]):
    """A ledger's days: `mostrace.ledger` opens it."""

    def __init__(self, args: Sequence[str], frames: Frames[Frame]) -> None:
        self._args = tuple(args)
        self._frames = frames

    def __repr__(self) -> str:
        return f"mostrace.ledger({self._args[0]!r})"

    @property
    def pandas(self) -> Ledger[pandas.DataFrame]:
        """The same ledger with frames of pandas, as `Run.pandas`."""
        return Ledger(self._args, _frames.of_pandas())

    @property
    def arrow(self) -> Ledger[pyarrow.Table]:
        """The same ledger with tables of Arrow."""
        return Ledger(self._args, _frames.of_arrow())

    def by(self, *columns: str) -> Frame:
        """Returns the sums by columns, such as "day", "command", "layer"; by "command" if none is named. docs/LEDGER.md has
        the columns. A row without a command is what nobody is known to have caused."""
        return run_frame(self._frames, "ledger show", *self._args, f"--by={','.join(columns or ('command',))}")

    def hours(self) -> Frame:
        """Returns a row for each hour: for how long the device was watched, what the kernel counted, and what was lost."""
        return run_frame(self._frames, "ledger show", *self._args, "--hours")
