# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the analyser, `mostrace`, on one recording at a time, so that a broken one harms no other."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path


class MostraceError(RuntimeError):
    """Something that the user can do something about; the text is one line."""


@dataclass(frozen=True)
class Identity:
    """What a recording is known by."""

    id: str
    #: The day of UTC on which it began, as 2026-11-25; None if it does not tell.
    day: str | None


def program() -> str:
    """The path of the program: $MOSTRACE, or `mostrace` in $PATH. Raises MostraceError if there is none."""
    found = os.environ.get("MOSTRACE") or shutil.which("mostrace")
    if not found:
        raise MostraceError("the program mostrace is not found: put it into $PATH, or its path into $MOSTRACE")
    return found


def identify(mostrace: str, recording: Path) -> Identity:
    """The identity of a recording, from its contents. Raises MostraceError if it cannot be read."""
    printed = _export(mostrace, recording, "identity")
    # The name of a recording in segments stands for all of them, but then they are not one file.
    id_, day, _ = printed.split("\n", 1)[0].split(" ", 2)
    return Identity(id_, None if day == "-" else day)


def export(mostrace: str, recording: Path, into: Path) -> None:
    """Adds a recording to a data set in a folder. Raises MostraceError if it cannot be read."""
    _export(mostrace, recording, "dataset", "-o", str(into))


def _export(mostrace: str, recording: Path, form: str, *more: str) -> str:
    command = [mostrace, "export", str(recording), "--format", form, *more]
    # A recording may come from anybody, and so may the names in what is said about it.
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if ended.returncode == 0:
        return ended.stdout.decode(errors="backslashreplace")
    raise MostraceError(_reason(ended.returncode, ended.stderr.decode(errors="backslashreplace")))


def _reason(status: int, said: str) -> str:
    if status < 0:
        return f"the analyser was killed by {signal.Signals(-status).name}"
    lines = [line for line in said.splitlines() if line.strip()]
    # Notices precede the error.
    return lines[-1] if lines else f"the analyser ended with {status}"
