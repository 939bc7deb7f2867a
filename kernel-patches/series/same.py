#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares two tables of events that were recorded at once: by functions and private structs, and by the kernel's tracepoints.

Every row must be in both, with the same values. Left out are times, which each recording takes itself; the one cause that is named
of a `shared` row, which is one of several that are equally true; and rows without bytes, which each recording makes when it sees a
flush end. A dirtier may be known by the tracepoints alone, because only they tell when a write begins, but not by the other alone.

usage: same.py STOCK.csv TOLD.csv
"""

import csv
import sys
from collections import defaultdict

TIMES = ("_ns", "time_utc")
PLACE = ("rwbs", "sector", "bytes", "size_bytes", "jbd2_tid")
DIRTIER = ("dirty_pid", "dirty_tgid", "dirty_uid", "dirty_comm")
CAUSE = (
    "cause_pid cause_tgid cause_uid cause_comm cause_op cause_inode cause_path cause_generation cause_package cause_of_command"
).split()


def read(path):
    """Returns the rows with bytes, by their place, each list in the order of time."""
    rows = defaultdict(list)
    with open(path, newline="", encoding="utf-8") as file:
        for row in sorted(csv.DictReader(file), key=lambda row: int(row["time_ns"])):
            if row["bytes"] != "0":
                rows[tuple(row[name] for name in PLACE)].append(row)
    return rows


def differences(stock, told):
    """Returns the names of the columns in which two rows differ, and whether only the second has a dirtier."""
    ignored = set(CAUSE) if stock["cause_known"] == told["cause_known"] == "shared" else set()
    gained = not stock["dirty_pid"] and bool(told["dirty_pid"])
    if gained:
        ignored.update(DIRTIER)
    names = (name for name in stock if not name.endswith(TIMES) and name not in ignored)
    return [name for name in names if stock[name] != told[name]], gained


def main():
    stock, told = (read(path) for path in sys.argv[1:3])
    bad = [f"only one has as many rows at {place}" for place in stock.keys() | told.keys() if len(stock[place]) != len(told[place])]
    rows = gained = dirtied = direct = causes = 0
    for place in list(stock):
        for one, other in zip(stock[place], told[place]):
            names, is_gained = differences(one, other)
            if names:
                bad.append(f"{place}: " + ", ".join(f"{name} {one[name]!r}, {other[name]!r}" for name in names))
            rows += 1
            gained += is_gained
            dirtied += bool(one["dirty_pid"])
            direct += one["origin"] == "direct"
            causes += one["cause_known"] in ("exact", "shared")
    print(
        f"same: {rows} rows, {direct} of direct IO, {causes} with an exact or shared cause, {dirtied} with a dirtier in both, "
        f"{gained} by the tracepoints alone; {len(bad)} differ"
    )
    print("\n".join(bad[:20]))
    if bad or not (direct and causes and dirtied):
        sys.exit(1)


if __name__ == "__main__":
    main()
