# SPDX-License-Identifier: MIT OR Apache-2.0
# A kernel whose BTF comes only from a file (--btf), like a kernel built without BTF: the kernel's own BTF is hidden
# from the recorder and given to it as a file. The bundles go to the host.
cp /sys/kernel/btf/vmlinux vmlinux.btf
: >none

# sqlite BUNDLE OPTION…: records SQLite by the probes.
sqlite() {
	bundle=$1
	shift
	step "record $bundle"
	mostrace record -d "$loop" -o "$bundle" --source bpf --entries bpf --causes none --sync "$@" -- \
		mostrace workload sqlite --transactions 50 --overwrite "$mnt/test.db"
}

for type in ext4 f2fs; do
	fresh_$type 128
	sqlite "$type-own.most"
	mount -o bind none /sys/kernel/btf/vmlinux
	! sqlite "$type-none.most" 2>refused || fail "$type: probes without BTF"
	sqlite "$type-given.most" --btf vmlinux.btf
	umount /sys/kernel/btf/vmlinux
	keep "$type-own.most"
	keep "$type-given.most"
	remove
done
