# SPDX-License-Identifier: MIT OR Apache-2.0
"""Holds the package against what the program prints, on the sample traces: python -m unittest discover python/tests"""

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

import polars

import mostrace
from mostrace import _program

SAMPLES = Path(__file__).parents[2] / "sample-traces"
DELETE, WAL = SAMPLES / "delete.most.tar.zst", SAMPLES / "wal.most.tar.zst"


def printed(*args: str) -> str:
    return subprocess.run([_program.program(), *args], check=True, capture_output=True, text=True).stdout


class Reading(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = mostrace.read(DELETE)
        cls.events = cls.run_.events()

    def test_events_are_those_of_the_program(self):
        csv = printed("events", str(DELETE), "--format", "csv")
        self.assertEqual(self.events.height, len(csv.splitlines()) - 1)
        self.assertEqual(self.events.columns, csv.split("\n", 1)[0].split(","))

    def test_integers_stay_integers_where_some_are_unknown(self):
        for column in ("inode", "home_sector", "cause_pid"):
            self.assertEqual(self.events.schema[column], polars.Int64)
            self.assertGreater(self.events[column].null_count(), 0, column)

    def test_every_table_has_every_byte(self):
        written = self.run_.summary["total"]["write_bytes"]
        of_events = self.events.filter(polars.col("op") == "write")["bytes"].sum()
        causes = self.run_.causes().filter(polars.col("op") == "write")
        self.assertEqual(of_events, written)
        self.assertEqual(causes["bytes"].sum(), written)
        self.assertEqual(self.run_.by("class", "role")["write_bytes"].sum(), written)
        self.assertEqual(self.run_.by("class", every="1s")["write_bytes"].sum(), written)
        self.assertEqual(self.run_.files()["write_bytes"].sum(), written)
        self.assertEqual(self.run_.requests().filter(polars.col("op") == "write")["bytes"].sum(), written)

    def test_a_condition_selects(self):
        journal = self.run_.events("class", "bytes", where="class = 'journal'")
        self.assertEqual(journal.columns, ["class", "bytes"])
        self.assertEqual(journal["class"].unique().to_list(), ["journal"])

    def test_the_finding_is_the_programs_first_line(self):
        self.assertEqual(self.run_.finding, printed("analyze", str(DELETE)).splitlines()[0])
        self.assertIn("journal", self.run_._repr_html_())

    def test_time_has_a_zone(self):
        times = self.run_.by(every="1s")["time_utc"]
        self.assertEqual(times.dtype.time_zone, "UTC")
        self.assertTrue(times.is_sorted())

    def test_names_stay_text_in_html(self):
        self.run_.summary["warnings"].append("<script>")
        self.assertIn("&lt;script&gt;", self.run_._repr_html_())
        self.run_.summary["warnings"].pop()


class Others(unittest.TestCase):
    def test_two_are_compared(self):
        compared = mostrace.diff(mostrace.read(DELETE), mostrace.read(WAL))
        self.assertEqual(compared, json.loads(printed("diff", str(DELETE), str(WAL), "--json")))

    def test_several_are_read_as_one(self):
        both = mostrace.read(DELETE, WAL).by("bundle")
        self.assertEqual(sorted(both["bundle"]), ["delete", "wal"])

    def test_what_cannot_be_read_is_the_programs_line(self):
        with self.assertRaisesRegex(mostrace.MostraceError, "missing.most"):
            mostrace.read("missing.most")
        with self.assertRaisesRegex(mostrace.MostraceError, "colour"):
            mostrace.read(DELETE).events("colour")

    def test_the_page_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            page = mostrace.read(WAL).report(Path(folder) / "page.html")
            self.assertIn("<html", page.read_text())


class Plots(unittest.TestCase):
    """What a chart shows sums to what was written."""

    def test_every_chart_has_every_byte(self):
        run = mostrace.read(WAL)
        written = run.summary["total"]["write_bytes"]
        self.assertEqual(run.plot.timeline().data["write_bytes"].sum(), written)
        icicle = run.plot.icicle().data.filter(polars.col("depth") == 0)
        self.assertEqual(icicle["bytes"].sum(), written)
        shares = run.plot.cdf().data
        for share in shares.group_by("op").agg(polars.col("share").max())["share"]:
            self.assertAlmostEqual(share, 1.0)
        for chart in (run.plot.timeline(), run.plot.icicle(), run.plot.cdf()):
            chart.to_dict()


if __name__ == "__main__":
    unittest.main()
