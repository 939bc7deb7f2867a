# SPDX-License-Identifier: MIT OR Apache-2.0
"""Thousands of mostrace's recordings as one table: see docs/FLEET.md."""

from .program import MostraceError
from .table import RELATIONS, Table

__all__ = ["RELATIONS", "MostraceError", "Table"]
