# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the tests share."""

import subprocess
from pathlib import Path

import mostrace

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "sample-traces"
DELETE, WAL = SAMPLES / "delete.most.tar.zst", SAMPLES / "wal.most.tar.zst"


def printed(*args: str) -> str:
    """What the program prints."""
    return subprocess.run([mostrace.program(), *args], check=True, capture_output=True, text=True).stdout
