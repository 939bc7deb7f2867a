# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a chart shows is what was written, and a name in it is text."""

import datetime
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import polars
from samples import DELETE, SAMPLES, WAL

import mostrace
from mostrace import _icicle, _series, _timeline

ALL = sorted(SAMPLES.glob("*.most.tar.zst"))
MOST_ROWS = 5000
HOSTILE = "</script><script>alert(1)</script><!--"


class Charts(unittest.TestCase):
    def test_every_chart_of_every_sample_has_every_byte(self):
        for path in ALL:
            run = mostrace.read(path)
            written = run.summary["total"]["write_bytes"]
            for chart in (run.plot.timeline(), run.plot.timeline(by="file"), run.plot.timeline(every="1s")):
                self.assertEqual(chart.data["bytes"].sum(), written, path.name)
                self.assertLessEqual(chart.data["from"].n_unique(), _timeline.INTERVALS + 1)
                self.stacked(chart.data)
            icicle = run.plot.icicle()
            self.nested(icicle.data, written)
            for chart in (run.plot.timeline(by="cause_process"), icicle, run.plot.cdf()):
                self.assertLess(chart.data.height, MOST_ROWS)
                chart.to_dict()

    def stacked(self, data):
        """In each interval, one bar begins where the other ends."""
        for _, bars in data.sort("rank").group_by("time_utc"):
            self.assertEqual(bars["bottom"].to_list(), [0, *bars["top"].to_list()[:-1]])
            self.assertEqual(bars["top"].max(), bars["bytes"].sum())

    def nested(self, data, written):
        """Each level but the last has all bytes, and a part lies within one of the level above."""
        for depth in range(3):
            level = data.filter(polars.col("depth") == depth).sort("from")
            self.assertEqual(level["bytes"].sum(), written)
            self.assertEqual(level["from"].to_list(), [0, *level["to"].to_list()[:-1]])
        for begin, end, depth in data.select("from", "to", "depth").filter(polars.col("depth") > 0).rows():
            above = (polars.col("depth") == depth - 1) & (polars.col("from") <= begin) & (polars.col("to") >= end)
            self.assertEqual(data.filter(above).height, 1)

    def test_the_timeline_agrees_with_the_events(self):
        run = mostrace.read(DELETE)
        data = run.plot.timeline(every="100ms").data
        events = run.events("time_utc", "bytes", where="op = 'write' AND class = 'journal'")
        by_hand = events.group_by(polars.col("time_utc").dt.truncate("100ms")).agg(polars.col("bytes").sum())
        journal = data.filter(polars.col("what") == "filesystem journal").select("time_utc", "bytes")
        self.assertEqual(journal.sort("time_utc").rows(), by_hand.sort("time_utc").rows())

    def test_the_distribution_agrees_with_the_requests(self):
        run = mostrace.read(DELETE)
        data = run.plot.cdf("q2c_ns").data
        for name in ("write", "flush"):
            times = run.requests().filter(polars.col("op") == name)["q2c_ns"].drop_nulls()
            line = data.filter(polars.col("what") == f"{name} ({times.len():,})")
            self.assertEqual(line["share"].min(), 0.0)
            self.assertEqual(line["share"].max(), 1.0)
            for ns, share in line.filter(polars.col("share") > 0).select("ns", "share").rows():
                self.assertGreaterEqual((times <= ns).mean(), share)
            self.assertEqual(line["ns"].max(), times.max())

    def test_the_parts_of_a_flash_sum_to_what_it_writes(self):
        run = mostrace.read(DELETE)
        options = {"capacity": "512MiB", "block": "1M", "fill": "95%", "page": "16K"}
        curve = run.flash(**options)["model"]["curve"]
        chart = run.plot.flash(**options)
        sums = chart.data.group_by("full", maintain_order=True).agg(polars.col("times").sum())
        for (full, times), level in zip(sums.rows(), curve, strict=True):
            self.assertAlmostEqual(full, level["fill"] * 100, places=1)
            self.assertAlmostEqual(times, level["ratio"])
        whats = set(chart.data["what"])
        self.assertLessEqual({"what the device is given", "SQLite's journals", "left empty by flushes"}, whats)
        self.assertTrue(chart.to_dict()["title"]["text"].startswith("A model, not measured: 536.9 MB, 95 % full"))

    def test_small_parts_are_drawn_as_one(self):
        parts = [{"name": f"kind {at}", "bytes": 1, "parts": []} for at in range(1000)]
        layers = [{"name": "ext4's journal", "bytes": 1000, "parts": parts}]
        layers += [{"name": f"RocksDB's log {at}", "bytes": 2, "parts": []} for at in range(3)]
        owner = {"process": None, "database": None, "device": {"name": "device", "bytes": 1006, "parts": layers}}
        cells = _icicle.draw({"owners": [owner]}).data
        self.assertEqual(cells.filter(polars.col("depth") == 3)["name"].to_list(), ["1000 others"])
        layers = cells.filter(polars.col("depth") == 2).select("name", "bytes", "what").rows()
        self.assertEqual(layers, [("ext4's journal", 1000, "filesystem journal"), ("3 others", 6, "other files")])
        self.assertEqual(cells.filter(polars.col("depth") == 1)["name"].to_list(), ["unknown"])

    def test_the_largest_values_have_a_colour(self):
        rows = [(f"file {at}", at + 1) for at in range(20)] + [("file 19", 5)]
        series = _series.of_column(polars.DataFrame(rows, schema=["what", "bytes"], orient="row"), "bytes")
        self.assertEqual(series.values[:2], ["file 19", "file 18"])
        self.assertEqual(series.values[-1], "12 others")
        self.assertEqual(len(series.values), len(series.colours))
        sums = series.frame.group_by("what").agg(polars.col("bytes").sum())
        self.assertEqual(dict(sums.rows())["12 others"], sum(range(1, 13)))

    def test_time_without_a_wall_clock_is_refused(self):
        run = mostrace.read(WAL)
        unknown = run.by("class", "role", every="1s").with_columns(polars.lit(None, polars.Datetime).alias("time_utc"))
        with mock.patch.object(mostrace.Run, "by", return_value=unknown), self.assertRaises(ValueError):
            run.plot.timeline()

    def test_an_empty_recording_has_charts(self):
        self.assertEqual(_icicle.draw({"owners": []}).data["bytes"].to_list(), [0])
        with mock.patch.object(
            mostrace.Run, "query", return_value=polars.DataFrame(schema={"what": polars.String, "ns": polars.Int64})
        ):
            mostrace.read(WAL).plot.cdf().to_dict()

    def test_units_of_time(self):
        self.assertEqual(
            [_timeline._microseconds(text) for text in ("5ms", "2", "1.5s", "1h")], [5000, 2 * 10**6, 1_500_000, 3600 * 10**6]
        )
        self.assertEqual([_timeline._interval(ns) for ns in (0, 10**9, 10**10)], ["1ms", "5ms", "50ms"])


