# SPDX-License-Identifier: MIT OR Apache-2.0
# Discarded and zeroed ranges: whose they are and why, and that they are not counted as written.

# sums BUNDLE OP: prints bytes of discards or zeroed ranges by who caused them and why: comm,operation,certainty,bytes.
sums() {
	mostrace analyze "$1" --by cause_comm,cause_op,cause_known --where "op = '$2'" --format csv >by.csv
	awk -F, -v d="$(column "$3" <by.csv)" 'NR > 1 { print $1 "," $2 "," $3 "," $d }' by.csv
	mostrace analyze "$1" --by op --format csv >ops.csv
	written=$(awk -F, -v c="$(column write_bytes <ops.csv)" -v op="$2" '$1 == op { print $c }' ops.csv)
	[ "${written:-0}" = 0 ] || fail "$2: $written bytes count as written: $(cat ops.csv)"
}

# kernels FIELD: the disk's counter of discards (14: sectors).
kernels() { awk -v f="$1" '{ print $f }' "/sys/block/$(basename "$loop")/stat"; }

# bytes_of NAME,OPERATION,CERTAINTY: of what sums printed.
bytes_of() { awk -F, -v w="$1" '$1 "," $2 "," $3 == w { s += $4 } END { print s + 0 }' sums.csv; }
all() { awk -F, '{ s += $4 } END { print s + 0 }' sums.csv; }

step "ext4, mounted with discard"
fresh_ext4 64 -b 4096 -- discard
mkdir "$mnt/d"
for n in 1 2 3 4; do /usr/local/bin/dd if=/dev/zero of="$mnt/d/$n" bs=1M count=2 2>/dev/null; done
/usr/local/bin/dd if=/dev/zero of="$mnt/cut" bs=1M count=4 2>/dev/null
sync
before=$(kernels 14)
mostrace record -d "$loop" -o remove.most --sync -- sh -c "/usr/local/bin/dd if=/dev/null of=$mnt/cut bs=1M 2>/dev/null; rm -r $mnt/d; sync; sleep 2"
theirs=$((($(kernels 14) - before) * 512))
check_bundle remove.most
sums remove.most discard discard_bytes >sums.csv
info "ext4 at the commit: $(tr '\n' ' ' <sums.csv), the kernel counts $theirs"
{ [ "$(all)" = "$theirs" ] && [ "$theirs" -ge $((12 << 20)) ]; } || fail "the kernel counts $theirs: $(cat sums.csv by.csv)"
{ [ "$(bytes_of rm,unlink,proportional)" -gt 0 ] && [ "$(bytes_of dd,truncate,proportional)" -gt 0 ]; } || fail "$(cat sums.csv)"
[ $(($(bytes_of rm,unlink,proportional) + $(bytes_of dd,truncate,proportional))) = "$theirs" ] || fail "$(cat sums.csv)"

step "ext4, fstrim"
before=$(kernels 14)
mostrace record -d "$loop" -o trim.most --sync -- fstrim "$mnt"
theirs=$((($(kernels 14) - before) * 512))
keep trim.most
sums trim.most discard discard_bytes >sums.csv
info "fstrim: $(tr '\n' ' ' <sums.csv), the kernel counts $theirs"
{ [ "$(bytes_of fstrim,discard,exact)" = "$theirs" ] && [ "$(all)" = "$theirs" ] && [ "$theirs" -gt $((16 << 20)) ]; } || fail "$theirs: $(cat sums.csv)"
umount "$mnt"

step "a device, blkdiscard and fallocate"
before=$(kernels 14)
mostrace record -d "$loop" -o device.most --source bpf -- sh -c "blkdiscard -o 1048576 -l 8388608 $loop; /usr/local/bin/xfs_io -c 'fzero 16m 4m' $loop"
theirs=$((($(kernels 14) - before) * 512))
keep device.most
sums device.most discard discard_bytes >sums.csv
info "blkdiscard: $(tr '\n' ' ' <sums.csv), the kernel counts $theirs"
[ "$(bytes_of blkdiscard,discard,exact)" = $((8 << 20)) ] || fail "$(cat sums.csv)"
sums device.most write_zeroes write_zeroes_bytes >sums.csv
info "fallocate: $(tr '\n' ' ' <sums.csv)"
{ [ "$(bytes_of xfs_io,zero,exact)" = $((4 << 20)) ] && [ "$(all)" = $((4 << 20)) ]; } || fail "$(cat sums.csv)"
losetup -d "$loop"
rm disk.img

step "f2fs"
fresh_f2fs 128
for n in 1 2 3 4; do /usr/local/bin/dd if=/dev/zero of="$mnt/$n" bs=1M count=8 2>/dev/null; done
sync
before=$(kernels 14)
# Its thread begins when the disk has been idle for a while. Files that were removed earlier may be discarded ahead of the recording.
cat >idle.sh <<END
rm $mnt/[123]
sync
fstrim $mnt
i=0
while [ "\$(awk '{ print \$14 }' /sys/block/$(basename "$loop")/stat)" = $before ] && [ \$i -lt 60 ]; do
	sleep 1
	i=\$((i + 1))
done
sleep 1
END
mostrace record -d "$loop" -o f2fs.most --sync -- sh idle.sh
theirs=$((($(kernels 14) - before) * 512))
keep f2fs.most
sums f2fs.most discard discard_bytes >sums.csv
info "f2fs: $(tr '\n' ' ' <sums.csv), the kernel counts $theirs"
# Its thread goes on when the recording has ended. Its name is longer than the kernel keeps.
case $(uname -r) in
# It waits here until the disk is idle for longer.
5.*) ;;
*) [ "$(all)" -gt 0 ] || fail "$theirs: $(cat sums.csv)" ;;
esac
[ "$(all)" -le "$theirs" ] || fail "$theirs: $(cat sums.csv)"
[ $(($(bytes_of fstrim,discard,exact) + $(bytes_of f2fs_discard-7:,discard,exact))) = "$(all)" ] || fail "$(cat sums.csv)"
remove
