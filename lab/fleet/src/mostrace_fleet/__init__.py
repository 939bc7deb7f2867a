# SPDX-License-Identifier: MIT OR Apache-2.0
"""Thousands of mostrace's recordings as one data set: see docs/FLEET.md."""

from .ingest import MostraceError

__all__ = ["MostraceError"]
