# SPDX-License-Identifier: MIT OR Apache-2.0
# A disk with zones: what the table by zone says was written to each is how far its write pointer went, as blkzone reports it; resets
# are told with who asked for them.

# Zones of 16 MiB, of which the first four have no write pointer.
LENGTH=32768
mount -t configfs none /sys/kernel/config
null=/sys/kernel/config/nullb/zoned
mkdir $null
echo 1 >$null/zoned
echo 16 >$null/zone_size
echo 4 >$null/zone_nr_conv
echo 512 >$null/size
echo 1 >$null/memory_backed
echo 1 >$null/power
disk=/dev/zoned
[ -b $disk ] || disk=/dev/nullb$(cat $null/index)
name=$(basename "$disk")
grep -q host-managed "/sys/block/$name/queue/zoned" || fail "no zones: $(ls /dev)"
echo mq-deadline >"/sys/block/$name/queue/scheduler" || true

# pointer ZONE: the bytes ahead of its write pointer.
pointer() {
	wptr=$(blkzone report -o $(($1 * LENGTH)) -c 1 "$disk" | sed -n 's/.*wptr 0x\([0-9a-f]*\).*/\1/p')
	echo $((0x$wptr * 512))
}

# told BUNDLE ZONE OP COLUMN: of the table by zone.
told() {
	mostrace analyze "$1" --by zone,op --format csv >by.csv
	awk -F, -v z="$2" -v op="$3" -v c="$(column "$4" <by.csv)" '$1 == z && $2 == op { n = $c } END { print n + 0 }' by.csv
}

step "a program writes to zones, resets and finishes"
at() { echo $(($1 * LENGTH / 128)); }
cat >write.sh <<END
set -e
/usr/local/bin/dd if=/dev/zero of=$disk bs=64k count=40 seek=$(at 5) oflag=direct conv=notrunc 2>/dev/null
/usr/local/bin/dd if=/dev/zero of=$disk bs=64k count=10 seek=$(at 6) oflag=direct conv=notrunc 2>/dev/null
blkzone reset -o $((5 * LENGTH)) -c 1 $disk
/usr/local/bin/dd if=/dev/zero of=$disk bs=64k count=7 seek=$(at 5) oflag=direct conv=notrunc 2>/dev/null
blkzone open -o $((8 * LENGTH)) -c 1 $disk
blkzone close -o $((8 * LENGTH)) -c 1 $disk
blkzone finish -o $((7 * LENGTH)) -c 1 $disk
END
mostrace record -d "$disk" -o raw.most -- sh write.sh
keep raw.most
grep -q "\"zone_sectors\": $LENGTH" raw.most/manifest.json || fail "$(cat raw.most/manifest.json)"
{ [ "$(told raw.most 5 write write_bytes)" = $((47 * 65536)) ] && [ "$(told raw.most 6 write write_bytes)" = "$(pointer 6)" ]; } || fail "$(cat by.csv)"
{ [ "$(pointer 5)" = $((7 * 65536)) ] && [ "$(pointer 6)" = $((10 * 65536)) ]; } || fail "$(pointer 5) $(pointer 6)"
for pair in 5:zone_reset 7:zone_finish 8:zone_open 8:zone_close; do
	zone=${pair%:*} op=${pair#*:}
	[ "$(told raw.most "$zone" "$op" requests)" = 1 ] || fail "$pair: $(cat by.csv)"
	mostrace analyze raw.most --by cause_comm,cause_op,cause_known --where "op = '$op'" --format csv >causes.csv
	grep -q '^blkzone,discard,exact,1,' causes.csv || fail "$pair: $(cat causes.csv)"
done
mostrace analyze raw.most --by op --format csv >ops.csv
! grep -q '^flush' ops.csv || fail "a reset is no flush: $(cat ops.csv)"
info "zone 5: $(told raw.most 5 write write_bytes) bytes, a reset, pointer at $(pointer 5); zone 6: $(told raw.most 6 write write_bytes), pointer at $(pointer 6)"

step "f2fs on zones"
blkzone reset "$disk"
/usr/local/bin/mkfs.f2fs -q -f -m "$disk" >mkfs.log 2>&1 || fail "$(cat mkfs.log)"
mnt=$PWD/mnt
mkdir -p "$mnt"
mount -t f2fs -o noatime "$disk" "$mnt"
sync
zones=$(($(cat "/sys/block/$name/size") / LENGTH))
i=4
while [ $i -lt $zones ]; do pointer $i >"before.$i"; i=$((i + 1)); done
mostrace record -d "$disk" -o f2fs.most --sync -- sh -c "
	for n in 1 2 3 4 5 6; do /usr/local/bin/dd if=/dev/zero of=$mnt/\$n bs=1M count=3 conv=fsync 2>/dev/null; done
	rm $mnt/2
	sync"
keep f2fs.most
mostrace analyze f2fs.most --by zone,op --format csv >by.csv
i=4 written=0 compared=0
while [ $i -lt $zones ]; do
	ours=$(awk -F, -v z=$i -v c="$(column write_bytes <by.csv)" '$1 == z && $2 == "write" { print $c }' by.csv)
	resets=$(awk -F, -v z=$i '$1 == z && $2 ~ /^zone_/' by.csv)
	theirs=$(($(pointer $i) - $(cat before.$i)))
	if [ -z "$resets" ]; then
		[ "${ours:-0}" = "$theirs" ] || fail "zone $i: ${ours:-0} bytes, its pointer went by $theirs: $(cat by.csv)"
		compared=$((compared + 1)) written=$((written + theirs))
	fi
	i=$((i + 1))
done
[ $written -ge $((18 << 20)) ] || fail "only $written bytes in $compared zones: $(cat by.csv)"
info "f2fs: $written bytes in $compared zones, each as its write pointer says"
umount "$mnt"
echo 0 >$null/power
rmdir $null
umount /sys/kernel/config
