# SPDX-License-Identifier: MIT OR Apache-2.0
"""Seconds and memory of a frame of many rows, beside pandas reading the same rows as CSV. Each is read in a process of its own.

usage: speed.py [ROWS]        $MOSTRACE is the program; rows are copies of a sample's, recorded an hour apart; 10 million by default
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SAMPLE = Path(__file__).parents[3] / "sample-traces" / "delete.most.tar.zst"
COLUMNS = [
    "time_ns",
    "op",
    "sector",
    "bytes",
    "class",
    "role",
    "path",
    "cause_comm",
    "cause_path",
    "home_sector",
    "d2c_ns",
    "completion",
]
HOUR_NS = 3600 * 10**9


def main() -> None:
    if sys.argv[1:2] == ["read"]:
        print(json.dumps(measured(*sys.argv[2:])))
        return
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bundles = f"{copies(folder, rows)}/*.most"
        program = os.environ.get("MOSTRACE", "mostrace")
        events = [program, "events", bundles, "--columns", ",".join(COLUMNS), "-o", str(folder / "rows.parquet")]
        print("| how | rows | s | s of CPU | peak MB |\n| --- | --- | --- | --- | --- |")
        for how in READERS:
            words = events if how == PROGRAM else [sys.executable, __file__, "read", how, name]
            begun, own = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
            told = subprocess.run(words, check=True, capture_output=True, text=True)
            if how == PROGRAM:
                used = resource.getrusage(resource.RUSAGE_CHILDREN)
                cpu = used.ru_utime + used.ru_stime - own.ru_utime - own.ru_stime
                seen = {"s": time.monotonic() - begun, "cpu": cpu, "peak": used.ru_maxrss / 1e3, "rows": as_csv(folder)}
            else:
                seen = json.loads(told.stdout)
            print(f"| {how} | {seen['rows']:,} | {seen['s']:.1f} | {seen['cpu']:.1f} | {seen['peak']:,.0f} |", flush=True)
        for kind in ("parquet", "csv"):
            print(f"rows.{kind}: {(folder / f'rows.{kind}').stat().st_size / 1e6:,.0f} MB")


def as_csv(folder: Path) -> int:
    """Writes the same rows as CSV; returns their number."""
    code = f"import polars; rows = polars.scan_parquet('{folder}/rows.parquet'); rows.sink_csv('{folder}/rows.csv')"
    code += "; print(rows.select(polars.len()).collect().item())"
    return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def copies(folder: Path, rows: int) -> Path:
    """Makes bundles that have so many rows together: each a copy of the sample that was recorded at another hour."""
    subprocess.run(["tar", "-C", folder, "--zstd", "-xf", SAMPLE, "--one-top-level=sample"], check=True)
    program = os.environ.get("MOSTRACE", "mostrace")
    (folder / "sample").rename(folder / "sample.most")
    count = subprocess.run(
        [program, "query", folder / "sample.most", "SELECT count(*) AS n FROM events", "--json"],
        check=True,
        capture_output=True,
    )
    own = json.loads(count.stdout)[0]["n"]
    manifest = json.loads((folder / "sample.most" / "manifest.json").read_text())
    bundles = folder / "bundles"
    for nth in range(-(-rows // own)):
        bundle = bundles / f"run-{nth:05}.most"
        bundle.mkdir(parents=True)
        for file in (folder / "sample.most").iterdir():
            if file.name != "manifest.json":
                os.link(file, bundle / file.name)
        clock = {**manifest["clock"], "start_unix_ns": manifest["clock"]["start_unix_ns"] + nth * HOUR_NS}
        (bundle / "manifest.json").write_text(json.dumps({**manifest, "clock": clock}))
    return bundles


def of_polars(folder):
    from mostrace import _frames

    return _frames.of_polars().read(folder / "rows.parquet")


def of_pandas(folder):
    from mostrace import _frames

    return _frames.of_pandas().read(folder / "rows.parquet")


def of_csv(folder):
    import pandas

    return pandas.read_csv(folder / "rows.csv")


def of_csv_arrow(folder):
    import pandas

    return pandas.read_csv(folder / "rows.csv", engine="pyarrow", dtype_backend="pyarrow")


PROGRAM = "the program: bundles to Parquet"
READERS = {
    PROGRAM: None,
    "`run.events()`: Parquet to polars": of_polars,
    "`run.pandas.events()`: Parquet to pandas": of_pandas,
    "`pandas.read_csv`": of_csv,
    '`pandas.read_csv(engine="pyarrow", dtype_backend="pyarrow")`': of_csv_arrow,
}


def measured(how: str, name: str) -> dict[str, float]:
    """Reads a frame, and returns what it took. The bytes are summed, so that nothing is left to be done later."""
    import pandas  # noqa: F401
    import polars  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    begun, own = time.monotonic(), time.process_time()
    frame = READERS[how](Path(name))
    taken = {"s": time.monotonic() - begun, "cpu": time.process_time() - own}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    assert int(frame["bytes"].sum()) > 0
    return {"rows": len(frame), **taken, "peak": peak}


if __name__ == "__main__":
    main()
