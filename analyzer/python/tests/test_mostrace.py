# SPDX-License-Identifier: MIT OR Apache-2.0
"""Holds the package against what the program prints, on the sample traces: python -m unittest discover analyzer/python/tests"""

import csv
import datetime
import io
import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
import tomllib
import unittest
import warnings
from importlib import metadata
from pathlib import Path
from unittest import mock

import polars
from samples import DELETE, ROOT, SAMPLES, WAL, printed

import mostrace


class Reading(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = mostrace.read(DELETE)
        cls.events = cls.run_.events()

    def test_events_are_those_of_the_program(self):
        rows = list(csv.reader(io.StringIO(printed("events", str(DELETE), "--format", "csv"))))
        self.assertEqual(self.events.columns, rows[0])
        self.assertEqual(self.events.height, len(rows) - 1)
        for column in ("time_ns", "sector", "path", "cause_pid", "home_sector"):
            at = rows[0].index(column)
            ours = ["" if value is None else str(value) for value in self.events[column]]
            self.assertEqual(ours, [row[at] for row in rows[1:]], column)

    def test_every_table_has_every_byte(self):
        written = self.run_.summary["total"]["write_bytes"]
        of_events = self.events.filter(polars.col("op") == "write")["bytes"].sum()
        causes = self.run_.causes().filter(polars.col("op") == "write")
        self.assertEqual(of_events, written)
        self.assertEqual(causes["bytes"].sum(), written)
        self.assertEqual(self.run_.by("class", "role")["write_bytes"].sum(), written)
        self.assertEqual(self.run_.by("class", every="1s")["write_bytes"].sum(), written)
        self.assertEqual(self.run_.files()["write_bytes"].sum(), written)
        self.assertEqual(self.run_.processes()["write_bytes"].sum(), written)
        self.assertEqual(self.run_.recordings()["write_bytes"].sum(), written)
        self.assertEqual(self.run_.requests().filter(polars.col("op") == "write")["bytes"].sum(), written)

    def test_every_transaction_has_a_row(self):
        for path in (DELETE, WAL, SAMPLES / "f2fs-wal.most.tar.zst"):
            run = mostrace.read(path)
            rows = run.transactions()
            # SQLite's own hook counted the 1,000 insertions; the calls show those that made the table too.
            self.assertIn(rows.height - 1000, range(4), path.name)
            self.assertEqual(rows["database"].unique().len(), 1)
            self.assertTrue((rows["duration_ns"] == rows["end_ns"] - rows["start_ns"]).all())
            # One process commits one after the other.
            self.assertTrue((rows["start_ns"][1:] >= rows["end_ns"][:-1]).all(), path.name)
            # They are on the clock of the events.
            times = run.events("time_ns")["time_ns"]
            self.assertGreater(rows["end_ns"].median(), times.min())
            self.assertLess(rows["end_ns"].median(), times.max())
        self.assertEqual(set(mostrace.read(DELETE).transactions()["role"]), {"rollback_journal"})
        # The journal mode is set by a transaction of the mode before it.
        roles = dict(mostrace.read(WAL).transactions().group_by("role").len().rows())
        self.assertEqual(roles.keys(), {"wal", "rollback_journal"})
        self.assertIn(roles["wal"], range(1000, 1003))

    def test_a_condition_selects(self):
        journal = self.run_.events("class", "bytes", where="class = 'journal'")
        self.assertEqual(journal.columns, ["class", "bytes"])
        self.assertEqual(journal["class"].unique().to_list(), ["journal"])

    def test_the_finding_is_the_programs_first_line(self):
        self.assertEqual(self.run_.finding, printed("analyze", str(DELETE)).splitlines()[0])

    def test_time_has_a_zone(self):
        times = self.run_.by(every="1s")["time_utc"]
        self.assertEqual(times.dtype.time_zone, "UTC")
        self.assertTrue(times.is_sorted())

    def test_options_reach_the_program(self):
        unmapped = mostrace.read(DELETE, no_map=True).by("class")
        self.assertNotEqual(unmapped.rows(), self.run_.by("class").rows())
        self.assertEqual(unmapped["write_bytes"].sum(), self.run_.by("class")["write_bytes"].sum())
        first = mostrace.read(DELETE, share="first").causes()
        self.assertEqual(first["bytes"].sum(), self.run_.causes()["bytes"].sum())

    def test_several_are_read_as_one(self):
        both = mostrace.read(DELETE, WAL)
        self.assertEqual(sorted(both.by("bundle")["bundle"]), ["delete", "wal"])
        # A query names all of them, and so does a glob.
        counts = both.query("SELECT bundle, count(*) AS requests FROM requests GROUP BY bundle ORDER BY bundle")
        self.assertEqual(counts["bundle"].to_list(), ["delete", "wal"])
        self.assertEqual(both.transactions()["bundle"].unique().sort().to_list(), ["delete", "wal"])
        self.assertEqual(mostrace.read(SAMPLES / "f2fs-*.most.tar.zst").recordings().height, 2)

    def test_two_are_compared(self):
        compared = mostrace.diff(mostrace.read(DELETE), mostrace.read(WAL))
        self.assertEqual(compared, json.loads(printed("diff", str(DELETE), str(WAL), "--json")))

    def test_the_page_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            page = self.run_.report(Path(folder) / "page.html")
            self.assertIn("<html", page.read_text())


class Errors(unittest.TestCase):
    """Every error of the program is one exception with the program's line."""

    def line(self, call, *args, **named):
        with self.assertRaises(mostrace.MostraceError) as caught:
            call(*args, **named)
        line = str(caught.exception)
        self.assertNotIn("\n", line)
        self.assertFalse(line.startswith(("mostrace:", "error:")), line)
        return line, caught.exception.status

    def test_what_cannot_be_read_is_named(self):
        line, status = self.line(mostrace.read, "missing.most")
        self.assertIn("missing.most", line)
        self.assertEqual(status, 1)
        with tempfile.TemporaryDirectory() as folder:
            broken = Path(folder) / "broken.most.tar.zst"
            broken.write_bytes(DELETE.read_bytes()[:1000] + b"?" * 1000)
            self.assertIn("broken.most", self.line(mostrace.read, broken)[0])

    def test_wrong_usage_is_status_2(self):
        run = mostrace.read(WAL)
        line, status = self.line(run.events, "colour")
        self.assertIn("colour", line)
        self.assertEqual(status, 2)
        self.assertIn("nothing", self.line(run.query, "SELECT nothing FROM events")[0])
        self.assertIn("DROP", self.line(run.query, "DROP TABLE events")[0])
        self.assertEqual(self.line(run.events, where="bytes >")[1], 2)
        self.assertEqual(self.line(run.by, "colour")[1], 2)
        self.assertEqual(self.line(mostrace.read)[1], 2)

    def test_a_name_is_no_option(self):
        self.assertIn("./--help", self.line(mostrace.read, "--help")[0])
        with tempfile.TemporaryDirectory() as folder:
            before = os.getcwd()
            os.chdir(folder)
            try:
                shutil.copy(WAL, "-o.most.tar.zst")
                self.assertEqual(mostrace.read("-o.most.tar.zst").finding, mostrace.read(WAL).finding)
            finally:
                os.chdir(before)

    def test_without_the_program_it_says_how_to_get_it(self):
        with tempfile.TemporaryDirectory() as empty, mock.patch("sysconfig.get_path", return_value=empty):
            with mock.patch.dict(os.environ, {"PATH": empty}):
                os.environ.pop("MOSTRACE", None)
                line, _ = self.line(mostrace.read, WAL)
                self.assertIn("make wheel", line)
                self.assertIn("$MOSTRACE", line)
                os.environ["MOSTRACE"] = f"{empty}/none"
                self.assertIn(f"{empty}/none", self.line(mostrace.read, WAL)[0])

    def test_the_program_beside_python_is_found(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch("sysconfig.get_path", return_value=folder):
            program = Path(folder) / "mostrace"
            program.write_text("#!/bin/sh\necho 'mostrace: it ran' >&2\nexit 1\n")
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
            with mock.patch.dict(os.environ):
                os.environ.pop("MOSTRACE", None)
                self.assertEqual(self.line(mostrace.read, WAL), ("it ran", 1))

    def test_what_is_missing_is_a_warning(self):
        with tempfile.TemporaryDirectory() as folder:
            # Half of a download: the program reads it as far as it goes, and says so.
            half = Path(folder) / "half.most.tar.zst"
            whole = DELETE.read_bytes()
            half.write_bytes(whole[: len(whole) * 9 // 10])
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                run = mostrace.read(half)
                run.events("bytes")
            told = [warning for warning in caught if issubclass(warning.category, mostrace.MostraceWarning)]
            self.assertTrue(told)
            self.assertIn("half.most", str(told[0].message))
            # The line is that of the test, not one of the package.
            self.assertEqual({Path(warning.filename).name for warning in told}, {"test_mostrace.py"})
            self.assertTrue(any("INCOMPLETE" in line or "incomplete" in line for line in run.warnings), run.warnings)


class Html(unittest.TestCase):
    def test_it_has_the_finding_and_every_byte(self):
        run = mostrace.read(WAL)
        page = run._repr_html_()
        self.assertIn("wrote 30.7 kB: 284 × what was stored", page)
        numbers = [int(text.replace(",", "")) for text in re.findall(r">([\d,]+)</td>", page)]
        # Bytes and writes in turn.
        self.assertEqual(sum(numbers[::2]), run.summary["total"]["write_bytes"])
        self.assertEqual(sum(numbers[1::2]), run.summary["total"]["writes"])

    def test_names_stay_text(self):
        run = mostrace.read(WAL)
        hostile = "<script>alert('1')</script>"
        run.summary["warnings"].append(hostile)
        run.summary["finding"]["headline"] += hostile
        page = run._repr_html_()
        self.assertEqual(page.count("&lt;script&gt;alert(&#x27;1&#x27;)"), 2)
        self.assertNotIn("<script", page)


class Ledgers(unittest.TestCase):
    """A ledger as docs/LEDGER.md describes it, made by hand."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        hour = datetime.datetime(2026, 11, 25, 8)
        key = {"hour": hour, "device": "7:0", "uid": 0, "package": None}
        what = {"operation": "write", "class": "data", "role": "db", "layer": "the database"}
        sums = ["writes", "read_bytes", "reads", "zeroed_bytes", "discard_bytes", "flushes", "asked_bytes"]
        rows = [
            {**key, "command": command, **what, "write_bytes": size, **dict.fromkeys(sums, 0)}
            for command, size in [("app", 4096), ("app", 8192), (None, 512)]
        ]
        texts = ["device", "package", "command", *what]
        kinds = dict.fromkeys(texts, polars.String) | {"hour": polars.Datetime("us"), "uid": polars.UInt32}
        kinds |= dict.fromkeys(["write_bytes", *sums], polars.UInt64)
        frame = polars.DataFrame(rows, schema_overrides=kinds)
        empty = polars.lit([], dtype=polars.List(polars.UInt64))
        frame = frame.with_columns(empty.alias("durable_us"), empty.alias("durable_calls"))
        for own in ("watched_ms", "kernel_write_bytes", "kernel_read_bytes", "lost"):
            frame = frame.with_columns(polars.lit(None, dtype=polars.UInt64).alias(own))
        frame.write_parquet(self.folder / "2026-11-25.parquet")

    def test_sums_are_those_of_its_rows(self):
        kept = mostrace.ledger(self.folder)
        sums = kept.by("day", "command")["command", "write_bytes"].drop_nulls("write_bytes").rows()
        self.assertEqual(sorted(sums, key=str), [("app", 12288), (None, 512)])
        self.assertEqual(kept.pandas.by("command")["write_bytes"].sum(), 12800)
        self.assertEqual(mostrace.ledger(self.folder, start="2026-11-26").by()["write_bytes"].sum(), 0)

    def test_what_is_no_ledger_is_the_programs_line(self):
        with self.assertRaisesRegex(mostrace.MostraceError, "nowhere"):
            mostrace.ledger(self.folder / "nowhere")
        with tempfile.TemporaryDirectory() as other, self.assertRaisesRegex(mostrace.MostraceError, "is no ledger"):
            mostrace.ledger(other)
        with self.assertRaisesRegex(mostrace.MostraceError, "colour"):
            mostrace.ledger(self.folder).by("colour")


class Commands(unittest.TestCase):
    def test_one_text_is_no_command(self):
        for command in ("true", b"true", Path("true")):
            with self.assertRaisesRegex(TypeError, "list of words"):
                mostrace.measure(command)


@unittest.skipIf(os.geteuid() != 0, "measuring needs root")
class Measuring(unittest.TestCase):
    COMMAND = ["sh", "-c", "head -c 1000000 /dev/zero >x; sync x; echo said >&2"]

    def test_a_command_is_measured(self):
        run = mostrace.measure(self.COMMAND, size="64M", empty=True, max_write_bytes="500K")
        self.assertEqual(run.exit_status, 0)
        written = run.events("bytes", where="path LIKE '%/x' AND op = 'write'")["bytes"].sum()
        # mke2fs makes blocks of 1 KiB on so small a device.
        self.assertEqual(written, 977 * 1024)
        self.assertEqual([limit["kept"] for limit in run.exceeded], [False])
        self.assertGreater(run.exceeded[0]["value"], 500_000)

    def test_it_lives_as_long_as_its_object(self):
        run = mostrace.measure(["true"], size="64M", empty=True)
        (path,) = run.sources
        self.assertTrue(Path(path).exists())
        self.assertEqual((run.exit_status, run.limits), (0, []))
        del run
        self.assertFalse(Path(path).parent.exists())

    def test_a_command_that_fails_is_recorded(self):
        run = mostrace.measure(["sh", "-c", "exit 4"], size="64M", empty=True, max_write_bytes="1M")
        self.assertEqual(run.exit_status, 4)
        self.assertEqual([limit["what"] for limit in run.exceeded][:1], ["exit status of the command"])

    def test_a_recording_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "run.most"
            run = mostrace.measure(["true"], "--empty", "--size", "64M", output=output)
            self.assertEqual((run.exit_status, run.exceeded), (0, []))
            self.assertEqual(run.sources, (str(output),))
            self.assertEqual(mostrace.read(output).finding, run.finding)

    def test_what_cannot_be_measured_is_the_programs_line(self):
        with self.assertRaisesRegex(mostrace.MostraceError, "no-such-filesystem"):
            mostrace.measure(["true"], fs="no-such-filesystem")


class Package(unittest.TestCase):
    def test_its_version_is_the_programs(self):
        version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
        self.assertEqual(metadata.version("mostrace"), version)
        self.assertIn(version, subprocess.run([mostrace.program(), "--version"], capture_output=True, text=True).stdout)


if __name__ == "__main__":
    unittest.main()
