# SPDX-License-Identifier: MIT OR Apache-2.0
# An f2fs that lost power between two checkpoints: what fsync wrote is in the map, as the kernel finds it in its
# roll-forward recovery; what nobody synced is not.

# crash NAME: copies the image while it is mounted. Its file has what reached the device; flushing the device would sync
# the filesystem.
crash() {
	/usr/local/bin/cp --sparse=always disk.img crashed.img
	umount "$mnt"
	losetup -d "$loop"
	/usr/local/bin/tar -Scf - crashed.img | /usr/local/bin/zstd -q -1 -o "/tmp/out/$1.tar.zst"
	mostrace map crashed.img --format csv -o crashed.csv

	mount_image crashed.img
	sync
	# The recovery may write directories again, but never a file's blocks.
	list_files -type f
	check_map crashed.csv regular
	info "$1: $(wc -l <files.txt) files, $(wc -l <fiemap.txt) pieces after the roll-forward"
}

# synced SOURCE FILE: writes a file and syncs it.
synced() {
	/usr/local/bin/dd if="$1" of="$2" bs=4096 conv=fsync,notrunc status=none
}

writeback_off

fresh_f2fs 256
age "$mnt" 600 posix
cat "$sources"/70000 >"$mnt/overwritten"
cat "$sources"/70000 >"$mnt/appended"
cat "$sources"/70000 >"$mnt/old name"
cat "$sources"/70000 >"$mnt/untouched"
cat "$sources"/70000 >"$mnt/cut"
sync
map_live before.csv

synced "$sources"/20000 "$mnt/new"
synced "$sources"/600 "$mnt/new inline"
synced "$sources"/20000 "$mnt/overwritten"
/usr/local/bin/dd if="$sources"/20000 of="$mnt/appended" bs=4096 oflag=append conv=fsync,notrunc status=none
/usr/local/bin/dd if="$sources"/20000 of="$mnt/appended" bs=4096 oflag=append conv=fsync,notrunc status=none
mv "$mnt/old name" "$mnt/new name"
synced "$sources"/5000 "$mnt/new name"
/usr/local/bin/dd if="$sources"/600 of="$mnt/cut" bs=4096 conv=fsync status=none
for i in 1 2 3 4 5 6 7 8; do synced "$sources"/5000 "$mnt/a2/fsynced$i"; done
/usr/local/bin/dd if="$sources"/5000 of="$mnt/far" bs=4096 seek=5000 conv=fsync status=none
mostrace workload sqlite --transactions 30 --journal wal --no-checkpoint "$mnt/base-wal.db" --overwrite >workload.log

cat "$sources"/70000 >"$mnt/lost"
cat "$sources"/20000 >>"$mnt/untouched"
crash f2fs-crashed
for name in new "new inline" overwritten appended "new name" cut untouched far a2/fsynced8; do
	[ -e "$mnt/$name" ] || fail "$name is not there after the roll-forward"
done
cmp "$mnt/new" "$sources"/20000
[ "$(stat -c %s "$mnt/untouched")" = 70000 ] || fail "a write that nobody synced is there"
for name in /new "/new inline" "/new name" /far /a2/fsynced8; do
	grep -q ",$name\$" crashed.csv || fail "$name is not in the map of the crash"
done
! grep -E ',(/lost|/old name)$' crashed.csv || fail "a name that the crash took"
rm crashed.csv
remove
rm crashed.img

# If nothing was synced since the checkpoint, nothing is recovered.
fresh_f2fs 100
age "$mnt" 200 posix
list_files -type f
cp fiemap.txt checkpointed.txt
cat "$sources"/70000 >"$mnt/lost"
crash f2fs-checkpointed
cmp fiemap.txt checkpointed.txt || fail "the kernel itself went on from another state"
