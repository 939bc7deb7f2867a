#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks the homes of a journal's blocks if the journal is not on the filesystem's device.

usage: homes.py NAME
NAME.stream is what was read from /dev/mostrace for both devices until they were unmounted; every journalled block has been
written home by then. NAME.homes holds the expected `home` as in mostrace.h: 0 for the disk that both are on, 1 for the
filesystem's own device.

Exits with 1 if there is no copy, or if a copy has no home or one to which nothing was written.
"""
import sys

from same import COPIES, JBD2, NONE, ORIGIN, from_stream, sectors

HOME_SECTOR, HOME = 5, 13
FROM_DEVICE, JOURNAL = 2, 5


def main(name):
    processes = [e for _, e in from_stream(f"{name}.stream") if e[0] == "process"]
    with open(f"{name}.homes") as f:
        base = int(f.read())
    copies = [e for e in processes if e[ORIGIN] == JOURNAL and e[JBD2] in COPIES]
    written = {s for e in processes if e[ORIGIN] == FROM_DEVICE for s in sectors(e)}
    wrong = [e for e in copies if e[HOME_SECTOR] == NONE or e[HOME] != base or e[HOME_SECTOR] not in written]
    print(f"{name}: {len(copies)} copies, {len(wrong)} with a wrong home: {sorted({e[HOME_SECTOR] for e in wrong})[:10]}")
    return not copies or bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
