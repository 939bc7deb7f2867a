# SPDX-License-Identifier: MIT OR Apache-2.0
# The map of an aged FAT12, FAT16 and FAT32, mounted and then unmounted, equals what FIBMAP reports for every file.

# compare NAME: compares the map of the live filesystem, then of the unmounted one.
compare() {
	sync
	list_files
	map_live live.csv
	check_map live.csv
	unmount
	mostrace map disk.img --format csv -o after.csv
	check_map after.csv
	rm disk.img
	info "$1: $(wc -l <files.txt) files, $(wc -l <fiemap.txt) pieces"
}

fresh_vfat 8 -F 12 -s 8
age "$mnt" 200
i=0
while cat "$sources"/20000 >"$mnt/full$i" 2>/dev/null; do i=$((i + 1)); done
rm "$mnt"/full*[13579]
cat "$sources"/300000 >"$mnt/in pieces"
compare FAT12

fresh_vfat 64 -F 16
map_live empty.csv
age "$mnt" 1500
compare FAT16

fresh_vfat 64 -F 32 -s 1
map_live empty.csv
age "$mnt" 1500
compare FAT32

# Memory cards are formatted so: with large clusters, most of which are free.
fresh_vfat 3000 -F 32 -s 64
age "$mnt" 200
compare "FAT32, 32 KiB clusters"
