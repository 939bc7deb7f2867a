# SPDX-License-Identifier: MIT OR Apache-2.0
# Empty flushes of several users at once, each of whom syncs a file of their own: a flush has the user and the file of one and the
# same call. The disk is traced by itself and below device mapper, whose bios end in another probe than the disk's requests do.
export DM_DISABLE_UDEV=1

users="1001 1002 1003 1004"
rounds=60

# What is overwritten needs no commit of the journal, and nothing but the device's flush.
cat >sync.sh <<END
i=0
while [ \$i -lt $rounds ]; do
	/usr/local/bin/dd if=/dev/zero of="\$1" bs=4k count=1 conv=notrunc,fdatasync 2>/dev/null
	i=\$((i + 1))
done
END

# all: runs all users at once.
cat >all.sh <<END
for user in $users; do
	/usr/local/bin/setpriv --reuid \$user --clear-groups sh $PWD/sync.sh \$1/of\$user &
done
wait
END

# check NAME: records the users, and compares the flushes of their files with the names, which say whose they are.
check() {
	for user in $users; do
		/usr/local/bin/dd if=/dev/zero of="$mnt/of$user" bs=4k count=4 2>/dev/null
		chown "$user" "$mnt/of$user"
	done
	sync
	step "record $1"
	bundle=$1.most
	lossless "$bundle" mostrace record -d "$loop" -o "$bundle" --source bpf --entries bpf --files all --no-snapshot -- sh all.sh "$mnt"
	check_bundle "$bundle"
	mostrace events "$1.most" --columns op,uid,path --format csv | grep '^flush,' >all || fail "$1: no flush"
	# A skipped probe hides whose a flush is, not the flush.
	[ "$(wc -l <all)" -ge $((4 * rounds)) ] || fail "$1: $(wc -l <all) flushes in all"
	grep '/of' all >flushes || fail "$1: no flush of a file"
	missed=$(sed -n 's/.*"probe_misses": *\([0-9]*\).*/\1/p' "$bundle/manifest.json")
	missed=${missed:-0}
	info "$1: $(wc -l <flushes) flushes of files, $missed probes skipped"
	# A skipped probe is one flush's.
	lacking=$((4 * rounds - $(wc -l <flushes)))
	if [ $lacking -lt 0 ] || [ $lacking -gt "$missed" ]; then fail "$1: $(wc -l <flushes) flushes of files"; fi
	for user in $users; do
		grep -q ",$user,/of$user$" flushes || fail "$1: $user has no flush"
		grep -v ",$user,/of$user$" flushes | grep -E ",$user,|of$user" >others || true
		[ ! -s others ] || fail "$1: $(sort others | uniq -c)"
	done
}

fresh_ext4 64 -b 4096
check alone
remove

truncate -s 64M disk.img
loop=$(losetup -f)
losetup "$loop" disk.img
echo "0 131072 linear $loop 0" | dmsetup create below
/usr/local/bin/mke2fs -q -t ext4 -E lazy_itable_init=0 -b 4096 /dev/mapper/below
mount -o noatime /dev/mapper/below "$mnt"
check below
umount "$mnt"
dmsetup remove below
losetup -d "$loop"
rm disk.img
