# SPDX-License-Identifier: MIT OR Apache-2.0
# An NVMe namespace with two paths (multipath): its bios are queued for one disk, and its requests are those of hidden disks.
path=$(awk '$3 ~ /^nvme[0-9]+c[0-9]+n[0-9]+$/ { print $3; exit }' /proc/diskstats)
[ -n "$path" ] || fail "no namespace has paths"
disk=$(echo "$path" | sed 's/c[0-9]*//')
[ ! -d "/sys/block/$disk/mq" ] || fail "$disk has requests"
mostrace doctor -d "/dev/$disk" >doctor.txt
grep "^ok  requests .*of its 2 paths" doctor.txt || fail "$(cat doctor.txt)"

/usr/local/bin/mke2fs -q -t ext4 -E lazy_itable_init=0 "/dev/$disk"
mnt=$PWD/mnt
mkdir -p "$mnt"
mount -t ext4 -o noatime "/dev/$disk" "$mnt"
mostrace record -d "/dev/$disk" -o paths.most --files all --sync -- \
	mostrace workload sqlite --transactions 50 --overwrite "$mnt/test.db" 2>record.err || fail "$(cat record.err)"
cat record.err
grep -q ' events (bpf)' record.err || fail "$(cat record.err)"
grep -q "^mostrace: the kernel's counters agree$" record.err || fail "$(cat record.err)"
check_bundle paths.most

# written COUNTER-FILE: the sectors that were written, by a disk's counters.
written() {
	awk '{ print $7 }' "/sys/block/$1/stat"
}
step "bytes by the paths' own counters"
paths=$(awk -v d="$disk" '{ name = $3; sub(/c[0-9]+/, "", name) } name == d && $3 != d { print $3 }' /proc/diskstats)
before=0 after=0
for path in $paths; do
	before=$((before + $(written "$path")))
done
mostrace record -d "/dev/$disk" -o dd.most --no-snapshot --sync -- \
	/usr/local/bin/dd if=/dev/zero of="$mnt/f" bs=64k count=50 oflag=direct 2>record.err || fail "$(cat record.err)"
for path in $paths; do
	after=$((after + $(written "$path")))
done
mostrace analyze dd.most --by op --format csv >ops.csv
bytes=$(awk -F, -v c="$(column write_bytes <ops.csv)" '$1 == "write" { print $c }' ops.csv)
[ "$bytes" -eq $(((after - before) * 512)) ] || fail "$bytes, by the paths $(((after - before) * 512))"
mostrace analyze dd.most --by comm --format csv >tasks.csv
grep -q '^dd,' tasks.csv || fail "$(cat tasks.csv)"

step "the block tracer of such a disk sees no requests"
for source in blktrace tracefs; do
	! mostrace record -d "/dev/$disk" -o no.most --source $source -w 1 2>refused.err || fail "$source was accepted"
	grep -q 'paths (NVMe multipath)' refused.err || fail "$source: $(cat refused.err)"
done
umount "$mnt"
