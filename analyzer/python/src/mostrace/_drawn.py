# SPDX-License-Identifier: MIT OR Apache-2.0
"""What charts are drawn of."""

from __future__ import annotations

from typing import Any, Protocol

import polars


class Drawn(Protocol):
    """A recording whose tables are frames of polars."""

    @property
    def summary(self) -> dict[str, Any]:
        """See Run.summary."""

    @property
    def tree(self) -> dict[str, Any]:
        """See Run.tree."""

    def by(self, *columns: str, every: str | None = None, where: str | None = None) -> polars.DataFrame:
        """See Run.by."""

    def query(self, sql: str) -> polars.DataFrame:
        """See Run.query."""

    def flash(self, **options: str | int) -> dict[str, Any]:
        """See Run.flash."""
