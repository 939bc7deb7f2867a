#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Records git and RocksDB on a fresh ext4 that discards, and prints what a model of a drive writes to its flash for them, with and
# without these discards.
# usage: flash.sh MOSTRACE [OPTION…]      (options of `mostrace flash`; needs root, git, jq, and db_bench of Debian's rocksdb-tools)
set -eu
mostrace=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
shift
work=$(mktemp -d)
mkdir "$work/mnt"
loop=
end() {
	cd /
	umount "$work/mnt" 2>/dev/null || true
	[ -z "$loop" ] || losetup -d "$loop"
	loop=
}
trap 'end; rm -rf "$work"' EXIT

# 200 commits, each of which changes three of 60 files, then a gc.
# shellcheck disable=SC2016 # the recorded shell expands it
git_load='git init -q r; cd r; git config user.email a@b; git config user.name a; git config gc.auto 0; mkdir src
for i in $(seq 200); do
	for f in 1 2 3; do head -c 40000 /dev/urandom | base64 >src/$(((i * 7 + f * 13) % 60)); done
	git add -A; git commit -qm $i
done
git gc -q --prune=now'
rocksdb_load='mkdir db; db_bench --db=db --benchmarks=fillrandom,overwrite --num=150000 --value_size=400 --compression_type=none \
	--write_buffer_size=4194304 --target_file_size_base=4194304 --max_bytes_for_level_base=16777216 --max_background_jobs=2'

# row NAME SIZE LOAD: records the load on a disk of this size, and prints two lines of a table.
row() {
	name=$1 load=$3
	truncate -s "$2" "$work/$name.img"
	shift 3
	mkfs.ext4 -q "$work/$name.img"
	loop=$(losetup --show -f "$work/$name.img")
	mount -o discard "$loop" "$work/mnt"
	cd "$work/mnt"
	"$mostrace" record -d "$loop" -o "$work/$name.most" --sync -- sh -c "$load" >/dev/null 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
	end
	"$here/flash-row.sh" "$mostrace" "$name" "$work/$name.most" "$@"
}
row git 256M "$git_load" "$@"
row rocksdb 1G "$rocksdb_load" "$@"
