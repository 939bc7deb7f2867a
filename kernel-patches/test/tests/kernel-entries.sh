# SPDX-License-Identifier: MIT OR Apache-2.0
# `mostrace record --entries kernel`: SQLite on each filesystem, and the messages where it cannot record.

# record BUNDLE COMMAND…: records the command with the kernel's entries.
record() {
	bundle=$1
	shift
	mostrace record -d "$loop" -o "$bundle" --source blktrace --entries kernel --sync -- "$@"
}

# run FILESYSTEM JOURNAL SUFFIX: records SQLite and checks the bundle.
run() {
	record "$1-$2.most" mostrace workload sqlite --transactions 50 --journal "$2" "$mnt/$2.db"
	check_bundle "$1-$2.most"
	check_temporary "$1-$2.most" "$2.db$3" 50
	grep -q '"entries": *"kernel"' "$1-$2.most/manifest.json" || fail "$1-$2.most: not the kernel's entries"
}

fresh_ext4 128 -b 4096
if is_module; then
	refused "no /dev/mostrace: the kernel.s recorder is not loaded" record none.most true
fi
load names=nothing,else ring_kb=64
run ext4 delete -journal
run ext4 wal -wal
[ "$(cat "$sys"/names) $(cat "$sys"/ring_kb) $(cat "$sys"/dev)" = "nothing,else 64 " ] ||
	fail "the parameters were left as: $(cat "$sys"/names), $(cat "$sys"/ring_kb), $(cat "$sys"/dev)"
put "$(basename "$loop")" dev
exec 3</dev/mostrace
refused "somebody else reads it" record busy.most true
exec 3<&-
remove

fresh_f2fs 128
run f2fs delete -journal
remove

fresh_vfat 128 -F 32
run fat32 wal -wal
remove
unload
check_kernel
