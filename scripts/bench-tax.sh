#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Measures what a recording of one filesystem costs calls that have nothing to do with it (root): ns of each, without a
# recording, with entries alone, and with causes, in turns; what is recorded is an ext4 on a loop device, and the others
# work on an ext4 on another one. Prints medians, and the medians of the ratios of each turn.
# usage: bench-tax.sh MOSTRACE [TURNS]
set -eu

mostrace=$(realpath "$1")
turns=${2:-7}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d -p /dev/shm)
loops=
clean() {
	for mnt in "$work"/*.mnt; do umount "$mnt" 2>/dev/null || true; done
	for loop in $loops; do losetup -d "$loop"; done
	rm -rf "$work"
}
trap clean EXIT
trap 'exit 1' INT TERM
cc -O2 -Wall -o "$work/tax" "$here/bench-tax.c"
for name in traced other; do
	truncate -s 256M "$work/$name"
	loop=$(losetup -f --show "$work/$name")
	loops="$loops $loop"
	mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 "$loop"
	mkdir "$work/$name.mnt"
	mount -o noatime "$loop" "$work/$name.mnt"
done
traced=${loops# }
traced=${traced%% *}

# record OPTION…: measures while the first loop device is recorded.
record() {
	rm -rf "$work/t.most"
	"$mostrace" record -q -d "$traced" -o "$work/t.most" --no-snapshot --source bpf --entries bpf "$@" 2>>"$work/said"
}

for turn in $(seq "$turns"); do
	"$work/tax" "$work/other.mnt" | sed "s/^/$turn\tnothing\t/"
	record --causes none -- "$work/tax" "$work/other.mnt" | sed "s/^/$turn\tentries\t/"
	record -- "$work/tax" "$work/other.mnt" | sed "s/^/$turn\tcauses\t/"
done >"$work/all"
python3 - "$work/all" <<'END'
import collections, statistics, sys

ns = collections.defaultdict(dict)
for line in open(sys.argv[1]):
    turn, mode, value, name = line.rstrip("\n").split("\t")
    ns[name, mode][turn] = float(value)
names = list(dict.fromkeys(name for name, _ in ns))
print(f"{'ns':34}{'nothing':>10}{'entries':>10}{'ratio':>8}{'causes':>10}{'ratio':>8}")
for name in names:
    base, line = ns[name, "nothing"], f"{name:34}"
    for mode in ("nothing", "entries", "causes"):
        values = ns[name, mode]
        line += f"{statistics.median(values.values()):10.0f}"
        if mode != "nothing":
            line += f"{statistics.median(values[turn] / base[turn] for turn in values):8.3f}"
    print(line)
END
