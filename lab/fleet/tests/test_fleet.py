# SPDX-License-Identifier: MIT OR Apache-2.0
"""Holds the data set against what the analyser itself writes: python -m unittest discover lab/fleet/tests

MOSTRACE is the program. The tests with Spark need pyspark and Java; without them they are skipped, and say so."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import duckdb
import fleet
import pyarrow as pa
import pyarrow.parquet as pq

from mostrace_fleet import MostraceError, report
from mostrace_fleet.ingest import program

#: Two workers of one core each, which are processes of their own.
CLUSTER = "local-cluster[2,1,1024]"
#: The longest that a test waits for something to happen, s.
PATIENCE = 300
RECORDED = [relation for relation in report.RELATIONS if relation != "ledger"]


def command(*arguments: str | Path) -> subprocess.CompletedProcess:
    line = [sys.executable, "-m", "mostrace_fleet", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def ingest(folder: Path | str, table: Path, *more: str) -> str:
    ended = command("ingest", folder, table, *more)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="mostrace-fleet-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.traces, self.table = self.folder / "traces", self.folder / "table"

    def assert_same_rows(self, one: Path, other: Path):
        """Row for row, in whatever order, with the day."""
        both = duckdb.connect()
        for relation in RECORDED:
            frames = [report.connect(str(where)).sql(f"SELECT * FROM {relation}").to_arrow_table() for where in (one, other)]
            self.assertGreater(len(frames[0]), 0, relation)
            names = ", ".join(f'"{name}"' for name in sorted(frames[0].column_names))
            for side, frame in zip("ab", frames, strict=True):
                both.register(side, frame)
            for left, right in ("ab", "ba"):
                sql = f"SELECT count(*) FROM (SELECT {names} FROM {left} EXCEPT ALL SELECT {names} FROM {right})"
                self.assertEqual(both.execute(sql).fetchall(), [(0,)], f"{relation}: rows of {left} that {right} lacks")

    def assert_each_once(self, table: Path, number: int):
        """Every recording is there, once."""
        rows = report.connect(str(table)).execute("SELECT bundle_id, count(*) FROM recordings GROUP BY bundle_id").fetchall()
        self.assertEqual(len(rows), number)
        self.assertEqual({count for _, count in rows}, {1})

    def data_set(self, recordings: list[Path]) -> Path:
        """What the analyser alone writes."""
        folder = self.folder / "plain"
        line = [program(), "export", *map(str, recordings), "--format", "dataset", "-o", str(folder)]
        subprocess.run(line, check=True, capture_output=True)
        return folder


class Ingesting(Case):
    def test_a_broken_recording_is_named_and_the_rest_go_on(self):
        recordings = fleet.make(self.traces, 7)
        plain = self.data_set(recordings)
        # The same recording under another name, one that is cut off, one that is none.
        shutil.copy(recordings[0], self.traces / "same.most.tar.zst")
        whole = recordings[1].read_bytes()
        (self.traces / "cut.most.tar.zst").write_bytes(whole[: -len(whole) // 8])
        (self.traces / "none.most.tar.zst").write_bytes(b"\x28\xb5\x2f\xfdnothing")
        (self.traces / "readme.txt").write_text("no recording")
        ended = command("ingest", self.traces, self.table)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("10 found: 7 added, 1 already there, 2 left out", ended.stdout)
        lines = ended.stderr.splitlines()
        self.assertEqual(len(lines), 2, ended.stderr)
        for name, line in zip(("cut", "none"), lines, strict=True):
            self.assertIn(f"{name}.most.tar.zst: left out: ", line)
        self.assert_each_once(self.table, 7)
        self.assert_same_rows(plain, self.table)
        # Once more: nothing changes.
        files = {path: path.stat().st_mtime_ns for path in self.table.rglob("*.parquet")}
        ended = command("ingest", self.traces, self.table)
        self.assertIn("0 added, 8 already there, 2 left out", ended.stdout)
        self.assertEqual({path: path.stat().st_mtime_ns for path in self.table.rglob("*.parquet")}, files)

    def test_writers_at_once(self):
        plain = self.data_set(fleet.make(self.traces, 12, ("f2fs-wal", "wal")))
        line = [sys.executable, "-m", "mostrace_fleet", "ingest", str(self.traces), str(self.table), "--workers", "1"]
        writers = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        said = [writer.communicate()[0] for writer in writers]
        self.assertEqual([writer.returncode for writer in writers], [0, 0, 0], said)
        self.assert_each_once(self.table, 12)
        self.assert_same_rows(plain, self.table)

    def test_a_recording_without_its_last_file_is_not_there_yet(self):
        plain = self.data_set(fleet.make(self.traces, 2, ("f2fs-wal", "wal")))
        shutil.copytree(plain, self.table)
        whole, half = sorted(self.table.glob("recordings/*/*.parquet"))
        half.unlink()
        for relation in RECORDED:
            ids = report.ask(str(self.table), f"SELECT DISTINCT bundle_id FROM {relation}")[1]
            self.assertEqual(ids, [(whole.stem,)], relation)
        self.assertIn("1 added, 1 already there", ingest(self.traces, self.table))
        self.assert_same_rows(plain, self.table)
        whole.unlink()
        half.unlink()
        with self.assertRaisesRegex(MostraceError, "it has no rows"):
            report.connect(str(self.table))

    def test_versions_of_the_columns_are_merged_by_name(self):
        plain = self.data_set(fleet.make(self.traces, 2, ("f2fs-wal", "wal")))
        path = sorted(plain.glob("recordings/*/*.parquet"))[0]
        rows = pq.read_table(path).drop_columns(["disk"])
        pq.write_table(rows.append_column("of_tomorrow", pa.array([7] * len(rows), pa.int64())), path)
        rows = report.ask(str(plain), "SELECT of_tomorrow, disk IS NULL FROM recordings ORDER BY ALL")[1]
        self.assertEqual(rows, [(7, True), (None, False)])

    def test_ledgers(self):
        hour = pa.array([1_790_845_200_000_000], pa.timestamp("us"))
        texts = {"command": ["app"], "package": [None], "device": ["8:0"]}
        numbers = {"write_bytes": [4096], "asked_bytes": [100], "flushes": [1], "watched_ms": [None]}
        for ledger in ("kitchen", "phone"):
            folder = self.traces / ledger
            folder.mkdir(parents=True)
            columns = {"hour": hour} | {name: pa.array(value, pa.string()) for name, value in texts.items()}
            columns |= {name: pa.array(value, pa.uint64()) for name, value in numbers.items()}
            for day in ("2026-10-01", "2026-10-02", "2999-01-01"):
                pq.write_table(pa.table(columns), folder / f"{day}.parquet")
        (self.traces / "phone" / "2026-10-03.parquet").write_text("not Parquet")
        ended = command("ingest", self.traces, self.table)
        # The day that is not over is not added.
        self.assertIn("5 found: 4 added, 0 already there, 1 left out", ended.stdout)
        self.assertIn("2026-10-03.parquet: left out", ended.stderr)
        rows = report.connect(str(self.table)).execute("SELECT ledger, CAST(day AS TEXT), hour FROM ledger ORDER BY ALL").fetchall()
        self.assertEqual([row[:2] for row in rows], [(one, f"2026-10-0{day}") for one in ("kitchen", "phone") for day in (1, 2)])
        self.assertEqual({str(row[2])[:19] for row in rows}, {"2026-10-01 09:00:00"})
        asked = report.connect(str(self.table)).execute(report.views()["ledger_by_command"]).fetchall()
        self.assertEqual(asked, [("app", 16384, 400, 4)])
        self.assertIn("0 added, 4 already there", command("ingest", self.traces, self.table).stdout)


@unittest.skipUnless(importlib.util.find_spec("pyspark") and shutil.which("java"), "needs pyspark and Java")
class WithSpark(Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = Path(tempfile.mkdtemp(prefix="mostrace-fleet-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.number = 48
        cls.recordings = fleet.make(cls.shared / "traces", cls.number)
        ingest(cls.shared / "traces", cls.shared / "undisturbed")

    def setUp(self):
        super().setUp()
        self.traces, self.undisturbed = self.shared / "traces", self.shared / "undisturbed"

    def test_views_have_the_same_rows_in_both_engines(self):
        from mostrace_fleet import spark

        session = self.enterContext(spark.session("local[2]"))
        asked = [name for name in report.views() if name != "ledger_by_command"]
        self.assertEqual(len(asked), 5)
        for name in asked:
            sql = report.views()[name]
            duck = report.connect(str(self.undisturbed)).execute(sql)
            names, rows = [one[0] for one in duck.description], duck.fetchall()
            self.assertGreater(len(rows), 1, name)
            self.assertEqual(spark.ask(session, str(self.undisturbed), sql), (names, rows), name)

    def test_the_same_rows_by_executors(self):
        (self.folder / "more").mkdir()
        for path in self.recordings:
            (self.folder / "more" / path.name).symlink_to(path)
        (self.folder / "more" / "broken.most.tar.zst").write_bytes(b"nothing")
        ended = command("ingest", self.folder / "more", self.table, "--spark", CLUSTER)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn(f"{self.number + 1} found: {self.number} added, 0 already there, 1 left out", ended.stdout)
        self.assertIn("broken.most.tar.zst: left out", ended.stderr)
        self.assert_each_once(self.table, self.number)
        self.assert_same_rows(self.undisturbed, self.table)

    def test_executors_are_killed(self):
        driver = self.start()
        for added in (2, 8):
            self.wait_for(driver, added)
            killed = self.executors(driver)[0]
            os.kill(killed, signal.SIGKILL)
            self.wait(lambda killed=killed: killed not in self.executors(driver), "the executor's end")
        self.assertLess(self.added(), self.number, "it was over before it was killed")
        self.assertEqual(driver.wait(PATIENCE), 0)
        self.assert_each_once(self.table, self.number)
        self.assert_same_rows(self.undisturbed, self.table)

    def test_drivers_are_killed(self):
        for added in (2, 8):
            driver = self.start()
            self.wait_for(driver, added)
            # Both halves of it: the Python process and its JVM. The executors are left to notice.
            for pid in self.driver_of(driver):
                os.kill(pid, signal.SIGKILL)
            driver.wait(PATIENCE)
            known = report.connect(str(self.table)).execute("SELECT count(*) FROM recordings").fetchall()[0][0]
            self.assertTrue(0 < known < self.number, f"{known} were in when it was killed")
        # The executors of the last one may still be at work.
        self.assertIn("left out", ingest(self.traces, self.table, "--spark", CLUSTER))
        self.assert_each_once(self.table, self.number)
        self.assert_same_rows(self.undisturbed, self.table)

    def start(self) -> subprocess.Popen:
        line = [sys.executable, "-m", "mostrace_fleet", "ingest", str(self.traces), str(self.table), "--spark", CLUSTER]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        # A session of its own, by which its processes are found.
        driver = subprocess.Popen(line, start_new_session=True, **quiet)
        self.addCleanup(self.end, driver)
        return driver

    def end(self, driver: subprocess.Popen):
        for pid in self.processes(driver):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        driver.wait(PATIENCE)

    def processes(self, driver: subprocess.Popen) -> dict[int, str]:
        """The command lines of the processes of its session."""
        found = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rsplit(")", 1)[1].split()
                line = (stat.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except (OSError, IndexError):
                continue
            if int(fields[3]) == driver.pid and fields[0] != "Z":
                found[int(stat.parent.name)] = line
        return found

    def executors(self, driver: subprocess.Popen) -> list[int]:
        return [pid for pid, line in self.processes(driver).items() if "CoarseGrainedExecutorBackend" in line and "java" in line]

    def driver_of(self, driver: subprocess.Popen) -> list[int]:
        return [driver.pid] + [pid for pid, line in self.processes(driver).items() if "SparkSubmit" in line]

    def added(self) -> int:
        return len(list(self.table.glob("recordings/*/*.parquet")))

    def wait_for(self, driver: subprocess.Popen, added: int):
        self.wait(lambda: self.added() >= added or driver.poll() is not None, f"{added} recordings")
        self.assertIsNone(driver.poll(), "it was over before it was killed")

    def wait(self, until, what: str):
        end = time.monotonic() + PATIENCE
        while not until():
            self.assertLess(time.monotonic(), end, f"waited for {what}")
            time.sleep(0.02)


if __name__ == "__main__":
    unittest.main()
