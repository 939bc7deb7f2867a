# SPDX-License-Identifier: MIT OR Apache-2.0
# What an fsync waited for, on a disk whose delays are known: dm-delay holds back flushes, or writes, for a time of our choice. The
# traced disk is a loop device on it, so the delay is the time that its requests take.
N=20
DELAY=100

# setup READ WRITE FLUSH: makes the disk with these delays, ms.
setup() {
	truncate -s 128M lower.img
	lower=$(losetup -f)
	losetup "$lower" lower.img
	sectors=$(cat "/sys/block/$(basename "$lower")/size")
	echo "0 $sectors delay $lower 0 $1 $lower 0 $2 $lower 0 $3" | dmsetup create slow
	dmsetup mknodes
	loop=$(losetup -f)
	# Busybox's cannot switch on direct IO, without which writes would wait for the next flush.
	/usr/local/bin/losetup --direct-io=on "$loop" /dev/mapper/slow
	[ "$(cat "/sys/block/$(basename "$loop")/loop/dio")" = 1 ] || fail "no direct IO"
}

# delays WRITE FLUSH: changes the delays, ms.
delays() {
	dmsetup suspend slow
	echo "0 $sectors delay $lower 0 0 $lower 0 $1 $lower 0 $2" | dmsetup load slow
	dmsetup resume slow
}

teardown() {
	losetup -d "$loop"
	dmsetup remove slow
	losetup -d "$lower"
	rm lower.img
}

# flush_ms: the time that the kernel says the disk's flushes took, ms.
flush_ms() { awk '{ print $17 }' "/sys/block/$(basename "$loop")/stat"; }

# run NAME: N times a new block in a file, and fsync; leaves the sums in NAME.csv.
run() {
	step "$1"
	before=$(flush_ms)
	mostrace record -d "$loop" -o "$1.most" --sync -- sh -c "
		i=0
		while [ \$i -lt $N ]; do
			dd if=/dev/zero of=$mnt/file bs=4096 count=1 seek=\$i conv=notrunc,fsync 2>/dev/null
			i=\$((i + 1))
		done"
	after=$(flush_ms)
	keep "$1.most"
	mostrace analyze "$1.most" --waits --format csv >"$1.csv"
	[ "$(part "$1" calls)" = $N ] || fail "$1: not $N calls: $(cat "$1.csv")"
	sum=0
	for name in data metadata commit_start commit flush other; do
		sum=$((sum + $(part "$1" "wait_${name}_ns")))
	done
	[ "$sum" = "$(part "$1" duration_ns)" ] || fail "$1: the parts sum to $sum: $(cat "$1.csv")"
	info "$1, ms for each of $N: data $(ms "$1" data), metadata $(ms "$1" metadata), start $(ms "$1" commit_start), commit $(ms "$1" commit), flush $(ms "$1" flush), other $(ms "$1" other); the kernel's flushes $(((after - before) / N))"
}

# part NAME COLUMN: of the fsyncs.
part() { awk -F, -v c="$(column "$2" <"$1.csv")" '$1 == "fsync" { print $c }' "$1.csv"; }
# ms NAME PART: on average, ms.
ms() { echo $(($(part "$1" "wait_$2_ns") / N / 1000000)); }
# grew FROM TO PART LEAST MOST: a part of each call grew by so many ms.
grew() {
	by=$(($(ms "$2" "$3") - $(ms "$1" "$3")))
	{ [ $by -ge "$4" ] && [ $by -le "$5" ]; } || fail "$2: $3 grew by $by ms, not by $4 to $5: $(cat "$1.csv" "$2.csv")"
}

mnt=$PWD/mnt
mkdir -p "$mnt"
setup 0 0 0

# ext4's commit record has a flush ahead of it and one behind it, because the loop device has no FUA.
/usr/local/bin/mke2fs -q -t ext4 -E lazy_itable_init=0 "$loop"
mount -t ext4 -o noatime "$loop" "$mnt"
run ext4
delays 0 $DELAY
run ext4-flush
grew ext4 ext4-flush flush $((2 * DELAY - 20)) $((2 * DELAY + 30))
for name in data metadata commit_start commit other; do grew ext4 ext4-flush $name -30 30; done
# The calls follow one another, and nothing else flushes but the recorder's sync: what the kernel counts is what they waited.
theirs=$((after - before)) ours=$(($(part ext4-flush wait_flush_ns) / 1000000))
{ [ $((theirs - ours)) -le $((4 * DELAY + 50)) ] && [ $((ours - theirs)) -le 50 ]; } || fail "flushes: $ours ms, the kernel says $theirs"
# The contents wait once, and the commit twice: its blocks are written together, and then its record.
delays $DELAY 0
run ext4-write
grew ext4 ext4-write data $((DELAY - 20)) $((DELAY + 30))
grew ext4 ext4-write commit $((2 * DELAY - 20)) $((2 * DELAY + 40))
for name in metadata commit_start other; do grew ext4 ext4-write $name -30 30; done
grew ext4 ext4-write flush -30 30
umount "$mnt"
delays 0 0

/usr/local/bin/mkfs.f2fs -q -f "$loop" >mkfs.log
mount -t f2fs -o noatime "$loop" "$mnt"
run f2fs
delays 0 $DELAY
run f2fs-flush
grew f2fs f2fs-flush flush $((DELAY - 20)) $((DELAY + 30))
for name in data metadata commit_start commit other; do grew f2fs f2fs-flush $name -30 30; done
umount "$mnt"
delays 0 0

/usr/local/bin/mkfs.vfat "$loop" >mkfs.log
mount -t vfat -o noatime "$loop" "$mnt"
run vfat
delays 0 $DELAY
run vfat-flush
grew vfat vfat-flush flush $((DELAY - 20)) $((DELAY + 30))
for name in data metadata commit_start commit other; do grew vfat vfat-flush $name -30 30; done
umount "$mnt"
teardown
