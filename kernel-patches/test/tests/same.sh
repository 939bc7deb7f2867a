# SPDX-License-Identifier: MIT OR Apache-2.0
# The module and the BPF probes record the same IO; same.py compares the results on the host.
[ -e /sys/kernel/btf/vmlinux ] || { info "no BTF: nothing to compare with"; exit 0; }

# The dirtier of the files `early` and `late` is known: the one process that writes each. `late` is written back by
# another task.
cat >work.sh <<'END'
mnt=$1 long=$2 loop=$3
mostrace workload sqlite --transactions 30 --overwrite "$mnt/test.db" >/dev/null
dd if=/dev/urandom of="$mnt/plain" bs=64k count=32 conv=fsync
dd if=/dev/urandom of="$mnt/$long" bs=256k count=4 oflag=direct
# Less than a block at a time, behind a hole: zeroes are written ahead of the data, behind it, and on both sides.
/usr/local/bin/dd if=/dev/urandom of="$mnt/$long" bs=512 count=3 seek=2055 oflag=direct conv=notrunc
/usr/local/bin/dd if=/dev/urandom of="$mnt/$long" bs=512 count=1 seek=2083 oflag=direct conv=notrunc
/usr/local/bin/dd if=/dev/urandom of="$mnt/$long" bs=7k count=1 seek=160 oflag=direct conv=notrunc
dd if=/dev/urandom of="$mnt/$long" bs=4k count=2 seek=3 oflag=direct conv=notrunc
ln "$mnt/plain" "$mnt/linked"
dd if=/dev/urandom of="$mnt/plain" bs=4k count=3 seek=5 conv=notrunc,fsync
mkdir "$mnt/directory"
for i in 1 2 3 4 5 6 7 8; do echo $i >"$mnt/directory/file$i"; done
sync
echo 3 >/proc/sys/vm/drop_caches
cat "$mnt/plain" >/dev/null
dd if="$mnt/$long" of=/dev/null bs=64k iflag=direct
rm "$mnt/directory/file1"
sync
sh -c 'echo $$ >early.pid; exec /usr/local/bin/dd if=/dev/urandom of="$0/early" bs=64k count=8 conv=fsync' "$mnt"
sh -c 'echo $$ >late.pid; exec /usr/local/bin/dd if=/dev/urandom of="$0/late" bs=64k count=8' "$mnt"
sync
dd if="$loop" of=/dev/null bs=1M count=4 iflag=direct
END

# both NAME: records work on the new filesystem with both. Direct IO is split into several requests.
both() {
	step "$1"
	out=/tmp/out/same-$1
	long=$(printf '%0255d' 1)
	echo 16 >"/sys/block/$(basename "$loop")/queue/max_sectors_kb"
	put "$(basename "$loop")" dev
	put all names
	record_start "$out.stream"
	mostrace record -d "$loop" -o "$out.most" --entries bpf --files all --sync --no-snapshot -- \
		sh work.sh "$mnt" "$long" "$loop" || fail "record: $?"
	record_stop
	filefrag -e -b512 "$mnt/$long" >"$out.extents"
	for name in early late; do echo "$name $(cat $name.pid)"; done >"$out.writers"
	check_nothing_lost
	entries=$(cat "$class"/entries)
	[ "$entries" -gt 100 ] || fail "$1: $entries entries"
	info "$1: $entries entries"
	remove
}

load
fresh_ext4 64 -b 4096
both ext4
fresh_ext4 64 -b 1024 -- data=journal
both data-journal
fresh_f2fs 128
# From 7.x on, iomap's struct of a direct bio is then part of one of f2fs's own.
iostat=/sys/fs/f2fs/$(basename "$loop")/iostat_enable
[ ! -e "$iostat" ] || { echo 1 >"$iostat" && info "f2fs: iostat"; }
both f2fs
fresh_vfat 64
both vfat
unload
check_kernel
