# SPDX-License-Identifier: MIT OR Apache-2.0
"""Spark as the one who runs tasks, and as an engine for the views. It needs the wheel `pyspark` and Java 17 or newer, no other jar: the
table is committed to by delta-rs, in the executors, and Spark reads the Parquet files of a version."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from .ingest import Mapper
from .program import MostraceError
from .table import RELATIONS, Table

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
    # Times are UTC in the table, and stay that.
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

    def map_(task: Callable, items: list) -> Iterable:
        if not items:
            return []
        at_least = context.defaultParallelism
        # A task of Spark's costs some 10 ms; a short one of ours a few times that.
        slices = len(items) if isinstance(items[0], list) else min(len(items), 8 * at_least)
        return context.parallelize(items, slices).map(_There(task, name)).collect()

    return map_


class _There:
    """A task that finds the program where Spark has put it."""

    def __init__(self, task: Callable, name: str):
        self.task, self.name = task, name

    def __call__(self, item: object) -> object:
        from pyspark import SparkFiles

        program = SparkFiles.get(self.name)
        os.chmod(program, 0o755)
        return replace(self.task, mostrace=program)(item)


def define(spark: SparkSession, table: Table) -> None:
    """Makes each table of a version a temporary view. Raises MostraceError if there are no rows."""
    by_relation = {relation: [file.uri for file in table.files(relation)] for relation in RELATIONS}
    if not any(by_relation.values()):
        raise MostraceError(f"{table.url}: it has no rows")
    for relation, uris in by_relation.items():
        if uris:
            reader = spark.read.option("basePath", table.url).option("mergeSchema", "true")
            reader.parquet(*uris).drop("relation").createOrReplaceTempView(relation)


def ask(spark: SparkSession, table: Table, sql: str) -> tuple[list[str], list[tuple]]:
    """The names of the columns and the rows of the answer to a query over a version of the table. Raises MostraceError if it cannot
    be understood."""
    from pyspark.errors import PySparkException

    define(spark, table)
    try:
        answer = spark.sql(sql)
        return answer.columns, [tuple(row) for row in answer.collect()]
    except PySparkException as error:
        raise MostraceError(str(error).split("\n", 1)[0]) from None
