# SPDX-License-Identifier: MIT OR Apache-2.0
# A kernel whose BTF only a file tells (--btf): hidden from the recorder, the kernel's own is given to it. The probes that copy what they
# read have the most on their stack, of which kernels count more or less.
cp /sys/kernel/btf/vmlinux vmlinux.btf
: >none
fresh_ext4 64 -b 4096
mount -o bind none /sys/kernel/btf/vmlinux
step "record"
mostrace record -d "$loop" -o given.most --source bpf --entries bpf --causes none --btf vmlinux.btf --sync -- \
	mostrace workload sqlite --transactions 30 "$mnt/test.db" || refused=yes
umount /sys/kernel/btf/vmlinux
[ -z "${refused:-}" ] || fail "no probes by a file"
check_bundle given.most
check_temporary given.most test.db-journal 30
check_kinds given.most descriptor metadata_copy commit regular
remove
