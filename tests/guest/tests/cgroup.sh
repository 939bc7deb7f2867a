# SPDX-License-Identifier: MIT OR Apache-2.0
# Two cgroups (v2) that write and read: what each is said to have submitted is what the kernel counts for it (io.stat), and what it
# caused is told apart. A process that moves is told where it is.

# io NAME WHAT: prints the kernel's count of the cgroup for $loop.
io() {
	dev=$(cat "/sys/block/$(basename "$loop")/dev")
	sed -n "s/^$dev .*$2=\([0-9]*\).*/\1/p" "$groups/apps/$1/io.stat"
}

# ours BY VALUES COLUMN: prints the column of the row that begins with the values.
ours() {
	mostrace analyze run.most --by "$1" --format csv >by.csv
	at=$(column "$3" <by.csv)
	awk -F, -v begin="$2," -v at="$at" 'index($0, begin) == 1 { print $at }' by.csv
}

groups=$PWD/groups
mkdir -p "$groups"
mount -t cgroup2 none "$groups"
echo +io >"$groups/cgroup.subtree_control"
mkdir -p "$groups/apps"
echo +io >"$groups/apps/cgroup.subtree_control"
mkdir "$groups/apps/one" "$groups/apps/two"
fresh_ext4 64
for name in one two; do dd if=/dev/zero of="$mnt/$name" bs=64k count=40 conv=fsync 2>/dev/null; done
sync
cat >work.sh <<END
put() { sh -c 'echo \$\$ >'"$groups/apps/\$1/cgroup.procs"'; shift; exec "\$@"' "\$@"; }
put one one dd if=/dev/zero of=$mnt/one bs=64k count=30 oflag=direct conv=notrunc
put two two dd if=/dev/zero of=$mnt/two bs=64k count=12 oflag=direct conv=notrunc
put two two dd if=$mnt/one of=/dev/null bs=64k count=20 iflag=direct
put one one mkdir $mnt/folder
put two two sh -c 'echo \$\$ >$groups/apps/one/cgroup.procs; exec dd if=/dev/zero of=$mnt/moved bs=4k count=5 conv=fsync'
END
step "record"
mostrace record -d "$loop" -o run.most --entries bpf --sync -- sh work.sh
keep run.most
for name in one two; do
	for op in write read; do
		letter=$(echo $op | cut -c1)
		theirs=$(io $name "${letter}bytes")
		mine=$(ours cgroup,op "/apps/$name,$op" "${op}_bytes")
		[ "${mine:-0}" -eq "${theirs:-0}" ] || fail "$name $op: ${mine:-0}, the kernel counts ${theirs:-0}: $(cat by.csv "$groups/apps/$name/io.stat")"
		info "$name $op ${theirs:-0}"
	done
done
[ "$(ours cause_cgroup,cause_comm /apps/one,mkdir write_bytes)" -gt 0 ] || fail "mkdir: $(cat by.csv)"
[ "$(ours cause_cgroup,cause_comm /apps/one,dd write_bytes)" -gt 1966080 ] || fail "one: $(cat by.csv)"
[ -z "$(ours cause_cgroup,cause_comm /apps/two,mkdir write_bytes)" ] || fail "two: $(cat by.csv)"
[ "$(ours dirty_cgroup,role /apps/one,other write_bytes)" -eq 20480 ] || fail "moved: $(cat by.csv)"
remove
umount "$groups" || true
