# SPDX-License-Identifier: MIT OR Apache-2.0
# An encrypted folder (fscrypt) on f2fs, whose names are ciphertext on the disk. Probes see the real names, and so does
# the mounted tree while the folder is unlocked.
fresh_f2fs 128 -O encrypt
head -c 64 /dev/urandom >key

unlock() {
	xfs_io -c add_enckey "$mnt" <key >added
	key=$(awk '{ print $NF }' added)
}

lock() {
	xfs_io -c "rm_enckey $key" "$mnt" >removed
}

# names BUNDLE: prints path and provenance of the regular files that were written.
names() {
	mostrace analyze "$1" --by path,provenance --where "op = 'write' AND kind = 'regular'" --format csv | sed 1d | cut -d, -f1,2 | sort
}

# sqlite BUNDLE OPTION…: records SQLite in the encrypted folder.
sqlite() {
	bundle=$1
	shift
	step "record $bundle"
	mostrace record -d "$loop" -o "$bundle" "$@" -- \
		mostrace workload sqlite --transactions 20 --overwrite "$mnt/enc/dir/test.db"
	check_counters "$bundle"
}

# check_counters BUNDLE: nothing was lost, and the kernel counted as much.
check_counters() {
	[ -z "$(losses "$1")" ] || fail "$1: lost $(losses "$1")"
	! mostrace analyze "$1" | grep '^DIFFERS' || fail "$1 differs"
}

unlock
mkdir "$mnt/enc"
xfs_io -c "set_encpolicy -v 2 $key" "$mnt/enc"
mkdir "$mnt/enc/dir"

sqlite live.most --sync
names live.most >live.txt
for name in test.db,live test.db-journal,live; do
	grep -qx "/enc/dir/$name" live.txt || fail "live: $(cat live.txt)"
done

sqlite tree.most --sync --entries none --names "$mnt/enc"
names tree.most >tree.txt
grep -qx '/enc/dir/test.db,tree' tree.txt || fail "tree: $(cat tree.txt)"
! grep 'encrypted:' tree.txt || fail "tree: $(cat tree.txt)"

sqlite none.most --sync --entries none
names none.most >none.txt
grep -q '^/enc/<encrypted:[0-9a-f]*>/<encrypted:[0-9a-f]*>,encrypted$' none.txt || fail "none: $(cat none.txt)"

# While the folder is locked, its real names are not known, and none are claimed. The key is removed after the
# workload's writes.
sync
lock
step "record locked.most"
mostrace record -d "$loop" -o locked.most --entries none --names "$mnt" -- sh -c "
	xfs_io -c add_enckey '$mnt' <key >added
	mostrace workload sqlite --transactions 20 --overwrite '$mnt/enc/dir/test.db'
	sync; xfs_io -c 'rm_enckey $key' '$mnt' >removed"
names locked.most >locked.txt
grep -q ',encrypted$' locked.txt || fail "locked: $(cat locked.txt)"
! grep 'test.db' locked.txt || fail "locked: $(cat locked.txt)"
grep -q '1 folders below --names are locked' locked.most/manifest.json || fail "locked: no note"
