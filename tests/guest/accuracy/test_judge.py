#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests that the trace is read as the kernel meant it, and that the judge finds each kind of wrong answer."""

import unittest

from judge import RIGHT, UNASKED, WRONG, judge
from trace import Modification, Trace

PLACE = (7, 40)
INODE = "dev=7 ino=12"


def line(us, task, event, fields=""):
    return f"  {task}  [001] .....  1.{us:06}: {event}: (a_function+0x4/0x90 [ext4]) {fields}"


def modify(us, task, tid=5):
    return line(us, task, "modify", f"tid={tid} dev=7 block=40")


def changes(*whose):
    return [Modification(at, 5, frozenset(who), "" if who else "kernel thread") for at, who in enumerate(whose)]


class Traces(unittest.TestCase):
    def whose(self, *lines, tid=5):
        return [set(change.who) for change in Trace(lines).in_transaction(PLACE, tid)]

    def test_every_call_counts_in_its_transaction(self):
        self.assertEqual(self.whose(modify(1, "a-b-1"), modify(2, "dd-2"), modify(3, "dd-2"), modify(4, "dd-3", 6)), [{1}, {2}, {2}])

    def test_an_eviction_is_for_who_removed_the_name(self):
        evict = [line(2, "cat-2", "evict", INODE), modify(3, "cat-2"), line(4, "cat-2", "evicted"), modify(5, "cat-2")]
        self.assertEqual(self.whose(line(1, "rm-1", "drop", INODE), *evict), [{1}, {2}])

    def test_a_flusher_works_for_the_writers_of_its_file(self):
        flush = [line(3, "kworker/u8:1-9", "writeback", INODE), modify(4, "kworker/u8:1-9"), line(5, "kworker/u8:1-9", "written")]
        self.assertEqual(self.whose(line(1, "dd-1", "write", INODE), line(2, "dd-2", "store", INODE), *flush), [{1, 2}])
        self.assertEqual(self.whose(modify(6, "kworker/0:1-9")), [set()])

    def test_a_file_with_the_number_of_an_evicted_one_is_another(self):
        evict = [line(2, "rm-2", "evict", INODE), line(3, "rm-2", "evicted")]
        flush = [line(5, "kworker/u8:1-9", "writeback", INODE), modify(6, "kworker/u8:1-9"), line(7, "kworker/u8:1-9", "written")]
        self.assertEqual(self.whose(line(1, "dd-1", "write", INODE), *evict, line(4, "dd-3", "write", INODE), *flush), [{3}])

    def test_a_trace_with_a_gap_is_refused(self):
        with self.assertRaises(ValueError):
            Trace([line(1, "dd-1", "written")])

    def test_what_was_done_before_a_block_was_freed_does_not_count(self):
        forget = line(2, "rm-1", "forget", "tid=5 dev=7 block=40")
        self.assertEqual(self.whose(modify(1, "rm-1"), forget, modify(3, "dd-2")), [{2}])
        trace = Trace([modify(1, "rm-1", 4), forget, modify(3, "dd-2")])
        self.assertEqual(len(trace.in_transaction(PLACE, 4)), 1)
        self.assertEqual([set(c.who) for c in trace.between(PLACE, 0, 2 * 10**9)], [{2}])


class Judgements(unittest.TestCase):
    def says(self, expected, known, named, causers, modified):
        self.assertEqual(judge(known, named, frozenset(causers), modified)[0], expected)

    def test_exact(self):
        self.says(RIGHT, "exact", 1, [1], changes([1], [1]))
        self.says(WRONG, "exact", 1, [1], changes([1], [2]))
        self.says(WRONG, "exact", 1, [1, 2], changes([1], [2]))
        self.says(WRONG, "exact", 3, [3], changes([1, 2]))
        self.says(UNASKED, "exact", 1, [1], changes([1, 2]))
        self.says(UNASKED, "exact", 1, [1], changes([1], []))
        self.says(WRONG, "exact", 1, [1], changes([2], []))
        self.says(UNASKED, "exact", 1, [1], [])

    def test_shared(self):
        self.says(RIGHT, "shared", 1, [1, 2], changes([1], [2], [1]))
        self.says(WRONG, "shared", 1, [1, 2], changes([1], [2], [3]))
        self.says(WRONG, "shared", 1, [1, 2], changes([1], [1]))

    def test_first(self):
        self.says(RIGHT, "first", 1, [1], changes([1], [2]))
        self.says(WRONG, "first", 2, [2], changes([1], [2]))
        self.says(UNASKED, "first", 1, [1], changes([], [1]))


if __name__ == "__main__":
    unittest.main()
