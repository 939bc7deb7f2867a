# SPDX-License-Identifier: MIT OR Apache-2.0
# Disks without requests, traced themselves: md's RAID 0, a thin volume and dm-linear. Each of SQLite's flushes has its
# entry, and so its task and its file, as on a disk with requests.
export DM_DISABLE_UDEV=1

# two: makes two disks, $first and $second.
two() {
	truncate -s 96M first.img second.img
	first=$(losetup -f)
	losetup "$first" first.img
	second=$(losetup -f)
	losetup "$second" second.img
}

undo() {
	losetup -d "$first"
	losetup -d "$second"
	rm -f first.img second.img
}

# run NAME DEVICE: runs SQLite on a new ext4 of the device.
run() {
	step "$1"
	/usr/local/bin/mke2fs -q -t ext4 -E lazy_itable_init=0 "$2"
	mnt=$PWD/mnt
	mkdir -p "$mnt"
	mount -t ext4 -o noatime "$2" "$mnt"
	mostrace record -d "$2" -o "$1.most" --source bpf --no-snapshot --sync -- \
		mostrace workload sqlite --transactions 30 --overwrite "$mnt/test.db" 2>record.err || fail "$(cat record.err)"
	cat record.err
	! grep -q 'lost: ' record.err || fail "$(cat record.err)"
	umount "$mnt"
	mostrace query "$1.most" "SELECT comm, role, count(*) AS n FROM events WHERE op = 'flush' GROUP BY comm, role ORDER BY n DESC" --format csv >flushes.csv
	cat flushes.csv
	! grep '^,' flushes.csv || fail "flushes without a task: $(cat flushes.csv)"
	grep '^mostrace,db,[1-9]' flushes.csv || fail "no flush of the database: $(cat flushes.csv)"
}

two
mdadm --create /dev/md0 --run --level=0 --raid-devices=2 --metadata=1.2 "$first" "$second" 2>&1
run raid0 /dev/md0

step "below RAID 0"
mount -t ext4 -o noatime /dev/md0 "$mnt"
mostrace record -d "$first" -o below.most --source bpf --no-snapshot --sync -- \
	/usr/local/bin/dd if=/dev/zero of="$mnt/f" bs=64k count=200 oflag=direct 2>record.err || fail "$(cat record.err)"
! grep -q 'lost: ' record.err || fail "$(cat record.err)"
umount "$mnt"
mostrace analyze below.most --by comm --format csv >tasks.csv
cat tasks.csv
# 12.5 of the 25 stripes, more or less one.
written=$(awk -F, -v c="$(column write_bytes <tasks.csv)" '$1 == "dd" { print $c }' tasks.csv)
{ [ "$written" -ge $((12 * 512 * 1024 - 4096)) ] && [ "$written" -le $((13 * 512 * 1024)) ]; } || fail "dd wrote $written bytes to the first disk"
! grep '^,' tasks.csv || fail "rows without a task: $(cat tasks.csv)"
mdadm --stop /dev/md0
undo

two
dmsetup create linear --table "0 196608 linear $first 0"
run linear /dev/mapper/linear
dmsetup remove linear
undo

two
dmsetup create meta --table "0 16384 linear $first 0"
dd if=/dev/zero of=/dev/mapper/meta bs=4k count=1
dmsetup create pool --table "0 196608 thin-pool /dev/mapper/meta $second 128 0"
dmsetup message /dev/mapper/pool 0 "create_thin 0"
dmsetup create thin --table "0 131072 thin /dev/mapper/pool 0"
run thin /dev/mapper/thin
dmsetup remove thin
dmsetup remove pool
dmsetup remove meta
undo
