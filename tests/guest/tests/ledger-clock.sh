# SPDX-License-Identifier: MIT OR Apache-2.0
# A ledger on a machine whose clock jumps ahead by a day and back by three: each byte that the kernel counted is in a row of an hour, by the
# clock of that time, or in a gap.

# counted: prints the bytes that the kernel counted as written, when all is written.
counted() {
	sync
	usleep 500000
	echo $(($(awk '{ print $7 }' "/sys/block/$(basename "$loop")/stat") * 512))
}

# load SECONDS: writes and syncs for so long, by the clock that does not jump.
load() {
	end=$(($(cut -d. -f1 /proc/uptime) + $1))
	while [ "$(cut -d. -f1 /proc/uptime)" -lt $end ]; do
		/usr/local/bin/dd if=/dev/zero of="$mnt/log" bs=5k count=4 oflag=append conv=notrunc,fsync 2>/dev/null
		usleep 50000
	done
}

# jump SECONDS: sets the clock.
jump() {
	step "jump by $1 s"
	date -s "@$(($(date +%s) + $1))" >/dev/null
	load 8
}

# total COLUMN: adds up a column of the table on stdin.
total() {
	awk -F, -v c="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == c) at = i; next } { n += $at } END { print n + 0 }'
}

fresh_ext4 64 -b 4096
before=$(counted)
began=$(date +%s)
mostrace ledger start -v ledger -d "$mnt" --every 2s --segment 0.5 2>ledger.err &
step "the ledger's first hour"
until ls ledger/*.parquet >/dev/null 2>&1; do usleep 200000; done
load 12
jump 86400
jump -259200
jump 172800
bytes=$(($(counted) - before))
mostrace ledger stop ledger || fail "not stopped: $(cat ledger.err)"
wait
mostrace ledger show ledger --hours --format csv >hours.csv
mostrace ledger show ledger --by command --format csv >rows.csv
cp hours.csv rows.csv /tmp/out/
watched=$(total kernel_write_bytes <hours.csv)
gaps=$(total gap_write_bytes <hours.csv)
written=$(($(total write_bytes <rows.csv) + $(total zeroed_bytes <rows.csv)))
info "$bytes bytes counted: $watched in hours, $gaps in gaps, $written in rows; $(($(wc -l <hours.csv) - 1)) hours"
[ $((watched + gaps)) = "$bytes" ] || fail "$bytes counted, $watched in hours and $gaps in gaps"
# With PREEMPT_RT, and from 7.0 on, the kernel sometimes skips programs, and counts them.
lost=$(total lost <hours.csv)
case "$(uname -rv)" in
7.* | *PREEMPT_RT*) lost=$((lost - $(sed -n 's/.*lost in a segment: //p' ledger.err | tr ',' '\n' | awk '$1 ~ /_misses$/ { n += $2 } END { print n + 0 }'))) ;;
esac
[ "$lost" = 0 ] || fail "lost: $(cat hours.csv ledger.err)"
{ [ $((written + gaps)) -ge "$bytes" ] && [ $((written + gaps)) -le $((bytes + 4194304)) ]; } || fail "$bytes counted, $written in rows"
# Each of the four times has hours of its own.
for at in 0 86400 -172800; do
	day=$(date -u -d "@$((began + at))" +%Y-%m-%d)
	grep -q "^$day" hours.csv || fail "no hour of $day: $(cat hours.csv)"
	[ -e "ledger/$day.parquet" ] || fail "no file of $day: $(ls ledger)"
done
remove