class Names(unittest.TestCase):
    """Altair puts data into a script as it is."""

    def check(self, chart):
        page = chart.to_html()
        self.assertNotIn("alert(1)</script>", page)
        self.assertNotIn("<!--", page)
        self.assertIn(r"\\x3c/script>", page)

    def test_a_name_does_not_end_the_script(self):
        run = mostrace.read(WAL)
        sums = polars.DataFrame(
            {"time_utc": [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)], "file": [HOSTILE], "write_bytes": [1]}
        )
        with mock.patch.object(mostrace.Run, "by", return_value=sums):
            self.check(run.plot.timeline(by="file"))
        with mock.patch.object(mostrace.Run, "query", return_value=polars.DataFrame({"what": [HOSTILE], "ns": [5]})):
            self.check(run.plot.cdf(by="process"))
        device = {"name": "device", "bytes": 1, "parts": []}
        for process, database in ((HOSTILE, None), ("a", HOSTILE)):
            self.check(_icicle.draw({"owners": [{"process": process, "database": database, "device": device}]}))


class Pictures(unittest.TestCase):
    def test_they_can_be_saved(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "icicle.png"
            mostrace.read(WAL).plot.icicle().save(path)
            self.assertEqual(path.read_bytes()[:4], b"\x89PNG")


if __name__ == "__main__":
    unittest.main()
