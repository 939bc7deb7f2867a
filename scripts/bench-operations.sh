#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Measures what it costs SQLite that calls are recorded too (root): µs a transaction without a recording, with one, and
# with `record --operations` and `--operations=all`, in turns, on ext4 on a loop device in memory; and the recorder's own CPU time.
# usage: bench-operations.sh MOSTRACE [TRANSACTIONS]
set -eu

mostrace=$1
transactions=${2:-3000}
turns=${BENCH_TURNS:-7}
work=$(mktemp -d -p /dev/shm)
trap 'umount "$work/mnt" 2>/dev/null; losetup -d "$loop"; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
truncate -s 1G "$work/disk"
loop=$(losetup -f --show "$work/disk")
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$loop"
mkdir "$work/mnt"
mount -o noatime "$loop" "$work/mnt"

# The command measures itself, so that the recorder's beginning and end do not count. Its parent is the recorder.
cat >"$work/script" <<END
ticks() { awk '{ sub(/.*\) /, ""); print \$12 + \$13 }' "/proc/\$PPID/stat"; }
before=\$(ticks) start=\$(date +%s%N)
"$mostrace" workload sqlite --transactions $transactions --overwrite "$work/mnt/x.db" >/dev/null
echo "\$((\$(date +%s%N) - start)) \$((\$(ticks) - before))" >>"\$1"
END

# record OPTION…: records the command.
record() {
	rm -rf "$work/t.most"
	"$mostrace" record -q -d "$loop" -o "$work/t.most" --no-snapshot --source bpf --entries bpf "$@" 2>>"$work/said"
}

# column NAME N: prints the median of a column.
column() {
	awk -v n="$2" '{ print $n }' "$work/$1" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

for _ in $(seq "$turns"); do
	sh "$work/script" "$work/none"
	record -- sh "$work/script" "$work/causes"
	record --operations -- sh "$work/script" "$work/operations"
	record --operations=all -- sh "$work/script" "$work/all"
done
causes=$(column causes 1)
for name in none causes operations all; do
	awk -v name=$name -v n="$transactions" -v ns="$(column $name 1)" -v ticks="$(column $name 2)" -v of="$causes" -v hz="$(getconf CLK_TCK)" \
		'BEGIN { printf "%-10s %7.1f µs a transaction, %.2f times that with causes", name, ns / n / 1000, ns / of
			if (name != "none") printf "; the recorder %.1f µs", ticks / hz * 1e6 / n
			print "" }'
done
grep -i lost "$work/said" | sort | uniq -c || true
