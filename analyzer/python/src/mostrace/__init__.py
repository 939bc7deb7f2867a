# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recordings of mostrace as data frames: who wrote each block, to which file, and why.

>>> import mostrace
>>> run = mostrace.read("sample-traces/wal.most.tar.zst")
>>> print(run.finding)
Each of 1,000 transactions stored 108 B and wrote 30.7 kB: 284 × what was stored, 6.6 × what was passed to write().
>>> written = run.events("class", "bytes", where="op = 'write'")
>>> written.group_by("class").agg(polars.col("bytes").sum()).sort("bytes").rows()
[('metadata', 32768), ('data', 8765440), ('journal', 21852160)]
>>> int(run.pandas.events("bytes", where="op = 'write'")["bytes"].sum())
30650368
>>> chart = run.plot.timeline()
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any

import polars

from . import _frames, _program
from ._ledger import Ledger
from ._measured import Measured
from ._program import MostraceError, MostraceWarning, Source, option, path_of, program
from ._recording import Bundles, Run

__all__ = [
    "Ledger",
    "Measured",
    "MostraceError",
    "MostraceWarning",
    "Run",
    "diff",
    "ledger",
    "measure",
    "program",
    "read",
]


def read(
    *sources: Source,
    image: Source | None = None,
    no_map: bool = False,
    partial: bool = False,
    share: str | None = None,
) -> Run[polars.DataFrame]:
    """Opens a recording: a bundle, the segments of one ("run.most" for run.0001.most and those after it), several bundles, or
    globs, as `mostrace analyze` does.

    `image` is a file or a device by which the blocks are mapped instead of the bundle's snapshot; `no_map` leaves what no
    probe saw unmapped; `partial` reads damaged files as far as they go; `share` says who is charged for a block that several
    tasks had changed: "equal", "first" or "last".

    Raises MostraceError if the program cannot read it.

    >>> read("sample-traces/wal.most.tar.zst")
    mostrace.read('sample-traces/wal.most.tar.zst')
    >>> both = read("sample-traces/delete.most.tar.zst", "sample-traces/wal.most.tar.zst")
    >>> both.by("bundle")["bundle", "write_bytes"].rows()
    [('delete', 58613760), ('wal', 30650368)]
    """
    mapped = option("image", None if image is None else os.fspath(image)) + option("no-map", no_map)
    bundles = Bundles(sources, [*mapped, *option("partial", partial), *option("share", share)])
    # What cannot be read is said here; the map, which takes time, is made when it is needed.
    quick = [] if no_map or image is not None else ["--no-map"]
    _program.run("analyze", *bundles.args, *quick, "--by", "op", "--format", "csv")
    return Run(bundles, _frames.of_polars())


def measure(command: Sequence[Source], *options: str, output: Source | None = None, **named: str | int | bool) -> Measured:
    """Runs a command, a sequence of its words, on a fresh filesystem and records what it makes the storage write; needs root. The command sees a copy of
    the current folder, and the folder itself is not changed. What the command prints goes to stderr.

    Options are those of `mostrace measure`, by their names with `_` for `-`, or as they stand on the command line. Without
    `output` the recording is removed with the object that is returned.

    Raises TypeError if the command is one text, and MostraceError if nothing could be recorded. A command that fails, or a limit that is exceeded, is no error: see
    `exit_status` and `exceeded`.

        run = mostrace.measure(["./my-test"], max_write_bytes="5M", fs="f2fs")
        assert not run.exceeded, run.exceeded
    """
    if isinstance(command, (str, bytes, os.PathLike)):
        # Its letters would be taken for words.
        raise TypeError(f"measure: the command is {command!r}, and must be a list of words, such as {[command]!r}")
    folder = tempfile.mkdtemp(prefix="mostrace-") if output is None else None
    path = os.path.join(folder, "measured.most") if folder else os.fspath(output or "")
    # Made first, so that the folder is removed whatever happens.
    bundles = Bundles([path], folder=folder)
    given = [word for name, value in named.items() for word in option(name.replace("_", "-"), value)]
    words = [os.fspath(word) for word in command]
    status, said = _program.measured("measure", "--json", *options, *given, f"--output={path}", "--", *words)
    bundles.paths = tuple(run["recording"] for run in said["runs"])
    return Measured(bundles, status, said)


def diff(a: Run[Any], b: Run[Any], *others: Run[Any]) -> dict[str, Any]:
    """Compares recordings with the first: everything that `mostrace diff --json` prints.

    >>> compared = diff(read("sample-traces/delete.most.tar.zst"), read("sample-traces/wal.most.tar.zst"))
    >>> print(compared["sentence"])
    wal writes 30.7 kB per transaction, 48 % less than the 58.6 kB of delete: ...
    >>> polars.DataFrame(compared["by_layer"])["layer", "change_bytes"].rows()[0]
    ("SQLite's rollback journal", -16498688)
    """
    paths = [path for run in (a, b, *others) for path in run.sources]
    compared: dict[str, Any] = _program.run_json("diff", *paths, "--json")
    return compared


def ledger(folder: Source, start: str | None = None, end: str | None = None) -> Ledger[polars.DataFrame]:
    """Opens the folder of a ledger that `mostrace ledger start` keeps. `start` and `end` are the first and the last day (UTC),
    such as "2026-11-25".

    Raises MostraceError if there is none.

        mostrace.ledger("/var/lib/mostrace").by("day", "command")
    """
    args = (path_of(folder), *option("from", start), *option("to", end))
    opened = Ledger(args, _frames.of_polars())
    opened.hours()
    return opened
