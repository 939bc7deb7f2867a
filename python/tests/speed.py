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

SAMPLE = Path(__file__).parents[2] / "sample-traces" / "delete.most.tar.zst"
COLUMNS = ["time_ns", "op", "sector", "bytes", "class", "role", "path", "cause_comm", "cause_path", "home_sector", "d2c_ns", "completion"]
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
        for kind in ("parquet", "csv"):
            subprocess.run([program, "events", bundles, "--columns", ",".join(COLUMNS), "-o", folder / f"rows.{kind}"], check=True)
            print(f"rows.{kind}: {(folder / f'rows.{kind}').stat().st_size / 1e6:,.0f} MB")
        print("| how | rows | s | s of CPU | peak MB | of them the program's process |")
        print("| --- | --- | --- | --- | --- | --- |")
        for how in READERS:
            told = subprocess.run([sys.executable, __file__, "read", how, bundles, name], check=True, capture_output=True, text=True)
            seen = json.loads(told.stdout)
            numbers = [f"{seen['rows']:,}", f"{seen['s']:.1f}", f"{seen['cpu']:.1f}", f"{seen['peak']:,.0f}", f"{seen['program']:,.0f}"]
            print("|", " | ".join([how, *numbers]), "|")


def copies(folder: Path, rows: int) -> Path:
    """Makes bundles that have so many rows together: each a copy of the sample that was recorded at another hour."""
    subprocess.run(["tar", "-C", folder, "--zstd", "-xf", SAMPLE, "--one-top-level=sample"], check=True)
    program = os.environ.get("MOSTRACE", "mostrace")
    (folder / "sample").rename(folder / "sample.most")
    count = subprocess.run([program, "query", folder / "sample.most", "SELECT count(*) AS n FROM events", "--json"], check=True, capture_output=True)
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


def of_polars(_, folder):
    import polars

    return polars.read_parquet(f"{folder}/rows.parquet")


def of_pandas(_, folder):
    from mostrace import _frames

    return _frames.of_pandas().read(Path(folder) / "rows.parquet")


def of_csv(_, folder):
    import pandas

    return pandas.read_csv(f"{folder}/rows.csv")


def of_csv_arrow(_, folder):
    import pandas

    return pandas.read_csv(f"{folder}/rows.csv", engine="pyarrow", dtype_backend="pyarrow")


def run_events(bundles, _):
    import mostrace

    return mostrace.read(bundles).events(*COLUMNS)


def run_pandas_events(bundles, _):
    import mostrace

    return mostrace.read(bundles).pandas.events(*COLUMNS)


READERS = {
    "`run.events()` from the bundles": run_events,
    "`run.pandas.events()` from the bundles": run_pandas_events,
    "the same Parquet, polars": of_polars,
    "the same Parquet, pandas": of_pandas,
    "`pandas.read_csv`": of_csv,
    '`pandas.read_csv(engine="pyarrow", dtype_backend="pyarrow")`': of_csv_arrow,
}


def measured(how: str, *args: str) -> dict[str, float]:
    """Reads a frame, and returns what it took. The bytes are summed, so that nothing is left to be done later."""
    import pandas  # noqa: F401
    import polars  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    begun, own = time.monotonic(), cpu()
    frame = READERS[how](*args)
    taken = {"s": time.monotonic() - begun, "cpu": cpu() - own}
    peak, program = (resource.getrusage(who).ru_maxrss / 1e3 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    assert int(frame["bytes"].sum()) > 0
    return {"rows": len(frame), **taken, "peak": max(peak, program), "program": program}


def cpu() -> float:
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


if __name__ == "__main__":
    main()
