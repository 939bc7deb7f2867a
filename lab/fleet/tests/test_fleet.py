# SPDX-License-Identifier: MIT OR Apache-2.0
"""Holds the table against what the analyser itself writes: python -m unittest discover lab/fleet/tests

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
from deltalake import DeltaTable

from mostrace_fleet import RELATIONS, MostraceError, Table, report
from mostrace_fleet import ingest as ingesting
from mostrace_fleet.program import program
from mostrace_fleet.table import Added, Part

#: Two workers of one core each, which are processes of their own.
CLUSTER = "local-cluster[2,1,1024]"
#: The longest that a test waits for something to happen, s.
PATIENCE = 300
RECORDED = [relation for relation in RELATIONS if relation not in ("ledger", "sources")]


def command(*arguments: str | Path) -> subprocess.CompletedProcess:
    line = [sys.executable, "-m", "mostrace_fleet", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def ingest(folder: Path | str, table: Path, *more: str) -> str:
    ended = command("ingest", folder, table, *more)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


# A recording's tables in the data set, and `sources`, which the fleet adds.
TABLES = 9


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
        """Every recording is there, once, by its rows and by the list of sources."""
        sources = report.connect(str(table)).execute("SELECT bundle_id FROM sources").fetchall()
        rows = report.connect(str(table)).execute("SELECT bundle_id, count(*) FROM recordings GROUP BY bundle_id").fetchall()
        self.assertEqual(len(rows), number)
        self.assertEqual({count for _, count in rows}, {1})
        self.assertEqual(sorted(id_ for (id_,) in sources), sorted(id_ for id_, _ in rows))

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
        version = Table(self.table).version
        ended = command("ingest", self.traces, self.table)
        self.assertIn("0 added, 8 already there, 2 left out", ended.stdout)
        self.assertEqual(Table(self.table).version, version)

    def test_writers_at_once(self):
        fleet.make(self.traces, 12, ("f2fs-wal", "wal"))
        # By an address, as an object store has one: each recording is copied before it is read.
        alone = self.folder / "alone"
        ingest(self.traces.as_uri(), alone)
        line = [sys.executable, "-m", "mostrace_fleet", "ingest", str(self.traces), str(self.table), "--workers", "1"]
        writers = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        said = [writer.communicate()[0] for writer in writers]
        self.assertEqual([writer.returncode for writer in writers], [0, 0, 0], said)
        added = sum(int(one.split(" added")[0].split()[-1]) for one in said)
        self.assertEqual(added, 12, said)
        self.assert_each_once(self.table, 12)
        self.assert_same_rows(alone, self.table)

    def test_a_second_commit_of_a_recording_is_refused(self):
        [recording] = fleet.make(self.traces, 1, ("f2fs-wal",))
        table = Table.create(str(self.table))
        plain = self.data_set([recording])
        [day] = {path.parts[-2][4:] for path in plain.glob("*/*/*.parquet")}
        parts = [Part(path.parts[-3], day, str(path)) for path in plain.glob("*/*/*.parquet")]
        # Another one ahead, so that the table has its columns: a change of them would be noticed anyway.
        self.assertTrue(table.add(parts, [Added("w", "w.most", 1)], day))
        stale = Table(self.table)
        self.assertTrue(table.add(parts, [Added("x", "x.most", 1)], day))
        # This one has read the version before, as a worker does that is cut off from the others for a while.
        self.assertFalse(stale.add(parts, [Added("x", "x.most", 1)], day))
        self.assertEqual(len(Table(self.table).files("recordings")), 2)
        # It leaves nothing.
        self.assertEqual(len(list(self.table.glob("relation=*/*/*"))), 2 * (len(parts) + 1))

    def test_versions_of_the_columns_are_merged_by_name(self):
        older, newer = fleet.make(self.traces, 2, ("f2fs-wal", "wal"))
        for at, path in enumerate(self.data_set([older, newer]).glob("*/*/*.parquet")):
            rows = pq.read_table(path)
            if at % 2:
                rows = rows.append_column("of_tomorrow", pa.array([at] * len(rows), pa.int64()))
            rows = rows.drop_columns([name for name in ("package",) if name in rows.column_names])
            pq.write_table(rows.replace_schema_metadata({"mostrace.schema": "2"}), path)
        plain = self.folder / "plain"
        table = Table.create(str(self.table))
        for at, path in enumerate(sorted(plain.glob("*/*/*.parquet"))):
            day = path.parts[-2][4:]
            self.assertTrue(table.add([Part(path.parts[-3], day, str(path))], [Added(str(at), str(path), 1)], day))
        table.compact()
        ingest(self.traces, self.table)
        for relation in RECORDED:
            rows = report.connect(str(self.table)).sql(f"SELECT * FROM {relation}").to_arrow_table()
            self.assertEqual(len(rows) % 2, 0, relation)
        versions = {pq.read_metadata(file.uri).metadata[b"mostrace.schema"] for file in Table(self.table).files("events")}
        self.assertEqual(versions, {b"2", b"3"})
        # What another type would do is refused.
        path = next(plain.glob("recordings/*/*.parquet"))
        rows = pq.read_table(path)
        pq.write_table(rows.set_column(rows.column_names.index("lost"), "lost", pa.array(["no"] * len(rows))), path)
        with self.assertRaisesRegex(MostraceError, "the column lost is"):
            table.add([Part("recordings", None, str(path))], [Added("y", str(path), 1)], None)

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
        asked = report.connect(str(self.table)).execute(report.view("ledger_by_command")).fetchall()
        self.assertEqual(asked, [("app", 16384, 400, 4)])
        self.assertIn("0 added, 4 already there", command("ingest", self.traces, self.table).stdout)


class Compacting(Case):
    def setUp(self):
        super().setUp()
        # One commit each, so that there is something to compact.
        self.recordings = fleet.make(self.traces, 31 + 30, ("f2fs-wal",))[::30]
        for path in set(self.traces.iterdir()) - set(self.recordings):
            path.unlink()
        self.plain = self.data_set(self.recordings)
        table = Table.create(str(self.table))
        for path in self.recordings[:2]:
            self.assertTrue(self.add_to(table, path))

    def add_to(self, table: Table, recording: Path) -> bool:
        known_by = ingesting.Identify(program())(ingesting.Source(str(recording), 0)).source
        return all(one.added for one in ingesting.Ingest(program(), table.url)([known_by]))

    def test_rows_stay_and_files_become_few(self):
        before = Table(self.table)
        self.assert_same_rows(self.data_set_of(2), self.table)
        stale = Table(self.table)
        ended = command("compact", self.table)
        self.assertIn(f"{len(before.files())} files", ended.stdout)
        after = Table(self.table)
        self.assertEqual((len(before.files()), len(after.files())), (2 * TABLES, TABLES))
        self.assert_same_rows(self.data_set_of(2), self.table)
        # Who has read the version before can still add, and cannot compact.
        with self.assertRaisesRegex(MostraceError, "another compaction"):
            stale.compact()
        self.assertTrue(self.add_to(stale, self.recordings[2]))
        self.assert_each_once(self.table, 3)
        self.assert_same_rows(self.plain, self.table)
        self.assertFalse(self.add_to(stale, self.recordings[0]))
        # What a killed writer left goes too, but not what one may be about to commit.
        left = Path(Table(self.table).files("events")[0].uri).with_name("left.parquet")
        left.write_text("half")
        Table(self.table).vacuum(1)
        self.assertTrue(left.exists())
        self.assertEqual(len(list(self.table.glob("relation=*/*/*"))), 4 * TABLES + 1)
        Table(self.table).vacuum(0)
        self.assertEqual(len(list(self.table.glob("relation=*/*/*"))), 2 * TABLES)
        self.assert_same_rows(self.plain, self.table)

    def data_set_of(self, number: int) -> Path:
        folder = self.folder / f"plain{number}"
        paths = list(map(str, self.recordings[:number]))
        line = [program(), "export", *paths, "--format", "dataset", "-o", str(folder)]
        subprocess.run(line, check=True, capture_output=True)
        return folder


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

        table = Table(self.undisturbed)
        session = self.enterContext(spark.session("local[2]"))
        asked = [name for name in report.views() if name != "ledger_by_command"]
        self.assertEqual(len(asked), 5)
        for name in asked:
            sql = report.view(name)
            duck = report.connect(str(self.undisturbed)).execute(sql)
            names, rows = [one[0] for one in duck.description], duck.fetchall()
            self.assertGreater(len(rows), 1, name)
            self.assertEqual(spark.ask(session, table, sql), (names, rows), name)

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
        for commits in (2, 8):
            self.wait_for(driver, commits)
            killed = self.executors(driver)[0]
            os.kill(killed, signal.SIGKILL)
            self.wait(lambda killed=killed: killed not in self.executors(driver), "the executor's end")
        self.assertLess(self.commits(), self.number, "it was over before it was killed")
        self.assertEqual(driver.wait(PATIENCE), 0)
        self.assert_each_once(self.table, self.number)
        self.assert_same_rows(self.undisturbed, self.table)

    def test_drivers_are_killed(self):
        for commits in (2, 8):
            driver = self.start()
            self.wait_for(driver, commits)
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

    def commits(self) -> int:
        return DeltaTable(str(self.table)).version() if (self.table / "_delta_log").is_dir() else 0

    def wait_for(self, driver: subprocess.Popen, commits: int):
        self.wait(lambda: self.commits() >= commits or driver.poll() is not None, f"{commits} commits")
        self.assertIsNone(driver.poll(), "it was over before it was killed")

    def wait(self, until, what: str):
        end = time.monotonic() + PATIENCE
        while not until():
            self.assertLess(time.monotonic(), end, f"waited for {what}")
            time.sleep(0.02)


if __name__ == "__main__":
    unittest.main()
