# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the program `mostrace`."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ._frames import Frames

Source = str | os.PathLike[str]
Frame = TypeVar("Frame")

# What the program's own lines on stderr begin with; other lines are those of a command that is measured.
OWN = "mostrace: "
WARN = "warn: "
HERE = Path(__file__).parent
ABSENT = (
    "the program mostrace is not installed, and this package runs it: install a wheel that has it (`make wheel` in the sources "
    "of mostrace, then `pip install dist/mostrace-*.whl`), or the program alone (`make install`, or a Debian package), or put "
    "the path of one that you have into $MOSTRACE"
)


class MostraceError(RuntimeError):
    """The program refused to do what was asked. The text is the program's line, which names the file and the place.

    >>> try:
    ...     read("nothing.most")
    ... except MostraceError as error:
    ...     print(error, error.status)
    nothing.most: no such trace (looked for it and for nothing.most.blktrace.N) 1
    """

    status: int
    """The program's exit status: 1 for an error at run time, 2 for wrong usage."""

    def __init__(self, line: str, status: int = 1) -> None:
        super().__init__(line)
        self.status = status


class MostraceWarning(UserWarning):
    """Something is missing from a recording, or may mislead; the text is the program's line."""


def program() -> str:
    """Returns the path of the program: $MOSTRACE, or the one that pip installed beside Python from a wheel that has it, or
    `mostrace` in $PATH.

    Raises MostraceError if there is none."""
    beside = Path(sysconfig.get_path("scripts")) / "mostrace"
    found = os.environ.get("MOSTRACE") or (str(beside) if beside.is_file() else shutil.which("mostrace"))
    if not found:
        raise MostraceError(ABSENT)
    return found


def path_of(source: Source) -> str:
    """Returns a path that the program does not take for an option."""
    path = os.fspath(source)
    return f"./{path}" if path.startswith("-") else path


def option(name: str, value: object) -> list[str]:
    """Returns the option with its value; nothing if the value is None or False, and the name alone if it is True."""
    if value is None or value is False:
        return []
    return [f"--{name}"] if value is True else [f"--{name}={value}"]


def run(*args: str) -> str:
    """Runs the program, and returns its standard output."""
    ended = _ended(args)
    if ended.returncode != 0:
        raise _error(ended)
    _warn(ended.stderr)
    return ended.stdout


def run_json(*args: str) -> Any:
    """Runs the program, and parses what it prints."""
    return json.loads(run(*args))


def run_frame(frames: Frames[Frame], verb: str, *args: str) -> Frame:
    """Runs one of the program's verbs with a Parquet file as its output, and reads that."""
    with tempfile.TemporaryDirectory(prefix="mostrace-") as folder:
        path = Path(folder) / "table.parquet"
        run(*verb.split(), f"--output={path}", *args)
        return frames.read(path)


def measured(*args: str) -> tuple[int, Any]:
    """Runs a command under the program; returns the exit status, which is the command's, and the program's JSON. What the
    command prints goes to stderr."""
    ended = _ended(args)
    if not ended.stdout.strip():
        raise _error(ended)
    _warn(ended.stderr)
    others = [line for line in ended.stderr.splitlines(keepends=True) if not line.startswith(OWN)]
    sys.stderr.writelines(others)
    return ended.returncode, json.loads(ended.stdout)


def _ended(args: Sequence[str]) -> subprocess.CompletedProcess[str]:
    found = program()
    try:
        return subprocess.run([found, *args], capture_output=True, encoding="utf-8", errors="replace", check=False)
    except OSError as error:
        raise MostraceError(f"{found}: {error.strerror}") from error


def _own(stderr: str) -> list[str]:
    return [line.removeprefix(OWN) for line in stderr.splitlines() if line.startswith(OWN)]


def _error(ended: subprocess.CompletedProcess[str]) -> MostraceError:
    """The last line is the error; what comes ahead of it are warnings."""
    lines = [line for line in _own(ended.stderr) if not line.startswith(WARN)]
    said = lines[-1] if lines else _usage(ended.stderr)
    line = said or f"{ended.args[0]} ended with status {ended.returncode}, and said nothing"
    return MostraceError(line, ended.returncode)


def _usage(stderr: str) -> str:
    """Wrong usage is reported by the parser of the command line: the error and what it lists, until an empty line."""
    lines = stderr.strip().partition("\n\n")[0].splitlines()
    return " ".join(line.strip() for line in lines).removeprefix("error: ")


def _warn(stderr: str) -> None:
    for line in _own(stderr):
        if line.startswith(WARN):
            warnings.warn(line.removeprefix(WARN), MostraceWarning, stacklevel=_outside())


def _outside() -> int:
    """Returns how far from the caller of this function it is to whoever called the package."""
    level, frame = 1, sys._getframe(1)
    ours = {*HERE.glob("*.py"), Path(functools.__file__)}
    while frame.f_back and Path(frame.f_code.co_filename) in ours:
        level, frame = level + 1, frame.f_back
    return level
