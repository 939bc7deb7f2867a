# SPDX-License-Identifier: MIT OR Apache-2.0
# More calls at once than the kernel follows to their end: each is recorded, or counted as missed. The disk stands still
# until all of them wait for it.
case $(uname -r) in
5.* | 6.1.*)
	info "skipped: before 6.7 the kernel does not say what it could not follow"
	exit 0
	;;
esac
export DM_DISABLE_UDEV=1
calls=200
truncate -s 160M disk.img
loop=$(losetup -f)
losetup "$loop" disk.img
echo "0 300000 linear $loop 0" | dmsetup create still
upper=/dev/mapper/still
/usr/local/bin/mke2fs -q -t ext4 -b 4096 -E lazy_itable_init=0 "$upper"
mkdir mnt
mount -o noatime "$upper" mnt
for file in $(seq $calls); do echo >"mnt/$file"; done
sync

cat >calls.sh <<END
dmsetup suspend --noflush --nolockfs still
for file in \$(seq $calls); do
	/usr/local/bin/dd if=/dev/zero of=mnt/\$file bs=4k count=1 conv=notrunc,fsync 2>/dev/null &
done
for second in \$(seq 120); do
	waiting=\$(cat /proc/[0-9]*/stat 2>/dev/null | grep -c '^[0-9]* (dd) D' || true)
	[ \$waiting -lt $calls ] || break
	echo "STEP \$waiting wait" >/dev/console
	sleep 1
done
dmsetup resume still
wait
END
step "record"
mostrace record -d "$loop" -o calls.most --source blktrace --causes bpf --no-snapshot -- sh -eu calls.sh 2>record.log ||
	fail "$(cat record.log)"
step "count"
recorded=$(mostrace query calls.most "select count(*) as n from calls where call = 'fsync'" --format csv | tail -n 1)
lost=$(sed -n 's/.*"causes_\(misses\|tasks\)": *\([0-9]*\).*/\2/p' calls.most/manifest.json | awk '{ sum += $1 } END { print sum + 0 }')
info "$calls calls of fsync: $recorded recorded; of all calls, $lost counted as lost"
[ $((recorded + lost)) -ge $calls ] || fail "$recorded calls recorded, $lost counted as lost: $(tail -n 5 record.log)"
umount mnt
dmsetup remove still
losetup -d "$loop"
rm -f disk.img
