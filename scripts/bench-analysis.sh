#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Measures how fast a recording with causes is read (root). SQLite in four journal modes, writes with fsync() and direct ones run at once on
# ext4 for SECONDS, and are recorded. Then blkparse and our verbs read the recording, three times each: the shortest run.
# usage: bench-analysis.sh MOSTRACE [SECONDS]
set -eu

mostrace=$1
seconds=${2:-40}
work=$(mktemp -d)
trap 'umount "$work/mnt" 2>/dev/null; losetup -d "$loop"; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
truncate -s 2G "$work/disk"
loop=$(losetup -f --show --direct-io=on "$work/disk")
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$loop"
mkdir "$work/mnt"
mount -o noatime "$loop" "$work/mnt"

cat >"$work/load" <<END
for journal in delete truncate persist wal; do
	timeout $seconds "$mostrace" workload sqlite --transactions 10000000 --journal \$journal "$work/mnt/\$journal.db" &
done
fio --directory="$work/mnt" --size=256M --rw=randwrite --bs=4k --time_based --runtime=$seconds \
	--name=synced --fsync=4 --name=direct --ioengine=libaio --iodepth=4 --direct=1 &
wait
END
"$mostrace" record -d "$loop" -o "$work/x.most" --source bpf --causes bpf -- sh "$work/load" >"$work/load.log" 2>"$work/said"
head -1 "$work/said" | sed "s|$work/||"

# spent PROGRAM…: prints how long a program runs, and the processor seconds of its threads.
spent() {
	(
		begin=$(date +%s.%N)
		"$@" >/dev/null 2>&1
		echo "$begin $(date +%s.%N)"
		times
	) | awk 'NR == 1 { lasted = $2 - $1 } END { for (i = 1; i <= 2; i++) { split($i, part, /[ms]/); sum += 60 * part[1] + part[2] } print lasted, sum }'
}

# least PROGRAM…: prints the shortest of three, after a run that shows that the program works.
least() {
	"$@" >/dev/null 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
	for _ in 1 2 3; do spent "$@"; done | sort -n | head -1
}

"$mostrace" export "$work/x.most" --format blktrace -o "$work/trace"
blkparse=$(least blkparse -i "$work/trace")
echo "blkparse: ${blkparse% *} s, ${blkparse#* } s of processors"
for asked in "--by file" "" "--full"; do
	# shellcheck disable=SC2086 # these are several words or none
	ours=$(least "$mostrace" analyze "$work/x.most" $asked)
	echo "$ours $blkparse" | awk -v asked="$asked" '{ printf "analyze %s: %.2f s, %.1f times as fast; %.2f s of processors, %.1f times less\n",
		asked, $1, $3 / $1, $2, $4 / $2 }'
done
