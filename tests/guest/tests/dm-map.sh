# SPDX-License-Identifier: MIT OR Apache-2.0
# The map of a filesystem on a mapped device, in sectors of the disk below, compared with FIEMAP translated by the
# device's table.
export DM_DISABLE_UDEV=1

# The mapped device's pieces: first sector, sectors, first sector on the disk. The second half comes first there.
cat >pieces.txt <<END
0 100000 164192
100000 162144 2048
END

# mapped TYPE MKFS: mounts a filesystem at $mnt on $upper, which lies on the disk $loop.
mapped() {
	type=$1
	step "$type on dm-linear"
	truncate -s 140M disk.img
	loop=$(losetup -f)
	losetup "$loop" disk.img
	awk -v d="$loop" '{ print $1, $2, "linear", d, $3 }' pieces.txt | dmsetup create pair
	upper=/dev/mapper/pair
	$2 "$upper" >mkfs.log 2>&1 || fail "$2: $(cat mkfs.log)"
	mnt=$PWD/mnt
	mkdir -p "$mnt"
	mount -t "$type" -o noatime "$upper" "$mnt"
}

# down <FILE: translates rows `sector sectors owner offset` of the mapped device to the disk.
down() {
	awk 'FNR == NR { upper[NR] = $1; sectors[NR] = $2; lower[NR] = $3; n = NR; next }
		{ for (i = 1; i <= n; i++) {
			from = $1 > upper[i] ? $1 : upper[i]
			to = $1 + $2 < upper[i] + sectors[i] ? $1 + $2 : upper[i] + sectors[i]
			if (from < to) printf "%.0f %.0f %s %.0f\n", lower[i] + from - upper[i], to - from, $3, $4 + (from - $1) * 512
		} }' pieces.txt -
}

# run NAME DEVICE: writes files while DEVICE is recorded; the files are found by the snapshot alone.
run() {
	step "$1"
	mostrace record -d "$2" -o "$1.most" --source blktrace --entries none --sync -- sh -c "
		for i in 1 2 3 4 5 6 7 8; do /usr/local/bin/dd if=/dev/zero of=$mnt/$1-\$i bs=1000 count=2\${i}00 status=none; done"
	grep -q "\"name\": \"$(basename "$loop")\"" "$1.most/manifest.json" || fail "$1: another device: $(cat "$1.most/manifest.json")"
	list_files
	down <fiemap.txt | joined >lower.txt
	mv lower.txt fiemap.txt
	awk '{ print $1, 8, $2, 0 }' inline.txt | down | awk '{ print $1, $3 }' | sort -n >lower.txt
	mv lower.txt inline.txt
	step "map of $1"
	mostrace map "$1.most" --format csv -o "$1.csv"
	check_map "$1.csv"
	# Every written file must be there by its name, whole.
	mostrace analyze "$1.most" --by path --format csv >table.csv
	at=$(column write_bytes <table.csv)
	for i in 1 2 3 4 5 6 7 8; do
		awk -F, -v p="/$1-$i" -v b="$at" -v least="2${i}00000" '$1 == p && $b >= least { found = 1 } END { exit !found }' table.csv ||
			fail "$1-$i: $(cat table.csv)"
	done
}

for type in ext4 f2fs; do
	case $type in
	ext4) mapped ext4 "/usr/local/bin/mke2fs -q -t ext4 -b 4096 -E lazy_itable_init=0" ;;
	f2fs) mapped f2fs "/usr/local/bin/mkfs.f2fs -q -f" ;;
	esac
	run "$type"-by-disk "$loop"
	run "$type"-by-mapper "$upper"
	umount "$mnt"
	dmsetup remove pair
	losetup -d "$loop"
	rm -f disk.img
done

step "a target that scatters its sectors"
truncate -s 128M disk.img
loop=$(losetup -f)
losetup "$loop" disk.img
echo "0 262144 striped 2 128 $loop 0 $loop 131072" | dmsetup create stripes
mostrace record -d /dev/mapper/stripes -o stripes.most --entries none --no-snapshot -- true 2>said.txt
grep -q 'its sectors are not followed through a target striped' said.txt || fail "$(cat said.txt)"
dmsetup remove stripes
losetup -d "$loop"
rm -f disk.img
