# SPDX-License-Identifier: MIT OR Apache-2.0
"""Spark as the one who runs tasks, and as an engine for the views. It needs the wheel `pyspark` and Java 17 or newer."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from .ingest import Add, MostraceError, Mapper, Outcome, Source
from .report import relations

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextlib.contextmanager
def session(master: str | None) -> Iterator[SparkSession]:
    """A session of this master, or of the one that spark-submit names. It ends in order: a cluster notes a driver that vanishes."""
    # The workers of a local cluster start the Python of this environment, which has this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("mostrace-fleet")
    if master:
        builder = builder.master(master)
    # Times are UTC in the data set, and stay that.
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.ui.showConsoleProgress", "false")
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def in_executors(spark: SparkSession, mostrace: str) -> Mapper:
    """Runs tasks in the executors, each of which gets the program."""
    context = spark.sparkContext
    context.addFile(mostrace)
    name = os.path.basename(mostrace)

    def map_(task: Add, items: list[Source]) -> Iterable[Outcome]:
        def there(item: Source) -> Outcome:
            from pyspark import SparkFiles

            program = SparkFiles.get(name)
            os.chmod(program, 0o755)
            return replace(task, mostrace=program)(item)

        return context.parallelize(items, len(items)).map(there).collect() if items else []

    return map_


def ask(spark: SparkSession, data_set: str, sql: str) -> tuple[list[str], list[tuple]]:
    """The names of the columns and the rows of the answer to a query. Raises MostraceError if it cannot be understood."""
    from pyspark.errors import PySparkException

    found = relations(data_set)
    try:
        for name in found:
            reader = spark.read.option("mergeSchema", "true").option("basePath", f"{data_set}/{name}")
            rows = reader.parquet(f"{data_set}/{name}")
            if name == "ledger":
                rows = rows.selectExpr("*", "regexp_extract(input_file_name(), '([^/]+)[.]parquet$', 1) AS ledger")
            elif name != "recordings":
                # A recording without a row there is not whole yet.
                rows = rows.join(spark.table("recordings").select("bundle_id"), "bundle_id", "left_semi")
            rows.createOrReplaceTempView(name)
        answer = spark.sql(sql)
        return answer.columns, [tuple(row) for row in answer.collect()]
    except PySparkException as error:
        raise MostraceError(str(error).split("\n", 1)[0]) from None
