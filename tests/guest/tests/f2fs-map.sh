# SPDX-License-Identifier: MIT OR Apache-2.0
# The map of an aged f2fs, mounted and then unmounted, equals what FIEMAP reports for every file: with Debian's options,
# with Android's, nearly full, and nearly empty.

# wide DIRECTORY FILES: makes a directory that the kernel hashes into several levels, with names of every length.
wide() {
	step "a wide directory"
	mkdir "$1"
	i=0
	while [ $i -lt "$2" ]; do
		: >"$1/$i"
		i=$((i + 1))
	done
	long=$(printf '%0240d' 0)
	while [ $i -gt $(($2 - 100)) ]; do
		i=$((i - 1))
		mv "$1/$i" "$1/$long-$i"
	done
	i=0
	while [ $i -lt 50 ]; do
		echo "$i" >"$1/ein längerer Name 名前 $i"
		i=$((i + 1))
	done
}

# compare NAME: compares the map of the live filesystem, then of the unmounted one.
compare() {
	# Background garbage collection could move blocks at any time.
	mount -o remount,background_gc=off "$mnt"
	sync
	list_files
	map_live live.csv
	check_map live.csv
	unmount
	mostrace map disk.img --format csv -o after.csv
	check_map after.csv
	info "$1: $(wc -l <files.txt) files, $(wc -l <fiemap.txt) pieces, $(wc -l <inline.txt) inline"
}

# keep NAME: keeps the image, for tests on the host.
keep() {
	/usr/local/bin/tar -Scf - disk.img | /usr/local/bin/zstd -q -1 -o "/tmp/out/$1.tar.zst"
}

fresh_f2fs 1024
age "$mnt" 4000 posix
levels "$mnt/levels"
wide "$mnt/wide" 2500
compare default
keep f2fs-default
rm disk.img

fresh_f2fs 512 -O extra_attr,inode_checksum,sb_checksum,compression,quota
age "$mnt" 2000 posix
levels "$mnt/levels"
wide "$mnt/wide" 700
compare android
keep f2fs-android
rm disk.img

fresh_f2fs 100
age "$mnt" 300
i=0
while cat "$sources"/70000 >"$mnt/full$i" 2>/dev/null; do i=$((i + 1)); done
rm "$mnt"/full*[13579]
i=0
while cat "$sources"/20000 >"$mnt/again$i" 2>/dev/null; do i=$((i + 1)); done
info "full: $(df -k "$mnt" | tail -n 1)"
compare full
keep f2fs-full
rm disk.img

fresh_f2fs 100
echo one >"$mnt/one"
cat "$sources"/5000 >"$mnt/two"
compare "nearly empty"
