# SPDX-License-Identifier: MIT OR Apache-2.0
"""The same tables as frames of polars, pandas and Arrow, without copies between them."""

import tempfile
import unittest
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow
from samples import DELETE

import mostrace
from mostrace import _frames

# Columns in which some values are unknown.
NULLABLE = ["inode", "home_sector", "cause_pid", "jbd2_tid"]


def address(column: pyarrow.ChunkedArray) -> int:
    """Where a column's values begin in memory."""
    return column.chunk(0).buffers()[1].address


class Frames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run = mostrace.read(DELETE)
        cls.polars, cls.pandas, cls.arrow = run.events(), run.pandas.events(), run.arrow.events()

    def test_integers_stay_integers_where_some_are_unknown(self):
        for column in NULLABLE:
            self.assertEqual(self.polars.schema[column], polars.Int64)
            self.assertEqual(self.arrow.schema.field(column).type, pyarrow.int64())
            self.assertEqual(self.pandas[column].dtype, pandas.ArrowDtype(pyarrow.int64()))
            unknown = self.polars[column].null_count()
            self.assertGreater(unknown, 0, column)
            self.assertEqual(self.pandas[column].isna().sum(), unknown)
            self.assertEqual(self.arrow[column].null_count, unknown)

    def test_no_column_is_a_number_with_a_point(self):
        self.assertNotIn(polars.Float64, self.polars.dtypes)
        self.assertFalse([name for name, kind in self.pandas.dtypes.items() if "float" in str(kind)])

    def test_all_have_the_same_values(self):
        self.assertEqual(self.pandas.columns.to_list(), self.polars.columns)
        self.assertEqual(self.arrow.column_names, self.polars.columns)
        self.assertTrue(polars.from_arrow(self.arrow).equals(self.polars))
        self.assertTrue(pyarrow.table(self.pandas).select(self.polars.columns).equals(self.arrow, check_metadata=False))

    def test_an_integer_beyond_a_double_is_kept(self):
        big = 2**53 + 1
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.parquet"
            polars.DataFrame({"x": [big, None]}).write_parquet(path)
            self.assertEqual(_frames.of_pandas().read(path)["x"][0], big)
            self.assertEqual(_frames.of_arrow().read(path)["x"][0].as_py(), big)
            small = polars.DataFrame({"x": [big, None]})
            self.assertEqual(_frames.of_pandas().of(small)["x"][0], big)

    def test_arrow_takes_them_without_a_copy(self):
        for frame in (self.polars, self.pandas):
            one, other = pyarrow.table(frame), pyarrow.table(frame)
            for column in ("bytes", "inode", "time_ns"):
                # A copy would lie at another place each time.
                self.assertEqual(address(one[column]), address(other[column]), column)
        numbers = self.polars["bytes"].rechunk()
        of_polars = numbers.to_numpy(allow_copy=False).ctypes.data
        self.assertEqual(address(pyarrow.table(numbers.to_frame())["bytes"]), of_polars)
        theirs = self.pandas["bytes"].array.__arrow_array__()
        self.assertEqual(address(pyarrow.table(self.pandas)["bytes"]), address(theirs))

    def test_the_c_stream_is_arrows(self):
        for frame in (self.polars, self.pandas, self.arrow):
            capsule = frame.__arrow_c_stream__()
            self.assertIn("arrow_array_stream", repr(capsule))

    def test_duckdb_reads_them(self):
        whole = self.polars["bytes"].sum()
        for events in (self.polars, self.arrow):
            self.assertEqual(duckdb.sql("SELECT sum(bytes) FROM events").fetchall(), [(whole,)])

    def test_every_table_has_these_kinds(self):
        run = mostrace.read(DELETE)
        for table in ("requests", "causes", "processes", "files", "recordings", "transactions", "amplification"):
            ours = getattr(run, table)()
            theirs = getattr(run.pandas, table)()
            self.assertIsInstance(theirs, pandas.DataFrame)
            self.assertEqual(theirs.shape, ours.shape, table)
            self.assertIsInstance(getattr(run.arrow, table)(), pyarrow.Table)
        sums = run.pandas.by("class", every="1s")
        self.assertEqual(sums["time_utc"].dtype.pyarrow_dtype, pyarrow.timestamp("us", "UTC"))
        self.assertEqual(run.polars.by("class").rows(), run.by("class").rows())


if __name__ == "__main__":
    unittest.main()
