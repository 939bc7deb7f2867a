# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the program `mostrace`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import polars


class MostraceError(RuntimeError):
    """The program refused to do what was asked; the text is its message."""


def program() -> str:
    """The path of the program: $MOSTRACE, or `mostrace` in $PATH.

    Raises MostraceError if there is none."""
    found = os.environ.get("MOSTRACE") or shutil.which("mostrace")
    if not found:
        raise MostraceError("the program mostrace is not found: put it into $PATH, or its path into $MOSTRACE")
    return found


def run(*args: str, accept: tuple[int, ...] = (0,)) -> tuple[int, str]:
    """Runs the program; returns its exit status and its standard output."""
    ended = subprocess.run([program(), *args], capture_output=True, text=True, check=False)
    if ended.returncode not in accept:
        raise MostraceError(ended.stderr.strip() or f"mostrace {args[0]} ended with {ended.returncode}")
    return ended.returncode, ended.stdout


def run_json(*args: str, accept: tuple[int, ...] = (0,)) -> Any:
    """Runs the program and parses what it prints."""
    return json.loads(run(*args, accept=accept)[1])


def run_frame(*args: str) -> polars.DataFrame:
    """Runs the program with a Parquet file as its output, and reads that. Integers stay integers; unknown is null."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        run(*args, "-o", str(path))
        return polars.read_parquet(path, memory_map=False)
