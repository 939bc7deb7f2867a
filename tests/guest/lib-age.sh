# SPDX-License-Identifier: MIT OR Apache-2.0
# Ageing: what years of use do to a filesystem, in seconds of an emulated guest. Starting a process takes 10 ms there,
# so files are made by the directory and changed by the hundred. tree.sh makes /tree.

sources=/tree/sources

# age DIR FILES [posix]: files are made, deleted, made in the gaps, changed and renamed. With `posix`, also links,
# xattrs, holes and whatever else FAT does not have.
age() {
	top=$1 files=$2 posix=${3:-}
	copies=$((files / 50))
	copy_tree a 0 $((copies * 3 / 4))
	# Many more files are made than stay.
	rm -rf "$top"/a*/file*[369] "$top"/a*2/sub
	sync
	change_files
	copy_tree b $((copies * 3 / 4)) "$copies"
	overwrite "$top/base" $((copies + 10))
	rename_files
	[ "$posix" != posix ] || only_posix
	sync
}

# copy_tree PREFIX FROM TO
copy_tree() {
	i=$2
	while [ "$i" -lt "$3" ]; do
		step "copy $1$i"
		cp -r "/tree/$((i % 20))" "$top/$1$i"
		i=$((i + 1))
	done
}

# change_files: appends to, overwrites, truncates and remakes files by turns, with syncs between.
change_files() {
	i=0
	for file in "$top"/a*1/file*[12457]; do
		case $((i % 5)) in
		0) echo "and more of it" >>"$file" ;;
		1) cat "$sources/20000" >>"$file" ;;
		2) truncate -s 2500 "$file" ;;
		3) cat "$sources/5000" >"$file" ;;
		4) /usr/local/bin/dd if="$sources/20000" of="$file" bs=1000 seek=2 count=9 conv=notrunc status=none ;;
		esac
		[ $((i % 20)) -ne 0 ] || { step "changed $i" && sync; }
		i=$((i + 1))
		[ $i -lt 100 ] || break
	done
}

# overwrite FILE TRANSACTIONS: writes as a database does, in small parts with syncs.
overwrite() {
	step "overwrite"
	mostrace workload sqlite --transactions "$2" --journal delete "$1.db" >workload.log
	mostrace workload sqlite --transactions "$2" --journal wal --no-checkpoint "$1-wal.db" >workload.log
}

# rename_files: renames to another directory, to a longer name and over another file, and moves a directory with its
# contents.
rename_files() {
	step "rename"
	mkdir "$top/renamed"
	i=0
	for file in "$top"/a*0/file*[18]; do
		mv "$file" "$top/renamed/to something that takes more than one entry, $i"
		i=$((i + 1))
		[ $i -lt 20 ] || break
	done
	mv "$top/a1" "$top/another a1"
	cat "$sources/20000" >"$top/over"
	cat "$sources/70000" >"$top/under"
	mv "$top/over" "$top/under"
}

only_posix() {
	step "links, attributes, holes"
	mkdir "$top/links"
	i=0
	for file in "$top"/a0/file*; do
		case $((i % 5)) in
		0) ln "$file" "$top/links/hard$i" ;;
		1) ln -s "../a0/${file##*/}" "$top/links/short$i" ;;
		2) ln -s "$(printf '%0300d' 0)/${file##*/}" "$top/links/long$i" ;;
		3) /usr/local/bin/setfattr -n user.small -v "$i" "$file" ;;
		4) /usr/local/bin/setfattr -n user.large -v "$(printf '%02000d' "$i")" "$file" ;;
		esac
		i=$((i + 1))
	done
	for at in 1 2 3 4; do
		cat "$sources/300000" >"$top/holes$at"
		/usr/local/bin/fallocate -p -o $((at * 8192)) -l $((at * 4096)) "$top/holes$at"
		/usr/local/bin/fallocate -o 400000 -l 50000 "$top/holes$at"
		/usr/local/bin/fallocate -z -o 100000 -l 20000 "$top/holes$at"
	done
	: >"$top/beyond"
	/usr/local/bin/fallocate -n -l 200000 "$top/beyond"
	cat "$sources/5000" >>"$top/beyond"
}

# levels FILE: makes a file of f2fs with blocks at each level of nodes (in the inode, direct, indirect, double indirect), with holes
# between.
levels() {
	step "a file with all levels of nodes"
	block=$(page)
	nids=$(((block - 24) / 4))
	inode=$(((block - 404) / 4))
	direct=$((inode + 2 * nids))
	first=$((direct + nids * nids))
	second=$((first + nids * nids))
	: >"$1"
	for at in 0 $((inode / 2)) $((inode - 1)) $inode $((inode + nids / 2)) $((direct - 1)) $direct $((direct + 150)) \
		$((direct + 2 * nids)) $((first - 1)) $first $((second - 2)) $((second - 1)) $((second + 4400)) $((second + 25000)); do
		/usr/local/bin/dd if="$sources/70000" of="$1" bs="$block" seek="$at" count=2 conv=notrunc status=none
	done
}
