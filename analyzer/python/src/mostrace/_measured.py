# SPDX-License-Identifier: MIT OR Apache-2.0
"""What came of a measurement."""

from __future__ import annotations

from typing import Any

import polars

from . import _frames
from ._recording import Bundles, Run


class Measured(Run[polars.DataFrame]):
    """The recording of a command that `mostrace.measure` ran, or the recordings if it ran several times."""

    def __init__(self, bundles: Bundles, status: int, said: dict[str, Any]) -> None:
        super().__init__(bundles, _frames.of_polars())
        self._said = said
        own = [run["exit_status"] for run in said["runs"] if run["exit_status"] is not None]
        self.exit_status: int = own[-1] if own else status
        """The command's exit status."""

    @property
    def limits(self) -> list[dict[str, Any]]:
        """Each limit that was given, with what was measured."""
        return list(self._said["limits"] or [])

    @property
    def exceeded(self) -> list[dict[str, Any]]:
        """The limits that were not kept. If the command failed, that is among them: nothing can be said of its limits."""
        return [limit for limit in self.limits if not limit["kept"]]
