# SPDX-License-Identifier: MIT OR Apache-2.0
# A recording of an aged f2fs, and what FIEMAP reports for every file, in blocks as large as a page. The host compares the map of the
# recording with it.
fresh_f2fs 224
age "$mnt" 500 posix
levels "$mnt/levels"
# Background garbage collection could move blocks at any time.
mount -o remount,background_gc=off "$mnt"
step "record"
mostrace record -d "$loop" -o map.most --files all --causes none --sync -- cp "$sources"/20000 "$mnt/last"
list_files
keep map.most
for list in page files fiemap inline; do cp $list.txt "/tmp/out/f2fs-map-$list.txt"; done
