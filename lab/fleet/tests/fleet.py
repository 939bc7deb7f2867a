# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes many recordings from the samples, which differ in day, kernel, disk and hence in identity: fleet.py FOLDER NUMBER [SAMPLE…]"""

from __future__ import annotations

import io
import json
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa

SAMPLES = Path(__file__).parents[3] / "sample-traces"
NAMES = ("delete", "wal", "f2fs-delete", "fat32-delete", "persist", "truncate", "f2fs-wal")
KERNELS = ("5.10.0", "5.15.104", "6.1.57", "6.6.30", "6.12.8")
DISKS = (("sda", 1 << 25), ("mmcblk0", 1 << 24), ("nvme0n1", 1 << 27), ("sdb", 1 << 25))
FIRST_DAY = datetime(2026, 10, 1, 9, tzinfo=timezone.utc)
DAYS = 30


def members(sample: str) -> list[tuple[str, bytes]]:
    """The files of a sample."""
    with pa.input_stream(str(SAMPLES / f"{sample}.most.tar.zst"), compression="zstd") as packed:
        with tarfile.open(fileobj=packed, mode="r|") as archive:
            return [(one.name, archive.extractfile(one).read()) for one in archive if one.isfile()]


def make(folder: Path, number: int, names: tuple[str, ...] = NAMES) -> list[Path]:
    """Writes recordings into a folder; the same number gives the same ones again."""
    folder.mkdir(parents=True, exist_ok=True)
    samples = [members(name) for name in names]
    paths = []
    for nth in range(number):
        files = [(name, other(data, nth) if name.endswith("manifest.json") else data) for name, data in samples[nth % len(samples)]]
        path = folder / f"phone-{nth:05}.most.tar.zst"
        path.write_bytes(packed(files))
        paths.append(path)
    return paths


def other(manifest: bytes, nth: int) -> bytes:
    """The manifest of another machine on another day."""
    told = json.loads(manifest)
    day = nth % DAYS
    told["clock"]["start_unix_ns"] = int((FIRST_DAY.timestamp() + day * 86400 + nth // DAYS) * 1e9)
    told["kernel"]["release"] = KERNELS[nth % len(KERNELS)]
    told["device"]["disk"], told["device"]["sectors"] = DISKS[nth // 3 % len(DISKS)]
    return json.dumps(told).encode()


def packed(files: list[tuple[str, bytes]]) -> bytes:
    """An archive of files, the manifest first, as `mostrace record` makes it."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for name, data in files:
            one = tarfile.TarInfo(name)
            one.size = len(data)
            archive.addfile(one, io.BytesIO(data))
    return pa.Codec("zstd", compression_level=3).compress(tar.getvalue(), asbytes=True)


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]), tuple(sys.argv[3:]) or NAMES)
