# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recordings of mostrace as data frames: who wrote each block, to which file, and why.

    import mostrace

    run = mostrace.read("run.most")
    print(run.finding)
    run.events().group_by("class").agg(polars.col("bytes").sum())
    run.plot.timeline()
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import polars

from . import _program
from ._program import MostraceError
from ._recording import Run, Source

__all__ = ["MostraceError", "Run", "diff", "ledger", "measure", "read"]


def read(*sources: Source) -> Run:
    """Opens a bundle, the segments of one, or several, as `mostrace analyze` does.

    Raises MostraceError if the program cannot read it."""
    opened = Run(*sources)
    _program.run("analyze", *opened.sources, "--by", "op", "--format", "csv")
    return opened


def measure(command: Sequence[str], output: Source, *options: str) -> Run:
    """Runs a command on a filesystem of its own and records it; needs root. Options are those of `mostrace measure`.

    Raises MostraceError if it cannot be recorded; a limit that is exceeded is no error."""
    _program.run("measure", "-q", *options, "-o", os.fspath(output), "--", *command, accept=(0, 3))
    return read(output)


def diff(a: Run, b: Run) -> dict[str, Any]:
    """Compares two recordings: everything that `mostrace diff --json` prints."""
    return _program.run_json("diff", *a.sources, *b.sources, "--json")


def ledger(folder: Source, *by: str) -> polars.DataFrame:
    """The sums of a ledger by columns, for example "day", "command"."""
    return _program.run_frame("ledger", "show", os.fspath(folder), "--by", ",".join(by or ("command",)))
