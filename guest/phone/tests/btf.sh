# SPDX-License-Identifier: MIT OR Apache-2.0
# A kernel whose BTF only a file tells (--btf), as one that was built without: hidden from the recorder, the kernel's own is given to it.
# The bundles go to the host.
cp /sys/kernel/btf/vmlinux vmlinux.btf
: >none

# sqlite BUNDLE OPTION…
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
