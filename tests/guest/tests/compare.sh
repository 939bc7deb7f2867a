# SPDX-License-Identifier: MIT OR Apache-2.0
# The same writes on f2fs, ext4 and FAT32: what reaches the device for each transaction, compared with published claims.
# It is counted until the last transaction is durable; what the filesystem writes home later (ext4's metadata, f2fs's
# checkpoint) is not included. Times are those of an emulated machine with its disk in memory: they give a ranking, and
# say nothing about flash.

count=50
csv=/tmp/out/compare.csv
echo filesystem,workload,writes,kib,data_kib,journal_kib,metadata_kib,flushes,fua_writes,ms >$csv
printf 'info %-15s %-10s %7s %7s %7s %7s %7s %7s %5s %7s\n' filesystem 'each' writes KiB data journal metadata flushes fua ms

# sum BY-VALUE COLUMN TABLE: adds up the column of the rows whose first column has the value (any, if empty), divided by
# $count.
sum() {
	awk -F, -v v="$1" -v c="$2" -v n="$count" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == c) at = i; next }
		v == "" || $1 == v { total += $at }
		END { printf "%.2f", total / n }' "$3"
}

# written: prints the bytes written to the device, by the kernel's own count.
written() {
	echo $(($(awk '{ print $7 }' "/sys/block/$(basename "$loop")/stat") * 512))
}

# traced NAME WORKLOAD COMMAND…: records the command and prints one line of the table.
traced() {
	name=$1 workload=$2
	shift 2
	step "$name $workload"
	sync
	before=$(written)
	rm -rf run.most
	RUST_LOG="" mostrace record -d "$loop" -o run.most -- "$@" >run.log 2>&1 || fail "$name $workload: $(cat run.log)"
	after=$(written)
	mostrace analyze run.most --by device --format csv >device.csv
	mostrace analyze run.most --by class --format csv >class.csv
	seen=$(awk -F, -v at="$(column write_bytes <device.csv)" 'NR > 1 { n += $at } END { print n }' device.csv)
	# A timer of the filesystem may write a checkpoint before or after the trace.
	{ [ "$seen" -le $((after - before)) ] && [ $((after - before - seen)) -le 131072 ]; } || {
		cp -r run.most "/tmp/out/compare-$name-$workload.most"
		fail "$name $workload: $seen bytes in the trace, $((after - before)) by the kernel's count"
	}
	ms=$(sed -n 's/^transactions .* in \([0-9.]*\) ms.*/\1/p' run.log)
	[ -n "$ms" ] || ms=$(sed -n 's/.* copied, \([0-9.e-]*\) s,.*/\1/p' run.log | awk '{ print $1 * 1000 }')
	ms=$(awk -v ms="$ms" -v n=$count 'BEGIN { printf "%.2f", ms / n }')
	line=$name,$workload,$(sum '' writes device.csv)
	for class in '' data journal metadata; do
		line=$line,$(awk -v b="$(sum "$class" write_bytes class.csv)" 'BEGIN { printf "%.2f", b / 1024 }')
	done
	line=$line,$(sum '' device_flushes device.csv),$(sum '' fua_writes device.csv),$ms
	echo "$line" >>$csv
	echo "$line" | awk -F, '{ printf "info %-15s %-10s %7s %7s %7s %7s %7s %7s %5s %7s\n", $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 }'
}

# measure NAME: runs every workload on the filesystem at $mnt.
measure() {
	for journal in ${2:-delete truncate persist wal}; do
		mostrace workload sqlite --prepare --overwrite --journal "$journal" "$mnt/$journal.db" >prepare.log
		traced "$1" "$journal" mostrace workload sqlite --keep --no-checkpoint --journal "$journal" \
			--transactions $count "$mnt/$journal.db"
	done
	[ $# -eq 1 ] || return 0
	traced "$1" append /usr/local/bin/dd if=/dev/zero of="$mnt/file" bs=4096 count=$count oflag=sync
	traced "$1" overwrite /usr/local/bin/dd if=/dev/zero of="$mnt/file" bs=4096 count=$count oflag=sync conv=notrunc
}

# ratio FILESYSTEM/WORKLOAD FILESYSTEM/WORKLOAD COLUMN: prints the ratio of two lines of the table.
ratio() {
	awk -F, -v a="$1" -v b="$2" -v c="$3" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == c) at = i; next }
		$1 "/" $2 == a { x = $at }
		$1 "/" $2 == b { y = $at }
		END { if (y > 0) printf "%.2f", x / y; else printf "-" }' $csv
}

# claim TEXT A B: prints the ratio of A to B in every column that the claim may mean.
claim() {
	info "claim: $1: $2 to $3: writes $(ratio "$2" "$3" writes), bytes $(ratio "$2" "$3" kib), flushes $(ratio "$2" "$3" flushes), time $(ratio "$2" "$3" ms)"
}

fresh_ext4 128 -b 4096
measure ext4
remove
fresh_f2fs 128
measure f2fs
mount -o remount,fsync_mode=nobarrier "$mnt"
measure f2fs-nobarrier "delete wal"
remove
fresh_vfat 128 -F 32
measure fat32
remove

claim "an fsync on f2fs needs half the writes (append)" f2fs/append ext4/append
claim "an fsync on f2fs needs half the writes (overwrite)" f2fs/overwrite ext4/overwrite
claim "a DELETE transaction on f2fs needs half the writes" f2fs/delete ext4/delete
claim "on f2fs DELETE is close to WAL" f2fs/delete f2fs/wal
claim "on f2fs WAL adds 10-15 % of writes" f2fs/wal f2fs/delete
claim "on ext4 WAL is 4 times as fast as DELETE" ext4/delete ext4/wal
# Every transaction needs a write and, except with nobarrier, a flush.
awk -F, 'NR > 1 && ($3 < 1 || $4 < 4 || ($1 != "f2fs-nobarrier" && $8 < 1))' $csv >strange.txt
[ ! -s strange.txt ] || fail "less than a transaction needs: $(cat strange.txt)"
